"""Lower plans that act on each row alone: projections, filters, and added columns.

A column that is read as it is stays words, and what is computed is computed from words where they suffice, else on
Arrow columns (see `everview.scalars.in_words`). A function is named by the expressions that it evaluates, so that the
same ones make the same node, in every run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from everview.circuit.stream import Stream
from everview.lowering.tests import told_apart
from everview.operators.explode import Explode
from everview.operators.functions import Function
from everview.operators.linear import Map, Project
from everview.operators.present import Present
from everview.operators.where import Where
from everview.plan import nodes as plans
from everview.plan.node import field_of, unique
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import TRUE, Column, Expression, columns_of, moved
from everview.types import Field, Schema

SHOWN = 60  # characters of an expression in the name of its function


def projected(stream: Stream, expressions: Sequence[Expression], names: Sequence[str]) -> Stream:
    """The values of some expressions, under these names."""
    names = unique(names)
    plain = [place for place, e in enumerate(expressions) if isinstance(e, Column)]
    computed = [place for place, e in enumerate(expressions) if not isinstance(e, Column)]
    if computed:
        stream = _mapped(stream, [expressions[place] for place in plain], [expressions[place] for place in computed])
        fields = tuple((*plain, *computed).index(place) for place in range(len(expressions)))
    else:
        fields = tuple(e.index for e in expressions if isinstance(e, Column))
    return picked(stream, fields, names)


def picked(stream: Stream, fields: Sequence[int], names: Iterable[str] | None = None) -> Stream:
    """Some columns, in this order, under new names."""
    every = stream.schema.fields
    chosen = [every[f] for f in fields]
    given = unique(f.name for f in chosen) if names is None else unique(names)
    schema = Schema(Field(name, f.type, f.nullable) for name, f in zip(given, chosen, strict=True))
    if tuple(fields) == tuple(range(len(stream.schema))) and schema == stream.schema:
        return stream
    return stream.circuit.add(Project(stream.layout, tuple(fields), schema), [stream])


def filtered(stream: Stream, predicate: Expression | None) -> Stream:
    """The rows for which a predicate is true."""
    if predicate is None or predicate == TRUE:
        return stream
    tests, predicate = told_apart(predicate, stream.schema)
    if tests:
        stream = stream.circuit.add(Where(stream.layout, tests), [stream])
    if predicate is None:
        return stream
    arguments, (rebased,) = _rebased([predicate])
    return stream.filter(evaluating((rebased,)), columns=[stream.schema.names[column] for column in arguments])


def extended(stream: Stream, expressions: Sequence[Expression]) -> tuple[Stream, tuple[int, ...]]:
    """The stream with columns added for expressions that are none, and the place of each expression."""
    added = list(dict.fromkeys(e for e in expressions if not isinstance(e, Column)))
    width = len(stream.schema)
    places = tuple(e.index if isinstance(e, Column) else width + added.index(e) for e in expressions)
    if not added:
        return stream, places
    own = [Column(column, f.name, f.type, f.nullable) for column, f in enumerate(stream.schema.fields)]
    return _mapped(stream, own, added), places


def exploded(stream: Stream, plan: plans.Explode) -> Stream:
    """A row for each element of an array, after the columns that were there."""
    keep = tuple(range(len(stream.schema)))
    stream, (place,) = extended(stream, (plan.array,))
    wanted = [plan.name] if plan.place is None else [plan.place, plan.name]
    *places, name = unique([*stream.schema.names, *wanted])[len(stream.schema) :]
    before = places[0] if places else None
    return stream.circuit.add(Explode(stream.layout, place, keep, name, plan.outer, before), [stream])


def present(stream: Stream, columns: Iterable[int]) -> Stream:
    """The rows in which some columns are not NULL, under a schema that says so."""
    fields = tuple(sorted({column for column in columns if stream.schema.fields[column].nullable}))
    return stream.circuit.add(Present(stream.layout, fields), [stream]) if fields else stream


def evaluating(expressions: tuple[Expression, ...]) -> Function:
    """The function of Arrow columns that evaluates some expressions."""
    key = hashlib.blake2b(repr(expressions).encode(), digest_size=8).hexdigest()
    text = ", ".join(map(str, expressions))
    shown = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
    return Function(f"{shown} #{key}", Evaluate(expressions), "columns")


def _mapped(stream: Stream, kept: Sequence[Expression], computed: Sequence[Expression]) -> Stream:
    """The stream with the kept columns first, then the computed ones."""
    arguments, rebased = _rebased(computed)
    keep = tuple(e.index for e in kept if isinstance(e, Column))
    given = stream.schema
    fields = [given.fields[column] for column in keep] + [field_of(e, given) for e in computed]
    names = unique([*(f.name for f in fields[: len(keep)]), *(f"computed {column}" for column in range(len(computed)))])
    schema = Schema(Field(name, f.type, f.nullable) for name, f in zip(names, fields, strict=True))
    name = stream.circuit.function(evaluating(rebased), "columns")
    return stream.circuit.add(Map(stream.layout, name, schema, keep, arguments), [stream])


def _rebased(expressions: Sequence[Expression]) -> tuple[tuple[int, ...], tuple[Expression, ...]]:
    """The columns that expressions read, at least one, and the expressions over just those."""
    read: set[int] = set()
    for expression in expressions:
        read |= columns_of(expression)
    arguments = tuple(sorted(read)) or (0,)  # of no columns nobody knows how many rows there are
    return arguments, tuple(moved(e, arguments.index) for e in expressions)
