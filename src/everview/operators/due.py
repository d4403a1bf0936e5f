"""Due: the rows whose moment has come, by a clock.

Rows begin with a moment; the clock is a relation of moments, of which the latest is the current time. A row is there
once its moment is not after that. When the clock goes on, the rows of the moments in between appear, and no others are
looked at: ``Δdue(a, t) = due(Δa, t_after) + (due(a_before, t_after) − due(a_before, t_before))``. Should the clock go
back, they disappear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.kernels.linear import negated
from everview.operators.operator import (
    Anywhere,
    Context,
    Layout,
    OnEveryShard,
    Operator,
    Partition,
    Port,
    Step,
    row_partition,
)
from everview.traces.view import TraceView
from everview.types.words import Matrix

NEVER = np.iinfo(np.int64).min  # the time of a clock that shows none; no moment is before it


@dataclass(frozen=True)
class _Due(Operator):
    """An input of rows, the moment first and in order, and one of the clock."""

    rows: Layout
    clock: Layout
    root_only = "the current time is read inside a child", "filter at the root; the result may enter"

    @property
    def inputs(self) -> tuple[Port, ...]:
        return Port(self.rows, row_partition(self.rows.schema)), Port(self.clock, OnEveryShard())

    @property
    def output(self) -> Layout:
        return Layout(self.rows.schema)

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return Anywhere() if isinstance(inputs[0], OnEveryShard) else inputs[0]


def _latest(clock: Matrix) -> int:
    times = clock[clock[:, -1] > 0, 0]
    return int(times.max()) if times.size else NEVER


def _until(rows: Matrix, now: int) -> Matrix:
    """Rows in the order of their moments, as far as these have come."""
    if now == NEVER:
        return rows[:0]
    return rows[: int(np.searchsorted(rows[:, 0], now, side="right"))]


@dataclass(frozen=True)
class Due(_Due):
    """The rows of each tick's whole input that are due."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        rows, clock = deltas
        return Step(_until(rows, _latest(clock)))


@dataclass(frozen=True)
class DueIncremental(_Due):
    """The change of what is due; reads both traces before the tick."""

    asked_again = "its clock may go back, and then rows that have passed are read again"

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.rows, self.clock)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (rows, clock), (rows_before, clock_before) = deltas, views
        before = _latest(clock_before.consolidated())
        after = _latest(clock_before.plus(clock).consolidated()) if clock.shape[0] else before
        new = _until(rows, after)
        if before == after:
            return Step(new)
        first, last = sorted((before, after))
        between = rows_before.within(np.array([[first + 1, last, 1]], np.int64), 0)
        return Step(np.concatenate([new, between if before < after else negated(between)]))
