"""The database as an application meets it: ticks of one row, changes that become durable together, and opening.

The view is written in SQL, over a table with a key: the number and the sum of orders by customer.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from figures import AtLeast, AtMost, Findings
from isolate import answer, measured
from scale import Scale
from stream import DATA

import everview as ev
from everview.database.database import Database

TABLE = "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, amount BIGINT NOT NULL)"
VIEW = """
CREATE MATERIALIZED VIEW totals AS SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer
"""
CUSTOMERS = 1_000
WARMUP = 200
PER_TICK = 1_000  # changes that come together
LOADED = 1_000_000  # rows that a tick of the load inserts


def one_row(ticks: int, view: bool) -> dict[str, Any]:
    """Seconds a tick of one row, in memory."""
    db = ev.connect()
    _define(db, view)
    rows = [{"orders": [((at, at % CUSTOMERS, at), 1)]} for at in range(WARMUP + ticks)]
    for row in rows[:WARMUP]:
        db.apply(row)
    began = time.perf_counter()
    for row in rows[WARMUP:]:
        db.apply(row)
    return {"seconds": (time.perf_counter() - began) / ticks}


def coalesced(changes: int, durability: str) -> dict[str, Any]:
    """Seconds a change that comes with others and is on disk in the end."""
    home = _home()
    try:
        db = ev.connect(home / "state", durability=durability)
        _define(db, True)
        db.apply({"orders": _rows(0, PER_TICK)})
        began = time.perf_counter()
        for start in range(PER_TICK, PER_TICK + changes, PER_TICK):
            db.apply({"orders": _rows(start, PER_TICK)})
        db.checkpoint()
        seconds = (time.perf_counter() - began) / changes
        db.close()
        return {"seconds": seconds}
    finally:
        shutil.rmtree(home)


def stored(home: str, rows: int) -> dict[str, Any]:
    """Fill a state directory."""
    db = ev.connect(Path(home) / "state", durability="none")
    _define(db, True)
    for start in range(0, rows, LOADED):
        db.apply({"orders": _rows(start, min(LOADED, rows - start))})
    db.close()
    return {}


def opened(home: str) -> dict[str, Any]:
    """Seconds until a view of a state directory is read."""
    began = time.perf_counter()
    db = ev.connect(Path(home) / "state")
    seconds = time.perf_counter() - began
    customers = len(db.view("totals"))
    read = time.perf_counter() - began
    db.close()
    return {"seconds": seconds, "read": read, "customers": customers}


def _define(db: Database, view: bool) -> None:
    db.sql(TABLE)
    if view:
        db.sql(VIEW)


def _rows(start: int, count: int) -> pa.Table:
    id = np.arange(start, start + count)
    columns = {"id": id, "customer": id % CUSTOMERS, "amount": id, "_weight": np.ones(count, np.int64)}
    return pa.table(columns)


def _home() -> Path:
    DATA.mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(dir=DATA))


def findings(scale: Scale) -> Findings:
    found = Findings("The database")
    ticks, changes = scale.one_row_ticks, 50 * scale.one_row_ticks
    bare = measured("applied.py", what="one_row", ticks=ticks, view=False)
    kept = measured("applied.py", what="one_row", ticks=ticks, view=True)
    modes = {mode: measured("applied.py", what="coalesced", changes=changes, durability=mode) for mode in MODES}
    home = _home()
    try:
        measured("applied.py", what="stored", home=str(home), rows=scale.trace_rows)
        opens = [measured("applied.py", what="opened", home=str(home)) for _ in range(scale.starts)]
    finally:
        shutil.rmtree(home)
    found.add("one-row ticks, a table with a key", 1 / bare["seconds"], "a second")
    found.add("one-row ticks, with a view of sums", 1 / kept["seconds"], "a second", AtLeast(25_000))
    for mode, each in modes.items():
        target = AtLeast(100_000) if mode == "periodic" else None
        found.add(
            f"durable changes, {PER_TICK:,} a tick, on disk {MODES[mode]}", 1 / each["seconds"], "a second", target
        )
    found.add(f"opening a state of {scale.trace_rows:,} rows", min(o["seconds"] for o in opens), "s", AtMost(1))
    found.add("and reading its view", min(o["read"] for o in opens), "s")
    found.raw = {"one_row": [bare, kept], "coalesced": modes, "opened": opens}
    return found


MODES = {"tick": "every tick", "periodic": "every 0.1 s", "none": "in the end"}


def _chosen(what: str, **parameters: Any) -> dict[str, Any]:
    return {"one_row": one_row, "coalesced": coalesced, "stored": stored, "opened": opened}[what](**parameters)


if __name__ == "__main__":
    answer(_chosen)
