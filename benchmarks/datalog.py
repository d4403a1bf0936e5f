"""Datalog: views by rules kept up to date beside computing them anew, and how long rules take to become a circuit.

Computing anew is the same circuit fed from empty with all that the tables hold. A tick changes 0.05 % of the facts, or
two where that is less. The times of ticks are medians after a few that warm up. A program is 100 rules; its time runs
from the text to a database that takes changes, the first one of a process with the grammar and the kernels to load.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from figures import AtLeast, AtMost, Findings
from graphs import PAUSE, Graph, digest, stream
from isolate import answer, measured
from scale import FULL, QUICK, Scale
from statements import edits

from everview import connect
from everview.database import Database

CHURN = 0.0005
RULES = 100
WARM = 3  # ticks that do not count

POINTS = """
.decl new(v: number, o: number)
.decl assign(v: number, w: number)
.decl load(v: number, w: number)
.decl store(v: number, w: number)
.input new, assign, load, store
.decl found(v: number, o: number)

found(v, o) :- new(v, o).
found(v, o) :- assign(v, w), found(w, o).
found(v, o) :- load(v, w), found(w, p), found(p, o).
found(p, o) :- store(v, w), found(v, p), found(w, o).
"""
CLOSURE = """
.decl edge(a: number, b: number)
.input edge
.decl found(a: number, b: number)

found(x, y) :- edge(x, y).
found(x, z) :- found(x, y), edge(y, z).
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Statements and variables of a program, the graph of a closure, and how many ticks and recomputations."""

    statements: int
    variables: int
    closure: Graph
    ticks: int
    recomputes: int


SIZES = {
    FULL: Sizes(100_000, 60_000, Graph("closure", 5_800, 20_180, 290), ticks=30, recomputes=3),
    QUICK: Sizes(20_000, 12_000, Graph("closure", 1_160, 4_036, 290), ticks=10, recomputes=2),
}

Facts = dict[str, Any]


# -- the measures, each in a process of its own


def measure(part: str, **parameters: Any) -> dict[str, Any]:
    return {"points": points_of, "closure": closure_of, "rules": rules_of}[part](**parameters)


def points_of(statements: int, variables: int, ticks: int, recomputes: int) -> dict[str, Any]:
    given = edits(statements, variables, max(2, round(CHURN * statements)), ticks + WARM)
    start, end = ({kind: _weighted(kind, rows) for kind, rows in facts.items()} for facts in (given.start, given.end))
    return churned(POINTS, start, list(given.ticks), end, recomputes)


def closure_of(nodes: int, edges: int, block: int, ticks: int, recomputes: int) -> dict[str, Any]:
    given = stream(Graph("closure", nodes, edges, block), max(2, round(CHURN * edges)), ticks + WARM)
    changes = [{"edge": _table("edge", delta)} for delta in given.ticks]
    start, end = ({"edge": _weighted("edge", edges)} for edges in (given.start, given.end))
    return churned(CLOSURE, start, changes, end, recomputes)


def churned(text: str, start: Facts, ticks: list[Facts], end: Facts, recomputes: int) -> dict[str, Any]:
    """Load facts, change them tick by tick, and load what they have become anew."""
    _touch(text, start)
    db, load = _loaded(text, start)
    facts = len(db.view("found"))
    taken = [_ticked(db, changes) for changes in ticks][WARM:]
    anew = [_loaded(text, end) for _ in range(recomputes)]
    assert all(_digest(other) == _digest(db) for other, _ in anew), "the views differ"
    return {
        "facts": facts,
        "load": load,
        "tick": median(seconds for seconds, _ in taken),
        "out": median(rows for _, rows in taken),
        "anew": min(seconds for _, seconds in anew),
    }


def _loaded(text: str, facts: Facts) -> tuple[Database, float]:
    db = connect()
    db.datalog(text)
    began = time.perf_counter()
    db.apply(facts)["found"].to_arrow()
    return db, time.perf_counter() - began


def _ticked(db: Database, changes: Facts) -> tuple[float, int]:
    time.sleep(PAUSE)
    began = time.perf_counter()
    found = db.apply(changes)["found"]
    found.to_arrow()
    return time.perf_counter() - began, len(found)


def _touch(text: str, facts: Facts) -> None:
    """Run all kernels once."""
    few = {name: rows.slice(0, 50) for name, rows in facts.items()}
    db, _ = _loaded(text, few)
    for sign in (-1, 1):
        db.apply({name: _signed(rows.slice(0, 3), sign) for name, rows in few.items()})


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    return rows.set_column(2, "_weight", pa.array([sign] * len(rows)))


def _weighted(table: str, rows: Any) -> pa.Table:
    pairs = np.array(rows, np.int64).reshape(-1, 2)
    return _table(table, np.column_stack([pairs, np.ones(len(pairs), np.int64)]))


def _table(table: str, delta: np.ndarray) -> pa.Table:
    names = {"edge": ["a", "b"], "new": ["v", "o"]}.get(table, ["v", "w"])
    return pa.table([pa.array(column) for column in delta.T], names=[*names, "_weight"])


def _digest(db: Database) -> list[int]:
    found: Any = db.view("found").to_arrow()
    return digest(np.column_stack([column.to_numpy() for column in found.columns]))


def rules_of(kind: str) -> dict[str, Any]:
    """The first program of a process, and others after it."""
    taken = [_ready({"chain": chain_of_rules, "ring": ring_of_rules}[kind](RULES)) for _ in range(4)]
    return {"first": taken[0], "later": min(taken[1:])}


def _ready(text: str) -> float:
    db = connect()
    began = time.perf_counter()
    db.datalog(text)
    return time.perf_counter() - began


DECLARED = """
.decl edge(a: number, b: number)
.decl node(a: number)
.decl bad(a: number)
.input edge, node, bad
"""


def chain_of_rules(count: int) -> str:
    """Closures, joins and negations, each layer over the one below."""
    lines = [DECLARED]
    for at in range(count // 4):
        below = "edge" if at == 0 else f"path{at - 1}"
        lines += [
            f"path{at}(x, y) :- {below}(x, y), node(x).",
            f"path{at}(x, z) :- path{at}(x, y), edge(y, z), node(z).",
            f"both{at}(x) :- path{at}(x, y), path{at}(y, x), !bad(x).",
            f"lone{at}(x) :- node(x), !both{at}(x).",
        ]
    return "\n".join(lines)


def ring_of_rules(count: int) -> str:
    """Relations that all read each other: one loop of many."""
    many = (count - 1) // 2 + 1
    lines = [DECLARED, "r0(x, y) :- edge(x, y)."]
    for at in range(many):
        lines.append(f"r{(at + 1) % many}(x, z) :- r{at}(x, y), edge(y, z).")
        lines.append(f"r{(at + 7) % many}(x, y) :- r{at}(x, y), node(y).")
    return "\n".join(lines[: count + 1])


# -- the findings


def findings(scale: Scale) -> Findings:
    found, sizes = Findings("Datalog"), SIZES[scale]
    graph = sizes.closure
    times = {"ticks": sizes.ticks, "recomputes": sizes.recomputes}
    program = {"statements": sizes.statements, "variables": sizes.variables}
    given = {"nodes": graph.nodes, "edges": graph.edges, "block": graph.block}
    _churn(found, f"points-to, {sizes.statements:,} statements", "points", program | times, scale.rounds)
    _churn(found, f"closure, {graph.edges:,} edges", "closure", given | times, scale.rounds)
    for kind, what in (("chain", "in layers"), ("ring", "that all read each other")):
        runs = [measured("datalog.py", part="rules", kind=kind) for _ in range(scale.rounds)]
        later = min(run["later"] for run in runs)
        found.add(f"{RULES} rules {what}, to a ready circuit", later, "s", AtMost(0.5))
        found.add(f"{RULES} rules {what}, the first in a process", min(run["first"] for run in runs), "s")
        found.raw[f"rules-{kind}"] = runs
    return found


def _churn(found: Findings, name: str, part: str, given: dict[str, Any], rounds: int) -> None:
    runs = [measured("datalog.py", part=part, **given) for _ in range(rounds)]
    tick, anew = min(run["tick"] for run in runs), min(run["anew"] for run in runs)
    name = f"{name}, {runs[0]['facts']:,} facts"
    found.add(f"{name}: a tick of 0.05 %", tick * 1e3, "ms")
    found.add(f"{name}: anew", anew * 1e3, "ms")
    found.add(f"{name}: anew / a tick", anew / tick, "times", AtLeast(20))
    found.raw[part] = {"runs": runs} | given


if __name__ == "__main__":
    answer(measure)
