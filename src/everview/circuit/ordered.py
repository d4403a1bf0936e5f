"""The circuit of the first rows in an order, and how orders are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everview.errors import CircuitError
from everview.operators.index import Direction, Index
from everview.operators.operator import Layout
from everview.operators.top import Top
from everview.types import Schema

if TYPE_CHECKING:
    from everview.circuit.stream import Stream

Order = str | tuple[str, str]


def topped(stream: Stream, limit: int, order: str | Sequence[Order], by: Sequence[str], skip: int) -> Stream:
    """Of each group, the first rows in an order; see `Stream.top`."""
    if limit < 0 or skip < 0 or limit + skip >= 1 << 63:
        raise CircuitError(f"top takes a limit and a skip of 0 to 2^63, not {limit} and {skip}", hint="top(10, …)")
    group = [stream.schema.index(name) for name in by]
    directions: dict[int, Direction] = {}
    for item in (order,) if isinstance(order, str) else order:
        field, direction = direction_of(stream.schema, item)
        directions.setdefault(field, direction)
    for field in range(len(stream.schema)):
        directions.setdefault(field, Direction.ASC)
    fields = (*group, *(f for f in directions if f not in group))
    ordered = tuple((place, directions[f]) for place, f in enumerate(fields) if f not in group)
    indexed = stream.circuit.add(Index(Layout(stream.schema), fields, len(group), ordered), [stream])
    rows = stream.circuit.add(Top(indexed.layout, skip, limit, ordered), [indexed])
    return rows.select(*stream.schema.names)


def direction_of(schema: Schema, order: Order) -> tuple[int, Direction]:
    """``"score desc nulls last"`` as a column and a direction."""
    name, how = order if isinstance(order, tuple) else _split_order(schema, order)
    words = how.lower().split()
    descends = "desc" in words
    nulls_first = not descends if "nulls" not in words else "first" in words
    unknown = [w for w in words if w not in ("asc", "desc", "nulls", "first", "last")]
    if unknown:
        raise CircuitError(f"cannot read the order {order!r}", hint='write "column [asc|desc] [nulls first|last]"')
    if descends:
        return schema.index(name), Direction.DESC_NULLS_FIRST if nulls_first else Direction.DESC
    return schema.index(name), Direction.ASC if nulls_first else Direction.ASC_NULLS_LAST


def _split_order(schema: Schema, order: str) -> tuple[str, str]:
    if order in schema:
        return order, ""
    name, _, how = order.partition(" ")
    return name, how
