"""Operators that are not linear, but act on each group of rows alone: distinct, aggregates, top.

Their change for the groups a delta touches is what the state after says, less what the state before said:
``f^Δ(Δa) = f(a + Δa) − f(a)``. All they need to know is `evaluate`: the results of some groups in some states of the
traces. The root does that for two states, a recursive scope for more (see `nested`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from everview.kernels.linear import negated
from everview.kernels.probe import keys
from everview.kernels.sort import arrange
from everview.operators.operator import Context, Layout, Matrix, Port
from everview.traces.view import View


class ByState(Protocol):
    """An operator whose results for a group are a function of the group's rows."""

    @property
    def inputs(self) -> tuple[Port, ...]: ...

    @property
    def output(self) -> Layout: ...

    @property
    def group_words(self) -> int:
        """How many first words of the inputs tell groups apart."""
        ...

    def evaluate(self, groups: Matrix, states: Sequence[Sequence[View]], context: Context) -> list[Matrix]:
        """The results of the groups in each state; a state is one view for every input."""
        ...


def change(operator: ByState, deltas: Sequence[Matrix], befores: Sequence[View], context: Context) -> Matrix:
    """The change of an operator's output, not consolidated."""
    groups = touched(deltas, operator.group_words)
    afters = [before.plus(delta) for before, delta in zip(befores, deltas, strict=True)]
    old, new = operator.evaluate(groups, [befores, afters], context)
    return np.concatenate([negated(old), new])


def touched(deltas: Sequence[Matrix], key: int) -> Matrix:
    """The groups that any of the sorted deltas touches, sorted, once each."""
    parts = [keys(delta, key) for delta in deltas if delta.shape[0]]
    if len(parts) < 2:
        return parts[0] if parts else np.empty((0, key + 1), np.int64)
    groups = arrange(np.concatenate(parts), np.arange(key))
    groups[:, -1] = 1
    return groups
