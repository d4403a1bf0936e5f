"""Billed: each left row is joined with the right side as of the tick of its arrival, and the result is remembered.

What the right side does later does not matter: a bill is a bill. A left row that goes gives back exactly what it was
billed, because the operator reads the sum of its own earlier outputs. So the sum of its outputs is zero for a row that
is not there, whatever has happened in between.

A row is there as often as its weight says, and not at all below zero. If only some of its weight goes, and every row
billed for it was billed equally often each time, the same share of each goes back. Else it was billed differently at
different times, and as many of the rows go back as the weight falls by, the first ones in the order of their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from everview.kernels.billed import given_back, risen_and_fallen
from everview.kernels.linear import negated
from everview.kernels.sort import arrange, sorted_by_value
from everview.operators.asof import ROOT_ONLY
from everview.operators.operator import Context, InPlace, Layout, Port, Step, key_partition
from everview.traces.view import TraceView
from everview.types import Schema
from everview.types.words import Matrix, Words


@dataclass(frozen=True)
class Billed(InPlace):
    """Reads the left trace before the tick, the right one after it, and one of its own outputs of earlier ticks.

    A result is the whole left row and some fields of the right one; the trace of earlier outputs has the order of these
    fields' values.
    """

    left: Layout
    right: Layout
    fields: tuple[int, ...]  # of the right side
    billed: Layout
    root_only = ROOT_ONLY

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.left, key_partition(self.left.key)),)

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.left, self.right, self.billed)

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    @property
    def schema(self) -> Schema:
        return self.billed.schema

    @cached_property
    def _pick(self) -> Words:
        chosen = (self.right.schema.words(f) for f in self.fields)
        return np.array([*range(self.left.width), *(~w for s in chosen for w in range(s.start, s.stop))], np.int64)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        left_before, right_after, billed = views
        width = self.left.width
        more, gone, fewer = risen_and_fallen(delta, left_before.weights(delta, width))
        parts = [right_after.join(more, self.left.key_words, self._pick)]
        if gone.shape[0]:
            parts.append(negated(billed.group_rows(gone, width)))
        if fewer.shape[0]:
            rows = arrange(billed.group_rows(fewer, width), np.arange(self.schema.width))
            order = context.order(self.billed)
            rows = rows if order is None else sorted_by_value(order.admit(rows), *order.arrays)
            parts.append(negated(given_back(rows, fewer, left_before.weights(fewer, width), width)))
        return Step(np.concatenate(parts) if len(parts) > 1 else parts[0])
