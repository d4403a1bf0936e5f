"""Expressions moved to other rows, also where subqueries inside them read those rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from everview.frontends.sql.names import outward
from everview.plan import node
from everview.plan.node import Plan
from everview.plan.nodes import Lateral
from everview.plan.typing import call
from everview.scalars.expressions import Call, Column, Exists, Expression, InQuery, Outer, Scalar
from everview.scalars.signatures import SIGNATURES

Change = Callable[[Expression], Expression | None]


def replaced(expression: Expression, change: Change) -> Expression:
    """The expression with its parts changed from the outside in; a part for which `change` gives None stays.

    A subquery reads the same row by `Outer`; these columns are changed as well.
    """
    instead = change(expression)
    if instead is not None:
        return instead
    children = expression.children
    changed = tuple(replaced(child, change) for child in children)
    if any(new is not old for new, old in zip(changed, children, strict=True)):
        expression = _again(expression.with_children(changed))
    if isinstance(expression, (Exists, InQuery, Scalar)):
        return replace(expression, plan=_around(expression.plan, 1, change))
    return expression


def _again(expression: Expression) -> Expression:
    """The expression typed again, as its parts may now be NULL: a sum over no rows is, one of a group is not."""
    if not isinstance(expression, Call) or expression.nullable:
        return expression
    if expression.function not in SIGNATURES:  # what a sum of a moment and an interval has become is no function of SQL
        return replace(expression, nullable=any(argument.nullable for argument in expression.arguments))
    return replace(expression, nullable=call(expression.function, *expression.arguments).nullable)


def _around(plan: Plan, depth: int, change: Change) -> Plan:
    """The plan with ``change`` applied to its references to the row ``depth`` levels around it."""
    if not reads_outside(plan, depth):
        return plan

    def bound(e: Expression) -> Expression | None:
        if isinstance(e, (Exists, InQuery, Scalar)):
            inner = e.with_children([replaced(c, bound) for c in e.children])
            return replace(_any(inner), plan=_around(_any(e).plan, depth + 1, change))
        if isinstance(e, Outer) and e.depth == depth:
            value = change(Column(e.index, e.name, e.type, e.nullable))
            return e if value is None else outward(value, depth)
        return None

    expressions = plan.expressions
    changed = tuple(replaced(e, bound) for e in expressions)
    if any(new is not old for new, old in zip(changed, expressions, strict=True)):
        plan = plan.with_expressions(*changed)
    inputs = [_around(i, depth + within, change) for i, within in inputs_of(plan)]
    same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
    return plan if same else plan.with_inputs(*inputs)


def inputs_of(plan: Plan) -> list[tuple[Plan, int]]:
    """The inputs of a plan, each with the number of levels that it is nested deeper: 1 for a lateral right side."""
    if isinstance(plan, Lateral):
        return [(plan.left, 0), (plan.right, 1)]
    return [(i, 0) for i in plan.inputs]


def reads_outside(plan: Plan, depth: int = 1) -> bool:
    """Whether a plan reads a row ``depth`` or more levels around it."""
    return any(_reads(e, depth) for e in plan.expressions) or any(
        reads_outside(i, depth + within) for i, within in inputs_of(plan)
    )


def _reads(expression: Expression, depth: int) -> bool:
    if isinstance(expression, Outer):
        return expression.depth >= depth
    if isinstance(expression, (Exists, InQuery, Scalar)) and reads_outside(expression.plan, depth + 1):
        return True
    return any(_reads(child, depth) for child in expression.children)


def all_plans(plan: Plan) -> Iterator[Plan]:
    """The plan and all its parts, also those inside expressions."""
    for part in node.walk(plan):
        yield part
        for expression in part.expressions:
            yield from _plans(expression)


def _plans(expression: Expression) -> Iterator[Plan]:
    if isinstance(expression, (Exists, InQuery, Scalar)):
        yield from all_plans(expression.plan)
    for child in expression.children:
        yield from _plans(child)


def _any(value: object) -> Any:
    return value
