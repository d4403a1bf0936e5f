"""DuckDB answering the same question by recomputing it, after each tick has been applied to its tables.

Its best shot: all cores, tables in memory, and only the query is timed, not the application of the changes.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import duckdb
import pyarrow as pa
from isolate import answer
from stream import CHANGE, CUSTOMER, ORDER, changes, customers, digest, orders

QUERY = """
    SELECT country, sum(amount) AS total, count(*) AS n
    FROM orders JOIN customers ON orders.customer = customers.id
    GROUP BY country
"""


def loaded(count: int) -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    for name, columns, values in (("orders", ORDER, orders(count)), ("customers", CUSTOMER, customers())):
        db.register("given", pa.table(list(values), names=list(columns)))
        db.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    return db


def apply(db: duckdb.DuckDBPyConnection, tick: pa.Table) -> None:
    db.register("tick", tick)
    db.execute("DELETE FROM orders USING tick WHERE orders.id = tick.id AND _weight < 0")
    db.execute("INSERT INTO orders SELECT id, customer, amount FROM tick WHERE _weight > 0")


def measure(count: int, per_tick: int, ticks: int) -> dict[str, Any]:
    db = loaded(count)
    deltas = pa.table(list(changes(count, per_tick, ticks)), names=list(CHANGE))
    seconds: list[float] = []
    cpu: list[float] = []
    for tick in range(ticks):
        apply(db, deltas.slice(tick * per_tick, per_tick))
        began, used = time.perf_counter(), time.process_time()
        found = db.sql(QUERY).to_arrow_table()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    return {
        "seconds": min(seconds),
        "median": median(seconds),
        "cpu": min(cpu),
        "digest": digest(*(found[name].to_pylist() for name in ("country", "total", "n"))),
        "version": duckdb.__version__,
        "threads": db.execute("SELECT current_setting('threads')").fetchone()[0],
    }


if __name__ == "__main__":
    answer(measure)
