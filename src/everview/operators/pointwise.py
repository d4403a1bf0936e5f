"""Pointwise: which candidates a predicate holds for, when only the predicate itself knows.

The predicate cannot be enumerated, and its truth may change without any row doing so. So truth is state: the sum of
all that this operator has put out, which comes back to it by a feedback and is read as a trace. A candidate that is
new is asked about, once; after that its truth changes by flips alone, and ends when it is no candidate any more:

``truth'(t) = t ∈ candidates' ∧ (flip(t) if there is one, else truth(t) if t ∈ candidates, else predicate(t))``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everview.codes import decode
from everview.operators.by_state import touched
from everview.operators.linear import VERDICT, Calling
from everview.operators.operator import Context, Layout, Port, Step, key_partition
from everview.traces.view import TraceView
from everview.types.words import Matrix

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Pointwise(Calling):
    """The change of truth; reads the candidates before the tick, and what was true before it.

    Candidates are a set. A flip is a row of positive weight where the predicate has become true, negative where false.
    """

    candidates: Layout  # a set, indexed by all its columns
    function: str  # of whole columns: the verdict for every row

    def __post_init__(self) -> None:
        assert self.candidates.sorted and self.candidates.key == len(self.candidates.schema), "indexed by all columns"

    @property
    def inputs(self) -> tuple[Port, ...]:
        port = Port(self.candidates, key_partition(self.candidates.key))
        return port, port

    @property
    def reads(self) -> tuple[Layout, ...]:
        return self.candidates, self.candidates

    @property
    def output(self) -> Layout:
        return self.candidates

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        delta, flips = deltas
        before, truth = views
        width = self.candidates.width
        rows = touched(deltas, width)
        was = before.weights(rows, width) > 0
        now = before.plus(delta).weights(rows, width) > 0
        flip = context.view(self.candidates, flips).weights(rows, width)
        old = truth.weights(rows, width) > 0
        new = np.where(was, old, False)
        asked = now & ~was & (flip == 0)
        new[asked] = self._verdicts(rows[asked], context)
        new = now & np.where(flip == 0, new, flip > 0)
        out = rows[new != old]
        out[:, -1] = np.where(new, 1, -1)[new != old]
        return Step(out)

    def _verdicts(self, rows: Matrix, context: Context) -> Flags | bool:
        if not rows.shape[0]:
            return False
        table = decode(self.candidates.schema, rows[:, :-1], context.dictionary)
        (verdicts,) = context.functions[self.function].columns(table, VERDICT, context.check)
        return verdicts.fill_null(False).to_numpy(zero_copy_only=False)
