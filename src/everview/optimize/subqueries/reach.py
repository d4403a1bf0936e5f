"""Subqueries that read the row around them only in filters: the condition moves into the join.

``EXISTS (SELECT … FROM r WHERE p(r, t))`` is the semijoin of t and r on p, whatever p is.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.optimize.subqueries.shifting import open_in, shifted, substituted, unbound
from everview.plan.conditions import conjunction, conjuncts
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Join, Project
from everview.scalars.expressions import Expression


@dataclass(frozen=True)
class Reach:
    """A subquery as a relation that reads nothing from outside, a condition, and the values of its columns.

    Both are over the relation's columns and columns of the row around (`Outer` of depth 0).
    """

    plan: Plan
    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]


def reached(plan: Plan) -> Reach | None:
    """The reach of an opened subquery whose duplicates do not matter; None if it is not of that kind."""
    if not unbound(plan):
        return Reach(plan, (), plan.columns)
    match plan:
        case Project(input_, expressions, _):
            reach = reached(input_)
            if reach is None:
                return None
            values = tuple(substituted(e, reach.values) for e in expressions)
            return Reach(reach.plan, reach.conditions, values)
        case Filter(input_, predicate):
            reach = reached(input_)
            if reach is None:
                return None
            parts = (substituted(p, reach.values) for p in conjuncts(predicate))
            return Reach(reach.plan, (*reach.conditions, *parts), reach.values)
        case Distinct(input_):
            return reached(input_)
        case Join(left, right, "inner", condition):
            a, b = reached(left), reached(right)
            return None if a is None or b is None else _both(a, b, condition)
        case _:
            return None


def _both(a: Reach, b: Reach, condition: Expression | None) -> Reach:
    width = len(a.plan.schema)
    values = (*a.values, *(shifted(v, width, {}) for v in b.values))
    parts = [substituted(p, values) for p in conjuncts(condition)]
    parts = [*a.conditions, *(shifted(c, width, {}) for c in b.conditions), *parts]
    inside = [p for p in parts if not open_in(p)]
    outside = tuple(p for p in parts if open_in(p))
    return Reach(Join(a.plan, b.plan, "inner", conjunction(inside)), outside, values)
