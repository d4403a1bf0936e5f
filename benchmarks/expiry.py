"""Windows that close: what is kept of them, and what a tick costs, with a watermark and without one.

Each tick brings the rows of the next window of a minute. A view counts distinct values and takes the least by window,
another joins each row with those of the two minutes before it. With a watermark the traces hold the open windows only.
"""

from __future__ import annotations

import datetime as dt
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa
from figures import AtMost, Findings
from isolate import answer, measured
from scale import Scale

import everview as ev

START = dt.datetime(2030, 1, 1)
ROWS = 20  # of a window
KEYS = 10
OPENED = 100  # windows, after which it is as it stays
NEAR = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 2 MINUTES AND a.ts"


def windows(count: int, promised: int) -> dict[str, Any]:
    """Rows that traces hold beside tables and views, and microseconds of CPU of a tick, early on and in the end."""
    db = ev.connect()
    promise = ", WATERMARK FOR ts AS ts - INTERVAL 2 MINUTES" if promised else ""
    db.sql(f"CREATE TABLE t (k BIGINT NOT NULL, ts TIMESTAMP NOT NULL, v BIGINT NOT NULL{promise})")
    db.sql(
        "CREATE MATERIALIZED VIEW by_window AS SELECT window_start, k, count(DISTINCT v) AS n, min(v) AS least "
        "FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 1 MINUTE) GROUP BY window_start, k"
    )
    db.sql(f"CREATE MATERIALIZED VIEW near AS SELECT a.k, count(*) AS n FROM t a JOIN t b ON {NEAR} GROUP BY a.k")
    seconds: list[float] = []
    early: dict[str, int] = {}
    for number in range(count):
        rows = _rows(number)
        began = time.process_time()
        db.apply({"t": rows})
        seconds.append(time.process_time() - began)
        if number + 1 == OPENED:
            early = held(db)
    last = held(db)
    assert len(db.view("by_window")) == count * KEYS
    return {
        "held early": sum(early.values()),
        "held": sum(last.values()),
        "tick early": 1e6 * statistics.median(seconds[OPENED // 2 : OPENED]),
        "tick": 1e6 * statistics.median(seconds[-OPENED:]),
    }


def _rows(number: int) -> pa.Table:
    at = np.datetime64(START, "us") + number * np.timedelta64(1, "m") + np.arange(ROWS) * np.timedelta64(2, "s")
    columns = {"k": np.arange(ROWS) % KEYS, "ts": pa.array(at), "v": np.arange(ROWS) * 7 % 11}
    return pa.table(columns | {"_weight": np.ones(ROWS, np.int64)})


def held(db: ev.Database) -> dict[str, int]:
    """The rows that each trace holds which is not the contents of a table or a view."""
    lines = [line for view in db.views() for line in db.explain(view).splitlines() if line.startswith("trace ")]
    told = dict(line.split(" holds ") for line in lines if "the rows of" not in line and "by the TTL" not in line)
    return {trace: int(said.split(", ")[0].replace(",", "")) for trace, said in told.items()}


def findings(scale: Scale) -> Findings:
    found = Findings("Windows that close")
    count = max(2 * OPENED, scale.one_row_ticks // 2)
    bounded = measured("expiry.py", count=count, promised=1)
    few = max(2 * OPENED, count // 10)  # without one, each tick costs more than the one before
    whole = measured("expiry.py", count=few, promised=0)
    found.add(
        f"rows that traces hold after {count:,} windows of {ROWS} rows, with a watermark", bounded["held"], "rows"
    )
    found.add(
        f"of those after {OPENED:,} windows: how many times as many after {count:,}",
        bounded["held"] / bounded["held early"],
        "times",
        AtMost(2),
    )
    found.add(f"rows that they hold without a watermark after {few:,}", whole["held"], "rows")
    found.add("a tick of one window in the end, with a watermark, median", bounded["tick"], "µs")
    found.add(f"a tick after {few:,} windows without one, median", whole["tick"], "µs")
    found.raw = {"bounded": bounded, "whole": whole}
    return found


if __name__ == "__main__":
    answer(windows)
