"""DuckDB recomputing the queries of TPC-H after each refresh tick has been applied to its tables.

Its best shot: all cores, and tables in memory. The application of the changes is timed by itself: a query alone takes
that and its own time, all queries together take it once.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import duckdb
from isolate import answer
from tpch_stream import KEYS, NAMES, QUERIES, digest, table, tick


def measure(home: str, ticks: int) -> dict[str, Any]:
    db = duckdb.connect()
    began = time.perf_counter()
    for name in NAMES:
        db.register("given", table(Path(home), name))
        db.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    load = time.perf_counter() - began
    for query in QUERIES.values():
        db.sql(query).to_arrow_table()  # touches the code first
    seconds: dict[int, list[float]] = {number: [] for number in QUERIES}
    cpu: dict[int, list[float]] = {number: [] for number in QUERIES}
    found: dict[int, Any] = {}
    applied: list[tuple[float, float]] = []
    for at in range(ticks):
        applied.append(apply(db, Path(home), at))
        for number, query in QUERIES.items():
            began, used = time.perf_counter(), time.process_time()
            found[number] = db.sql(query).to_arrow_table()
            seconds[number].append(time.perf_counter() - began)
            cpu[number].append(time.process_time() - used)
    return {
        "load": load,
        "applied": min(seconds for seconds, _ in applied),
        "applied_cpu": min(cpu for _, cpu in applied),
        "seconds": {number: min(each) for number, each in seconds.items()},
        "cpu": {number: min(each) for number, each in cpu.items()},
        "digests": {number: digest([c.to_pylist() for c in each.columns]) for number, each in found.items()},
        "version": duckdb.__version__,
    }


def apply(db: duckdb.DuckDBPyConnection, home: Path, number: int) -> tuple[float, float]:
    """Apply a tick; how long it took, and its CPU time."""
    changes = tick(home, number)
    began, used = time.perf_counter(), time.process_time()
    for name, rows in changes.items():
        db.register("tick", rows)
        same = " AND ".join(f"{name}.{column} = tick.{column}" for column in KEYS[name])
        db.execute(f"DELETE FROM {name} USING tick WHERE {same} AND _weight < 0")
        db.execute(f"INSERT INTO {name} SELECT * EXCLUDE _weight FROM tick WHERE _weight > 0")
    return time.perf_counter() - began, time.process_time() - used


if __name__ == "__main__":
    answer(measure)
