"""The order of rows that all sources agree on: NULL before all values, bytes as bytes, NaN last, ties by the key.

Law: ``sort_key(schema, order)`` of two rows compares as the rows do, and ``beyond`` holds of exactly those rows that
come after a given one.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, n BIGINT")
>>> by_n = total((("n", "desc"),), ("id",))
>>> by_n
(('n', 'desc'), ('id', 'asc'))
>>> sorted([(1, 5), (2, None), (3, 7), (4, 5)], key=sort_key(schema, by_n))
[(3, 7), (1, 5), (4, 5), (2, None)]
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable
from functools import cache
from operator import itemgetter
from typing import Any

from everview.sources.protocol import All, Any_, Compare, Condition, Direction, Row
from everview.types import Decimal, Field, Scalar, Schema

Order = tuple[tuple[str, Direction], ...]
SortKey = Callable[[Row], Any]


def total(order: Iterable[tuple[str, Direction]], key: Iterable[str]) -> Order:
    """The order with the key, ascending, for its ties; each column once."""
    found: dict[str, Direction] = {}
    for column, direction in order:
        found.setdefault(column, direction)
    for column in key:
        found.setdefault(column, "asc")
    return tuple(found.items())


class Down:
    """A value the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Down) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Down) and self.value == other.value

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@cache
def sort_key(schema: Schema, order: Order) -> SortKey:
    """A function of rows whose values compare as the rows do."""
    places = [schema.index(column) for column, _ in order]
    parts = [_part(schema[at], direction) for at, (_, direction) in zip(places, order, strict=True)]
    if all(part is None for part in parts):
        return itemgetter(*places) if len(places) > 1 else lambda row: row[places[0]]
    pairs = [(at, part or _same) for at, part in zip(places, parts, strict=True)]
    return lambda row: tuple([part(row[at]) for at, part in pairs])


def first_key(schema: Schema, order: Order, value: Any) -> Any:
    """A sort key that comes before those of all rows with this value, or one after it, in the first column."""
    column, direction = order[0]
    part = _part(schema[column], direction)
    if len(order) == 1 and part is None:
        return value
    return ((part or _same)(value),)


def _same(value: Any) -> Any:
    return value


def _part(field: Field, direction: Direction) -> Callable[[Any], Any] | None:
    """How a column's values become comparable; None if they are so already."""
    inner = _value(field, direction)
    if not field.nullable:
        return inner
    value = inner or _same
    if direction == "asc":
        return lambda v: (0,) if v is None else (1, value(v))
    return lambda v: (1,) if v is None else (0, value(v))


def _value(field: Field, direction: Direction) -> Callable[[Any], Any] | None:
    up = direction == "asc"
    match field.type:
        case Scalar("DOUBLE" | "FLOAT"):
            return (lambda v: (v != v, v)) if up else (lambda v: (v == v, -v if v == v else v))
        case _ if up:
            return None
        case Scalar("TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "BOOLEAN"):
            return lambda v: -v
        case Decimal():
            return decimal.Decimal.copy_negate
        case Scalar("DATE"):
            return lambda v: -dt.date.toordinal(v)
        case _:
            return Down


def beyond(order: Order, schema: Schema, row: Row) -> Condition:
    """What holds of the rows that come after a given one, in a total order."""
    return Any_(tuple(segments(order, schema, row)))


def segments(order: Order, schema: Schema, row: Row) -> list[Condition]:
    """The rows that come after a given one, in parts that follow each other: each is a range of an index.

    First those that differ in the last column only, at the end those that differ in the first.
    """
    found: list[Condition] = []
    for last in reversed(range(len(order))):
        same = [_same_as(column, row[schema.index(column)]) for column, _ in order[:last]]
        column, direction = order[last]
        further = _further(column, direction, row[schema.index(column)], schema[column].nullable)
        found += [All((*same, each)) for each in further]
    return found


def _same_as(column: str, value: Any) -> Condition:
    return Compare(column, "is", None) if value is None else Compare(column, "=", value)


def _further(column: str, direction: Direction, value: Any, nullable: bool) -> list[Condition]:
    if direction == "asc":
        return [Compare(column, "is not", None) if value is None else Compare(column, ">", value)]
    if value is None:
        return []
    less: list[Condition] = [Compare(column, "<", value)]
    return [*less, Compare(column, "is", None)] if nullable else less
