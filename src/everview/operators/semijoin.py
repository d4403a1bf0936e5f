"""Semijoin: the rows of the left whose key is present on the right, with the left's weights.

``a ⋉ b = a ⋈ distinct(keys(b))``. The right side comes as the bag of its keys, whose trace counts them, so that
presence is known without reading all rows of a key: ``Δ(a ⋉ b) = Δa ⋉ b_after + a_before ⋈ Δdistinct(b)``.
An antijoin is ``a − a ⋉ b``, an outer join is a join plus the antijoin padded with NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.errors import SchemaError
from everview.kernels import instructions
from everview.kernels.crossings import crossings
from everview.kernels.presence import where_positive
from everview.operators.form import CompiledForm
from everview.operators.join import LEFT, NO_TIME, RIGHT
from everview.operators.operator import (
    Context,
    FieldOrigin,
    InPlace,
    Layout,
    Origins,
    Port,
    Step,
    from_fields,
    key_partition,
)
from everview.traces.view import TraceView
from everview.types.words import Matrix


@dataclass(frozen=True)
class _Semijoin(InPlace):
    left: Layout
    keys: Layout

    def __post_init__(self) -> None:
        coded = [[(f.type, f.words) for f in side.schema.fields[: self.left.key]] for side in (self.left, self.keys)]
        if coded[0] != coded[1] or len(self.keys.schema) != self.left.key:
            layouts = f"{self.left} and {self.keys}"
            raise SchemaError(f"semijoin keys differ: {layouts}", hint="index both sides by fields of the same types")

    @property
    def inputs(self) -> tuple[Port, ...]:
        by_key = key_partition(self.left.key)
        return Port(self.left, by_key), Port(self.keys, by_key)

    @property
    def output(self) -> Layout:
        return Layout(self.left.schema)

    def _changes(self, deltas: Sequence[Matrix], left_before: TraceView, keys_before: TraceView) -> Matrix:
        delta_left, delta_keys = deltas
        width, key = self.left.width, self.left.key_words
        parts = [where_positive(delta_left, keys_before.plus(delta_keys).weights(delta_left, key))]
        if delta_keys.shape[0]:
            crossed = crossings(delta_keys, keys_before.weights(delta_keys, key))
            parts.append(left_before.join(crossed, key, ~np.arange(width)))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]


@dataclass(frozen=True)
class Semijoin(_Semijoin):
    """``{(k, v): w for (k, v), w in left if keys[k] > 0}``, of every tick's whole inputs."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(self._changes(deltas, context.view(self.left), context.view(self.keys)))


@dataclass(frozen=True)
class SemijoinIncremental(_Semijoin):
    """The change of a semijoin; reads both traces before the tick."""

    asked_again = NO_TIME

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.left, self.keys)

    @property
    def origins(self) -> Origins:
        return from_fields(range(self.left.key), 2)

    @property
    def lookups(self) -> tuple[Origins, ...]:
        """Rows are found by changed keys, and keys are counted for changes of both sides."""
        keys = range(self.left.key)
        return {f: (FieldOrigin(RIGHT, f),) for f in keys}, {
            f: (FieldOrigin(LEFT, f), FieldOrigin(RIGHT, f)) for f in keys
        }

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.SEMIJOIN, x=self.left.key_words)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        left_before, keys_before = views
        return Step(self._changes(deltas, left_before, keys_before))
