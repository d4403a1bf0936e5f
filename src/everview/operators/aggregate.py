"""Aggregates: one row a group, replaced when it changes.

Counting and summing are linear, so their state is an ordinary trace: `Weigh` turns each row into entries
``(group, place)`` whose *weight* is the row's contribution, and the trace adds them up exactly and reversibly.
Least and greatest values are read from the ends of a group in a trace ordered by value. `Aggregate` reads
those traces before and after the tick for the groups that changed, retracts the old row and asserts the new one.

A group is there when its weights sum to more than zero. NULLs count only for ``count(*)``; an aggregate over
nothing but NULLs is NULL. Least and greatest look at values of positive weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from everview.errors import SchemaError, WeightOverflow
from everview.kernels import exact_sum
from everview.kernels.sort import arrange
from everview.kernels.tally import align, weighed
from everview.operators.by_state import change
from everview.operators.operator import ByKey, Context, Layout, Matrix, Port, Single, Step, Unary, Words, key_partition, word_columns
from everview.traces.view import Batches
from everview.types import BIGINT, DOUBLE, NULL_WORD, Decimal, Field, Schema, Type

PLACE = Field("place", BIGINT, nullable=False)
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
FLOATS = ("FLOAT", "DOUBLE")


class Kind(Enum):
    """What an entry adds up."""

    ROWS = "rows"
    VALUES = "values"  # not NULL
    INTEGER = "integer"
    WIDE = "wide"
    FLOAT = "float"


PLACES = {
    Kind.ROWS: 1,
    Kind.VALUES: 1,
    Kind.INTEGER: exact_sum.INTEGER_BUCKETS,
    Kind.WIDE: exact_sum.WIDE_BUCKETS,
    Kind.FLOAT: exact_sum.FLOAT_WIDTH,
}


@dataclass(frozen=True)
class Slot:
    """Something added up: of which field, and the first of its places."""

    kind: Kind
    field: int
    base: int

    @property
    def places(self) -> slice:
        return slice(self.base, self.base + PLACES[self.kind])


@dataclass(frozen=True)
class Call:
    """One aggregate: ``count``, ``sum``, ``avg``, ``min`` or ``max`` of a field; ``count`` of none counts rows."""

    function: str
    field: int | None = None

    @property
    def ordered(self) -> bool:
        return self.function in ("min", "max")

    def result(self, schema: Schema, name: str) -> Field:
        """The field it fills, with Spark's result types."""
        if self.function == "count":
            return Field(name, BIGINT, nullable=False)
        assert self.field is not None, "only count may be of rows"
        of = schema.fields[self.field]
        if self.ordered:
            return Field(name, of.type, of.nullable)
        return Field(name, _number_result(self.function, of), of.nullable)


def _number_result(function: str, of: Field) -> Type:
    if function not in ("sum", "avg"):
        raise SchemaError(f"there is no aggregate {function}", hint="available: count, sum, avg, min, max")
    match of.type:
        case Decimal(precision, scale) if function == "sum":
            return Decimal(min(38, precision + 10), scale)
        case Decimal(precision, scale):
            return Decimal(min(38, precision + 4), min(38, scale + 4))
        case _ if of.type.sql in INTEGERS:
            return BIGINT if function == "sum" else DOUBLE
        case _ if of.type.sql in FLOATS:
            return DOUBLE
        case _:
            raise SchemaError(f"{function} of {of}", hint=f"{function} takes numbers")


def slots(schema: Schema, calls: Sequence[Call]) -> tuple[Slot, ...]:
    """What must be added up for these calls: the rows, and for each field its values and their sum, once."""
    wanted: dict[tuple[Kind, int], None] = {(Kind.ROWS, -1): None}
    for call in calls:
        if call.field is None or call.ordered:
            continue
        if schema.fields[call.field].nullable:
            wanted[Kind.VALUES, call.field] = None
        if call.function != "count":
            wanted[_sum_kind(schema.fields[call.field]), call.field] = None
    found: list[Slot] = []
    base = 0
    for kind, field in wanted:
        found.append(Slot(kind, field, base))
        base += PLACES[kind]
    return tuple(found)


def _sum_kind(field: Field) -> Kind:
    if field.type.sql in FLOATS:
        return Kind.FLOAT
    return Kind.WIDE if isinstance(field.type, Decimal) and field.words == 2 else Kind.INTEGER


@dataclass(frozen=True)
class Weigh(Unary):
    """Turn rows into entries (group, place) whose weights are what the rows contribute. Linear, and indexed."""

    source: Layout
    group: tuple[int, ...]
    slots: tuple[Slot, ...]

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source, ByKey(self.group) if self.group else Single()),)

    @cached_property
    def output(self) -> Layout:
        fields = [self.source.schema.fields[g] for g in self.group]
        place = PLACE if PLACE.name not in {f.name for f in fields} else Field("place of entry", BIGINT, False)
        return Layout(Schema([*fields, place]), len(fields), sorted=True)

    def step(self, deltas: Sequence[Matrix], views: Sequence[Batches], context: Context) -> Step:
        (delta,) = deltas
        group = word_columns(self.source.schema, self.group)
        parts = [weighed(delta, group, *self._spread(delta, slot), slot.base) for slot in self.slots]
        whole = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return Step(arrange(whole, np.arange(group.size + 1)))

    def _spread(self, delta: Matrix, slot: Slot) -> tuple[Words, Words, Words]:
        """(row, place, contribution) of every entry of a slot."""
        weights = delta[:, -1].copy()
        rows = np.arange(delta.shape[0])
        if slot.kind is Kind.ROWS:
            return rows, np.zeros_like(rows), weights
        words = delta[:, self.source.schema.words(slot.field)]
        field = self.source.schema.fields[slot.field]
        if field.nullable:
            weights[words[:, 0] == field.type.null_words()[0]] = 0
        if slot.kind is Kind.VALUES:
            return rows, np.zeros_like(rows), weights
        columns = [np.ascontiguousarray(c) for c in words.T]
        match slot.kind:
            case Kind.FLOAT:
                return exact_sum.spread_floats(columns[0], weights)
            case Kind.WIDE:
                return exact_sum.spread_wide(columns[0], columns[1], weights)
            case _:
                return exact_sum.spread_integers(columns[-1], weights)


@dataclass(frozen=True)
class _Aggregate:
    """Inputs: the weighed entries, then one index (group, value) for every call of min or max, in order."""

    entries: Layout
    source: Schema  # of the rows before weighing
    calls: tuple[Call, ...]
    slots: tuple[Slot, ...]
    ordered: tuple[Layout, ...]
    schema: Schema

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

    def evaluate(
        self, groups: Matrix, states: Sequence[Sequence[Batches]], context: Context
    ) -> list[Matrix]:
        key, n = self.group_words, groups.shape[0]
        dense = np.zeros((len(states) * n, self.slots[-1].places.stop), np.int64)  # state after state
        for i, state in enumerate(states):
            state[0].tally(dense[i * n : (i + 1) * n], groups, key)
        there = dense[:, 0] > 0
        out = np.empty((len(states) * n, self.schema.width + 1), np.int64)
        for i in range(len(states)):
            out[i * n : (i + 1) * n, :key] = groups[:, :key]
        ends = iter(range(len(self.ordered)))
        at = key
        for call in self.calls:
            field = call.result(self.source, "")
            words = out[:, at : at + field.words]
            if call.ordered:
                which = next(ends)
                for i, state in enumerate(states):
                    found = _end(call, state[1 + which], groups, key, self.ordered[which], field)
                    words[i * n : (i + 1) * n] = found
            else:
                words[:] = self._added_up(call, field, dense, there)
            at += field.words
        out[:, -1] = 1
        return [out[i * n : (i + 1) * n][there[i * n : (i + 1) * n]] for i in range(len(states))]

    def _slot(self, kind: Kind, field: int | None) -> slice | None:
        return next((s.places for s in self.slots if (s.kind, s.field) == (kind, field)), None)

    def _counts(self, call: Call, dense: Matrix) -> Words:
        values = self._slot(Kind.VALUES, call.field)
        return np.ascontiguousarray(dense[:, 0 if values is None else values.start])

    def _added_up(self, call: Call, field: Field, dense: Matrix, there: np.ndarray) -> Matrix:
        counts = self._counts(call, dense)
        if call.function == "count":
            return counts[:, None]
        assert call.field is not None
        of = self.source.fields[call.field]
        places = self._slot(_sum_kind(of), call.field)
        assert places is not None, "every sum has its slot"
        digits = np.ascontiguousarray(dense[:, places])
        words, overflow = _sum_words(call, of, field, digits, counts)
        if overflow is not None and overflow[there].any():
            raise WeightOverflow(
                f"{call.function}({of.name}) of a group left the range of {field.type}",
                hint="cast the field to a wider type before adding it up",
            )
        return _nulled(words, counts == 0, field)


@dataclass(frozen=True)
class Aggregate(_Aggregate):
    """The aggregates of every tick's whole input."""

    def step(self, deltas: Sequence[Matrix], views: Sequence[Batches], context: Context) -> Step:
        return Step(change(self, deltas, [context.view(layout) for layout in self.layouts], context))


@dataclass(frozen=True)
class AggregateIncremental(_Aggregate):
    """The change of the aggregates; reads the traces of all inputs before the tick."""

    @property
    def reads(self) -> tuple[Layout, ...]:
        return self.layouts

    def step(self, deltas: Sequence[Matrix], views: Sequence[Batches], context: Context) -> Step:
        return Step(change(self, deltas, views, context))


def _sum_words(
    call: Call, of: Field, field: Field, digits: Matrix, counts: Words
) -> tuple[Matrix, np.ndarray | None]:
    """The value words of a sum or average (without a NULL flag), and where it is out of range."""
    float_sum = of.type.sql in FLOATS
    if call.function == "avg" and field.type == DOUBLE:
        average = exact_sum.average_floats if float_sum else exact_sum.average_integers
        return average(digits, counts)[:, None], None
    if float_sum:
        return exact_sum.round_floats(digits)[:, None], None
    if not isinstance(field.type, Decimal):
        values, overflow = exact_sum.finish_integers(digits, exact_sum.INT64_MIN, exact_sum.INT64_MAX)
        return values[:, None], overflow
    precision = field.type.precision
    if call.function == "avg":
        assert isinstance(of.type, Decimal)
        power = field.type.scale - of.type.scale
        high, low, overflow = exact_sum.average_decimals(digits, counts, power, precision)
    else:
        high, low, overflow = exact_sum.finish_decimals(digits, precision)
    if field.words == 1:
        return (low ^ np.int64(NULL_WORD))[:, None], overflow
    return np.stack([high, low], axis=1), overflow


def _nulled(words: Matrix, absent: np.ndarray, field: Field) -> Matrix:
    if not field.nullable:
        return words
    if field.type == BIGINT:
        return np.stack([~absent, np.where(absent, 0, words[:, 0])], axis=1)
    words[absent] = NULL_WORD
    return words


def _end(call: Call, view: Batches, groups: Matrix, key: int, layout: Layout, field: Field) -> Matrix:
    """The least or greatest value of each group, NULL where it has none."""
    found = view.first_rows(groups, key, 0, 1) if call.function == "min" else view.last_rows(groups, key)
    out = np.empty((groups.shape[0], field.words), np.int64)
    out[:] = field.type.null_words() if field.nullable else 0
    align(out, groups, found, key, key, layout.width)
    return out
