"""Trees made of flat rows, all at once: the result of a query that is run.

>>> from everview.frontends.fluent.shape import RecordShape
>>> from everview.plan.nodes import Values
>>> from everview.types import Schema
>>> nothing = Values((), Schema.parse("id BIGINT"))
>>> albums = QueryPart("albums", nothing, RecordShape((("title", 1),)), ((1, "asc"),), parent=(0,), child=(0,))
>>> artists = QueryPart("", nothing, RecordShape((("id", 0),)), ((0, "desc"),), children=(albums,))
>>> trees(artists, {"": [(1,), (2,)], ".albums": [(1, "B"), (1, "A")]})
[{'id': 2, 'albums': []}, {'id': 1, 'albums': [{'title': 'A'}, {'title': 'B'}]}]
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everview.frontends.fluent.shape import Direction, QueryPart
from everview.types import Id, Symbol

Row = tuple[Any, ...]
KINDS: tuple[type, ...] = (bool, int, float, dt.date, dt.datetime, decimal.Decimal, str, bytes, Symbol, Id)  # in order
Tree = dict[str, Any]


def trees(part: QueryPart, rows: Mapping[str, Iterable[Row]], name: str = "") -> Any:
    """The result of a query, given the rows of its parts by the names of `QueryPart.walk`."""
    roots = _lists(part, rows, name).get((), [])
    if part.scalar:
        (tree,) = roots
        return next(iter(tree.values()))
    return _one_or_all(part, roots)


def _one_or_all(part: QueryPart, siblings: list[Tree]) -> Any:
    return siblings if not part.one else siblings[0] if siblings else None


def _lists(part: QueryPart, rows: Mapping[str, Iterable[Row]], name: str) -> dict[Row, list[Tree]]:
    """The trees of a part, in order, by the row above that they belong to."""
    beneath = [(child, _lists(child, rows, f"{name}.{child.name}")) for child in part.children]
    lists: dict[Row, list[Tree]] = {}
    for row in in_order(rows[name], part.order):
        tree = part.record.of(row) or {}
        for child, theirs in beneath:
            tree[child.name] = _one_or_all(child, theirs.get(tuple(key(row[column]) for column in child.parent), []))
        lists.setdefault(tuple(key(row[column]) for column in part.child), []).append(tree)
    return lists


def in_order(rows: Iterable[Row], order: Sequence[tuple[int, Direction]]) -> list[Row]:
    """The rows sorted by one column after the other, the last one first, as sorting is stable."""
    ordered = list(rows)
    for column, way in reversed(order):
        ordered.sort(key=lambda row, column=column: rank(row[column]), reverse=way == "desc")
    return ordered


def rank(value: Any) -> Any:
    """The sort key of a value: NULL before all others, NaN after all other numbers, arrays by their elements.

    Values of several types, which only ANY holds, are sorted by type first.
    """
    match value:
        case None:
            return (-1,)
        case float() | decimal.Decimal() if math.isnan(value):
            return (KINDS.index(type(value)), 1)
        case list() | tuple():
            return (len(KINDS), 0, [rank(part) for part in value])  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return (len(KINDS) + 1, 0, [rank(part) for part in value.values()])  # pyright: ignore[reportUnknownVariableType]
        case _:
            kind = type(value)
            return (KINDS.index(kind) if kind in KINDS else len(KINDS) + 2, 0, value)


def key(value: Any) -> Any:
    """The lookup key of a value: all NaN are one, and arrays are tuples."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return tuple(map(key, value)) if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
