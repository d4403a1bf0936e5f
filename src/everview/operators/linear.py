"""Operators that are their own derivative: ``f(a + b) = f(a) + f(b)``, so a change goes through alone.

Map, filter, flat-map, projection, recoding, negate, plus, minus and inspect. Images that collide add their weights;
streams between operators carry deltas that need not be consolidated, and every index consolidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from everview.codes import decode, encode, to_rows
from everview.errors import EverviewError, SchemaError
from everview.kernels import instructions
from everview.kernels.large import arrange, project, select
from everview.kernels.linear import negated
from everview.operators.by_words import ByWords, not_null
from everview.operators.form import CompiledForm, Reason, flat, form_in_words
from everview.operators.functions import Function
from everview.operators.operator import (
    Anywhere,
    Context,
    InPlace,
    Layout,
    Operator,
    Origins,
    Partition,
    Port,
    SameRows,
    Step,
    UnaryOperator,
    carried,
    from_fields,
    nothing,
    word_columns,
)
from everview.operators.word_program import Assembler, ProgramMemo, WordProgram, op
from everview.traces.view import TraceView
from everview.types import BIGINT, INTEGERS, Decimal, Field, Schema
from everview.types.words import Matrix
from everview.zset import ZSet


class Calling(Operator):
    """An operator that calls one function, with values."""

    function: str

    def form_of(self, functions: Mapping[str, Function]) -> CompiledForm | Reason:
        return form_in_words(self.in_words(functions))

    def in_words(self, functions: Mapping[str, Function]) -> WordProgram | str:
        """The program of the function, if words alone suffice, or why there is none."""
        return "it calls a function with values"

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

    @property
    def origins(self) -> Origins:
        """The origins of the fields that are kept; `lowering` knows expressions, and finds those of computed fields."""
        return from_fields(self.keep)

    @cached_property
    def computed(self) -> Schema:
        return Schema(self.schema.fields[len(self.keep) :])

    @cached_property
    def _programs(self) -> ProgramMemo:
        return ProgramMemo()

    def in_words(self, functions: Mapping[str, Function]) -> WordProgram | str:
        """The program that gives the images from words alone, or why there is none."""
        source, given = self.source.schema, _given(self.source.schema, self.arguments)
        return self._programs.of(
            functions[self.function].call, lambda f: f.projection_in_words(source, self.keep, given, self.schema)
        )

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        program = self.in_words(context.functions)
        if isinstance(program, WordProgram):
            images = program.run(deltas[0], context.dictionary)
            if images is not None:
                return Step(images)
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
class Filter(InPlace, Calling, SameRows):
    """Keep the rows for which a pure predicate is true."""

    source: Layout
    function: str
    arguments: tuple[int, ...] | None = None
    by_row = True

    @cached_property
    def _programs(self) -> ProgramMemo:
        return ProgramMemo()

    def in_words(self, functions: Mapping[str, Function]) -> WordProgram | str:
        """The program that decides from words alone, or why there is none."""
        source, given = self.source.schema, _given(self.source.schema, self.arguments)
        return self._programs.of(functions[self.function].call, lambda f: f.predicate_in_words(source, given))

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        program = self.in_words(context.functions)
        if isinstance(program, WordProgram):
            kept = program.run(deltas[0], context.dictionary)
            if kept is not None:
                return Step(kept)
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
class Project(ByWords):
    """Keep some fields, in a new order and under new names; rows that become equal add their weights."""

    source: Layout
    fields: tuple[int, ...]
    schema: Schema

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def assembled(self, assembler: Assembler) -> WordProgram:
        assembler.keep(0, word_columns(self.source.schema, self.fields).tolist())
        return assembler.projection(self.schema.width)

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.PROJECT, flat([word_columns(self.source.schema, self.fields)]))

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(project(deltas[0], word_columns(self.source.schema, self.fields)))  # twice as fast as a program

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return carried(inputs[0], self.fields)

    @property
    def origins(self) -> Origins:
        return from_fields(self.fields)


@dataclass(frozen=True)
class Recode(ByWords):
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

    def assembled(self, assembler: Assembler) -> WordProgram:
        source = self.source.schema
        for place, (old, new) in enumerate(zip(source.fields, self.schema.fields, strict=True)):
            there = self.schema.words(place).start
            if old.words == new.words:
                assembler.keep(there, word_columns(source, (place,)).tolist())
                continue
            value = assembler.load(source, place)
            assembler.store(there, new, value if new.type == BIGINT else assembler.emit_wide(op.WIDEN, value))
        return assembler.projection(self.schema.width)

    @property
    def origins(self) -> Origins:
        fields = zip(self.source.schema.fields, self.schema.fields, strict=True)
        return from_fields(place if old.type == new.type else None for place, (old, new) in enumerate(fields))


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


@dataclass(frozen=True)
class NotNull(InPlace, SameRows, ByWords):
    """Keep the rows in which a field is not NULL."""

    source: Layout
    field: int

    def assembled(self, assembler: Assembler) -> WordProgram:
        return assembler.predicate(self.source.schema, not_null(assembler, self.source.schema, (self.field,)))


@dataclass(frozen=True)
class Matching(InPlace, SameRows, ByWords):
    """Keep the rows in which some pairs of fields are equal, and some fields equal constants; NULL equals NULL."""

    source: Layout
    same: tuple[tuple[int, int], ...]
    constants: tuple[tuple[int, Any], ...]

    def __post_init__(self) -> None:
        fields = self.source.schema.fields
        assert all((fields[a].type, fields[a].words) == (fields[b].type, fields[b].words) for a, b in self.same)
        _ = self.program  # an error if a constant is not of its field's type

    def assembled(self, assembler: Assembler) -> WordProgram:
        schema, pairs = self.source.schema, list[tuple[int, int]]()
        for a, b in self.same:
            words = zip(word_columns(schema, (a,)).tolist(), word_columns(schema, (b,)).tolist(), strict=True)
            pairs += [(assembler.emit(op.LOAD_PLAIN, x), assembler.emit(op.LOAD_PLAIN, y)) for x, y in words]
        given = tuple(field for field, _ in self.constants)
        if given:
            fields = [schema.fields[place] for place in given]
            row = Schema(Field(f"c{number}", f.type, f.nullable) for number, f in enumerate(fields))
            first = assembler.values(row, [value for _, value in self.constants])
            columns = word_columns(schema, given).tolist()
            pairs += [(assembler.emit(op.LOAD_PLAIN, x), assembler.at(first + k)) for k, x in enumerate(columns)]
        verdict = assembler.constant(1)
        for a, b in pairs:
            verdict = assembler.emit(op.AND, verdict, assembler.emit(op.COMPARE, a, b, op.EQUAL))
        return assembler.predicate(self.source.schema, verdict)


@dataclass(frozen=True)
class Negate(InPlace, SameRows):
    """Flip the sign of every weight."""

    source: Layout

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.NEGATE)

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

    @property
    def origins(self) -> Origins:
        return from_fields(range(len(self.source.schema)), len(self.inputs))


@dataclass(frozen=True)
class Plus(_Sum):
    """Add the weights of the inputs, row by row."""

    source: Layout
    arity: int = 2

    @property
    def inputs(self) -> tuple[Port, ...]:
        return (Port(self.source),) * self.arity

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.ADD)

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

    @property
    def form(self) -> CompiledForm:
        return CompiledForm(instructions.SUBTRACT)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        left, right = deltas
        return Step(np.concatenate([left, negated(right)]) if right.shape[0] else left)


@dataclass(frozen=True)
class Inspect(InPlace, Calling, SameRows):
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


def _given(schema: Schema, arguments: tuple[int, ...] | None) -> tuple[int, ...]:
    """The fields that a function is given: all, unless some are named."""
    return tuple(range(len(schema))) if arguments is None else arguments


def _arguments(schema: Schema, fields: tuple[int, ...] | None, delta: Matrix, context: Context) -> pa.Table:
    if fields is None:
        return decode(schema, delta[:, :-1], context.dictionary)
    return decode(_chosen(schema, fields), delta[:, word_columns(schema, fields)], context.dictionary)


@cache
def _chosen(schema: Schema, fields: tuple[int, ...]) -> Schema:
    return Schema(schema.fields[f] for f in fields)
