"""When two rows are the same: a key for every row, equal for equal rows, whatever the values are.

Most rows are their own key. Those with floats are not, because NaN is one value here and none to Python; nor are those
with arrays or structs, which are lists and dicts; nor those with ANY, where 1, 1.0 and True are three values.

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
from everview.types import ANY, DOUBLE, FLOAT, Array, Schema, Struct, Type

Identity = Callable[[Any], Hashable]


def itself(row: Any) -> Hashable:
    """The row as its own key."""
    return row


@cache
def identity(schema: Schema) -> Identity:
    """The key of a row of a schema."""
    odd = [(at, of) for at, part in enumerate(schema.types) if (of := _of(part)) is not None]
    if not odd:
        return itself

    def key(row: Any) -> Hashable:
        found = list(row)
        for at, of in odd:
            found[at] = of(row[at])
        return tuple(found)

    return key


def frozen(value: Any) -> Any:
    """A value that nobody can change: arrays as tuples, structs as tuples of their parts; NaN is one object.

    >>> frozen([1, [2, float("nan")]])
    (1, (2, nan))
    """
    if isinstance(value, float):
        return value if value == value else math.nan
    if isinstance(value, list | tuple):
        return tuple(frozen(part) for part in value)
    if isinstance(value, Mapping):
        return tuple(frozen(part) for part in value.values())
    return value


def _of(of: Type) -> Callable[[Any], Hashable] | None:
    if of == ANY:
        return atom_key
    return frozen if of in (FLOAT, DOUBLE) or isinstance(of, Array | Struct) else None
