"""As-of join: each left row with the right row in force at its time, and the left row's weight.

Of the right rows with its key, that is the latest one at or before the left row's time (backward), the earliest at or
after it (forward), or the nearest of these two, the earlier if both are as near. A row is there if its weight is
positive. Of right rows at one time the last one counts, by the values of their remaining columns in order. A time
that is NULL matches nothing; keys that are NULL on both sides match.

Linear in the left side for a given right one:
``Δ(a ⊳ b) = Δa ⊳ b_after + (a_before ⊳ b_after − a_before ⊳ b_before)``. The second term is not zero only where a
changed right row is, or was, in force: from its time to the times of its neighbours in ``b_before``, and no further
than the tolerance. Only the left rows in these spans are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from everview.errors import SchemaError
from everview.kernels.asof import beside
from everview.kernels.linear import negated
from everview.kernels.probe import keys
from everview.kernels.sort import arrange
from everview.operators.form import CompiledForm, call, flat
from everview.operators.join import LEFT, NO_TIME, RIGHT, Pick
from everview.operators.operator import (
    Context,
    FieldOrigin,
    Layout,
    Operator,
    Origins,
    Partition,
    Port,
    Step,
    carried,
    key_partition,
)
from everview.traces.looking import AHEAD, BACK, ENDLESS, Look
from everview.traces.view import TraceView
from everview.types import BIGINT, NULL_WORD, TIMESTAMP, Schema
from everview.types.words import Matrix, Words

ROOT_ONLY = "an as-of join is inside a child", "join at the root; its result may enter"
PRESENCE = NULL_WORD  # a word that says whether a right row was found


class Toward(Enum):
    """On which side of a left row's time the right row lies."""

    BACKWARD = "backward"
    FORWARD = "forward"
    NEAREST = "nearest"

    @property
    def way(self) -> int:
        return {"backward": BACK, "forward": AHEAD}.get(self.value, BACK | AHEAD)


@dataclass(frozen=True)
class _Asof(Operator):
    """Two inputs of fields (key…, time, rest…), the right one's rest in the order of its values."""

    left: Layout
    right: Layout
    picks: tuple[Pick, ...]
    schema: Schema
    toward: Toward
    strict: bool  # not at the time itself
    tolerance: int | None  # the largest distance, in units of the time's word
    outer: bool  # left rows without a right one stay, padded with NULL
    root_only = ROOT_ONLY

    def __post_init__(self) -> None:
        sides = [side.schema.fields[: side.key + 1] for side in (self.left, self.right)]
        coded = [[(f.type, f.words) for f in side] for side in sides]
        if coded[0] != coded[1]:
            schemas = " and ".join(f"({', '.join(map(str, side))})" for side in sides)
            raise SchemaError(
                f"keys and times of an as-of join differ: {schemas}", hint="use fields of the same types on both sides"
            )
        time = sides[0][-1]
        if not time.type.ordered or time.type.words(nullable=False) != 1:
            raise SchemaError(
                f"{time} cannot be the time of an as-of join", hint="use a TIMESTAMP, a DATE, or a number of one word"
            )

    @property
    def definition(self) -> tuple[Layout, Layout, tuple[Pick, ...], Schema, Toward, bool, int | None, bool]:
        """The fields that an as-of join and its incremental form share."""
        return (
            self.left, self.right, self.picks, self.schema, self.toward, self.strict, self.tolerance, self.outer,
        )  # fmt: skip

    @property
    def inputs(self) -> tuple[Port, ...]:
        by_key = key_partition(self.left.key)
        return Port(self.left, by_key), Port(self.right, by_key)

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        """Where the left rows are: in an outer join the right side's key may be NULL where the left side's is not."""
        return carried(inputs[0], (field if side == LEFT else None for side, field in self.picks))

    @cached_property
    def _look(self) -> Look:
        words = self.left.schema.words(self.left.key)
        time = self.left.schema.fields[self.left.key]
        nullable = time.nullable or self.right.schema.fields[self.right.key].nullable
        nulls = 0 if not nullable else 2 if time.type == BIGINT else 1
        reach = ENDLESS if self.tolerance is None else self.tolerance
        return Look(words.stop - 1, nulls, self.toward.way, self.strict, reach)

    @cached_property
    def _words(self) -> tuple[Words, Words]:
        """Where the words of a result come from, and what they are where there is no right row."""
        pick: list[int] = []
        absent: list[int] = []
        for (side, field_number), field in zip(self.picks, self.schema.fields, strict=True):
            source = (self.left, self.right)[side].schema
            words = list(range(source.words(field_number).start, source.words(field_number).stop))
            if side == LEFT:
                pick += words
                absent += [0] * len(words)
                continue
            # A BIGINT that may be absent gets the flag that it did not need.
            pick += [PRESENCE] * (field.words - len(words)) + [~w for w in words]
            absent += field.type.null_words() if field.nullable else [0] * len(words)
        return np.array(pick, np.int64), np.array(absent, np.int64)

    def _beside(self, rows: Matrix, matched: Matrix) -> Matrix:
        return beside(rows, matched, *self._words, PRESENCE, self.outer)

    def _changes(self, deltas: Sequence[Matrix], left_before: TraceView, right_before: TraceView) -> Matrix:
        delta_left, delta_right = deltas
        right_after = right_before.plus(delta_right)
        new = self._beside(delta_left, right_after.in_force(delta_left, self._look))
        if not delta_right.shape[0] or not len(left_before):
            return new
        return np.concatenate([new, *self._revised(delta_right, left_before, right_before, right_after)])

    def _revised(self, delta: Matrix, left: TraceView, before: TraceView, after: TraceView) -> tuple[Matrix, Matrix]:
        """The results that earlier left rows lose and gain because the right side changes."""
        look = self._look
        times = keys(delta, look.group + 1)
        lasts = [view.in_force(times, look.exactly()) for view in (before, after)]
        times = np.ascontiguousarray(times[(lasts[0] != lasts[1]).any(axis=1)])
        touched = left.within(before.spans(times, look), look.group)
        rows = arrange(touched, np.arange(self.left.width))
        old, new = before.in_force(rows, look), after.in_force(rows, look)
        differ = (old != new).any(axis=1)
        rows, old, new = (np.ascontiguousarray(m[differ]) for m in (rows, old, new))
        return negated(self._beside(rows, old)), self._beside(rows, new)


@dataclass(frozen=True)
class Asof(_Asof):
    """The as-of join of every tick's whole inputs."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(self._changes(deltas, context.view(self.left), context.view(self.right)))


@dataclass(frozen=True)
class AsofIncremental(_Asof):
    """The change of an as-of join when either side changes; reads both traces before the tick."""

    asked_again = NO_TIME

    @property
    def reads(self) -> tuple[Layout, ...]:
        return (self.left, self.right)

    @property
    def origins(self) -> Origins:
        """Changed results have the times of changed left rows, or of left rows that changed right rows reach."""
        time = self.left.key
        known: dict[int, tuple[FieldOrigin, ...]] = {
            f: (FieldOrigin(LEFT, f), FieldOrigin(RIGHT, f)) for f in range(time)
        }
        if self._reached is not None:
            known[time] = (FieldOrigin(LEFT, time), self._reached)
        return {place: known[f] for place, (side, f) in enumerate(self.picks) if side == LEFT and f in known}

    @property
    def lookups(self) -> tuple[Origins, ...]:
        """Left rows are found by changes of right rows that reach them, right rows by left ones within reach."""
        time = self.left.key
        lefts = {f: (FieldOrigin(RIGHT, f),) for f in range(time)}
        rights = {f: (FieldOrigin(LEFT, f), FieldOrigin(RIGHT, f)) for f in range(time)}
        if self._reached is not None and self.toward is not Toward.NEAREST:
            lefts[time] = (self._reached,)
        if self._in_micros is not None and self.toward is Toward.BACKWARD:
            rights[time] = (FieldOrigin(LEFT, time, self._in_micros), FieldOrigin(RIGHT, time, self._in_micros))
        elif self._in_micros is not None and self.toward is Toward.FORWARD:
            rights[time] = (FieldOrigin(LEFT, time), FieldOrigin(RIGHT, time, self._in_micros))
        return lefts, rights

    @property
    def _in_micros(self) -> int | None:
        """The tolerance, if it is one of time."""
        return self.tolerance if self.left.schema.fields[self.left.key].type == TIMESTAMP else None

    @property
    def _reached(self) -> FieldOrigin | None:
        """The earliest left rows that changes of right rows reach: at their time, or ahead of it by the tolerance."""
        if self.toward is Toward.BACKWARD:
            return FieldOrigin(RIGHT, self.left.key)
        return None if self._in_micros is None else FieldOrigin(RIGHT, self.left.key, self._in_micros)

    @property
    def form(self) -> CompiledForm:
        look = self._look
        from everview.kernels.asof_change import asof_change  # which a program without such joins does not load

        return call(asof_change, flat([look, (int(self.outer), PRESENCE), *self._words]))

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        left_before, right_before = views
        return Step(self._changes(deltas, left_before, right_before))
