"""Bags compared row by row: the intersection of two, and the difference.

``(a ∩ b)[x] = min(a[x], b[x])`` and ``(a ∖ b)[x] = max(a[x] − b[x], 0)``, where weights below zero count as none.
Not linear: how often a row counts depends on all its weight on both sides. Their change is that of the rows that
change, so it is read from both traces before the tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from everview.kernels.large import arrange
from everview.operators.by_state import ByState, OverChanges, OverWhole
from everview.operators.operator import Context, Layout, Port, Step, key_partition
from everview.traces.view import TraceView
from everview.types.words import Matrix, Words

Comparing = Literal["common", "more"]


@dataclass(frozen=True)
class _Bags(ByState):
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

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[TraceView]], context: Context) -> list[Matrix]:
        return [self._weighed(groups, *(view.weights(groups, self.group_words) for view in state)) for state in states]

    def _weighed(self, rows: Matrix, left: Words, right: Words) -> Matrix:
        a, b = np.maximum(left, 0), np.maximum(right, 0)
        weights = np.minimum(a, b) if self.compare == "common" else np.maximum(a - b, 0)
        out = rows[weights > 0]
        out[:, -1] = weights[weights > 0]
        return out


@dataclass(frozen=True)
class Bags(OverWhole, _Bags):
    """What two bags have in common, or the first has more, of every tick's whole inputs."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(_sorted(super().step(deltas, views, context).out))

    def incremental(self) -> BagsIncremental:
        return BagsIncremental(self.source, self.compare)


@dataclass(frozen=True)
class BagsIncremental(OverChanges, _Bags):
    """The change of `Bags`."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(_sorted(super().step(deltas, views, context).out))


def _sorted(rows: Matrix) -> Matrix:
    return arrange(rows, np.arange(rows.shape[1] - 1))
