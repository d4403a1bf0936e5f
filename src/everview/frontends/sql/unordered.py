"""Values without an order: where maps and variants are refused, as Spark refuses them, because rows are compared."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from everview.frontends.sql.context import QueryContext
from everview.plan.typing import call
from everview.scalars.expressions import Expression
from everview.types import MapType, Type, has_map

_HINT = "maps and variants are not compared: use map_entries(m), or to_json(v)"


def refuse_unordered(types: Iterable[Type], what: str, node: exp.Expr, context: QueryContext) -> None:
    """Refuse types whose values are not compared."""
    for type_ in types:
        if has_map(type_):
            raise context.error(f"{what} {type_}", node, _HINT)


def ordered(value: Expression, what: str, node: exp.Expr, context: QueryContext) -> Expression:
    """The value, which is compared with others."""
    refuse_unordered([value.type], what, node, context)
    return value


def group_key(key: Expression, node: exp.Expr, context: QueryContext) -> Expression:
    """A key of GROUP BY; maps are the same whatever the order of their entries, and come out sorted."""
    if isinstance(key.type, MapType) and not has_map(key.type.value):
        return call("map_sorted", key)
    return ordered(key, "GROUP BY", node, context)
