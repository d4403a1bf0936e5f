"""One changed row in a sorted, limited view over 100,000 rows that are only pulled from, and a recompute beside it."""

from __future__ import annotations

import heapq
import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from figures import AtMost, Findings
from isolate import answer, measured
from scale import Scale

from everview.plan.nodes import Scan, Top
from everview.pull import Feed, Pipeline
from everview.sources.memory import Memory
from everview.sources.protocol import Source
from everview.sources.sqlite import SQLite

ROWS = 100_000
RATINGS = 1_000
LIMITS = (10, 1_000)
WARMUP = 50
COLUMNS = "id BIGINT, name STRING, rating BIGINT NOT NULL, artist BIGINT"

Row = tuple[Any, ...]


def rows() -> list[Row]:
    return [(n, f"track {n}", n * 7919 % RATINGS, n % 100) for n in range(ROWS)]


def in_memory() -> Source:
    return Memory(COLUMNS, "id", rows())


def in_sqlite() -> Source:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE track (id INTEGER PRIMARY KEY, name TEXT, rating BIGINT NOT NULL, artist BIGINT)")
    connection.executemany("INSERT INTO track VALUES (?, ?, ?, ?)", rows())
    connection.execute("CREATE INDEX track_rating ON track (rating DESC, id)")
    connection.commit()
    return SQLite(connection, "track")


STORES: dict[str, Callable[[], Source]] = {"memory": in_memory, "sqlite": in_sqlite}


def measure(store: str, limit: int, changes: int) -> dict[str, Any]:
    """Seconds for each change: of any row, and of one that the view shows, so that it leaves and another comes."""
    source = STORES[store]()
    pipeline, scan = Pipeline({"track": source}), Scan("track", source.schema)
    began = time.perf_counter()
    feed = pipeline.attach(Top(scan, ((scan.column(2), "desc"),), limit))
    hydrated = time.perf_counter() - began
    feed.subscribe(lambda changes, epoch: None)
    held = {row[0]: row for row in rows()}
    draw = random.Random(7)
    return {
        "hydrated": hydrated,
        "any": _timed(pipeline, held, changes, lambda: held[draw.randrange(ROWS)], draw),
        "shown": _timed(pipeline, held, changes, _shown(feed, draw), draw, low=True),
        "recompute": _recomputed(held, limit),
        "rows read": source.rows_read,
    }


def _shown(feed: Feed, draw: random.Random) -> Callable[[], Row]:
    return lambda: draw.choice(feed.rows())


def _timed(
    pipeline: Pipeline,
    held: dict[int, Row],
    changes: int,
    pick: Callable[[], Row],
    draw: random.Random,
    *,
    low: bool = False,
) -> list[float]:
    """With ``low`` a row goes far down, out of the view."""
    seconds: list[float] = []
    for _ in range(changes + WARMUP):
        old = pick()
        new = (old[0], old[1], draw.randrange(RATINGS // 2 if low else RATINGS), old[3])
        if new == old:
            continue
        held[old[0]] = new
        began = time.perf_counter()
        pipeline.apply({"track": [(old, -1), (new, 1)]})
        seconds.append(time.perf_counter() - began)
    return seconds[WARMUP:]


def _recomputed(held: dict[int, Row], limit: int) -> float:
    """The best of a few: the first rows of all, from scratch."""
    found: list[float] = []
    for _ in range(5):
        began = time.perf_counter()
        heapq.nsmallest(limit, held.values(), key=lambda row: (-row[2], row[0]))
        found.append(time.perf_counter() - began)
    return min(found)


def findings(scale: Scale) -> Findings:
    found = Findings("Pulled views: one changed row of 100,000, in a sorted view with a limit")
    for store in STORES:
        for limit in LIMITS:
            runs = [
                measured("pull.py", store=store, limit=limit, changes=scale.scaling_ticks) for _ in range(scale.rounds)
            ]
            best = min(runs, key=lambda run: float(np.median(run["any"])))
            target = AtMost(200) if store == "memory" and limit == LIMITS[0] else None
            name = f"{store}, limit {limit:,}"
            found.add(f"{name}: any row, median", float(np.median(best["any"])) * 1e6, "µs", target)
            found.add(f"{name}: any row, p99", float(np.percentile(best["any"], 99)) * 1e6, "µs")
            found.add(f"{name}: a row leaves and the next is pulled, median", _median(best["shown"]), "µs", target)
            found.add(f"{name}: recompute", best["recompute"] * 1e6, "µs")
            found.raw[name] = [{part: _median(run[part]) for part in ("any", "shown")} for run in runs]
    return found


def _median(seconds: list[float]) -> float:
    return float(np.median(seconds)) * 1e6


if __name__ == "__main__":
    answer(measure)
