"""The order of rows that all sources agree on: NULL before all values, bytes as bytes, NaN last, ties by the key.

Law: ``sort_key(schema, order)`` of two rows compares as the rows do, and ``beyond`` holds of exactly those rows that
come after a given one.

>>> from everview.orders import with_ties
>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, n BIGINT")
>>> by_n = with_ties((("n", "desc"),), ("id",))
>>> by_n
(('n', 'desc'), ('id', 'asc'))
>>> sorted([(1, 5), (2, None), (3, 7), (4, 5)], key=sort_key(schema, by_n))
[(3, 7), (1, 5), (4, 5), (2, None)]
"""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import Any

from everview.orders import SortKey, column_key, row_key
from everview.sources.protocol import All, Any_, Compare, Condition, Direction, Row
from everview.types import Schema

Order = tuple[tuple[str, Direction], ...]


@cache
def sort_key(schema: Schema, order: Order) -> SortKey:
    """A function of rows whose values compare as the rows do; for one column its plain value, if that compares."""
    places = [schema.index(column) for column, _ in order]
    if len(order) == 1 and column_key(schema[places[0]], order[0][1]) is None:
        return itemgetter(places[0])
    return row_key(schema, [(place, direction) for place, (_, direction) in zip(places, order, strict=True)])


def first_key(schema: Schema, order: Order, value: Any) -> Any:
    """A sort key before those of all rows whose first column has this value or a later one."""
    column, direction = order[0]
    key_of = column_key(schema[column], direction)
    if len(order) == 1 and key_of is None:
        return value
    return (value if key_of is None else key_of(value),)


def beyond(order: Order, schema: Schema, row: Row) -> Condition:
    """The condition of the rows after a given row, in a total order."""
    return Any_(tuple(segments(order, schema, row)))


def segments(order: Order, schema: Schema, row: Row) -> list[Condition]:
    """The rows that come after a given one, in parts that follow each other: each is a range of an index.

    First those that differ in the last column only, at the end those that differ in the first.
    """
    parts: list[Condition] = []
    for last in reversed(range(len(order))):
        same = [_same_as(column, row[schema.index(column)]) for column, _ in order[:last]]
        column, direction = order[last]
        further = _further(column, direction, row[schema.index(column)], schema[column].nullable)
        parts += [All((*same, each)) for each in further]
    return parts


def _same_as(column: str, value: Any) -> Condition:
    return Compare(column, "is", None) if value is None else Compare(column, "=", value)


def _further(column: str, direction: Direction, value: Any, nullable: bool) -> list[Condition]:
    if direction == "asc":
        return [Compare(column, "is not", None) if value is None else Compare(column, ">", value)]
    if value is None:
        return []
    less: list[Condition] = [Compare(column, "<", value)]
    return [*less, Compare(column, "is", None)] if nullable else less
