"""Everview's part of the native benchmark: the four workloads at the circuit and through the database.

There are four ways in. `circuit` hands matrices of 64-bit words to a circuit made by hand, which is what the peers'
programs do, too: rows are arrays of integers there. `tables` hands Arrow tables to the same circuit. `arrow` and
`tuples` go through `db.apply` of a database whose views are written in SQL, with ticks as Arrow tables or as lists of
(row, weight). A tick is timed from its rows, as they are handed over, to the change of the view in the same form. The
load is Arrow for all.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from isolate import answer
from native_data import SIZES, TINY, Name, Sizes, Trail, files, rows_of, ticks_of

import everview as ev
from everview.circuit import Circuit, incrementalize
from everview.multiway import Atom, join
from everview.runtimes.embedded import Embedded

Way = Literal["circuit", "tables", "arrow", "tuples"]
Taken = tuple[float, float]  # seconds by the clock, and in CPU time
VIEW = "found"
WEIGHT = "_weight"
ONE_THREAD = {"threads": 1} if "threads" in inspect.signature(ev.connect).parameters else {}


@dataclass(frozen=True, slots=True)
class Definition:
    """Columns by relation, of which the last one changes, and the view, as a circuit and in SQL."""

    relations: dict[str, tuple[str, ...]]
    circuit: Callable[[dict[str, Any]], Any]
    sql: str
    keys: dict[str, str]

    @property
    def changing(self) -> str:
        return list(self.relations)[-1]


# -- the views


def _totals(given: dict[str, Any]) -> Any:
    joined = given["orders"].join(given["customers"], ("customer", "id"), select=["nation", "amount"])
    return joined.aggregate(["nation"], total=("sum", "amount"), n="count")


def _reached(given: dict[str, Any]) -> Any:
    loop = given["edges"].circuit.child("reached")
    reached, again = loop.feedback(given["roots"].schema)
    onward = reached.join(loop.enter(given["edges"]), ("node", "a"), select=["right.b as node"])
    every = (loop.enter(given["roots"]) + onward).distinct()
    again(every)
    return loop.leave(every)


def _paths(given: dict[str, Any]) -> Any:
    loop = given["edges"].circuit.child("paths")
    edges = loop.enter(given["edges"])
    path, again = loop.feedback(given["edges"].schema)
    paths = (edges + path.join(edges, ("b", "a"), select=["left.a", "right.b"])).distinct()
    again(paths)
    return loop.leave(paths)


def _triangles(given: dict[str, Any]) -> Any:
    return join([Atom(given["edges"], atom) for atom in ("ab", "ac", "bc")], select=()).aggregate(n="count")


DEFINITIONS: dict[Name, Definition] = {
    "orders": Definition(
        {"customers": ("id", "nation"), "orders": ("id", "customer", "amount")},
        _totals,
        "SELECT c.nation, sum(o.amount) AS total, count(*) AS n "
        "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.nation",
        {"customers": "id", "orders": "id"},
    ),
    "reachability": Definition(
        {"roots": ("node",), "edges": ("a", "b")},
        _reached,
        "WITH RECURSIVE reached(node) AS ("
        "SELECT node FROM roots UNION SELECT e.b FROM reached r JOIN edges e ON r.node = e.a) "
        "SELECT node FROM reached",
        {},
    ),
    "closure": Definition(
        {"edges": ("a", "b")},
        _paths,
        "WITH RECURSIVE paths(a, b) AS ("
        "SELECT a, b FROM edges UNION SELECT p.a, e.b FROM paths p JOIN edges e ON p.b = e.a) "
        "SELECT a, b FROM paths",
        {},
    ),
    "triangles": Definition(
        {"edges": ("a", "b")},
        _triangles,
        "SELECT count(*) AS n FROM edges ab JOIN edges ac ON ab.a = ac.a JOIN edges bc ON ab.b = bc.a AND ac.b = bc.b",
        {},
    ),
}


# -- the ways in


class ByTables:
    """A circuit made by hand, from Arrow to Arrow."""

    def __init__(self, view: Definition) -> None:
        circuit, self._view = Circuit(), view
        given = {name: circuit.source(name, _columns(view, name)) for name in view.relations}
        view.circuit(given).sink(VIEW)
        self._run = Embedded(incrementalize(circuit))

    def apply(self, changes: dict[str, Any]) -> Any:
        """The change of the view that these changes make."""
        return self._run.tick(changes)[VIEW].to_arrow()

    def load(self, changes: dict[str, pa.Table]) -> Any:
        return self.apply(changes)

    def contents(self) -> list[np.ndarray]:
        """What the view shows of empty relations: in SQL, a count of nothing is a row."""
        return _numbers(self._run.view(VIEW).to_arrow())

    def prepared(self, changes: np.ndarray) -> Any:
        """The rows of a tick in the form that is handed over."""
        return _table(self._view.relations[self._view.changing], changes)

    def columns(self, change: Any) -> list[np.ndarray]:
        """The columns of a change, the weights last."""
        return _numbers(change)


class ByCircuit(ByTables):
    """A circuit made by hand, from matrices of words to matrices of words: a whole number is its own word."""

    def apply(self, changes: dict[str, Any]) -> Any:
        run = self._run
        cells = {self._sources[name]: words for name, words in changes.items()}
        return run.advance([cells], run.dictionary.mark())[VIEW]

    def load(self, changes: dict[str, pa.Table]) -> Any:
        self._sources = self._run.program.circuit.sources
        return self._run.tick(changes)[VIEW]

    def prepared(self, changes: np.ndarray) -> Any:
        return np.ascontiguousarray(changes, np.int64)

    def columns(self, change: Any) -> list[np.ndarray]:
        return super().columns(change.to_arrow())


class ByArrow(ByTables):
    """The database, from Arrow to Arrow."""

    def __init__(self, view: Definition) -> None:
        self._view = view
        self._db = ev.connect(**ONE_THREAD)
        for name in view.relations:
            self._db.sql(f"CREATE TABLE {name} ({_columns(view, name)}{_key(view, name)})")
        self._db.sql(f"CREATE MATERIALIZED VIEW {VIEW} AS {view.sql}")

    def contents(self) -> list[np.ndarray]:
        return _numbers(self._db.view(VIEW).to_arrow())

    def apply(self, changes: dict[str, Any]) -> Any:
        return self._db.apply(changes)[VIEW].to_arrow()


class ByTuples(ByArrow):
    """The database, from pairs of tuple and weight to the same."""

    def apply(self, changes: dict[str, Any]) -> Any:
        return list(self._db.apply(changes)[VIEW])

    def load(self, changes: dict[str, pa.Table]) -> Any:
        return ByArrow.apply(self, changes)

    def prepared(self, changes: np.ndarray) -> Any:
        return [(tuple(row), weight) for *row, weight in changes.tolist()]

    def columns(self, change: Any) -> list[np.ndarray]:
        if isinstance(change, pa.Table):
            return super().columns(change)
        width = len(change[0][0]) + 1 if change else 1
        return list(np.array([(*row, weight) for row, weight in change], np.int64).reshape(-1, width).T)


ENTRIES: dict[Way, Callable[[Definition], ByTables]] = {
    "circuit": ByCircuit,
    "tables": ByTables,
    "arrow": ByArrow,
    "tuples": ByTuples,
}


def _columns(view: Definition, relation: str) -> str:
    return ", ".join(f"{name} BIGINT NOT NULL" for name in view.relations[relation])


def _key(view: Definition, relation: str) -> str:
    return f", PRIMARY KEY ({view.keys[relation]})" if relation in view.keys else ""


def _numbers(table: pa.Table) -> list[np.ndarray]:
    return [table[name].cast(pa.int64()).to_numpy() for name in table.column_names]


def _table(names: Iterable[str], changes: np.ndarray) -> pa.Table:
    return pa.table([pa.array(np.ascontiguousarray(column)) for column in changes.T], names=[*names, WEIGHT])


# -- the measure, in a process of its own


def measure(name: Name, sizes: str, way: Way) -> dict[str, Any]:
    """Load a workload, run its ticks, and say what that took and where it led.

    What is slow or large only once, such as code that is loaded, is met by a tiny workload before.
    """
    driven(name, TINY, way)
    idle = _memory("VmRSS")
    _forget_peak()
    return driven(name, SIZES[sizes], way) | {"idle": idle, "peak": _memory("VmHWM")}


def driven(name: Name, sizes: Sizes, way: Way) -> dict[str, Any]:
    """What the load and the ticks took, by the clock and in CPU time, and the digest of all contents on the way."""
    view, folder, trail = DEFINITIONS[name], files(name, sizes), Trail()
    entry = ENTRIES[way](view)
    trail.begin(entry.contents())
    loaded, load = _timed(entry.load, _first(view, folder))
    _note(trail, entry, [loaded])
    ticks = {}
    for size, count in sizes.plans[name].items():
        changes = ticks_of(folder, size, count, len(view.relations[view.changing]) + 1)
        runs = [_timed(entry.apply, {view.changing: entry.prepared(each)}) for each in changes]
        _note(trail, entry, [change for change, _ in runs])
        ticks[str(size)] = _summary([taken for _, taken in runs])
    return {"load": {"seconds": load[0], "cpu": load[1]}, "ticks": ticks, "digest": trail.digest, "rows": trail.rows}


def _timed(apply: Callable[[dict[str, Any]], Any], changes: dict[str, Any]) -> tuple[Any, Taken]:
    """What is made of changes; and seconds by the clock and in CPU time."""
    worked, began = time.process_time(), time.perf_counter()
    change = apply(changes)
    return change, (time.perf_counter() - began, time.process_time() - worked)


def _note(trail: Trail, entry: ByTables, changes: list[Any]) -> None:
    """Take the digests of changes, when all ticks of a size are over.

    The peers' digest is a few instructions. Ours is libraries' calls, after which the next tick would find another's
    code and data in the processor's caches.
    """
    for change in changes:
        *columns, weights = entry.columns(change)
        trail.add(columns, weights)


def _first(view: Definition, folder: Path) -> dict[str, pa.Table]:
    """The contents of every relation, as changes."""
    found = {}
    for name, columns in view.relations.items():
        rows = rows_of(folder, name, len(columns))
        found[name] = _table(columns, np.column_stack([rows, np.ones(len(rows), np.int64)]))
    return found


def _summary(taken: list[Taken]) -> dict[str, float]:
    seconds, cpu = zip(*taken, strict=True)
    return {"median": median(seconds), "cpu": median(cpu), "mean_cpu": mean(cpu)}


def _memory(field: str) -> int:
    """Bytes of this process, by the name that Linux has for them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith(f"{field}:"))
    return int(found.split()[1]) * 1_024


def _forget_peak() -> None:
    """Let the peak begin anew from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    answer(measure)
