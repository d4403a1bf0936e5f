"""Subqueries that read the row around them only by equalities: ``WHERE r.x = t.y``.

The value of t.y is that of r.x wherever it counts. So the subquery is computed for all values of r.x at once without
reading t: groups, orders and partitions get r.x as a further column. The result of an aggregate over no rows is
remembered for the rows of t that have no partner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everview.optimize.subqueries.shifting import open_in, picked, shifted, substituted, unbound
from everview.plan.aggregates import of_nothing
from everview.plan.conditions import conjunction, conjuncts
from everview.plan.node import Plan, unique
from everview.plan.nodes import Aggregate, Distinct, Filter, Join, Project, Top, Union, Window
from everview.plan.typing import call
from everview.scalars.expressions import AggregateCall, Call, Column, Expression, Literal, Outer, WindowCall, rewritten


@dataclass(frozen=True)
class Pulled:
    """A subquery computed for all values: a column for each outer column that it reads, then its own columns."""

    plan: Plan
    outers: tuple[int, ...]
    empty: tuple[Expression, ...] | None = None  # its one row where there is none

    @property
    def places(self) -> dict[int, int]:
        return {outer: place for place, outer in enumerate(self.outers)}

    @property
    def width(self) -> int:
        return len(self.outers)


def pulled(plan: Plan) -> Pulled | None:
    """An opened subquery over all values; None if equalities do not bind everything that it reads from outside."""
    if not unbound(plan):
        return Pulled(plan, ())
    match plan:
        case Filter(input_, predicate):
            inner = pulled(input_)
            return None if inner is None or inner.empty is not None else _filtered(inner, list(conjuncts(predicate)))
        case Project():
            return _projected(plan)
        case Join():
            return _joined(plan)
        case Aggregate():
            return _aggregated(plan)
        case Distinct(input_):
            inner = pulled(input_)
            return None if inner is None or inner.empty is not None else replace(inner, plan=Distinct(inner.plan))
        case Union():
            return _union(plan)
        case Top():
            return _top(plan)
        case Window():
            return _window(plan)
        case _:
            return None


def _filtered(inner: Pulled, parts: Sequence[Expression]) -> Pulled | None:
    """Conditions over the subquery's own columns; some of them bind what is not bound yet."""
    places = inner.places
    waiting = [shifted(p, inner.width, places) for p in parts]
    bound: dict[int, Expression] = {}
    for part in list(waiting):
        binding = _binding(part)
        if binding is not None and binding[0] not in bound:
            bound[binding[0]] = binding[1]
            waiting.remove(part)
    waiting = [_replaced(p, bound) for p in waiting]
    waiting += [call("is_not_null", e) for e in bound.values() if e.nullable]  # which equal nothing outside
    if any(open_in(p) for p in waiting):
        return None
    predicate = conjunction(waiting)
    plan = inner.plan if predicate is None else Filter(inner.plan, predicate)
    if not bound:
        return replace(inner, plan=plan)
    names = unique([*(f"outer {column}" for column in bound), *plan.schema.names])
    return Pulled(Project(plan, (*bound.values(), *plan.columns), names), (*bound, *inner.outers))


def _binding(part: Expression) -> tuple[int, Expression] | None:
    """``t.y = e`` for an e that reads nothing from outside."""
    if not (isinstance(part, Call) and part.function == "equal"):
        return None
    for a, b in (part.arguments, part.arguments[::-1]):
        if isinstance(a, Outer) and a.depth == 0 and not open_in(b) and a.type == b.type:
            return a.index, b
    return None


def _replaced(expression: Expression, bound: dict[int, Expression]) -> Expression:
    def replaced(e: Expression) -> Expression:
        return bound.get(e.index, e) if isinstance(e, Outer) and e.depth == 0 else e

    return rewritten(expression, replaced)


def _inside(inner: Pulled, expressions: Sequence[Expression]) -> tuple[Expression, ...] | None:
    """Expressions over the pulled plan; None if they read what it does not bind."""
    moved = tuple(shifted(e, inner.width, inner.places) for e in expressions)
    return None if any(open_in(e) for e in moved) else moved


def _bound_columns(inner: Pulled) -> tuple[Column, ...]:
    return inner.plan.columns[: inner.width]


def _projected(plan: Project) -> Pulled | None:
    inner = pulled(plan.input)
    moved = None if inner is None else _inside(inner, plan.expressions)
    if inner is None or moved is None:
        return None
    empty = None
    if inner.empty is not None:
        if any(open_in(e) for e in plan.expressions):
            return None
        empty = tuple(substituted(e, inner.empty) for e in plan.expressions)
    bound = _bound_columns(inner)
    names = unique([*(c.name for c in bound), *plan.names])
    return Pulled(Project(inner.plan, (*bound, *moved), names), inner.outers, empty)


def _joined(plan: Join) -> Pulled | None:
    left = pulled(plan.left)
    if left is None or left.empty is not None:
        return None
    if plan.kind != "inner":
        if unbound(plan.right) or plan.kind not in ("left", "semi", "anti"):
            return None
        moved = _inside(left, plan.expressions)
        return None if moved is None else replace(left, plan=Join(left.plan, plan.right, plan.kind, *moved))
    right = pulled(plan.right)
    if right is None or right.empty is not None:
        return None
    width, own = len(left.plan.schema), len(plan.left.schema)
    same = [(left.places[outer], width + right.places[outer]) for outer in right.outers if outer in left.outers]
    pairs = Join(left.plan, right.plan, "inner")
    both = pairs.columns
    condition = conjunction(call("equal", both[a], both[b]) for a, b in same)
    fresh = [outer for outer in right.outers if outer not in left.outers]
    order = [*range(left.width), *(width + right.places[outer] for outer in fresh)]
    order += [*range(left.width, left.width + own), *range(width + right.width, width + len(right.plan.schema))]
    joined = picked(replace(pairs, condition=condition), order)
    return _filtered(Pulled(joined, (*left.outers, *fresh)), list(conjuncts(plan.condition)))


def _aggregated(plan: Aggregate) -> Pulled | None:
    inner = pulled(plan.input)
    moved = None if inner is None or inner.empty is not None else _inside(inner, plan.expressions)
    if inner is None or moved is None or not inner.outers:
        return None
    bound, count = _bound_columns(inner), len(plan.groups)
    calls = tuple(e for e in moved[count:] if isinstance(e, AggregateCall))
    names = unique([*(c.name for c in bound), *plan.names])
    made = Aggregate(inner.plan, (*bound, *moved[:count]), calls, names)
    if plan.groups:
        return Pulled(made, inner.outers)
    return Pulled(made, inner.outers, tuple(Literal(of_nothing(c), c.type) for c in plan.calls))


def _union(plan: Union) -> Pulled | None:
    parts = [pulled(i) for i in plan.inputs]
    wanted = set(unbound(plan))
    inputs: list[Plan] = []
    for part in parts:
        if part is None or part.empty is not None or set(part.outers) != wanted:
            return None
        order = [part.places[outer] for outer in sorted(wanted)]
        inputs.append(picked(part.plan, [*order, *range(part.width, len(part.plan.schema))]))
    return Pulled(Union(tuple(inputs)), tuple(sorted(wanted)))


def _top(plan: Top) -> Pulled | None:
    inner = pulled(plan.input)
    moved = None if inner is None or inner.empty is not None else _inside(inner, plan.expressions)
    if inner is None or moved is None:
        return None
    order = tuple((e, how) for e, (_, how) in zip(moved, plan.order, strict=True))
    partition = (*range(inner.width), *(inner.width + column for column in plan.partition))
    return replace(inner, plan=Top(inner.plan, order, plan.limit, plan.offset, partition))


def _window(plan: Window) -> Pulled | None:
    inner = pulled(plan.input)
    moved = None if inner is None or inner.empty is not None else _inside(inner, plan.calls)
    if inner is None or moved is None:
        return None
    bound = _bound_columns(inner)
    calls = tuple(replace(c, partition=(*bound, *c.partition)) for c in moved if isinstance(c, WindowCall))
    return replace(inner, plan=Window(inner.plan, calls, plan.names))
