"""Subqueries inside of expressions: EXISTS, IN, ANY, ALL, and single values."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.frontends.sql.casts import as_types
from everview.frontends.sql.expressions import Here, compared, expression, handles
from everview.frontends.sql.names import outward
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Filter
from everview.plan.typing import call, coerced, common, literal
from everview.scalars.expressions import (
    AggregateCall,
    Exists,
    Expression,
    InQuery,
    Literal,
    Scalar,
    WindowCall,
    walk,
)
from everview.types import BOOLEAN, Array, Field, Type


def _subplan(node: exp.Expr, here: Here, columns: int | None) -> Plan:
    """The plan of a query that reads the row here as its outer one."""
    from everview.frontends.sql.queries import query

    context = here.context.deeper(node)
    bound = query(_query(node), replace(context, outer=here.scope))
    if columns is not None and len(bound.names) != columns:
        wanted = "one is" if columns == 1 else f"{columns} are"
        raise context.error(f"a subquery of {len(bound.names)} columns where {wanted} read", node, "select as many")
    return bound.plan


def _query(node: exp.Expr) -> exp.Expr:
    while isinstance(node, (exp.Paren, exp.Subquery)) and _plain(node):
        node = node.this
    return node


def _plain(node: exp.Expr) -> bool:
    return all(value in (None, False, []) for name, value in node.args.items() if name != "this")


@handles(exp.Exists)
def _exists(node: exp.Exists, here: Here) -> Expression:
    if not isinstance(_query(node.this), exp.Query):
        raise here.context.unsupported("EXISTS of an array", node, "write EXISTS (SELECT …)")
    return Exists(_subplan(node.this, here, None))


@handles(exp.Subquery, exp.Select, exp.Union, exp.Intersect, exp.Except, args="*")
def _scalar(node: exp.Expr, here: Here) -> Expression:
    return Scalar(_subplan(node, here, 1))


def array_of(node: exp.Expr, here: Here) -> Expression:
    """``ARRAY(SELECT x FROM … ORDER BY y)``: all values in their order, NULLs too, and ``[]`` of none."""
    from everview.frontends.sql.queries import complete

    context = here.context.deeper(node)
    bound = complete(node, replace(context, outer=here.scope))
    if len(bound.names) != 1:
        raise context.error(f"an array of {len(bound.names)} columns", node, "select one")
    value = bound.plan.column(0)
    values = AggregateCall("list", (value,), False, None, tuple(bound.order), Array(value.type), False)
    return Scalar(Aggregate(bound.plan, (), (values,), ("array",)))


def within(values: list[Expression], node: exp.Expr, query: exp.Expr, here: Here) -> Expression:
    """``(a, b) IN (SELECT …)``, both sides as the types they have in common."""
    plan = _subplan(query, here, len(values))
    pairs = [_paired(v, f, node, here) for v, f in zip(values, plan.schema.fields, strict=True)]
    return InQuery(tuple(value for value, _ in pairs), as_types(plan, [of for _, of in pairs]))


def _paired(value: Expression, beside: Field, node: exp.Expr, here: Here) -> tuple[Expression, Type]:
    of = common(value.type, beside.type)
    if of is None:
        raise here.context.error(f"{value.type} is looked for among {beside.type}", node, "cast one of them")
    return coerced(value, of), of


def quantified(name: str, node: exp.Expr, left: exp.Expr, right: exp.Expr, here: Here) -> Expression:
    """``x > ANY (SELECT y)``: true when some y is, else NULL when some might be, else false; ALL the other way."""
    inner = _query(right.this)
    every = isinstance(right, exp.All)
    if not isinstance(inner, exp.Query):
        raise here.context.unsupported(f"{right.key.upper()} of {inner.key}", node, "write ANY (SELECT …)")
    value = expression(left, here)
    if (name, every) in (("equal", False), ("not_equal", True)):
        found = within([value], node, inner, here)
        return replace(found, negated=every) if isinstance(found, InQuery) else found
    if any(isinstance(e, (AggregateCall, WindowCall)) for e in walk(value)):
        raise here.context.unsupported("an aggregate compared with ANY or ALL", node, "compute it in a subquery")
    plan = _subplan(inner, here, 1)
    test = compared(name, outward(value, 1), plan.column(0))
    decisive = call("not", test) if every else test
    some = Exists(Filter(plan, decisive))
    if not test.nullable:
        return replace(some, negated=every)
    unknown = Exists(Filter(plan, call("is_null", test)))
    return call("case", some, literal(not every), unknown, Literal(None, BOOLEAN), literal(every))
