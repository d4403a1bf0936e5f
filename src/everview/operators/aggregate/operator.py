"""Aggregate: the rows of the groups, from what was added up and from what lies in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from everview.kernels import instructions, sums
from everview.later import Later
from everview.operators.aggregate.added import FINISHED, Sums, compiled_call
from everview.operators.aggregate.call import Call
from everview.operators.aggregate.collected import collected
from everview.operators.aggregate.ordered import IN_ORDER, Lay, Ordered, Ordering, compiled_end, orderings
from everview.operators.aggregate.registry import computed_under
from everview.operators.aggregate.weigh import Need, Slot
from everview.operators.by_state import ByState, OverChanges, OverWhole
from everview.operators.form import CompiledForm, Line, Reason, flat
from everview.operators.form import call as called
from everview.operators.operator import Context, Layout, Port, key_partition
from everview.traces.view import TraceView
from everview.types import Field, Schema
from everview.types.words import Matrix

if TYPE_CHECKING:
    from everview.kernels import deviations
else:
    deviations = Later("everview.kernels.deviations")  # which few programs need

ENDS = computed_under("end")
COLLECTED = (*computed_under("collected"), *computed_under("user"))  # aggregates that make values of values
BLOCK = 1 << 12  # groups at a time, so that what is laid out densely stays small


@dataclass(frozen=True)
class _Aggregate(ByState):
    """Inputs: the weighed entries, then one index for every order that a call asks for."""

    entries: Layout
    source: Schema  # of the rows before weighing
    calls: tuple[Call, ...]
    slots: tuple[Slot, ...]
    ordered: tuple[Layout, ...]
    schema: Schema
    orders_values = True

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return (self.entries, *self.ordered)

    @property
    def inputs(self) -> tuple[Port, ...]:
        key = self.entries.key
        return tuple(Port(layout, key_partition(key)) for layout in self.layouts)

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    @property
    def group_words(self) -> int:
        return self.entries.key_words

    @property
    def functions(self) -> tuple[str, ...]:
        """The user's functions that it calls."""
        return tuple(call.user for call in self.calls if call.user)

    @property
    def reads_values(self) -> bool:
        return super().reads_values or any(call.function in COLLECTED for call in self.calls)

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[TraceView]], context: Context) -> list[Matrix]:
        if groups.shape[0] <= BLOCK:
            return self._block(groups, states, context)
        starts = range(0, groups.shape[0], BLOCK)
        blocks = [self._block(groups[start : start + BLOCK], states, context) for start in starts]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def _block(self, groups: Matrix, states: Sequence[Sequence[TraceView]], context: Context) -> list[Matrix]:
        key, n = self.group_words, groups.shape[0]
        dense = np.zeros((len(states) * n, self.slots[-1].places.stop), np.int64)  # state after state
        for i, state in enumerate(states):
            state[0].tally(dense[i * n : (i + 1) * n], groups, key)
        there = dense[:, 0] > 0
        if there.all():
            present = [groups] * len(states)
        else:
            present = [groups[there[i * n : (i + 1) * n]] for i in range(len(states))]
            dense = dense[there]
        added = Sums(dense, self._places, self.source)
        orders = [Ordered(lay, present, [state[which] for state in states]) for which, lay in enumerate(self._lays, 1)]
        out = np.empty((dense.shape[0], self.schema.width + 1), np.int64)
        out[:, :key] = np.concatenate(present)[:, :key]
        out[:, -1] = 1
        for call, field, words, which in self._results:
            order = orders[which] if call.ordered else None
            out[:, words] = self._result(call, field, added, order, context)
        ends = list(accumulate(kept.shape[0] for kept in present))
        return [out[end - kept.shape[0] : end] for end, kept in zip(ends, present, strict=True)]

    def _result(self, call: Call, field: Field, added: Sums, order: Ordered | None, context: Context) -> Matrix:
        if order is None:
            return FINISHED[call.function](call, field, added)
        if call.function in ENDS:
            return order.end(call, field)
        if call.function in IN_ORDER:
            return IN_ORDER[call.function](call, self.source.fields[call.fields[0]], order)
        return collected(call, self.source, field, order, context)

    @cached_property
    def _lays(self) -> tuple[Lay, ...]:
        return tuple(map(Lay, orderings(self.source, self.calls), self.ordered))

    @cached_property
    def _places(self) -> dict[Need, slice]:
        return {slot.need: slot.places for slot in self.slots}

    @cached_property
    def _results(self) -> tuple[tuple[Call, Field, slice, int], ...]:
        """Each call with its result field, the field's words, and the number of the call's order, or -1 for none."""
        orders = {lay.ordering: which for which, lay in enumerate(self._lays)}
        return tuple(
            (call, self.schema.fields[place], self.schema.words(place), orders.get(Ordering.of(call, self.source), -1))
            for place, call in enumerate(self.calls, self.entries.key)
        )


@dataclass(frozen=True)
class Aggregate(OverWhole, _Aggregate):
    """The aggregates of every tick's whole input."""

    def incremental(self) -> AggregateIncremental:
        return AggregateIncremental(self.entries, self.source, self.calls, self.slots, self.ordered, self.schema)


@dataclass(frozen=True)
class AggregateIncremental(OverChanges, _Aggregate):
    """The change of the aggregates."""

    @property
    def form(self) -> CompiledForm | Reason:
        return self._form

    @cached_property
    def _form(self) -> CompiledForm | Reason:
        calls: list[Line] = []
        for call, field, words, which in self._results:
            if not call.ordered:
                line = compiled_call(call, field, words.start, self._places, self.source)
            else:
                line = compiled_end(call, field, words.start, self._lays[which], which + 1)
            if line is None:
                return f"{call.function} is computed from whole columns"
            calls.append(line)
        x, y, z = self.group_words, self.slots[-1].places.stop, self.schema.width
        if all(kind < sums.VARIANCE for kind, *_ in calls) and not any(layout.by_value for layout in self.ordered):
            return CompiledForm(instructions.AGGREGATE, flat(calls), x, y, z)
        return called(deviations.aggregate_any, flat(calls), x=x, y=y, z=z)
