"""VALUES: rows that are written down, their columns as the types that all rows have in common."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from everview.frontends.sql.casts import constant
from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope
from everview.frontends.sql.rows import ONE_ROW
from everview.plan.node import Plan
from everview.plan.nodes import Project, Union, Values
from everview.plan.typing import common
from everview.scalars.expressions import Expression, Literal
from everview.types import Field, Schema, Type


def written(node: exp.Values, context: QueryContext) -> Bound:
    """Bind VALUES: rows of constants are literal, other rows are computed. A column may hold only NULLs."""
    site = Site(context, Scope((), context.outer), "VALUES")
    rows = [[expression(value, site) for value in _row(row)] for row in node.expressions]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise context.error("rows of VALUES with different numbers of values", node, f"the first has {width}")
    kinds = [_common([row[i] for row in rows], node, context) for i in range(width)]
    typed = [tuple(constant(v, type_) for v, type_ in zip(row, kinds, strict=True)) for row in rows]
    names = tuple(f"col{i + 1}" if context.dialect == "spark" else f"col{i}" for i in range(width))
    return Bound(relation(typed, names), names)


def relation(rows: list[tuple[Expression, ...]], names: tuple[str, ...]) -> Plan:
    """Rows as a plan."""
    written_down = [row for row in rows if all(isinstance(v, Literal) for v in row)]
    parts: list[Plan] = []
    if written_down:
        fields = [
            Field(name, rows[0][i].type, any(row[i].nullable for row in written_down)) for i, name in enumerate(names)
        ]
        parts.append(
            Values(tuple(tuple(v for v in row if isinstance(v, Literal)) for row in written_down), Schema(fields))
        )
    parts += [Project(ONE_ROW, row, names) for row in rows if not all(isinstance(v, Literal) for v in row)]
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def _row(node: exp.Expr) -> list[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node.this if isinstance(node, exp.Paren) else node]


def _common(column: list[Expression], node: exp.Expr, context: QueryContext) -> Type:
    def met(a: Type, b: Expression) -> Type:
        common_type = common(a, b.type)
        if common_type is None:
            raise context.error(f"a column of {a} and {b.type} in VALUES", node, "cast one of them")
        return common_type

    return reduce(met, column[1:], column[0].type)
