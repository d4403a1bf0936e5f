"""Living views: one changed row in a sorted, limited view, through the database and in the ordered list alone.

A table of 100,000 rows with a key; a view of its first 100 rows by rating, in SQL; and an ordered list on that view,
with a listener. A change is an update of one row: the old one goes, the new one comes. Two kinds are told apart: of any
row, which seldom shows, and of a row that does.
"""

from __future__ import annotations

import random
import statistics
import time
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa
from figures import AtMost, Findings
from isolate import answer, measured
from scale import Scale

import everview as ev
from everview.types import Schema
from everview.views import OrderedView, Subscription

ROWS, SHOWN, WARMUP = 100_000, 100, 300
RATINGS = 1_000_000
TABLE = "CREATE TABLE track (id BIGINT PRIMARY KEY, name STRING, rating BIGINT NOT NULL)"
VIEW = f"CREATE MATERIALIZED VIEW best AS SELECT id, name, rating FROM track ORDER BY rating DESC, id LIMIT {SHOWN}"
Row = tuple[int, str, int]


def through(ticks: int, shown: bool) -> dict[str, Any]:
    """Microseconds of an update through the database, to the listener of an ordered list."""
    db, rows = ev.connect(), _rows()
    db.sql(TABLE)
    db.sql(VIEW)
    columns = dict(zip(("id", "name", "rating"), map(list, zip(*rows, strict=True)), strict=True))
    db.apply({"track": pa.table(columns | {"_weight": np.ones(ROWS, np.int64)})})
    told: list[int] = []
    best = db.view("best").ordered()
    best.subscribe(lambda changes, epoch: told.append(len(changes)))
    seconds: list[float] = []
    chosen = random.Random(1)
    for _ in range(WARMUP + ticks):
        old = best[chosen.randrange(SHOWN)] if shown else rows[chosen.randrange(ROWS)]
        # What shows stays near the top, or the view would go through all rows in time.
        new = (old[0], old[1], chosen.randrange(RATINGS - 1_000 if shown else 0, RATINGS))
        rows[old[0]] = new
        began = time.perf_counter()
        db.apply({"track": [(old, -1), (new, 1)]})
        seconds.append(time.perf_counter() - began)
    assert best.rows() == sorted(rows, key=lambda row: (-row[2], row[0]))[:SHOWN]
    return _summary(seconds[WARMUP:]) | {"told": len(told)}


def alone(changes: int, limit: int | None) -> dict[str, Any]:
    """Microseconds of an update of an ordered list of all rows, or of the first of them, to its listener."""
    rows = _rows()
    feed = Feed(rows)
    view = OrderedView(feed, "rating desc", "id", limit=limit)
    view.subscribe(lambda changes, epoch: None)
    seconds: list[float] = []
    chosen = random.Random(1)
    for epoch in range(1, 1 + WARMUP + changes):
        old = rows[chosen.randrange(ROWS)]
        new = rows[old[0]] = (old[0], old[1], chosen.randrange(RATINGS))
        given = [(old, -1), (new, 1)]
        began = time.perf_counter()
        feed.subscription.listener(given, epoch)
        seconds.append(time.perf_counter() - began)
    assert view.rows() == sorted(rows, key=lambda row: (-row[2], row[0]))[:limit]
    return _summary(seconds[WARMUP:])


class Feed:
    """Rows that are given by hand."""

    schema = Schema.parse("id BIGINT NOT NULL, name STRING, rating BIGINT NOT NULL")
    name = "track"

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self.lock = RLock()

    def contents(self) -> list[tuple[Row, int]]:
        return [(row, 1) for row in self._rows]

    def subscribe(self, listener: Any, *, snapshot: bool = False, ended: Any = None) -> Subscription:
        self.subscription = Subscription(listener, 0, None, ended)
        if snapshot:
            listener(self.contents(), 0)
        return self.subscription


def _rows() -> list[Row]:
    chosen = random.Random(0)
    return [(at, f"track {at}", chosen.randrange(RATINGS)) for at in range(ROWS)]


def _summary(seconds: list[float]) -> dict[str, Any]:
    median, tail = statistics.median(seconds), statistics.quantiles(seconds, n=100)[98]
    return {"median": 1e6 * median, "p99": 1e6 * tail, "least": 1e6 * min(seconds)}


def findings(scale: Scale) -> Findings:
    found = Findings("Living views")
    ticks = scale.one_row_ticks
    anywhere = measured("views.py", what="through", ticks=ticks, shown=False)
    shown = measured("views.py", what="through", ticks=ticks, shown=True)
    whole = measured("views.py", what="alone", changes=ticks, limit=None)
    first = measured("views.py", what="alone", changes=ticks, limit=SHOWN)
    target = AtMost(100)
    found.add(f"an updated row of {ROWS:,}, the first {SHOWN} shown, median", anywhere["median"], "µs", target)
    found.add("its 99th percentile", anywhere["p99"], "µs")
    found.add("an updated row among those shown, median", shown["median"], "µs", target)
    found.add("its 99th percentile", shown["p99"], "µs")
    found.add(f"an ordered list of {ROWS:,} rows alone, an updated row, median", whole["median"], "µs")
    found.add(f"of which {SHOWN} are shown", first["median"], "µs")
    found.raw = {"anywhere": anywhere, "shown": shown, "whole": whole, "first": first}
    return found


def _chosen(what: str, **parameters: Any) -> dict[str, Any]:
    return {"through": through, "alone": alone}[what](**parameters)


if __name__ == "__main__":
    answer(_chosen)
