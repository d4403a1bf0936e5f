"""The rows after a given one, in an order that tells all rows apart: ``start_after``.

A row comes after another if it agrees on the first columns of the order and comes after on the next. NULL comes
first ascending, and last descending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from everview.errors import QueryError, WrongArity, shown
from everview.frontends.fluent.binding import constant
from everview.frontends.fluent.names import Path
from everview.frontends.fluent.shape import Direction
from everview.plan.node import Plan
from everview.plan.typing import call
from everview.scalars.expressions import FALSE, Column, Expression


def after(
    plan: Plan, order: Sequence[tuple[int, Direction]], row: Any, shown: int, records: Mapping[int, Path]
) -> Expression:
    """The condition that a row of a plan comes after the given one.

    The first columns of the plan are ``shown``; ``records`` has the columns that only mark whether a record is there.
    """
    same: list[Expression] = []
    ways: list[Expression] = []
    for place, way in order:
        column = plan.column(place)
        value = constant(
            _value(row, place, plan, order, shown, records), column.type, f"start_after: {column.name} after"
        )
        later = _later(column, value, way)
        if later != FALSE:
            ways.append(call("and", *same, later) if same else later)
        same.append(call("is_null", column) if value.value is None else call("equal", column, value))
    return FALSE if not ways else ways[0] if len(ways) == 1 else call("or", *ways)


def _later(column: Column, value: Any, way: Direction) -> Expression:
    if value.value is None:
        return call("is_not_null", column) if way == "asc" else FALSE
    if way == "asc":
        return call("greater", column, value)
    less = call("less", column, value)
    return call("or", less, call("is_null", column)) if column.nullable else less


def _value(
    row: Any, column: int, plan: Plan, order: Sequence[tuple[int, Direction]], shown: int, records: Mapping[int, Path]
) -> Any:
    name = plan.schema.names[column]
    if isinstance(row, Mapping) and column in records:
        value = _at(row, ".".join(records[column]))  # pyright: ignore[reportUnknownArgumentType]
        if value is not None:
            return None if value[0] is None else True
    elif isinstance(row, Mapping):
        value = _at(row, name)  # pyright: ignore[reportUnknownArgumentType]
        if value is not None:
            return value[0]
    elif len(row) == shown and column < shown:
        return row[column]
    needed = ", ".join(plan.schema.names[place] for place, _ in order)
    raise WrongArity(f"start_after: the row does not say its {name}", hint=f"the order is by {needed}")


def _at(row: Mapping[Any, Any], name: str) -> tuple[Any] | None:
    """The value of a name, which may lead into records, in a tuple; None if there is none."""
    if name in row:
        return (row[name],)
    for first, inner in row.items():
        if isinstance(first, str) and name.startswith(f"{first}."):
            if inner is None:
                return (None,)  # no partner: all its columns are NULL
            value = _at(inner, name[len(first) + 1 :]) if isinstance(inner, Mapping) else None  # pyright: ignore[reportUnknownArgumentType]
            if value is not None:
                return value
    return None


def check_row(row: Any) -> None:
    """Refuse a value that is not a row."""
    if isinstance(row, str | bytes) or not isinstance(row, Mapping | Sequence):
        raise QueryError(
            f"start_after {shown(row)}, which is no row", hint="give a row of the result, or a dict of its columns"
        )
