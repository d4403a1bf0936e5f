"""Top: of each group, the first rows in an order, from place ``skip`` on, at most ``limit`` of them.

The group's rows lie in the trace in that order (`Index` turns directions around), so a change reads only the first
``skip + limit`` places of the groups it touches, before and after in one walk, and puts out the difference. A row of
weight w takes w places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.kernels import instructions
from everview.later import Later
from everview.operators.by_state import ByState, OverChanges, OverWhole, touched
from everview.operators.form import CompiledForm, call, flat
from everview.operators.index import Order, restore, restoring
from everview.operators.operator import Context, Layout, Port, Step, UnaryOperator, key_partition, row_partition
from everview.traces.view import TraceView
from everview.types.words import Matrix

if TYPE_CHECKING:
    from everview.kernels import by_value as routines
else:
    routines = Later("everview.kernels.by_value")  # which few programs need


@dataclass(frozen=True)
class _Top(ByState, UnaryOperator):
    source: Layout
    skip: int
    limit: int
    order: Order = ()
    spread: bool = False  # the first rows of each shard
    orders_values = True

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (
            Port(self.source, row_partition(self.source.schema) if self.spread else key_partition(self.source.key)),
        )

    @property
    def output(self) -> Layout:
        return Layout(self.source.schema)

    @property
    def group_words(self) -> int:
        return self.source.key_words

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[TraceView]], context: Context) -> list[Matrix]:
        tops = [view.first_rows(groups, self.group_words, self.skip, self.limit) for (view,) in states]
        for rows in tops:
            restore(rows, self.source.schema, self.order)
        return tops


@dataclass(frozen=True)
class Top(OverWhole, _Top):
    """The first rows of each group of every tick's whole input."""

    def incremental(self) -> TopIncremental:
        return TopIncremental(self.source, self.skip, self.limit, self.order)


@dataclass(frozen=True)
class TopIncremental(OverChanges, _Top):
    """The change of `Top`: a walk through the first places of each group gives those before and after at once."""

    @property
    def form(self) -> CompiledForm:
        back = flat(restoring(self.source.schema, self.order))
        if self.source.by_value:
            return call(routines.top_by_value, back, x=self.group_words, y=self.skip, z=self.limit)
        return CompiledForm(instructions.TOP, back, self.group_words, self.skip, self.limit)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,), (before,) = deltas, views
        groups = touched(deltas, self.group_words)
        changed = before.first_rows_change(delta, groups, self.group_words, self.skip, self.limit)
        restore(changed, self.source.schema, self.order)
        return Step(changed)
