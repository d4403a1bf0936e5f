"""References of recursive plans: which are free in a part, and whether recursion only ever adds."""

from __future__ import annotations

from collections.abc import Iterator

from everview.errors import CircuitError
from everview.plan.node import Plan, walk
from everview.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Explode,
    Filter,
    Intersect,
    Join,
    Lateral,
    Multiway,
    Project,
    Recursive,
    Reference,
    Top,
    Union,
    Window,
)
from everview.scalars.expressions import Exists, Expression, InQuery, Scalar
from everview.scalars.expressions import walk as parts_of


def free_references(plan: Plan) -> frozenset[str]:
    """The recursive relations that a plan reads and does not bind itself."""
    known = plan.__dict__.get("_free")
    if known is None:
        free: frozenset[str] = frozenset[str]().union(*map(free_references, plan.inputs))
        if isinstance(plan, Reference):
            free |= {plan.name}
        if isinstance(plan, Recursive):
            free -= {name for name, _ in plan.bindings}
        known = plan.__dict__["_free"] = free
    return known


EXTREMES = ("min", "max")


def check_monotone(plan: Recursive) -> None:
    """Refuse recursion through nodes that remove rows when rows are added: it may have no fixed point.

    The least or greatest value of a group is allowed: more rows can only improve it. The front end makes sure that
    nothing else depends on a value before its improvement, as it knows what the values are for. A recursion that
    inflates is what its rounds make of it.
    """
    if plan.inflates:
        return
    bound = frozenset(name for name, _ in plan.bindings)
    for name, part in plan.bindings:
        seen, waiting = set[Plan](), [part]
        while waiting:
            node = waiting.pop()
            if node not in seen and free_references(node) & bound:
                seen.add(node)
                _check(node, bound, name)
                waiting.extend(reversed(node.inputs))


def _check(plan: Plan, bound: frozenset[str], name: str) -> None:
    for number, input_ in enumerate(plan.inputs):
        if _takes_away(plan, number) and free_references(input_) & bound:
            raise CircuitError(
                f"recursive relation {name} reads itself through {_what(plan)}",
                hint="recursion may only add rows; do this outside of it, on its result",
            )


def _takes_away(plan: Plan, input_: int) -> bool:
    """Whether more rows in an input may mean fewer in the result."""
    match plan:
        case Join(_, _, kind):
            return (kind in ("anti", "left", "full") and input_ == 1) or (kind in ("right", "full") and input_ == 0)
        case Except():
            return input_ == 1
        case Aggregate(_, _, calls):
            return not all(call.function.lower() in EXTREMES for call in calls)
        case Window() | Top():
            return True
        case _:
            return False


def not_linear(plan: Plan, names: frozenset[str]) -> str | None:
    """The reason why a plan is not linear in some relations (``f(a + b) = f(a) + f(b)``); None if it is.

    Only then is the sum of all rounds of a recursion of bags the bag that its equation defines.
    """
    return _Degrees(names).reason(plan)


class _Degrees:
    """How often the recursive relations are multiplied in each part of a plan: 0, 1, or more, which is not linear."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self._known: dict[Plan, str | None] = {}

    def reads(self, plan: Plan) -> bool:
        return bool(references_inside(plan) & self.names)

    def reason(self, plan: Plan) -> str | None:
        if plan not in self._known:
            self._known[plan] = self._reason(plan)
        return self._known[plan]

    def _reason(self, plan: Plan) -> str | None:
        if not self.reads(plan):
            return None
        if any(self.reads(inner) for e in plan.expressions for inner in subplans(e)):
            return "in a subquery"
        match plan:
            case Reference() | Project() | Filter() | Explode() | Union():
                pass
            case Join() | Lateral() | Multiway():
                if sum(map(self.reads, plan.inputs)) > 1:
                    return "twice in a join"
                if isinstance(plan, Join) and plan.kind in ("semi", "anti") and self.reads(plan.right):
                    return "in a subquery"
            case Distinct():
                return "through DISTINCT"
            case _:
                return f"through {_what(plan)}"
        return next((reason for reason in map(self.reason, plan.inputs) if reason is not None), None)


def references_inside(plan: Plan) -> frozenset[str]:
    """The recursive relations that a plan reads, also in the subqueries of its expressions."""
    names = free_references(plan)
    for part in walk(plan):
        for expression in part.expressions:
            names = names.union(*map(references_inside, subplans(expression)))
    return names


def subplans(expression: Expression) -> Iterator[Plan]:
    """The plans of the subqueries in an expression."""
    for part in parts_of(expression):
        if isinstance(part, Exists | InQuery | Scalar):
            yield part.plan


def _what(plan: Plan) -> str:
    match plan:
        case Join(_, _, kind):
            return f"the side of an {kind} join that takes rows away" if kind == "anti" else f"a {kind} join"
        case Except():
            return "the right side of an EXCEPT"
        case Intersect():
            return "an INTERSECT"
        case Aggregate():
            return "an aggregate"
        case Recursive():
            return "another recursion"
        case _:
            return f"a {type(plan).__name__.lower()}"
