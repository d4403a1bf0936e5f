"""Keys of rows: equal for equal rows, whatever the values are.

Most rows are their own key. Rows with floats are not, because NaN equals itself in SQL and not in Python; nor are rows
with arrays, structs or maps, which are lists and dicts; nor rows with ANY, where 1, 1.0 and True are three values.

>>> from everview.types import Schema
>>> key = identity(Schema.parse("x DOUBLE, tags ARRAY<STRING>"))
>>> key((float("nan"), ["a"])) == key((float("nan"), ["a"]))
True
>>> identity(Schema.parse("id BIGINT, name STRING"))((1, "a"))
(1, 'a')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any

from everview.codes.order import atom_key
from everview.types import ANY, COMPOSITE, DOUBLE, FLOAT, Schema, Type

Identity = Callable[[Any], Hashable]


def itself(row: Any) -> Hashable:
    """The row as its own key."""
    return row


@cache
def identity(schema: Schema) -> Identity:
    """The function from rows of a schema to their keys."""
    odd = [(place, freeze) for place, part in enumerate(schema.types) if (freeze := _of(part)) is not None]
    if not odd:
        return itself

    def key(row: Any) -> Hashable:
        values = list(row)
        for place, freeze in odd:
            values[place] = freeze(row[place])
        return tuple(values)

    return key


def frozen(value: Any) -> Any:
    """An immutable form of a value: arrays as tuples, structs and maps as tuples of pairs, NaN as one object.

    >>> frozen([1, [2, float("nan")]])
    (1, (2, nan))
    """
    if isinstance(value, float):
        return value if value == value else math.nan
    if isinstance(value, list | tuple):
        return tuple(frozen(part) for part in value)
    if isinstance(value, Mapping):
        return tuple((name, frozen(part)) for name, part in value.items())
    return value


def _of(type_: Type) -> Callable[[Any], Hashable] | None:
    if type_ == ANY:
        return atom_key
    return frozen if type_ in (FLOAT, DOUBLE) or isinstance(type_, COMPOSITE) else None
