"""UNPIVOT: columns turned into rows, a row for each column of the list, with its name and its value.

The rows of all columns are one union over the same input. A row whose values are all NULL is left out, unless INCLUDE
NULLS is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from sqlglot import exp

from everview.frontends.sql.casts import untyped
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.names import fold
from everview.frontends.sql.rows import NamedRows
from everview.plan.node import unique
from everview.plan.nodes import Filter, Project, Union
from everview.plan.typing import call, coerced, common, literal
from everview.scalars.expressions import Expression
from everview.types import Type, unknown_name


@dataclass(frozen=True)
class UnpivotedColumns:
    """An item of the list: columns that make up one row, and the text by which the row says so."""

    names: tuple[str, ...]
    said: str


def of_clause(pivot: exp.Pivot, rows: NamedRows, context: QueryContext) -> Bound:
    """``FROM t UNPIVOT [INCLUDE NULLS] (value FOR name IN (a, b AS 'x'))``."""
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or len(pivot.expressions) != 1:
        raise context.error("UNPIVOT of which columns?", pivot, "write UNPIVOT (value FOR name IN (a, b))")
    values = _names(pivot.expressions[0])
    items = [_item(part) for part in fields[0].expressions]
    return _rows(values, fields[0].this.name, items, bool(pivot.args.get("include_nulls")), rows, pivot, context)


def of_statement(pivot: exp.Pivot, rows: NamedRows, context: QueryContext) -> Bound:
    """``UNPIVOT t ON a, b INTO NAME n VALUE v``."""
    into = pivot.args.get("into")
    name = "name" if into is None else into.this.name
    values = ["value"] if into is None else [part.name for part in into.expressions]
    nulls = bool(pivot.args.get("include_nulls"))
    return _rows(values, name, [_item(part) for part in pivot.expressions], nulls, rows, pivot, context)


def _names(node: exp.Expr) -> list[str]:
    return [part.name for part in node.expressions] if isinstance(node, exp.Tuple) else [node.name]


def _item(node: exp.Expr) -> UnpivotedColumns:
    inner = node.this if isinstance(node, (exp.PivotAlias, exp.Alias)) else node
    names = tuple(_names(inner))
    said = "_".join(names)
    if isinstance(node, exp.PivotAlias):
        said = node.args["alias"].name
    elif isinstance(node, exp.Alias):
        said = node.alias
    return UnpivotedColumns(names, said)


def _rows(
    values: list[str],
    name: str,
    items: list[UnpivotedColumns],
    nulls: bool,
    rows: NamedRows,
    node: exp.Expr,
    context: QueryContext,
) -> Bound:
    known = {fold(v.name): v.expression for v in rows.scope.star()}
    used = _used(values, items, rows, node, context)
    rest = [(v.name, v.expression) for v in rows.scope.star() if fold(v.name) not in used]
    columns = [[known[fold(item.names[place])] for item in items] for place in range(len(values))]
    kinds = [_common(column, values[place], node, context) for place, column in enumerate(columns)]
    names = (*(n for n, _ in rest), name, *values)
    parts = [
        Project(
            rows.plan,
            (
                *(value for _, value in rest),
                literal(item.said),
                *(untyped(coerced(column[number], kind)) for column, kind in zip(columns, kinds, strict=True)),
            ),
            unique(names),
        )
        for number, item in enumerate(items)
    ]
    plan = parts[0] if len(parts) == 1 else Union(tuple(parts))
    if nulls:
        return Bound(plan, names)
    present = [call("is_not_null", plan.column(len(rest) + 1 + place)) for place in range(len(values))]
    return Bound(Filter(plan, present[0] if len(present) == 1 else call("or", *present)), names)


def _used(
    values: list[str], items: list[UnpivotedColumns], rows: NamedRows, node: exp.Expr, context: QueryContext
) -> set[str]:
    """The columns that become rows, folded; each item names as many as there are values, and all are there."""
    there = [v.name for v in rows.scope.star()]
    known = {fold(name) for name in there}
    for item in items:
        if len(item.names) != len(values):
            counts = f"{len(values)} values and {len(item.names)} columns"
            raise context.error(f"UNPIVOT into {counts}", node, "list as many columns as values")
    columns = list(chain.from_iterable(item.names for item in items))
    missing = next((column for column in columns if fold(column) not in known), None)
    if missing is not None:
        raise unknown_name("column", missing, there)
    return set(map(fold, columns))


def _common(column: list[Expression], value: str, node: exp.Expr, context: QueryContext) -> Type:
    type_ = column[0].type
    for other in column[1:]:
        both = common(type_, other.type)
        if both is None:
            raise context.error(f'UNPIVOT of {type_} and {other.type} into "{value}"', node, "cast one of them")
        type_ = both
    return type_
