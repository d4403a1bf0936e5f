"""Subqueries in a join's condition: the columns they read, conditions over moved columns, and joins from pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from everview.optimize.subqueries.shifting import picked
from everview.plan.conditions import conjunction
from everview.plan.node import Plan
from everview.plan.nodes import Join, Project, Union
from everview.plan.outers import Subquery, is_subquery, outers_of, with_outers_of
from everview.plan.typing import call
from everview.scalars.expressions import Column, Expression, Literal, Outer, columns_of


def read_by(subquery: Subquery) -> frozenset[int]:
    """The columns of the row around that a subquery reads: beside its plan, as ``x IN (…)`` does, and inside of it."""
    return columns_of(subquery) | {outer.index for outer in outers_of(subquery, 0)}


def replaced(expression: Expression, known: Mapping[Expression, Expression], place: Callable[[int], int]) -> Expression:
    """The expression over a row whose columns stand elsewhere, with known values in place of subqueries."""
    if expression in known:
        return known[expression]
    if isinstance(expression, Column):
        return replace(expression, index=place(expression.index))
    children = tuple(replaced(child, known, place) for child in expression.children)
    made = expression.with_children(children) if children else expression
    return _over_other_rows(made, place) if is_subquery(made) else made


def _over_other_rows(subquery: Subquery, place: Callable[[int], int]) -> Expression:
    """A subquery whose plan finds the columns of the row around elsewhere."""

    def move(outer: Outer, nesting: int) -> Expression:
        return replace(outer, index=place(outer.index)) if outer.depth == nesting else outer

    return with_outers_of(subquery, move)


def completed(plan: Join, pairs: Plan) -> Plan:
    """A join of any kind, given the pairs for which its condition holds.

    A row has a partner if the pairs have it on its side. Rows that are equal in all columns have the same partners, so
    it does not matter which of them is in a pair.
    """
    width = len(plan.left.schema)
    if plan.kind in ("semi", "anti"):
        return Join(plan.left, picked(pairs, range(width)), plan.kind, _same(plan.left))
    parts = [pairs]
    if plan.kind in ("left", "full"):
        parts.append(_padded(plan, _alone(plan.left, picked(pairs, range(width))), 0))
    if plan.kind in ("right", "full"):
        parts.append(_padded(plan, _alone(plan.right, picked(pairs, range(width, len(pairs.schema)))), width))
    return Union(tuple(parts))


def _alone(side: Plan, met: Plan) -> Plan:
    """The rows of one side that are in no pair."""
    return Join(side, met, "anti", _same(side))


def _same(side: Plan) -> Expression | None:
    both, width = Join(side, side, "inner"), len(side.schema)
    return conjunction(
        call("null_safe_equal", both.column(column), both.column(width + column)) for column in range(width)
    )


def _padded(plan: Join, rows: Plan, start: int) -> Plan:
    """Rows of one side as rows of the join: NULL stands for the columns of the other."""
    end = start + len(rows.schema)
    columns = tuple(
        rows.column(column - start) if start <= column < end else Literal(None, f.type)
        for column, f in enumerate(plan.schema.fields)
    )
    return Project(rows, columns, plan.schema.names)
