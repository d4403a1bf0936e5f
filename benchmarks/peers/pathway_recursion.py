"""Pathway maintaining the same recursive views over the same edges, by `pw.iterate`.

A Python connector sends the edges and commits after each tick; the changes come back through `pw.io.subscribe`.
Every tick carries a mark, an edge from a negative node, which goes past the loop into the output: many ticks
change nothing else, and Pathway says nothing of those. The next tick is sent when the mark is back and its time
has ended, as our own tick returns. What helps it is done: no automatic commits, no monitoring, and a faster
queue in its connector than the one it comes with.
"""

from __future__ import annotations

import json
import os
import threading
import time
from queue import SimpleQueue
from statistics import median
from typing import Any

import numpy as np
from graphs import PAUSE, ROOT, Graph, digest, stream
from isolate import answer


class Received:
    """The rows that the changes add up to, and when each marked tick was complete."""

    def __init__(self) -> None:
        self.rows: set[tuple[int, ...]] = set()
        self.ended = threading.Event()
        self.at = self.cpu = 0.0
        self._marked = False

    def on_change(self, key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        found = tuple(row.values())
        if found[0] < 0:
            self._marked = True
        elif is_addition:
            self.rows.add(found)
        else:
            self.rows.remove(found)

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


def closure(pw: Any, edges: Any) -> Any:
    def longer(paths: Any, edges: Any) -> dict[str, Any]:
        onward = paths.join(edges, paths.b == edges.a).select(pw.left.a, pw.right.b)
        every = pw.Table.concat_reindex(edges, onward)
        return {"paths": every.groupby(every.a, every.b).reduce(every.a, every.b)}

    start = edges.groupby(edges.a, edges.b).reduce(edges.a, edges.b)
    return pw.iterate(longer, paths=pw.iterate_universe(start), edges=edges)["paths"]


def reachability(pw: Any, edges: Any) -> Any:
    def further(reached: Any, edges: Any, roots: Any) -> dict[str, Any]:
        onward = reached.join(edges, reached.a == edges.a).select(a=pw.right.b)
        every = pw.Table.concat_reindex(roots, onward)
        return {"reached": every.groupby(every.a).reduce(every.a)}

    roots = pw.debug.table_from_rows(pw.schema_from_types(a=int), [(ROOT,)])
    start = roots.groupby(roots.a).reduce(roots.a)
    return pw.iterate(further, reached=pw.iterate_universe(start), edges=edges, roots=roots)["reached"]


VIEWS = {"closure": closure, "reachability": reachability}


def measure(graph: dict[str, Any], per_tick: int, ticks: int, threads: int, limit: int) -> dict[str, Any]:
    os.environ["PATHWAY_THREADS"] = str(threads)
    import pathway as pw

    given = stream(Graph(**graph), per_tick, ticks)
    start, deltas = given.start.tolist(), [tick.tolist() for tick in given.ticks]
    received = Received()
    load: dict[str, float] = {}
    seconds: list[float] = []
    cpu: list[float] = []

    class Edge(pw.Schema):
        a: int = pw.column_definition(primary_key=True)
        b: int = pw.column_definition(primary_key=True)

    class Edges(pw.io.python.ConnectorSubject):
        def __init__(self) -> None:
            super().__init__()
            self._buffer = SimpleQueue()

        def run(self) -> None:
            began, worked = time.perf_counter(), time.process_time()
            self.next(a=-1, b=0)
            for a, b in start:
                self.next(a=a, b=b)
            sent = time.perf_counter()
            self.commit()
            ended, done = received.wait()
            load.update(seconds=ended - began, cpu=done - worked, after_sending=ended - sent)
            time.sleep(1)  # let whatever the load left to do come to its end
            for at, delta in enumerate(deltas):
                self.tick(at, delta)

        def tick(self, at: int, delta: list[list[int]]) -> None:
            time.sleep(PAUSE)
            began, worked = time.perf_counter(), time.process_time()
            self.next(a=-2 - at, b=0)
            for a, b, weight in delta:
                if weight > 0:
                    self.next(a=a, b=b)
                else:
                    self.delete(a=a, b=b)
            self.commit()
            ended, done = received.wait()
            seconds.append(ended - began)
            cpu.append(done - worked)

    def give_up() -> None:
        print(json.dumps({"gave_up": limit}), flush=True)
        os._exit(0)

    alarm = threading.Timer(limit, give_up)
    alarm.daemon = True
    alarm.start()
    every = pw.io.python.read(Edges(), schema=Edge, autocommit_duration_ms=None)
    found = VIEWS[graph["asked"]](pw, every.filter(every.a >= 0))
    marks = every.filter(every.a < 0).select(*(pw.this[name] for name in found.column_names()))
    pw.io.subscribe(pw.Table.concat_reindex(found, marks), received.on_change, on_time_end=received.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    alarm.cancel()
    return {
        "load": load,
        "tick": {"median": median(seconds), "least": min(seconds), "cpu": median(cpu), "sum": sum(seconds)},
        "digest": digest(np.array(list(received.rows))),
        "version": pw.__version__,
        "threads": threads,
    }


if __name__ == "__main__":
    answer(measure)
