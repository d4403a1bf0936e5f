"""Weigh: rows as entries (group, place) whose weights are what the rows contribute. Linear, and indexed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from everview.kernels import contributions, exact_sum, instructions, quotients, sums
from everview.kernels.group_sums import group_sums
from everview.kernels.large import LARGE, arrange
from everview.kernels.tally import weighed
from everview.later import Later
from everview.operators.aggregate.call import Call
from everview.operators.aggregate.registry import computed
from everview.operators.aggregate.result_types import FLOATS
from everview.operators.form import CompiledForm, Line, flat
from everview.operators.form import call as called
from everview.operators.operator import (
    Context,
    Layout,
    Origins,
    Partition,
    Step,
    UnaryOperator,
    carried,
    from_fields,
    word_columns,
)
from everview.traces.view import TraceView
from everview.types import BIGINT, Decimal, Field, Schema
from everview.types.words import Matrix, Words

if TYPE_CHECKING:
    from everview.kernels import deviations
else:
    deviations = Later("everview.kernels.deviations")  # which few programs need

PLACE = Field("place", BIGINT, nullable=False)


class Kind(Enum):
    """The quantity that an entry adds up."""

    ROWS = "rows"
    VALUES = "values"  # not NULL
    TRUES = "trues"
    INTEGER = "integer"
    WIDE = "wide"
    FLOAT = "float"
    INTEGER_SQUARES = "squares of integers"
    WIDE_SQUARES = "squares of wide decimals"
    FLOAT_SQUARES = "squares of floats"
    FLOAT_PRODUCTS = "products of floats"
    BITS = "bits"


PLACES = {
    Kind.ROWS: 1,
    Kind.VALUES: 1,
    Kind.TRUES: 1,
    Kind.INTEGER: exact_sum.INTEGER_BUCKETS,
    Kind.WIDE: exact_sum.WIDE_BUCKETS,
    Kind.FLOAT: exact_sum.FLOAT_WIDTH,
    Kind.INTEGER_SQUARES: quotients.INTEGER_SQUARES,
    Kind.WIDE_SQUARES: quotients.WIDE_SQUARES,
    Kind.FLOAT_SQUARES: quotients.FLOAT_SQUARES,
    Kind.FLOAT_PRODUCTS: quotients.FLOAT_SQUARES,
    Kind.BITS: 64,
}
DIGITS = {
    Kind.FLOAT: contributions.FLOAT_DIGITS,
    Kind.FLOAT_SQUARES: quotients.FLOAT_DIGITS,
    Kind.FLOAT_PRODUCTS: quotients.FLOAT_DIGITS,
}  # of one number, where they are fewer than the places
SQUARES = {
    Kind.INTEGER: Kind.INTEGER_SQUARES,
    Kind.WIDE: Kind.WIDE_SQUARES,
    Kind.FLOAT: Kind.FLOAT_SQUARES,
}
SLOTS = {
    Kind.ROWS: contributions.COUNTED,
    Kind.VALUES: contributions.COUNTED,
    Kind.TRUES: contributions.TRUE,
    Kind.INTEGER: contributions.INTEGER,
    Kind.WIDE: contributions.WIDE,
    Kind.FLOAT: contributions.FLOAT,
    Kind.INTEGER_SQUARES: contributions.INTEGER_SQUARE,
    Kind.WIDE_SQUARES: contributions.WIDE_SQUARE,
    Kind.FLOAT_SQUARES: contributions.FLOAT_SQUARE,
    Kind.FLOAT_PRODUCTS: contributions.FLOAT_PRODUCT,
    Kind.BITS: contributions.BIT,
}  # as kernels have them
SQUARED = {squares: of for of, squares in SQUARES.items()}


@dataclass(frozen=True)
class Slot:
    """A quantity to add up: its field and its first place; with ``distinct``, of those fields' different values."""

    kind: Kind
    field: int
    base: int
    distinct: tuple[int, ...] = ()

    @property
    def places(self) -> slice:
        return slice(self.base, self.base + PLACES[self.kind])

    @property
    def need(self) -> Need:
        """What the slot is for."""
        return self.kind, self.field, self.distinct


@dataclass(frozen=True)
class ProductSlot(Slot):
    """The products of a field and another one."""

    other: int = -1

    @property
    def need(self) -> Need:
        return self.kind, self.field, (self.other,)


Need = tuple[Kind, int, tuple[int, ...]]  # kind, field, and the distinct fields, or the other one of products


def slots(schema: Schema, calls: Sequence[Call]) -> tuple[Slot, ...]:
    """The slots that some calls need: one for the rows, and for each field one for its values and one for their sum."""
    wanted: dict[Need, None] = {(Kind.ROWS, -1, ()): None}
    for call in calls:
        wanted |= dict.fromkeys(_needs(schema, call))
    needed: list[Slot] = []
    base = 0
    for kind, field, distinct in wanted:
        if kind is Kind.FLOAT_PRODUCTS:
            needed.append(ProductSlot(kind, field, base, other=distinct[0]))
        else:
            needed.append(Slot(kind, field, base, distinct))
        base += PLACES[kind]
    return tuple(needed)


def _needs(schema: Schema, call: Call) -> Iterator[Need]:
    if call.ordered or not call.fields:
        return
    field, distinct = call.fields[0], call.fields if call.distinct else ()
    yield counted(schema, call)
    for summed in computed(call.function).sums:
        match summed:
            case "trues":
                yield Kind.TRUES, field, distinct
            case "values":
                yield sum_kind(schema.fields[field]), field, distinct
            case "squares":
                yield SQUARES[sum_kind(schema.fields[field])], field, distinct
            case "bits":
                yield Kind.BITS, field, distinct
            case "products":
                assert not call.distinct, "pairs are not told apart"
                yield Kind.FLOAT, call.fields[1], ()
                yield Kind.FLOAT_PRODUCTS, field, (call.fields[1],)


def counted(schema: Schema, call: Call) -> Need:
    """The slot that counts a call's values: rows, unless some may be NULL; different values are never NULL."""
    if call.distinct:
        return Kind.ROWS, -1, call.fields
    if call.field is None or not schema.fields[call.field].nullable:
        return Kind.ROWS, -1, ()
    return Kind.VALUES, call.field, ()


def sum_kind(field: Field) -> Kind:
    if field.type.sql in FLOATS:
        return Kind.FLOAT
    return Kind.WIDE if isinstance(field.type, Decimal) and field.words == 2 else Kind.INTEGER


@dataclass(frozen=True)
class Weigh(UnaryOperator):
    """Turn rows into entries (group, place) whose weights are what the rows contribute. Linear, and indexed."""

    source: Layout
    group: tuple[int, ...]
    slots: tuple[Slot, ...]
    by_row = True

    # Rows are weighed where they are, and only the sums of each shard move to the shards of the groups.

    @property
    def output(self) -> Layout:
        return self._entries

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return carried(inputs[0], self.group)

    @property
    def origins(self) -> Origins:
        return from_fields(self.group)

    @cached_property
    def _entries(self) -> Layout:
        fields = [self.source.schema.fields[g] for g in self.group]
        place = PLACE if PLACE.name not in {f.name for f in fields} else Field("place of entry", BIGINT, False)
        return Layout(Schema([*fields, place]), len(fields), sorted=True)

    @property
    def form(self) -> CompiledForm:
        return self._form

    @cached_property
    def _form(self) -> CompiledForm:
        group, (lines, _, _) = word_columns(self.source.schema, self.group), self._lines
        constants = flat([group, *lines])
        if all(SLOTS[slot.kind] <= contributions.FLOAT for slot in self.slots):
            return CompiledForm(instructions.WEIGH, constants, group.size)
        return called(deviations.weigh_more, constants, x=group.size)

    def _slot(self, slot: Slot) -> Line:
        """A slot as a line for `everview.kernels.contributions`."""
        if slot.kind is Kind.ROWS:
            return contributions.COUNTED, 0, 0, contributions.NO_NULL, slot.base
        field, words = self.source.schema.fields[slot.field], self.source.schema.words(slot.field)
        null = field.type.null_words()[0] if field.nullable else contributions.NO_NULL
        last = self.source.schema.words(slot.other).start if isinstance(slot, ProductSlot) else words.stop - 1
        return SLOTS[slot.kind], words.start, last, null, slot.base

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        group = word_columns(self.source.schema, self.group)
        if delta.shape[0] >= LARGE:
            try:
                return Step(group_sums(delta, group, *self._lines))
            except OverflowError:
                pass  # of a part; that of all rows may be in range, or is the error to be told
        parts = [weighed(delta, group, *self.spread(delta, slot), slot.base) for slot in self.slots]
        whole = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return Step(arrange(whole, np.arange(group.size + 1)))

    @cached_property
    def _lines(self) -> tuple[Matrix, int, int]:
        """The slots as kernels take them, how many places they have, and how many entries a row has at most."""
        lines = np.array([self._slot(slot) for slot in self.slots], np.int64).reshape(-1, sums.SLOT)
        most = sum(DIGITS.get(slot.kind, PLACES[slot.kind]) for slot in self.slots)
        return lines, max(slot.places.stop for slot in self.slots), most

    def spread(self, delta: Matrix, slot: Slot) -> exact_sum.Entries:
        """(row, place, contribution) of every entry of a slot."""
        weights = delta[:, -1].copy()
        rows = np.arange(delta.shape[0])
        if slot.kind is Kind.ROWS:
            return rows, np.zeros_like(rows), weights
        words = delta[:, self.source.schema.words(slot.field)]
        field = self.source.schema.fields[slot.field]
        if field.nullable:
            weights[words[:, 0] == field.type.null_words()[0]] = 0
        if slot.kind is Kind.TRUES:
            weights[words[:, 0] != 1] = 0
        if slot.kind in (Kind.VALUES, Kind.TRUES):
            return rows, np.zeros_like(rows), weights
        if slot.kind is Kind.BITS:
            return _bits(words[:, -1], weights)
        if isinstance(slot, ProductSlot):
            return self._products(delta, slot, weights)
        if slot.kind not in SQUARED:
            return _digits(slot.kind, words, weights)
        once = _digits(SQUARED[slot.kind], words, (weights != 0).astype(np.int64))
        return quotients.spread_squares(once, weights, DIGITS.get(slot.kind, PLACES[slot.kind]))

    def _products(self, delta: Matrix, slot: ProductSlot, weights: Words) -> exact_sum.Entries:
        schema, sides = self.source.schema, (slot.field, slot.other)
        columns = [np.ascontiguousarray(delta[:, schema.words(field).start]) for field in sides]
        for number, column in zip(sides, columns, strict=True):
            if schema.fields[number].nullable:
                weights[column == schema.fields[number].type.null_words()[0]] = 0
        there = (weights != 0).astype(np.int64)
        a, b = (exact_sum.spread_floats(column, there) for column in columns)
        return quotients.spread_products(a, b, weights)


def _bits(values: Words, weights: Words) -> exact_sum.Entries:
    """An entry for every bit that is one; its place is its number."""
    ones = (np.ascontiguousarray(values)[:, None] >> np.arange(64)) & 1
    ones[weights == 0] = 0
    rows, places = map(np.ascontiguousarray, np.nonzero(ones))
    return rows, places, weights[rows]


def _digits(kind: Kind, words: Matrix, weights: Words) -> exact_sum.Entries:
    columns = [np.ascontiguousarray(c) for c in words.T]
    match kind:
        case Kind.FLOAT:
            return exact_sum.spread_floats(columns[0], weights)
        case Kind.WIDE:
            return exact_sum.spread_wide(columns[0], columns[1], weights)
        case _:
            return exact_sum.spread_integers(columns[-1], weights)
