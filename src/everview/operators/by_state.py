"""Operators that are not linear, but act on each group of rows alone: distinct, aggregates, top.

Their change for the groups a delta touches is what the state after says, less what the state before said:
``f^Δ(Δa) = f(a + Δa) − f(a)``. All they need to know is `evaluate`: the results of some groups in some states of the
traces. The root does that for two states, a recursive scope for more (see `nested`).

Such an operator is two classes over one that has its fields and `evaluate`: an `OverWhole`, and the `OverChanges`
that `incrementalize` puts in its place.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from everview.kernels.exchanged import exchanged
from everview.kernels.large import arrange
from everview.kernels.linear import negated
from everview.kernels.probe import keys
from everview.kernels.timed import stamped
from everview.operators.nested import corners, wake
from everview.operators.operator import (
    Context,
    InPlace,
    Layout,
    Operator,
    Origins,
    Step,
    TimedStep,
    TimedView,
    from_fields,
    nothing,
)
from everview.traces.view import TraceView
from everview.types import Schema
from everview.types.words import Matrix, Words


class ByState(InPlace):
    """An operator whose results for a group are a function of the group's rows, and begin with the group's fields."""

    @property
    @abstractmethod
    def group_words(self) -> int:
        """How many first words of the inputs tell groups apart."""

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[TraceView]], context: Context) -> list[Matrix]:
        """The results of the groups in each state; a state is one view for every input."""
        raise NotImplementedError  # by operators with steps of their own

    @property
    def alone(self) -> bool:
        return len(self.inputs) == 1  # several must have their groups in the same places


class OverWhole(ByState):
    """The results for every tick's whole inputs: their change from nothing."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(change(self, deltas, [context.view(port.layout) for port in self.inputs], context))

    @abstractmethod
    def incremental(self) -> Operator:
        """The operator for changes of the inputs: it reads their traces before the tick."""


class OverChanges(ByState):
    """The change of the results when the inputs change; reads the traces of all inputs before the tick.

    A group that gets no row does not change, and is not looked at.
    """

    asked_again = "no watermark bounds a column of its groups, so any group may still change"

    @property
    def reads(self) -> tuple[Layout, ...]:
        return tuple(port.layout for port in self.inputs)

    @property
    def group_fields(self) -> int:
        """How many first fields of the inputs tell groups apart."""
        fields = self.inputs[0].layout.schema.fields
        return next(n for n in range(len(fields) + 1) if Schema(fields[:n]).width == self.group_words)

    @property
    def origins(self) -> Origins:
        return from_fields(range(self.group_fields), len(self.inputs))

    @property
    def lookups(self) -> tuple[Origins, ...]:
        return (from_fields(range(self.group_fields), len(self.inputs)),) * len(self.reads)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(change(self, deltas, views, context))

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[TimedView], context: Context
    ) -> TimedStep:
        """The change in every direction: the results in the states of all corners of now, each with its sign."""
        key = self.group_words
        groups = groups_at(deltas, woken, key)
        pasts = [view.past for view in views]
        afters = [view.seen.plus(stamped(delta, now)) for view, delta in zip(views, deltas, strict=True)]
        bounds = list(corners(now))
        states = [[view.upto(bound) for view in state] for _, bound in bounds for state in (afters, pasts)]
        results = self.evaluate(groups, states, context)
        signs = [sign * way for sign, _ in bounds for way in (1, -1)]
        parts = [rows if sign > 0 else negated(rows) for rows, sign in zip(results, signs, strict=True)]
        out = np.concatenate(parts) if parts else nothing(self.output.width)
        return TimedStep(arrange(out, np.arange(out.shape[1] - 1)), wake=wake(afters, groups, key, now))


def change(operator: ByState, deltas: Sequence[Matrix], befores: Sequence[TraceView], context: Context) -> Matrix:
    """The change of an operator's output, not consolidated."""
    groups = touched(deltas, operator.group_words)
    afters = [before.plus(delta) for before, delta in zip(befores, deltas, strict=True)]
    old, new = operator.evaluate(groups, [befores, afters], context)
    return exchanged(old, new, operator.group_words)


def touched(deltas: Sequence[Matrix], key: int) -> Matrix:
    """The groups that any of the sorted deltas touches, sorted, once each."""
    parts = [keys(delta, key) for delta in deltas if delta.shape[0]]
    if len(parts) < 2:
        return parts[0] if parts else np.empty((0, key + 1), np.int64)
    groups = arrange(np.concatenate(parts), np.arange(key))
    groups[:, -1] = 1
    return groups


def groups_at(deltas: Sequence[Matrix], woken: Matrix | None, key: int) -> Matrix:
    """The groups to look at in an iteration; several earlier times may have woken some, each in order."""
    return touched(deltas if woken is None else (*deltas, arrange(woken, np.arange(key))), key)
