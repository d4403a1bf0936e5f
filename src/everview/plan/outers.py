"""Columns of enclosing queries: which ones a subquery reads, and subqueries inside expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard

from everview.plan import node
from everview.plan.node import Plan
from everview.scalars import expressions as ex
from everview.scalars.expressions import Exists, Expression, InQuery, Outer, Scalar

Subquery = Exists | InQuery | Scalar


def is_subquery(expression: Expression) -> TypeGuard[Subquery]:
    return isinstance(expression, Exists | InQuery | Scalar)


def subqueries(expression: Expression) -> Iterator[Subquery]:
    """The subqueries of an expression, not those inside them."""
    return (e for e in ex.walk(expression) if is_subquery(e))


def outers(plan: Plan, depth: int = 1) -> frozenset[Outer]:
    """The columns that a plan reads of the row ``depth`` queries out, as Outer of depth 1."""
    cache: dict[int, frozenset[Outer]] = plan.__dict__.setdefault("_outers", {})
    if depth not in cache:
        read: frozenset[Outer] = frozenset[Outer]().union(*(outers(i, depth) for i in plan.inputs))
        cache[depth] = read.union(*(outers_of(e, depth) for e in plan.expressions))
    return cache[depth]


def outers_of(expression: Expression, depth: int = 1) -> frozenset[Outer]:
    """The columns that an expression of a plan reads of the row ``depth`` queries out."""
    read: set[Outer] = set()
    for e in ex.walk(expression):
        if isinstance(e, Outer) and e.depth == depth:
            read.add(replace(e, depth=1))
        elif is_subquery(e):
            read |= outers(e.plan, depth + 1)
    return frozenset(read)


def with_outers(plan: Plan, change: Callable[[Outer, int], Expression], nesting: int = 0) -> Plan:
    """The plan with every `Outer` changed; ``nesting`` says in how many subqueries it stands."""

    def in_plan(part: Plan) -> Plan:
        old = part.expressions
        new = tuple(with_outers_of(e, change, nesting) for e in old)
        return part if all(a is b for a, b in zip(new, old, strict=True)) else part.with_expressions(*new)

    return node.rewritten(plan, in_plan)


def with_outers_of(expression: Expression, change: Callable[[Outer, int], Expression], nesting: int = 0) -> Expression:
    """The expression with every `Outer` changed, also in its subqueries."""

    def in_expression(e: Expression) -> Expression:
        if isinstance(e, Outer):
            return change(e, nesting)
        if is_subquery(e):
            inner = with_outers(e.plan, change, nesting + 1)
            return e if inner is e.plan else replace(e, plan=inner)
        return e

    return ex.rewritten(expression, in_expression)
