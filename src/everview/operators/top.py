"""Top: of each group, the first rows in an order, from place ``skip`` on, at most ``limit`` of them.

The group's rows lie in the trace in that order (`Index` turns directions around), so a change reads only the first
``skip + limit`` places of the groups it touches, before and after, and puts out the difference. A row of weight w
takes w places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.kernels.linear import negated
from everview.kernels.probe import keys
from everview.operators.index import Order, restore
from everview.operators.operator import Context, Layout, Matrix, Port, Step, Unary, key_partition
from everview.traces.view import View


@dataclass(frozen=True)
class _Top(Unary):
    source: Layout
    skip: int
    limit: int
    order: Order = ()

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source, key_partition(self.source.key)),)

    @property
    def output(self) -> Layout:
        return Layout(self.source.schema)

    def _changes(self, delta: Matrix, before: View) -> Matrix:
        key = self.source.key_words
        groups = keys(delta, key)
        old = before.first_rows(groups, key, self.skip, self.limit)
        new = before.plus(delta).first_rows(groups, key, self.skip, self.limit)
        out = np.concatenate([negated(old), new])
        restore(out, self.source.schema, self.order)
        return out


@dataclass(frozen=True)
class Top(_Top):
    """The first rows of each group of every tick's whole input."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        (rows,) = deltas
        return Step(self._changes(rows, context.view(self.source)))


@dataclass(frozen=True)
class TopIncremental(_Top):
    """The change of `Top`; reads the trace before the tick."""

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.source,)

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        (delta,) = deltas
        (before,) = views
        return Step(self._changes(delta, before))
