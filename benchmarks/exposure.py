"""The view that is measured: orders joined with customers, their sum and count by country."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from stream import CHANGE, CUSTOMER, ORDER, changes, customers, digest, orders

from everview.circuit import Circuit, incrementalize
from everview.runtimes.embedded import Embedded


def circuit() -> Circuit:
    made = Circuit()
    orders = made.source("orders", "id BIGINT NOT NULL, customer BIGINT NOT NULL, amount BIGINT NOT NULL")
    customers = made.source("customers", "id BIGINT NOT NULL, country BIGINT NOT NULL")
    joined = orders.join(customers, ("customer", "id"), select=["country", "amount"])
    joined.aggregate(["country"], total=("sum", "amount"), n="count").sink("exposure")
    return incrementalize(made)


def loaded(count: int) -> Embedded:
    """The view over this many orders."""
    run = Embedded(circuit())
    run.tick({"customers": table(CUSTOMER, customers()), "orders": table(ORDER, orders(count))})
    return run


def table(names: tuple[str, ...], columns: np.ndarray) -> pa.Table:
    return pa.table([pa.array(column) for column in columns], names=list(names))


def ticks_of(count: int, per_tick: int, ticks: int) -> list[pa.Table]:
    """The changes of every tick, as Arrow tables that share one memory."""
    whole = table(CHANGE, changes(count, per_tick, ticks))
    return [whole.slice(tick * per_tick, per_tick) for tick in range(ticks)]


@dataclass(frozen=True, slots=True)
class Ticked:
    """How long each tick took until its output was there as Arrow, by the clock and by CPU time."""

    seconds: np.ndarray
    cpu: np.ndarray
    updates: int


def ticked(run: Embedded, deltas: list[pa.Table]) -> Ticked:
    """Run the ticks, and take every output delta out as Arrow."""
    seconds, cpu, updates = np.empty(len(deltas)), np.empty(len(deltas)), 0
    for at, delta in enumerate(deltas):
        used, began = time.process_time(), time.perf_counter()
        updates += run.tick({"orders": delta})["exposure"].to_arrow().num_rows
        seconds[at] = time.perf_counter() - began
        cpu[at] = time.process_time() - used
    return Ticked(seconds, cpu, updates)


def contents(run: Embedded) -> int:
    """The digest of the view now."""
    found: Any = run.view("exposure").to_arrow()
    return digest(*(found[name].to_pylist() for name in ("country", "total", "n")))
