"""Nexmark's queries kept as views of a stream of auctions, beside DuckDB recomputing them.

Each query alone: the events of a while are loaded, and ticks of a thousand more arrive. A tick is timed from Arrow in
to Arrow out and has the upkeep of the tables in it; of DuckDB only the query is timed, over the rows after the ticks.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from figures import AtLeast, Findings
from isolate import answer, measured
from scale import Scale

import everview as ev

_TESTS = Path(__file__).parent.parent / "tests"
sys.path.append(str(_TESTS))
_texts = runpy.run_path(str(_TESTS / "nexmark" / "queries.py"))
_events = runpy.run_path(str(_TESTS / "nexmark" / "events.py"))
QUERIES: dict[int, str] = _texts["QUERIES"]
IN_DUCKDB: dict[int, str] = _texts["IN_DUCKDB"]
TICK = 1_000  # events
RECOMPUTED = 3  # times, of which the fastest counts
LEAST = 10  # times as fast as DuckDB


def measure(number: int, loaded: int, ticks: int) -> dict[str, float]:
    """Seconds of CPU: of a tick of a query's view, the median, and of DuckDB's answer."""
    db = ev.connect()
    db.sql(_texts["TABLES"])
    tables: dict[str, pa.Table] = _events["events"](0, loaded).tables | {"side_input": _events["side_input"]()}
    db.apply({name: _weighted(rows) for name, rows in tables.items()})
    db.sql(f"CREATE MATERIALIZED VIEW q AS {QUERIES[number]}")
    seconds: list[float] = []
    for at in range(ticks):
        new = _events["events"](loaded + at * TICK, TICK).tables
        changes = {name: _weighted(rows) for name, rows in new.items()}
        began = time.process_time()
        for changed in db.apply(changes).values():
            changed.to_arrow()
        seconds.append(time.process_time() - began)
        tables |= {name: pa.concat_tables([tables[name], rows]) for name, rows in new.items()}
    recomputed, rows = _recomputed(number, tables)
    if rows != len(db.view("q")):
        raise SystemExit(f"query {number}: {len(db.view('q'))} rows, and DuckDB has {rows}")
    return {"tick": float(np.median(seconds[ticks // 5 :])), "duckdb": recomputed}


def _weighted(rows: pa.Table) -> pa.Table:
    return rows.append_column("_weight", pa.array(np.ones(rows.num_rows, np.int64)))


def _recomputed(number: int, tables: dict[str, pa.Table]) -> tuple[float, int]:
    duck = duckdb.connect()
    for name, rows in tables.items():
        duck.register("rows", rows)
        duck.execute(f"CREATE TABLE {name} AS FROM rows")
    seconds: list[float] = []
    found = pa.table({})
    for _ in range(RECOMPUTED):
        began = time.process_time()
        found = duck.sql(IN_DUCKDB[number]).to_arrow_table()
        seconds.append(time.process_time() - began)
    return min(seconds), found.num_rows


def findings(scale: Scale) -> Findings:
    loaded, ticks = scale.orders, scale.tpch_ticks * 5
    found = Findings(f"Nexmark: ticks of {TICK:,} events after {loaded:,}")
    each = {number: measured("nexmark.py", number=number, loaded=loaded, ticks=ticks) for number in QUERIES}
    for number, one in each.items():
        what = f"query {number}: DuckDB's {one['duckdb'] * 1e3:.3g} ms / a tick's {one['tick'] * 1e3:.3g} ms"
        found.add(f"query {number}, events a second", TICK / one["tick"], "events/s")
        found.add(what, one["duckdb"] / one["tick"], "times", AtLeast(LEAST))
    found.raw = {str(number): one for number, one in each.items()}
    return found


if __name__ == "__main__":
    answer(measure)
