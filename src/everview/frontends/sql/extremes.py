"""``min`` and ``max`` inside of recursion: allowed where a better value never makes anything worse.

A recursive relation may keep the least or the greatest value of each group of what its branches give:

    WITH RECURSIVE d(x, n) AS (
      SELECT x, min(n) FROM (SELECT 1 AS x, 0 AS n UNION ALL SELECT e.y, d.n + e.w FROM d JOIN e ON d.x = e.x)
      GROUP BY x)

A value of a ``min`` falls as the fixed point is approached, one of a ``max`` rises. So it may come, within the
recursion, only to such a value again, through sums, differences, multiples by a constant and the like, and be compared
only so that a better value stays true: ``d.n < 10``. Then the fixed point is the least one of a monotone function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everview.plan.conditions import conjuncts
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Distinct, Filter, Join, Project, Reference, Union
from everview.plan.references import free_references
from everview.scalars.expressions import Call, Cast, Column, Expression, Literal, columns_of

Ways = tuple[int, ...]  # of each column: whether its values rise, 1, or fall, -1, or stay, 0
BETTER: Final = {"min": -1, "max": 1}
_LESS: Final = {"less": 1, "less_equal": 1, "greater": -1, "greater_equal": -1}


class NotMonotone(Exception):
    """Raised for an expression that is not monotone in a recursion's min or max; names the expression."""


def extremes_of(plan: Plan, labels: frozenset[str]) -> Ways | None:
    """The ways of the columns of a plan that keeps the extremes of groups of a recursion; None if it does not."""
    if isinstance(plan, Project) and all(isinstance(e, Column) for e in plan.expressions):
        inner = extremes_of(plan.input, labels)
        places = [e.index for e in plan.expressions if isinstance(e, Column)]
        return None if inner is None else tuple(inner[place] for place in places)
    if not isinstance(plan, Aggregate) or not free_references(plan) & labels or not plan.groups:
        return None
    calls = plan.calls
    if any(call.function not in BETTER or call.filter is not None for call in calls):
        return None
    return (*(0 for _ in plan.groups), *(BETTER[call.function] for call in calls))


def check_extremes(plan: Plan, known: Mapping[str, Ways]) -> None:
    """Refuse a plan of a recursive relation in which values get worse; ``known`` has the ways of the relations."""
    _ways(plan, known)


def _ways(plan: Plan, known: Mapping[str, Ways]) -> Ways:
    """The ways of a plan's columns; raises `NotMonotone`."""
    if not free_references(plan) & known.keys():
        return (0,) * len(plan.schema)
    match plan:
        case Reference(name):
            return known[name]
        case Project():
            inner = _ways(plan.input, known)
            return tuple(_way(e, inner) for e in plan.expressions)
        case Filter():
            inner = _ways(plan.input, known)
            _check_conditions(plan.predicate, inner)
            return inner
        case Distinct():
            return _ways(plan.input, known)
        case Union():
            return tuple(_one(column) for column in zip(*(_ways(part, known) for part in plan.inputs), strict=True))
        case Join(left, right, kind) if kind in ("inner", "semi"):
            both = (*_ways(left, known), *_ways(right, known))
            _check_conditions(plan.condition, both)
            return both[: len(plan.schema)]
        case Aggregate():
            return _of_groups(plan, _ways(plan.input, known))
        case _:
            raise NotMonotone(f"a {type(plan).__name__.lower()}")


def _of_groups(plan: Aggregate, inner: Ways) -> Ways:
    for key in plan.groups:
        if any(inner[column] for column in columns_of(key)):
            raise NotMonotone("a group by its extreme")
    ways: list[int] = [0 for _ in plan.groups]
    for call in plan.calls:
        way = BETTER.get(call.function)
        if way is None or _way(call.arguments[0], inner) not in (0, way):
            raise NotMonotone(f"{call.function} of what gets less or more")
        ways.append(way)
    return tuple(ways)


def _one(ways: tuple[int, ...]) -> int:
    """The way of a column of several branches."""
    moving = {way for way in ways if way}
    if len(moving) > 1:
        raise NotMonotone("a union of what rises and what falls")
    return moving.pop() if moving else 0


def _way(expression: Expression, inner: Ways) -> int:
    """Where the values of an expression go as those of the columns go theirs."""
    if not any(inner[column] for column in columns_of(expression)):
        return 0
    match expression:
        case Column(index):
            return inner[index]
        case Cast(argument):
            return _way(argument, inner)
        case Call("add" | "least" | "greatest", arguments):
            return _one(tuple(_way(a, inner) for a in arguments))
        case Call("subtract", (a, b)):
            return _one((_way(a, inner), -_way(b, inner)))
        case Call("negate", (a,)):
            return -_way(a, inner)
        case Call("multiply", (a, Literal() as b)) | Call("multiply", (Literal() as b, a)):
            return _way(a, inner) * _sign(b)
        case Call("divide", (a, Literal() as b)):
            return _way(a, inner) * _sign(b)
        case _:
            raise NotMonotone(f"{expression}")


def _sign(constant: Literal) -> int:
    if constant.value is None or constant.value == 0:
        return 0
    return 1 if constant.value > 0 else -1


def _check_conditions(condition: Expression | None, inner: Ways) -> None:
    for part in conjuncts(condition):
        if not any(inner[column] for column in columns_of(part)):
            continue
        way = _LESS.get(part.function) if isinstance(part, Call) else None
        if isinstance(part, Call) and part.function == "is_not_null":
            continue
        if way is None or not isinstance(part, Call):
            raise NotMonotone(f"{part}, which may become false")
        a, b = (_way(side, inner) for side in part.arguments)
        # ``a < b`` stays true if a falls and b rises.
        if a not in (0, -way) or b not in (0, way):
            raise NotMonotone(f"{part}, which may become false as it gets better")
