"""Distinct: one of each row of positive weight.

Not linear: whether a row counts depends on all its weight. The change of distinct is
``[old + w > 0] − [old > 0]``, where ``old`` is the weight in the trace before the tick, so only rows that
change are looked at. On a stream without history the trace is empty, and this is distinct itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.kernels import instructions
from everview.kernels.crossings import crossings, crossings_at
from everview.kernels.timed import stamped
from everview.operators.by_state import ByState, OverChanges, OverWhole, groups_at
from everview.operators.form import CompiledForm
from everview.operators.nested import wake
from everview.operators.operator import Context, Layout, Port, Step, TimedStep, TimedView, UnaryOperator, key_partition
from everview.traces.view import Batches, TraceView
from everview.types.words import Matrix, Words


@dataclass(frozen=True)
class _Distinct(ByState, UnaryOperator):
    source: Layout

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source, key_partition(len(self.source.schema))),)

    @property
    def group_words(self) -> int:
        return self.source.width


@dataclass(frozen=True)
class Distinct(OverWhole, _Distinct):
    """``distinct(z) = {x: 1 for x, w in z if w > 0}``, of every tick's whole input."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        return Step(crossings(delta, np.zeros(delta.shape[0], np.int64)))

    def incremental(self) -> DistinctIncremental:
        return DistinctIncremental(self.source)


@dataclass(frozen=True)
class DistinctIncremental(OverChanges, _Distinct):
    """The change of distinct when its input changes; reads the input's trace before the tick."""

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.DISTINCT)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        (before,) = views
        return Step(crossings(delta, before.weights(delta, self.source.width)))

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[TimedView], context: Context
    ) -> TimedStep:
        """Step as `OverChanges` does, but with all states in one pass, because only presence matters."""
        (delta,), (view,) = deltas, views
        key = self.group_words
        groups, past, after = groups_at(deltas, woken, key), view.past, view.seen.plus(stamped(delta, now))
        assert isinstance(past, Batches) and isinstance(after, Batches), "traces of loops are kept"
        # What is after begins with what is past.
        out = crossings_at(groups, after.table, past.table.shape[0], after.columns, key, now)
        return TimedStep(out, wake=wake((after,), groups, key, now))
