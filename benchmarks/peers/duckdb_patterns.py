"""DuckDB counting patterns in the same graph: once from an Arrow table, or again after every tick.

Its best shot: all cores, tables in memory, the order of the joins is its own choice. Of a tick only the query is timed,
not the application of the changes.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from isolate import answer, give_up_after
from patterns import query
from skewed import stream


def measure(
    pattern: Any, edges: int, per_tick: int, ticks: int, limit: int, first: int | None = None
) -> dict[str, Any]:
    given = stream(edges, per_tick, ticks)
    start = _table(given.start, ("src", "dst"))
    give_up_after(limit)
    db = duckdb.connect()
    began, worked = time.perf_counter(), time.process_time()
    db.register("given", start)
    db.execute("CREATE TABLE edge AS SELECT * FROM given")
    counts = [_count(db, pattern)]
    load = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - worked}
    seconds: list[float] = []
    for delta in given.ticks[:first]:
        db.register("tick", _table(delta, ("src", "dst", "weight")))
        db.execute("DELETE FROM edge USING tick WHERE edge.src = tick.src AND edge.dst = tick.dst AND weight < 0")
        db.execute("INSERT INTO edge SELECT src, dst FROM tick WHERE weight > 0")
        began = time.perf_counter()
        counts.append(_count(db, pattern))
        seconds.append(time.perf_counter() - began)
    return {
        "load": load,
        "tick": {"median": median(seconds), "least": min(seconds)} if seconds else None,
        "counts": counts,
        "version": duckdb.__version__,
        "threads": db.execute("SELECT current_setting('threads')").fetchall()[0][0],
    }


def _count(db: duckdb.DuckDBPyConnection, pattern: Any) -> int:
    ((count,),) = db.execute(query(pattern)).fetchall()
    return count


def _table(rows: np.ndarray, names: tuple[str, ...]) -> pa.Table:
    return pa.table([np.ascontiguousarray(column) for column in rows.T], names=list(names))


if __name__ == "__main__":
    answer(measure)
