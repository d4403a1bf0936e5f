"""Pathway maintaining the same view over the same stream.

A Python connector sends the rows and commits after each tick; the updates come back through
`pw.io.subscribe`. The load and some ticks come first. Time runs from the first change sent when their updates have
ceased to the end of the last tick. The sender does not wait for answers, so ticks overlap inside Pathway. What helps it
is done: no automatic commits, no monitoring, and a faster queue in its connector than the one it comes with.

Handing the whole stream over beforehand (`pw.debug.table_from_pandas` with times) would spare it the calls
per row, but the engine then works on all ticks at once and puts nothing out before the end: no tick is
measured.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import numpy as np
from isolate import answer
from stream import changes, customers, digest, orders

QUIET = 2  # seconds without updates, after which whatever was left to do has come to its end


class Received:
    """The view that the updates add up to, and when each tick's were complete."""

    def __init__(self) -> None:
        self.view: dict[int, tuple[int, int]] = {}
        self.updates = 0
        self.ends: list[float] = []
        self.cpu = 0.0
        self._pending = 0

    def on_change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        self._pending += 1
        found = (row["total"], row["n"])
        if is_addition:
            self.view[row["country"]] = found
        elif self.view.get(row["country"]) == found:
            del self.view[row["country"]]

    def on_time_end(self, at: int) -> None:
        if self._pending:
            self.updates, self._pending = self.updates + self._pending, 0
            self.ends.append(time.perf_counter())
            self.cpu = time.process_time()

    def wait_for_quiet(self) -> None:
        """Wait for an update, and from then on until there has been none for a while."""
        heard, since = len(self.ends), time.perf_counter()
        while time.perf_counter() - since < QUIET or not self.ends:
            time.sleep(0.1)
            if len(self.ends) > heard:
                heard, since = len(self.ends), self.ends[-1]

    def digest(self) -> int:
        return digest(*np.array([(country, *row) for country, row in self.view.items()]).T)


def view(pw: Any, orders: Any, customers: Any) -> Any:
    joined = orders.join(customers, orders.customer == customers.number).select(pw.right.country, pw.left.amount)
    return joined.groupby(joined.country).reduce(
        joined.country, total=pw.reducers.sum(joined.amount), n=pw.reducers.count()
    )


def measure(count: int, per_tick: int, warm: int, ticks: int, threads: int) -> dict[str, Any]:
    os.environ["PATHWAY_THREADS"] = str(threads)
    import pathway as pw

    *start, people = (*(c.tolist() for c in orders(count)), [c.tolist() for c in customers()])
    *values, weights = (c.tolist() for c in changes(count, per_tick, warm + ticks))
    received = Received()
    sent, finished = threading.Event(), threading.Event()
    began = cpu = 0.0

    class Subject(pw.io.python.ConnectorSubject):
        def __init__(self) -> None:
            super().__init__()
            self._buffer = SimpleQueue()

    class Order(pw.Schema):
        number: int = pw.column_definition(primary_key=True)
        customer: int
        amount: int

    class Customer(pw.Schema):
        number: int = pw.column_definition(primary_key=True)
        country: int

    class Customers(Subject):
        def run(self) -> None:
            for number, country in zip(*people, strict=True):
                self.next(number=number, country=country)
            self.commit()
            sent.set()
            finished.wait()

    class Orders(Subject):
        def run(self) -> None:
            nonlocal began, cpu
            sent.wait()
            for number, customer, amount in zip(*start, strict=True):
                self.next(number=number, customer=customer, amount=amount)
            self.commit()
            received.wait_for_quiet()
            rows = zip(*values, weights, strict=True)
            self._send(rows, warm)
            received.wait_for_quiet()
            began, cpu = time.perf_counter(), time.process_time()
            self._send(rows, ticks)
            finished.set()

        def _send(self, rows: Iterator[tuple[int, ...]], ticks: int) -> None:
            for _ in range(ticks):
                for _ in range(per_tick):
                    number, customer, amount, weight = next(rows)
                    if weight > 0:
                        self.next(number=number, customer=customer, amount=amount)
                    else:
                        self.delete(number=number, customer=customer, amount=amount)
                self.commit()

    tables = [
        pw.io.python.read(subject, schema=schema, autocommit_duration_ms=None)
        for subject, schema in ((Orders(), Order), (Customers(), Customer))
    ]
    pw.io.subscribe(view(pw, *tables), received.on_change, on_time_end=received.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {
        "seconds": received.ends[-1] - began,
        "cpu": received.cpu - cpu,
        "ticks": sum(end > began for end in received.ends),
        "updates": received.updates,
        "digest": received.digest(),
        "version": pw.__version__,
        "threads": threads,
    }


if __name__ == "__main__":
    answer(measure)
