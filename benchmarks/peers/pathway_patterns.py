"""Pathway keeping the count of patterns in the same graph up to date, by binary joins, which are what it has.

A Python connector sends the edges and commits after each tick; the count comes back through `pw.io.subscribe` together
with a mark that every tick carries, so that a tick without an effect ends, too. The next tick is sent when the mark is
back. What helps it is done: no automatic commits, no monitoring, and a faster queue in its connector than the one it
comes with.
"""

from __future__ import annotations

import os
import threading
import time
from queue import SimpleQueue
from statistics import median
from typing import Any

from isolate import answer, give_up_after
from skewed import VARIABLES, stream


class Received:
    """The count, and when each marked tick was complete."""

    def __init__(self) -> None:
        self.count = 0
        self.ended = threading.Event()
        self.at = self.cpu = 0.0
        self._marked = False

    def on_change(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        if row["mark"]:
            self._marked = True
        else:
            self.count += row["n"] if is_addition else -row["n"]

    def on_time_end(self, at: int) -> None:
        if self._marked:
            self._marked = False
            self.at, self.cpu = time.perf_counter(), time.process_time()
            self.ended.set()

    def wait(self) -> tuple[float, float]:
        """When the tick under way was complete, by the clock and in CPU time."""
        self.ended.wait()
        self.ended.clear()
        return self.at, self.cpu


def counted(pw: Any, edges: Any, pattern: Any) -> Any:
    """One variable after the other: joined by one edge, then held against the others that lead to it."""
    names = VARIABLES[pattern]
    found = edges.select(a=edges.src, b=edges.dst)
    for at in range(2, len(names)):
        new, last = names[at], names[at - 1]
        found = found.join(edges, found[last] == edges.src).select(
            *(pw.left[name] for name in names[:at]), **{new: pw.right.dst}
        )
        for before in names[: at - 1]:
            found = found.join(edges, found[before] == edges.src, found[new] == edges.dst).select(
                *(pw.left[name] for name in names[: at + 1])
            )
    return found.reduce(n=pw.reducers.count(), mark=0)


def measure(pattern: Any, edges: int, per_tick: int, ticks: int, threads: int, limit: int) -> dict[str, Any]:
    os.environ["PATHWAY_THREADS"] = str(threads)
    import pathway as pw

    given = stream(edges, per_tick, ticks)
    start, deltas = given.start.tolist(), [tick.tolist() for tick in given.ticks]
    received = Received()
    load: dict[str, float] = {}
    seconds: list[float] = []
    counts: list[int] = []

    class Edge(pw.Schema):
        src: int = pw.column_definition(primary_key=True)
        dst: int = pw.column_definition(primary_key=True)

    class Edges(pw.io.python.ConnectorSubject):
        def __init__(self) -> None:
            super().__init__()
            self._buffer = SimpleQueue()

        def run(self) -> None:
            began, worked = time.perf_counter(), time.process_time()
            self.next(src=-1, dst=0)
            for src, dst in start:
                self.next(src=src, dst=dst)
            sent = time.perf_counter()
            self.commit()
            ended, done = received.wait()
            counts.append(received.count)
            load.update(seconds=ended - began, cpu=done - worked, after_sending=ended - sent)
            time.sleep(1)  # let whatever the load left to do come to its end
            for at, delta in enumerate(deltas):
                self.tick(at, delta)

        def tick(self, at: int, delta: list[list[int]]) -> None:
            began = time.perf_counter()
            self.next(src=-2 - at, dst=0)
            for src, dst, weight in delta:
                if weight > 0:
                    self.next(src=src, dst=dst)
                else:
                    self.delete(src=src, dst=dst)
            self.commit()
            seconds.append(received.wait()[0] - began)
            counts.append(received.count)

    give_up_after(limit)
    every = pw.io.python.read(Edges(), schema=Edge, autocommit_duration_ms=None)
    found = counted(pw, every.filter(every.src >= 0), pattern)
    marks = every.filter(every.src < 0).select(n=0, mark=1)
    pw.io.subscribe(pw.Table.concat_reindex(found, marks), received.on_change, on_time_end=received.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {
        "load": load,
        "tick": {"median": median(seconds), "least": min(seconds)} if seconds else None,
        "counts": counts,
        "version": pw.__version__,
        "threads": threads,
    }


if __name__ == "__main__":
    answer(measure)
