"""Bags compared row by row: what two have in common, and what one has more.

``(a ∩ b)[x] = min(a[x], b[x])`` and ``(a ∖ b)[x] = max(a[x] − b[x], 0)``, where weights below zero count as none.
Not linear: how often a row counts depends on all its weight on both sides. Their change is that of the rows that
change, so it is read from both traces before the tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from everview.kernels.sort import arrange
from everview.operators.by_state import change
from everview.operators.operator import Context, Layout, Matrix, Port, Step, Words, key_partition
from everview.traces.view import View
from everview.zset import ZSet

Comparing = Literal["common", "more"]


@dataclass(frozen=True)
class _Bags:
    source: Layout  # of both sides: indexed by all columns
    compare: Comparing

    @property
    def inputs(self) -> tuple[Port, ...]:
        port = Port(self.source, key_partition(len(self.source.schema)))
        return port, port

    @property
    def output(self) -> Layout:
        return self.source

    @property
    def group_words(self) -> int:
        return self.source.width

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[View]], context: Context) -> list[Matrix]:
        return [self._weighed(groups, *(view.weights(groups, self.group_words) for view in state)) for state in states]

    def _weighed(self, rows: Matrix, left: Words, right: Words) -> Matrix:
        a, b = np.maximum(left, 0), np.maximum(right, 0)
        weights = np.minimum(a, b) if self.compare == "common" else np.maximum(a - b, 0)
        out = rows[weights > 0]
        out[:, -1] = weights[weights > 0]
        return out

    def _compared(self, left: ZSet, right: ZSet) -> ZSet:
        if self.compare == "common":
            return ZSet.of([(row, min(w, right[row])) for row, w in left if w > 0 and right[row] > 0])
        return ZSet.of([(row, w - max(right[row], 0)) for row, w in left if w > max(right[row], 0)])


@dataclass(frozen=True)
class Bags(_Bags):
    """What two bags have in common, or the first has more, of every tick's whole inputs."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        return Step(_sorted(change(self, deltas, [context.view(self.source)] * 2, context)))

    def meaning(self, left: ZSet, right: ZSet) -> ZSet:
        return self._compared(left, right)


@dataclass(frozen=True)
class BagsIncremental(_Bags):
    """The change of `Bags`; reads both traces before the tick."""

    @property
    def reads(self) -> tuple[Layout, ...]:
        return self.source, self.source

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        return Step(_sorted(change(self, deltas, views, context)))

    def meaning(self, delta_left: ZSet, delta_right: ZSet, left: ZSet, right: ZSet) -> ZSet:
        return self._compared(left + delta_left, right + delta_right) - self._compared(left, right)


def _sorted(rows: Matrix) -> Matrix:
    return arrange(rows, np.arange(rows.shape[1] - 1))
