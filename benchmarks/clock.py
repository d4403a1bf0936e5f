"""Views that ask the time: what a tick of the clock costs, at two sizes of the table.

A view counts the rows with ``ts > now()`` of a table; each tick of the clock lets ten of them go. DuckDB computes the
same count from scratch, which is what a tick is held against.
"""

from __future__ import annotations

import datetime as dt
import statistics
import time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from figures import AtLeast, AtMost, Findings
from isolate import answer, measured
from scale import Scale

import everview as ev

START = dt.datetime(2030, 1, 1)
EVERY = 100  # milliseconds between rows
FALL_DUE = 10  # rows at each tick
WARMUP = 100
SIZES = (100_000, 1_000_000)


def ticks(rows: int, count: int) -> dict[str, Any]:
    """Microseconds of CPU of a tick of the clock, and of DuckDB's answer, median."""
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP NOT NULL)")
    db.advance(START)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t WHERE ts > now()")
    moments = np.datetime64(START, "us") + np.arange(1, rows + 1) * np.timedelta64(EVERY, "ms")
    columns = {"id": np.arange(rows), "ts": pa.array(moments)}
    db.apply({"t": pa.table(columns | {"_weight": np.ones(rows, np.int64)})})
    seconds: list[float] = []
    now = START
    for _ in range(WARMUP + count):
        now += dt.timedelta(milliseconds=EVERY * FALL_DUE)
        began = time.process_time()
        db.advance(now)
        seconds.append(time.process_time() - began)
    assert db.view("v").rows() == [(rows - FALL_DUE * (WARMUP + count),)]
    return {"tick": 1e6 * statistics.median(seconds[WARMUP:]), "duckdb": 1e6 * _recomputed(pa.table(columns), now)}


def _recomputed(table: pa.Table, now: dt.datetime) -> float:
    duck = duckdb.connect()
    duck.register("given", table)
    duck.execute("CREATE TABLE t AS FROM given")
    seconds: list[float] = []
    for _ in range(20):
        began = time.process_time()
        duck.execute(f"SELECT COUNT(*) FROM t WHERE ts > TIMESTAMP '{now}'").fetchall()
        seconds.append(time.process_time() - began)
    return statistics.median(seconds)


def findings(scale: Scale) -> Findings:
    found = Findings("The clock")
    few, many = (measured("clock.py", rows=rows, count=scale.one_row_ticks) for rows in SIZES)
    found.add(f"a tick of the clock over {SIZES[1]:,} rows, of which {FALL_DUE} go, median", many["tick"], "µs")
    found.add(
        f"the same over {SIZES[0]:,} rows: how many times as long at {SIZES[1]:,}",
        many["tick"] / few["tick"],
        "times",
        AtMost(1.5),
    )
    found.add(
        f"DuckDB counting {SIZES[1]:,} rows from scratch takes",
        many["duckdb"] / many["tick"],
        "times as long",
        AtLeast(1),
    )
    found.raw = {"few": few, "many": many}
    return found


if __name__ == "__main__":
    answer(ticks)
