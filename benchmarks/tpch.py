"""The 22 queries of TPC-H kept as views under refresh ticks, beside DuckDB recomputing them.

All of them in one database, where the tables, and what views share, are kept once: that is what the total is held
against, the sum of DuckDB's queries and of applying the changes. And each alone over the same tables, for the table by
query. A tick is timed from Arrow in to Arrow out, and has the upkeep of the tables in it, every time; so has DuckDB's
time for a query alone. Both may use all cores. CPU times are there for machines that have other work, too.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from figures import AtLeast, AtMost, Findings
from isolate import PEERS, answer, measured
from scale import Scale
from tpch_stream import NAMES, QUERIES, TABLES, digest, same, stream, table, tick

import everview as ev
from everview.database.database import Database

READY = 5  # times that a view is made of an empty database; the fastest counts


def measure(home: str, ticks: int) -> dict[str, Any]:
    """Load, views, ticks: all queries in one database."""
    db = ev.connect()
    load = _loaded(db, Path(home))
    tables = _bytes(db)
    began, used = time.perf_counter(), time.process_time()
    for number in QUERIES:
        _make(db, number)
    made, made_cpu = time.perf_counter() - began, time.process_time() - used
    state = _bytes(db) - tables
    found = _ticked(db, Path(home), ticks, 1)
    digests = {number: _digest(db, number) for number in QUERIES}
    load, load_cpu = load
    loaded = {"load": load, "load_cpu": load_cpu, "views": made, "views_cpu": made_cpu}
    return {**loaded, **found, "tables": tables, "state": state, "digests": digests}


def alone(home: str, ticks: int) -> dict[str, Any]:
    """Each view alone over the same tables: made, ticked, dropped; then the ticks are taken back."""
    db = ev.connect()
    _loaded(db, Path(home))
    tables = _bytes(db)
    found: dict[int, Any] = {}
    for number in QUERIES:
        _make(db, number)
        state = _bytes(db) - tables
        found[number] = _ticked(db, Path(home), ticks, 1) | {"state": state, "digest": _digest(db, number)}
        db.drop(f"q{number}")
        _ticked(db, Path(home), ticks, -1)
    return {str(number): each for number, each in found.items()}


def ready() -> dict[str, Any]:
    """SQL text to ready circuit, over empty tables."""
    db = ev.connect()
    db.sql(TABLES)
    found: dict[int, list[float]] = {number: [] for number in QUERIES}
    for _ in range(READY):
        for number in QUERIES:
            began = time.perf_counter()
            _make(db, number)
            found[number].append(time.perf_counter() - began)
            db.drop(f"q{number}")
    return {str(number): min(each) for number, each in found.items()}


def _make(db: Database, number: int) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW q{number} AS {QUERIES[number]}")


def _loaded(db: Database, home: Path) -> tuple[float, float]:
    """Load all tables; how long it took, and its CPU time."""
    db.sql(TABLES)
    seconds = cpu = 0.0
    for name in NAMES:
        rows = table(home, name)
        began, used = time.perf_counter(), time.process_time()
        with db.transaction() as tx:
            tx.insert(name, rows)
        seconds, cpu = seconds + time.perf_counter() - began, cpu + time.process_time() - used
    return seconds, cpu


def _ticked(db: Database, home: Path, ticks: int, sign: int) -> dict[str, float]:
    """Ticks, or the same ticks taken back: the fastest, the median, and the least CPU time."""
    seconds: list[float] = []
    cpu: list[float] = []
    for number in range(ticks):
        changes = tick(home, number, sign)
        began, used = time.perf_counter(), time.process_time()
        for changed in db.apply(changes).values():
            changed.to_arrow()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    return {"seconds": min(seconds), "median": float(np.median(seconds)), "cpu": min(cpu)}


def _bytes(db: Database) -> int:
    return sum(trace.past.nbytes for trace, _, _ in db._core.run.state)


def _digest(db: Database, number: int) -> dict[str, Any]:
    return digest([column.to_pylist() for column in db.view(f"q{number}").to_arrow().columns])


def findings(scale: Scale) -> Findings:
    found = Findings(f"TPC-H at scale factor {scale.tpch:g}")
    some: dict[str, Any] = {"home": str(stream(scale.tpch, scale.tpch_ticks)), "ticks": scale.tpch_ticks}
    theirs = [measured("peers/duckdb_tpch.py", PEERS, **some)]
    whole = measured("tpch.py", what="measure", **some)
    single = measured("tpch.py", what="alone", **some)
    theirs.append(measured("peers/duckdb_tpch.py", PEERS, **some))
    texts = measured("tpch.py", what="ready")
    expected, kept = theirs[0].pop("digests"), whole.pop("digests")
    del theirs[1]["digests"]
    for number in expected:
        for ours in (kept[number], single[number].pop("digest")):
            if not same(ours, expected[number]):
                raise SystemExit(f"query {number}: {ours}, and DuckDB has {expected[number]}")
    best = {number: min(each["seconds"][number] for each in theirs) for number in expected}
    least = {number: min(each["cpu"][number] for each in theirs) for number in expected}
    applied = [min(each[what] for each in theirs) for what in ("applied", "applied_cpu")]
    _report(found, whole, single, best, applied[0])
    _report_cpu(found, whole, single, least, applied[1])
    _report_texts(found, texts)
    found.raw = {"duckdb": theirs, "whole": whole, "alone": single, "ready": texts}
    return found


def _report(found: Findings, whole: Any, single: Any, best: dict[str, float], applied: float) -> None:
    total = sum(best.values()) + applied
    found.add("load of all tables", whole["load"], "s", AtMost(5))
    found.add("the 22 views made over them", whole["views"], "s", AtMost(15))
    found.add("a tick, all views in one database", whole["seconds"] * 1e3, "ms")
    found.add("DuckDB, the changes and all queries", total * 1e3, "ms")
    found.add("DuckDB / a tick, in total", total / whole["seconds"], "times", AtLeast(40))
    apart = total + applied * (len(best) - 1)
    found.add("the same, each view alone", apart / sum(each["seconds"] for each in single.values()), "times")
    found.add("tables", whole["tables"] / 1e6, "MB")
    found.add("state of all views", whole["state"] / 1e6, "MB")
    found.add("state of all views / tables", whole["state"] / whole["tables"], "times", AtMost(1.5))
    for number, ours in single.items():
        theirs = best[number] + applied
        what = f"query {number}: {_shown(ours['seconds'])} a tick, DuckDB {_shown(theirs)}"
        found.add(f"{what}, state {ours['state'] / 1e6:.1f} MB", theirs / ours["seconds"], "times", AtLeast(3))


def _report_cpu(found: Findings, whole: Any, single: Any, least: dict[str, float], applied: float) -> None:
    """The same by CPU time of all threads, which other work on the machine changes less."""
    found.add("load of all tables, CPU time", whole["load_cpu"], "s")
    found.add("the 22 views made over them, CPU time", whole["views_cpu"], "s")
    total = sum(least.values()) + applied
    found.add("DuckDB / a tick, in total, CPU time", total / whole["cpu"], "times")
    worst = min(single, key=lambda number: (least[number] + applied) / single[number]["cpu"])
    ratio = (least[worst] + applied) / single[worst]["cpu"]
    found.add(f"DuckDB / a tick, the query with the least (query {worst}), CPU time", ratio, "times")


def _report_texts(found: Findings, texts: dict[str, float]) -> None:
    slowest = max(texts, key=texts.__getitem__)
    found.add("SQL text to ready circuit, median", float(np.median(list(texts.values()))) * 1e3, "ms", AtMost(50))
    found.add(f"SQL text to ready circuit, slowest (query {slowest})", texts[slowest] * 1e3, "ms", AtMost(50))


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _chosen(what: str, **parameters: Any) -> dict[str, Any]:
    return {"measure": measure, "alone": alone, "ready": ready}[what](**parameters)


if __name__ == "__main__":
    answer(_chosen)
