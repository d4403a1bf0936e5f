"""Content ids: names of tuples that depend on their relation and their attributes alone.

The id is the SHA-256 of a text in which relation, attribute names and values stand with their lengths, attributes in
the order of their names: equal for equal tuples, and for others as different as SHA-256 can tell.

>>> from everview.plan.nodes import Scan
>>> from everview.types import Schema
>>> point = Scan("point", Schema.parse("x BIGINT NOT NULL, y BIGINT NOT NULL"))
>>> print(content_id("point", point.schema.names, point.columns).type)
STRING
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from everview.errors import DatalogError, TypeMismatch
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression
from everview.types import BINARY, COMPOSITE, STRING

BITS = 256


def content_id(relation: str, names: Sequence[str], columns: Sequence[Expression]) -> Expression:
    """The content id of a row of a relation, given its attributes by name."""
    parts: list[Expression] = [literal(_measured(relation))]
    for name, column in sorted(zip(names, columns, strict=True), key=lambda pair: pair[0]):
        text = _text(relation, name, column)
        measured = call("concat", cast(call("length", text), STRING), literal(":"), text)
        parts += [literal(_measured(name)), call("coalesce", measured, literal("-")) if column.nullable else measured]
    digest = call("sha2", call("concat", *parts), literal(BITS))
    return call("coalesce", digest, literal(""))  # it is never NULL, which SHA-2 of so many bits cannot say


def _measured(text: str) -> str:
    return f"{len(text)}:{text}"


def _text(relation: str, name: str, column: Expression) -> Expression:
    """A value as text, different for different values of its type."""
    if column.type == STRING:
        return column
    if not isinstance(column.type, COMPOSITE):  # whose texts may be the same for different values
        with suppress(TypeMismatch):
            return call("hex", column) if column.type == BINARY else cast(column, STRING)
    raise DatalogError(
        f"{relation} has no content ids: its attribute {name} is of type {column.type}",
        hint="numbers, text, truth values, dates, timestamps and bytes have; leave the binding out",
    )
