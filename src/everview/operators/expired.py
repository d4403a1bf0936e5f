"""Expired: the rows of a trace that nothing will read again, taken back.

Rows begin with a moment, in whose order a trace keeps them; `bounds` is a relation of moments. Every row whose moment
lies before the earliest of these is put out with its weight negated. What is put out is added to the trace in the next
tick, by a z⁻¹, so the trace holds only rows that are not expired, and a tick looks at those that expire, and no others:

    kept = x + z⁻¹(expired(trace of kept, bounds))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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
    key_partition,
    nothing,
    row_partition,
)
from everview.traces.view import TraceView
from everview.types.words import Matrix

FIRST: Final = np.iinfo(np.int64).min  # the word of NULL: no row to come has it, so it expires as well


@dataclass(frozen=True)
class Expired(Operator):
    """An input of rows, the moment first and in order, and one of bounds; reads the traces of both after the tick."""

    rows: Layout
    bounds: Layout
    promises: int  # so many bounds there are once each is known; until then nothing expires
    says: str  # what the rows have in common, for `explain`
    spread: bool = True  # each shard has its own rows, whatever their keys
    root_only = "rows expire inside a child", "let them expire at the root"

    @property
    def inputs(self) -> tuple[Port, ...]:
        where = row_partition(self.rows.schema) if self.spread else key_partition(self.rows.key)
        return Port(self.rows, where), Port(self.bounds, OnEveryShard())

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.rows, self.bounds)

    @property
    def output(self) -> Layout:
        return Layout(self.rows.schema)

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        """Where the rows are."""
        return Anywhere() if isinstance(inputs[0], OnEveryShard) else inputs[0]

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        rows, bounds = views
        known = bounds.consolidated()
        known = known[known[:, -1] > 0]
        if known[:, -1].sum() < self.promises:
            return Step(nothing(self.rows.width))
        time = self.rows.schema.fields[0]
        first = int(known[:, -2].min())  # the last word of the only field
        if first == FIRST:
            return Step(nothing(self.rows.width))
        known_flag = [1] if time.words > 1 else []  # of numbers that may be NULL
        span = np.array([[*known_flag, FIRST, first - 1, 1]], np.int64)
        return Step(negated(rows.within(span, len(known_flag))))
