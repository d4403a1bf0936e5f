"""The order of a view's rows, as users write it: by some columns, ascending or descending, then by all others.

Rows with equal keys are equal, so a row is found by its key.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, n BIGINT")
>>> key = sort_key(schema, order_of(schema, ["n desc"]))
>>> sorted([(1, 5), (2, None), (4, 5), (3, 7)], key=key)
[(3, 7), (1, 5), (4, 5), (2, None)]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from everview.errors import SchemaError, shown
from everview.orders import Direction, Order, SortKey, direction_of, row_key
from everview.types import Schema

By = str | tuple[str, str]  # "rating desc", or ("rating", "desc")


def order_of(schema: Schema, by: By | Iterable[By]) -> Order:
    """The order that names say: ``"rating desc"``, ``("rating", "desc")``, or several of these."""
    return tuple(_item(schema, item) for item in ([by] if _single(by) else by))  # pyright: ignore[reportArgumentType]


def _single(by: Any) -> bool:
    return isinstance(by, str) or (isinstance(by, tuple) and len(by) == 2 and direction_of(str(by[1])) is not None)  # pyright: ignore[reportUnknownArgumentType]


def _item(schema: Schema, item: By) -> tuple[int, Direction]:
    if not isinstance(item, str) and not (isinstance(item, tuple) and all(isinstance(part, str) for part in item)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SchemaError(f"{shown(item)} is no order", hint='write ordered("rating desc"), or ("rating", "desc")')
    name, how = item if isinstance(item, tuple) else _told_apart(schema, item)
    direction = direction_of(how)
    if direction is None:
        raise SchemaError(f"{how} is no direction", hint='write "asc" or "desc", as in ordered("rating desc")')
    return schema.index(name), direction


def _told_apart(schema: Schema, item: str) -> tuple[str, str]:
    """The name and the direction in ``"rating desc nulls first"``; a name may have spaces."""
    if item in schema or " " not in item.strip():
        return item.strip(), "asc"
    parts = re.fullmatch(r"(.*?)\s+((?:asc|desc)?\s*(?:nulls\s+(?:first|last))?)", item.strip(), re.IGNORECASE)
    name, _, last = item.rpartition(" ")
    return (parts[1], parts[2]) if parts else (name, last)


def complete(schema: Schema, order: Order) -> Order:
    """The order with all other columns for its ties, ascending; each column once."""
    directions: dict[int, Direction] = {}
    for column, direction in (*order, *((column, "asc") for column in range(len(schema)))):
        directions.setdefault(column, cast(Direction, direction))
    return tuple(directions.items())


def sort_key(schema: Schema, order: Order) -> SortKey:
    """A function of rows whose values compare as the rows do, ties broken by all columns."""
    return row_key(schema, complete(schema, order))
