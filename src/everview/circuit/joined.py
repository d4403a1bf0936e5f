"""The circuits of joins by equal keys: both sides under keys of the same words, and the result's columns chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from everview.errors import SchemaError
from everview.operators.join import LEFT, RIGHT, JoinStream, JoinTrace, Pick
from everview.operators.linear import recodes
from everview.operators.pad import Pad
from everview.operators.semijoin import Semijoin
from everview.types import Field, Schema

if TYPE_CHECKING:
    from everview.circuit.stream import Stream, StreamTrace

On = str | tuple[str, str] | Sequence[str | tuple[str, str]]
Select = Sequence[str | tuple[int, str, str]]


# -- joins


def joined(one: Stream, other: Stream, on: On, select: Select | None) -> Stream:
    """Pairs of rows with equal keys."""
    left, right, picks, schema = sides(one, other, on, select)
    return one.circuit.add(JoinStream(left.layout, right.layout, picks, schema), [left, right])


def joined_with_trace(one: Stream, trace: StreamTrace, on: On, select: Select | None) -> Stream:
    """Pairs of a tick's rows with the rows of a trace that is indexed by the key."""
    left, _, picks, schema = sides(one, trace.stream, on, select)
    return one.circuit.add(JoinTrace(left.layout, trace.layout, picks, schema), [left], [trace])


def semijoined(one: Stream, other: Stream, on: On) -> Stream:
    """The rows of one whose key is among the other's."""
    left, keys = _keyed(one, other, on)
    rows = one.circuit.add(Semijoin(left.layout, keys.layout), [left, keys])
    return rows.select(*one.schema.names)


def outer_joined(one: Stream, other: Stream, on: On, select: Select | None, *, keep: tuple[int, ...]) -> Stream:
    """A join, and the rows without a partner of the sides to ``keep``, padded with NULL."""
    pairs = key_pairs(on)
    # A row of the right without a partner has its key only in its own columns.
    shown = pairs if RIGHT not in keep else []
    chosen = chosen_columns(one.schema, other.schema, shown, select)
    parts = [one.join(other, on, select=chosen)]
    if LEFT in keep:
        parts.append(_padded(one.antijoin(other, on), LEFT, chosen, parts[0].schema))
    if RIGHT in keep:
        flipped = [(b, a) for a, b in pairs]
        parts.append(_padded(other.antijoin(one, flipped), RIGHT, chosen, parts[0].schema))
    schema = parts[0].schema
    for part in parts[1:]:
        schema = _common(schema, part.schema)
    recoded = [part.recode(schema) for part in parts]
    return recoded[0].plus(*recoded[1:])


def _padded(rows: Stream, side: int, chosen: Sequence[tuple[int, str, str]], schema: Schema) -> Stream:
    """Rows of one side laid out as join results, NULL for the columns of the other."""
    own = tuple(rows.schema.index(name) if where == side else None for where, name, _ in chosen)
    padded = [
        Field("", f.type) if place is None else rows.schema.fields[place] for place, f in zip(own, schema, strict=True)
    ]
    named = Schema(Field(new, f.type, f.nullable) for (_, _, new), f in zip(chosen, padded, strict=True))
    return rows.circuit.add(Pad(rows.layout, own, named), [rows])


# -- keys


def sides(one: Stream, other: Stream, on: On, select: Select | None) -> tuple[Stream, Stream, tuple[Pick, ...], Schema]:
    """Both sides of a join, indexed by their keys, and what its result is made of."""
    pairs = key_pairs(on)
    left, right = same_keys(one, other, pairs)
    left = left.index(*(a for a, _ in pairs))
    right = right.index(*(b for _, b in pairs))
    chosen = chosen_columns(one.schema, other.schema, pairs, select)
    schemas = left.schema, right.schema
    picks = tuple((side, schemas[side].index(name)) for side, name, _ in chosen)
    fields = [(schemas[side].fields[field], new) for (side, field), (_, _, new) in zip(picks, chosen, strict=True)]
    return left, right, picks, Schema(Field(new, f.type, f.nullable) for f, new in fields)


def _keyed(one: Stream, other: Stream, on: On) -> tuple[Stream, Stream]:
    """One side, and the keys of the other, both indexed by the key."""
    pairs = key_pairs(on)
    left, right = same_keys(one, other.select(*(b for _, b in pairs)), pairs)
    return left.index(*(a for a, _ in pairs)), right.index(*(b for _, b in pairs))


def key_pairs(on: On) -> list[tuple[str, str]]:
    """Join columns as pairs (left, right).

    >>> key_pairs("id"), key_pairs(("a", "b")), key_pairs(["id", ("a", "b")])
    ([('id', 'id')], [('a', 'b')], [('id', 'id'), ('a', 'b')])
    """
    if isinstance(on, str):
        return [(on, on)]
    if isinstance(on, tuple) and len(on) == 2 and all(isinstance(name, str) for name in on):
        return [(on[0], on[1])]  # type: ignore[list-item]
    return [(item, item) if isinstance(item, str) else item for item in on]


def same_keys(left: Stream, right: Stream, pairs: Sequence[tuple[str, str]]) -> tuple[Stream, Stream]:
    """Both streams with join columns of the same words."""
    lefts, rights = list(left.schema.fields), list(right.schema.fields)
    for a, b in pairs:
        i, j = left.schema.index(a), right.schema.index(b)
        common = wider(lefts[i], rights[j], f"join columns {a} and {b}")
        lefts[i] = Field(a, common.type, common.nullable if common.words != lefts[i].words else lefts[i].nullable)
        rights[j] = Field(b, common.type, common.nullable if common.words != rights[j].words else rights[j].nullable)
    return left.recode(Schema(lefts)), right.recode(Schema(rights))


# -- columns


def chosen_columns(
    left: Schema, right: Schema, pairs: Sequence[tuple[str, str]], select: Select | None
) -> list[tuple[int, str, str]]:
    """(side, column, new name) of every column of a join's result."""
    if select is not None:
        return [_choice(left, right, item) for item in select]
    keys = {b for _, b in pairs}
    chosen = [(LEFT, name, name) for name in left.names]
    for name in right.names:
        if name not in keys:
            chosen.append((RIGHT, name, name if name not in left else f"{name}_right"))
    return chosen


def _choice(left: Schema, right: Schema, item: Any) -> tuple[int, str, str]:
    """``"name"``, ``"left.name"``, ``"right.name"``, or any of those ``as`` a new name; or the triple itself."""
    if isinstance(item, tuple):
        return item  # type: ignore[return-value]
    path, _, new = item.partition(" as ")
    side, dot, name = path.partition(".")
    if dot and side in ("left", "right"):
        return (LEFT if side == "left" else RIGHT), name, new or name
    return (LEFT if path in left else RIGHT), path, new or path


def wider(a: Field, b: Field, what: str) -> Field:
    """A field that holds the values of both."""
    nullable = a.nullable or b.nullable
    for one, other in ((a, b), (b, a)):
        if recodes(Field("", one.type, nullable), Field("", other.type, nullable)):
            return Field("", other.type, nullable)
    raise SchemaError(f"{what} have types {a.type} and {b.type}", hint="cast one side to the type of the other")


def _common(a: Schema, b: Schema) -> Schema:
    if len(a) != len(b):
        raise SchemaError(f"({a}) and ({b}) differ in their number of columns", hint="select the same columns")
    both = (wider(f, g, f"columns {f.name} and {g.name}") for f, g in zip(a.fields, b.fields, strict=True))
    return Schema(Field(name, f.type, f.nullable) for name, f in zip(a.names, both, strict=True))


def alike(left: Stream, right: Stream) -> tuple[Stream, Stream]:
    """Two streams under one schema that holds the rows of both; the left one's names."""
    if left.schema == right.schema:
        return left, right
    schema = _common(left.schema, right.schema)
    return left.recode(schema), right.under(schema)
