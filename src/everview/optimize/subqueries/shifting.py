"""Expressions of a subquery, moved to where its rows stand beside values of the row around it.

Inside these modules an `Outer` of depth 0 is a column of that row, which is to be bound. Rows further out are one
query nearer, because the subquery becomes part of the query around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from everview.plan.node import Plan, unique
from everview.plan.nodes import Project
from everview.plan.outers import outers, with_outers
from everview.scalars.expressions import Column, Expression, Outer, rewritten


def opened(plan: Plan) -> Plan:
    """A subquery as a part of the query around it: everything outside is one query nearer."""
    return with_outers(plan, lambda outer, _: replace(outer, depth=outer.depth - 1))


def unbound(plan: Plan) -> tuple[int, ...]:
    """The columns of the row around it that an opened subquery reads."""
    return tuple(sorted({outer.index for outer in outers(plan, 0)}))


def shifted(expression: Expression, by: int, places: Mapping[int, int]) -> Expression:
    """The expression with its columns moved, and those of the row around at their places, where they have one."""

    def move(e: Expression) -> Expression:
        if isinstance(e, Column):
            return replace(e, index=e.index + by)
        if isinstance(e, Outer) and e.depth == 0 and e.index in places:
            return Column(places[e.index], e.name, e.type, e.nullable)
        return e

    return rewritten(expression, move)


def open_in(expression: Expression) -> frozenset[int]:
    """The columns of the row around that an expression reads."""
    outers: set[int] = set()

    def note(e: Expression) -> Expression:
        if isinstance(e, Outer) and e.depth == 0:
            outers.add(e.index)
        return e

    rewritten(expression, note)
    return frozenset(outers)


def substituted(expression: Expression, values: Sequence[Expression]) -> Expression:
    """The expression with every column replaced by the value at its position."""
    return rewritten(expression, lambda e: values[e.index] if isinstance(e, Column) else e)


def picked(plan: Plan, columns: Sequence[int]) -> Plan:
    """Some columns of a plan."""
    if tuple(columns) == tuple(range(len(plan.schema))):
        return plan
    names = plan.schema.names
    return Project(plan, tuple(plan.column(column) for column in columns), unique(names[column] for column in columns))
