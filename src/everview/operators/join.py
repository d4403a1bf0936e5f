"""Joins on the key of two indexed streams. Weights multiply.

Bilinear: ``(a + Δa) ⋈ (b + Δb) − a ⋈ b = Δa ⋈ b + a ⋈ Δb + Δa ⋈ Δb``. With traces that read ``b`` before the
tick and ``a`` after it, two terms are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from everview.errors import SchemaError
from everview.kernels import instructions
from everview.operators.form import CompiledForm, flat
from everview.operators.nested import split_held
from everview.operators.operator import (
    Context,
    FieldOrigin,
    Layout,
    Operator,
    Origins,
    Partition,
    Port,
    Step,
    TimedStep,
    TimedView,
    carried,
    from_fields,
    key_partition,
)
from everview.traces.view import TraceView
from everview.types import Schema
from everview.types.words import Matrix, Words

LEFT, RIGHT = 0, 1
Pick = tuple[int, int]  # (side, field)
NO_TIME = "no watermark bounds the times that it is joined by, so any row may still find a partner"


@dataclass(frozen=True)
class _Join(Operator):
    """What all joins share: two indexed inputs, and which fields of either side make a result."""

    left: Layout
    right: Layout
    picks: tuple[Pick, ...]
    schema: Schema

    def __post_init__(self) -> None:
        keys = [side.schema.fields[: side.key] for side in (self.left, self.right)]
        coded = [[(f.type, f.words) for f in key] for key in keys]
        if coded[0] != coded[1]:
            types = " and ".join(f"({', '.join(map(str, key))})" for key in keys)
            raise SchemaError(f"join keys differ: {types}", hint="index both sides by fields of the same types")

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        """Where the keys are, which a result may have from either side."""
        return carried(inputs[0], (field if field < self.left.key else None for _, field in self.picks))

    def _ports(self) -> tuple[Port, Port]:
        by_key = key_partition(self.left.key)
        return Port(self.left, by_key), Port(self.right, by_key)

    def _words(self, probing: int) -> Words:
        """Where the words of a result come from when this side's rows probe the other side's trace."""
        out: list[int] = []
        for side, field in self.picks:
            words = (self.left, self.right)[side].schema.words(field)
            out += [w if side == probing else ~w for w in range(words.start, words.stop)]
        return np.array(out, np.int64)

    @cached_property
    def _picked(self) -> tuple[Words, Words]:
        return self._words(LEFT), self._words(RIGHT)

    def _probe(self, delta: Matrix, trace: TraceView, probing: int) -> Matrix:
        return trace.join(delta, self.left.key_words, self._picked[probing])

    def _probe_at(self, delta: Matrix, trace: TraceView, probing: int, now: Words) -> Matrix:
        """`_probe` of a trace of timed entries; each result ends in the time it belongs to."""
        return trace.join_at(delta, self.left.key_words, self._picked[probing], now)


@dataclass(frozen=True)
class JoinChanges(_Join):
    """The join of what arrives on both sides in one tick, also where that is a change."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self._ports()

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(
            instructions.JOIN_CHANGES, flat([self._picked[LEFT]]), self.left.key_words, self.right.width + 1
        )

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        left, right = deltas
        return Step(self._probe(left, context.view(self.right, right), LEFT))


@dataclass(frozen=True)
class JoinStream(JoinChanges):
    """The join of the whole Z-sets of both sides: a query, which has a derivative."""


@dataclass(frozen=True)
class JoinTrace(_Join):
    """The join of what arrives on the left with a trace on the right."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self._ports()[:1]

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.right,)

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.JOIN, flat([self._picked[LEFT]]), self.left.key_words)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (left,) = deltas
        (right,) = views
        return Step(self._probe(left, right, LEFT))

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[TimedView], context: Context
    ) -> TimedStep:
        (left,) = deltas
        (right,) = views
        return split_held(self._probe_at(left, right.seen, LEFT, now), now)


@dataclass(frozen=True)
class JoinIncremental(_Join):
    """The change of a join when both sides change; reads the left trace after the tick, the right one before."""

    asked_again = NO_TIME

    @property
    def inputs(self) -> tuple[Port, ...]:
        return self._ports()

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.left, self.right)

    @property
    def origins(self) -> Origins:
        return from_fields((field if field < self.left.key else None for _, field in self.picks), 2)

    @property
    def lookups(self) -> tuple[Origins, ...]:
        """A row is found by changes of the other side."""
        keys = range(self.left.key)
        return {f: (FieldOrigin(RIGHT, f),) for f in keys}, {f: (FieldOrigin(LEFT, f),) for f in keys}

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.JOIN_BOTH, flat(self._picked), self.left.key_words)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        delta_left, delta_right = deltas
        left_after, right_before = views
        if not delta_right.shape[0]:
            return Step(self._probe(delta_left, right_before, LEFT))
        if not delta_left.shape[0]:
            return Step(self._probe(delta_right, left_after, RIGHT))
        parts = (self._probe(delta_left, right_before, LEFT), self._probe(delta_right, left_after, RIGHT))
        return Step(np.concatenate(parts))

    def step_at(
        self, now: Words, deltas: Sequence[Matrix], woken: Matrix | None, views: Sequence[TimedView], context: Context
    ) -> TimedStep:
        delta_left, delta_right = deltas
        left_after, right_before = (view.seen for view in views)
        parts = (
            self._probe_at(delta_left, right_before, LEFT, now),
            self._probe_at(delta_right, left_after, RIGHT, now),
        )
        return split_held(np.concatenate(parts), now)
