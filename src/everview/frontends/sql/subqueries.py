"""Subqueries inside of expressions: EXISTS, IN, ANY, ALL, and single values."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.frontends.sql.casts import as_types
from everview.frontends.sql.expressions import Site, compared, expression, handles
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


def _subplan(node: exp.Expr, site: Site, columns: int | None) -> Plan:
    """The plan of a subquery, which reads the row at its site as the outer row."""
    from everview.frontends.sql.queries import query

    context = site.context.deeper(node)
    bound = query(_query(node), replace(context, outer=site.scope))
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
def _exists(node: exp.Exists, site: Site) -> Expression:
    if not isinstance(_query(node.this), exp.Query):
        raise site.context.unsupported("EXISTS of an array", node, "write EXISTS (SELECT …)")
    return Exists(_subplan(node.this, site, None))


@handles(exp.Subquery, exp.Select, exp.Union, exp.Intersect, exp.Except, args="*")
def _scalar(node: exp.Expr, site: Site) -> Expression:
    return Scalar(_subplan(node, site, 1))


def array_of(node: exp.Expr, site: Site) -> Expression:
    """``ARRAY(SELECT x FROM … ORDER BY y)``: all values in their order, NULLs too, and ``[]`` of none."""
    from everview.frontends.sql.queries import complete

    context = site.context.deeper(node)
    bound = complete(node, replace(context, outer=site.scope))
    if len(bound.names) != 1:
        raise context.error(f"an array of {len(bound.names)} columns", node, "select one")
    value = bound.plan.column(0)
    values = AggregateCall("list", (value,), False, None, tuple(bound.order), Array(value.type), False)
    return Scalar(Aggregate(bound.plan, (), (values,), ("array",)))


def within(values: list[Expression], node: exp.Expr, query: exp.Expr, site: Site) -> Expression:
    """``(a, b) IN (SELECT …)``, both sides as the types they have in common."""
    plan = _subplan(query, site, len(values))
    pairs = [_paired(v, f, node, site) for v, f in zip(values, plan.schema.fields, strict=True)]
    return InQuery(tuple(value for value, _ in pairs), as_types(plan, [type_ for _, type_ in pairs]))


def _paired(value: Expression, beside: Field, node: exp.Expr, site: Site) -> tuple[Expression, Type]:
    type_ = common(value.type, beside.type)
    if type_ is None:
        raise site.context.error(f"{value.type} is looked for among {beside.type}", node, "cast one of them")
    return coerced(value, type_), type_


def _over_elements(node: exp.Expr, left: exp.Expr, array: exp.Expr, site: Site, *, every: bool) -> Expression:
    """``x > ANY(array)``, ``x > ALL(array)``, as a function of each element."""
    if not isinstance(expression(array, site).type, Array):
        word = "ALL" if every else "ANY"
        raise site.context.unsupported(
            f"{word} of {array.key}", node, f"write {word} (SELECT …), or {word} of an array"
        )
    element = exp.to_identifier("element of the array", quoted=True)
    test = exp.Lambda(this=type(node)(this=left.copy(), expression=element), expressions=[element.copy()])
    return expression(exp.Anonymous(this="forall" if every else "exists", expressions=[array.copy(), test]), site)


def quantified(name: str, node: exp.Expr, left: exp.Expr, right: exp.Expr, site: Site) -> Expression:
    """``x > ANY (SELECT y)``: true if some y makes it so, else NULL if one may, else false; ALL is dual."""
    inner = _query(right.this)
    every = isinstance(right, exp.All)
    if not isinstance(inner, exp.Query):
        return _over_elements(node, left, inner, site, every=every)
    value = expression(left, site)
    if (name, every) in (("equal", False), ("not_equal", True)):
        membership = within([value], node, inner, site)
        return replace(membership, negated=every) if isinstance(membership, InQuery) else membership
    if any(isinstance(e, (AggregateCall, WindowCall)) for e in walk(value)):
        raise site.context.unsupported("an aggregate compared with ANY or ALL", node, "compute it in a subquery")
    plan = _subplan(inner, site, 1)
    test = compared(name, outward(value, 1), plan.column(0))
    decisive = call("not", test) if every else test
    some = Exists(Filter(plan, decisive))
    if not test.nullable:
        return replace(some, negated=every)
    unknown = Exists(Filter(plan, call("is_null", test)))
    return call("case", some, literal(not every), unknown, Literal(None, BOOLEAN), literal(every))
