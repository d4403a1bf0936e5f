"""Operators that are their own derivative: ``f(a + b) = f(a) + f(b)``, so a change goes through alone.

Map, filter, flat-map, projection, recoding, negate, plus, minus and inspect. Images that collide add their weights;
streams between operators carry deltas that need not be consolidated, and every index consolidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from everview.codes import decode, encode, encode_pairs, to_rows
from everview.codes.dictionary import Dictionary
from everview.errors import EverviewError, SchemaError
from everview.kernels.large import arrange, project, select
from everview.kernels.linear import negated
from everview.operators.operator import (
    Anywhere,
    Context,
    InPlace,
    Layout,
    Operator,
    Partition,
    Port,
    Step,
    UnaryOperator,
    carried,
    nothing,
    word_columns,
)
from everview.traces.view import TraceView
from everview.types import BIGINT, INTEGERS, NULL_WORD, Decimal, Field, Schema
from everview.types.words import Matrix
from everview.zset import ZSet


class Calling(Operator):
    """An operator that calls one function, with values."""

    function: str

    @property
    def functions(self) -> tuple[str, ...]:
        return (self.function,)

    @property
    def reads_values(self) -> bool:
        return True


@dataclass(frozen=True)
class Map(Calling, UnaryOperator):
    """Replace every row by its image under a pure function: ``map(f, {x: w}) = {f(x): w}``."""

    source: Layout
    function: str
    schema: Schema
    keep: tuple[int, ...] = ()  # fields carried over as they are, before the function's columns
    arguments: tuple[int, ...] | None = None  # the fields the function is given; all by default
    by_row = True

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return carried(inputs[0], self.keep)

    @cached_property
    def computed(self) -> Schema:
        return Schema(self.schema.fields[len(self.keep) :])

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return _evaluated(deltas[0], self.schema.width, lambda delta: self._images(delta, context))

    def _images(self, delta: Matrix, context: Context) -> Step:
        table = _arguments(self.source.schema, self.arguments, delta, context)
        columns = context.functions[self.function].columns(table, self.computed, context.check)
        out = np.empty((delta.shape[0], self.schema.width + 1), np.int64)
        kept = word_columns(self.source.schema, self.keep)
        out[:, : kept.size] = delta[:, kept]
        out[:, kept.size : -1] = encode(
            self.computed, pa.Table.from_arrays(columns, schema=self.computed.arrow), context.dictionary
        )
        out[:, -1] = delta[:, -1]
        return Step(out)


@dataclass(frozen=True)
class Filter(InPlace, Calling, UnaryOperator):
    """Keep the rows for which a pure predicate is true."""

    source: Layout
    function: str
    arguments: tuple[int, ...] | None = None
    by_row = True

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return _evaluated(deltas[0], self.source.width, lambda delta: self._kept(delta, context))

    def _kept(self, delta: Matrix, context: Context) -> Step:
        table = _arguments(self.source.schema, self.arguments, delta, context)
        (kept,) = context.functions[self.function].columns(table, VERDICT, context.check)
        if kept.type != pa.bool_():
            kept = kept.cast(pa.bool_())
        if kept.null_count:
            kept = kept.fill_null(False)
        return Step(select(delta, kept.to_numpy(zero_copy_only=False)))


@dataclass(frozen=True)
class FlatMap(Calling, UnaryOperator):
    """Replace every row by the rows a pure function gives for it, each with the row's weight."""

    source: Layout
    function: str
    schema: Schema
    by_row = True

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return _evaluated(deltas[0], self.schema.width, lambda delta: self._images(delta, context))

    def _images(self, delta: Matrix, context: Context) -> Step:
        table = _arguments(self.source.schema, None, delta, context)
        columns, parents = context.functions[self.function].flattened(table, self.schema, context.check)
        out = np.empty((parents.size, self.schema.width + 1), np.int64)
        out[:, :-1] = encode(self.schema, pa.Table.from_arrays(columns, schema=self.schema.arrow), context.dictionary)
        out[:, -1] = delta[parents, -1]
        return Step(out)


@dataclass(frozen=True)
class Project(UnaryOperator):
    """Keep some fields, in a new order and under new names; rows that become equal add their weights."""

    source: Layout
    fields: tuple[int, ...]
    schema: Schema

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(project(deltas[0], word_columns(self.source.schema, self.fields)))

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return carried(inputs[0], self.fields)


@dataclass(frozen=True)
class Recode(UnaryOperator):
    """The same values in the words of another schema: wider integers or decimals, or NULL allowed."""

    source: Layout
    schema: Schema

    def __post_init__(self) -> None:
        if len(self.source.schema) != len(self.schema):
            raise SchemaError(f"({self.source.schema}) cannot be read as ({self.schema})", hint="give as many columns")
        for old, new in zip(self.source.schema.fields, self.schema.fields, strict=True):
            if not recodes(old, new):
                raise SchemaError(f"{old} cannot be read as {new}", hint="cast one side to the type of the other")

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        out = np.empty((delta.shape[0], self.schema.width + 1), np.int64)
        for i, (old, new) in enumerate(zip(self.source.schema.fields, self.schema.fields, strict=True)):
            out[:, self.schema.words(i)] = _recoded(delta[:, self.source.schema.words(i)], old, new)
        out[:, -1] = delta[:, -1]
        return Step(out)


def recodes(old: Field, new: Field) -> bool:
    """Whether every value of the one field is a value of the other."""
    if old.nullable and not new.nullable:
        return False
    if old.type == new.type:
        return True
    if isinstance(old.type, Decimal) and isinstance(new.type, Decimal):
        return old.type.scale == new.type.scale and old.type.precision <= new.type.precision
    if old.type not in INTEGERS or new.type not in INTEGERS:
        return False
    return INTEGERS.index(old.type) <= INTEGERS.index(new.type)


def _recoded(words: Matrix, old: Field, new: Field) -> Matrix:
    if old.words == new.words:
        return words
    out = np.empty((words.shape[0], 2), np.int64)
    if new.type == BIGINT:
        absent = (words[:, 0] == NULL_WORD) if old.nullable else np.zeros(words.shape[0], np.bool_)
        out[:, 0] = ~absent
        out[:, 1] = np.where(absent, 0, words[:, 0])
        return out
    absent = (words[:, 0] == NULL_WORD) if old.nullable else np.zeros(words.shape[0], np.bool_)
    # A wide decimal is a signed high word and a low word biased so that signed order is numeric order.
    out[:, 0] = np.where(absent, NULL_WORD, words[:, 0] >> 63)
    out[:, 1] = np.where(absent, NULL_WORD, words[:, 0] ^ np.int64(NULL_WORD))
    return out


@dataclass(frozen=True)
class NotNull(InPlace, UnaryOperator):
    """Keep the rows in which a field is not NULL."""

    source: Layout
    field: int

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        field = self.source.schema.fields[self.field]
        if not field.nullable:
            return Step(delta)
        first = delta[:, self.source.schema.words(self.field).start]
        return Step(delta[first != field.type.null_words()[0]])


@dataclass(frozen=True)
class Matching(InPlace, UnaryOperator):
    """Keep the rows in which some pairs of fields are equal, and some fields equal constants; NULL equals NULL."""

    source: Layout
    same: tuple[tuple[int, int], ...]
    constants: tuple[tuple[int, Any], ...]

    def __post_init__(self) -> None:
        fields = self.source.schema.fields
        assert all((fields[a].type, fields[a].words) == (fields[b].type, fields[b].words) for a, b in self.same)
        self._words(Dictionary())

    @property
    def reads_values(self) -> bool:
        """Whether steps need the dictionary: in a sorted layout, and for constants that are interned."""
        return super().reads_values or any(not field.type.ordered for field in self._given.fields)

    @cached_property
    def _given(self) -> Schema:
        return Schema(self.source.schema.fields[field] for field, _ in self.constants)

    def _words(self, dictionary: Dictionary) -> Matrix:
        """The constants as a row; an error if one is not of its field's type."""
        return encode_pairs(self._given, [(tuple(value for _, value in self.constants), 1)], dictionary)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        schema, kept = self.source.schema, np.ones(delta.shape[0], np.bool_)
        for a, b in self.same:
            kept &= (delta[:, schema.words(a)] == delta[:, schema.words(b)]).all(axis=1)
        if self.constants:
            words = self._words(context.dictionary)
            for place, (field, _) in enumerate(self.constants):
                kept &= (delta[:, schema.words(field)] == words[0, self._given.words(place)]).all(axis=1)
        return Step(delta if kept.all() else delta[kept])


@dataclass(frozen=True)
class Negate(InPlace, UnaryOperator):
    """Flip the sign of every weight."""

    source: Layout

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(negated(deltas[0]))


class _Sum(Operator):
    """Several inputs of one layout, whose rows stay where they are."""

    source: Layout

    @property
    def output(self) -> Layout:
        return Layout(self.source.schema)

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return inputs[0] if all(other == inputs[0] for other in inputs) else Anywhere()


@dataclass(frozen=True)
class Plus(_Sum):
    """Add the weights of the inputs, row by row."""

    source: Layout
    arity: int = 2

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source),) * self.arity

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        present = [d for d in deltas if d.shape[0]]
        if len(present) == 1:
            return Step(present[0])
        return Step(np.concatenate(present) if present else deltas[0])


@dataclass(frozen=True)
class Minus(_Sum):
    """Subtract the weights of the second input from those of the first."""

    source: Layout

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source), Port(self.source))

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        left, right = deltas
        return Step(np.concatenate([left, negated(right)]) if right.shape[0] else left)


@dataclass(frozen=True)
class Inspect(InPlace, Calling, UnaryOperator):
    """Call a function with every change that passes, and pass it on."""

    source: Layout
    function: str

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        table = decode(self.source.schema, delta[:, :-1], context.dictionary)
        rows = to_rows(self.source.schema, table)
        context.functions[self.function].look(ZSet.of(list(zip(rows, delta[:, -1].tolist(), strict=True))))
        return Step(delta)


VERDICT = Schema.parse("verdict BOOLEAN")


def _evaluated(delta: Matrix, width: int, step: Callable[[Matrix], Step]) -> Step:
    """A function's step over the rows of a delta; one that fails is tried again without the rows that cancel.

    An antijoin, or a join whose sides change at once, gives rows with weights that add up to zero: no state has them,
    and a query that is right for all rows there are must not fail for one that is not. Sums are made only then, as
    what reads the result adds up weights anyway.
    """
    try:
        return step(delta)
    except EverviewError:
        rows = arrange(delta, np.arange(delta.shape[1] - 1))
        if rows.shape[0] == delta.shape[0]:
            raise
    return step(rows) if rows.shape[0] else Step(nothing(width))


def _arguments(schema: Schema, fields: tuple[int, ...] | None, delta: Matrix, context: Context) -> pa.Table:
    if fields is None:
        return decode(schema, delta[:, :-1], context.dictionary)
    return decode(_chosen(schema, fields), delta[:, word_columns(schema, fields)], context.dictionary)


@cache
def _chosen(schema: Schema, fields: tuple[int, ...]) -> Schema:
    return Schema(schema.fields[f] for f in fields)
