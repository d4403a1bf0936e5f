"""References of recursive plans: which are free in a part, and whether recursion only ever adds."""

from __future__ import annotations

from everview.errors import CircuitError
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Except, Join, Recursive, Reference, Top, Window


def free_references(plan: Plan) -> frozenset[str]:
    """The recursive relations that a plan reads and does not bind itself."""
    known = plan.__dict__.get("_free")
    if known is None:
        found: frozenset[str] = frozenset[str]().union(*map(free_references, plan.inputs))
        if isinstance(plan, Reference):
            found |= {plan.name}
        if isinstance(plan, Recursive):
            found -= {name for name, _ in plan.bindings}
        known = plan.__dict__["_free"] = found
    return known


EXTREMES = ("min", "max")


def check_monotone(plan: Recursive) -> None:
    """Refuse recursion through what takes rows away when rows are added: such sets need not exist.

    The least or greatest value of a group is let through: more rows can only better it. That nothing else depends on
    a value that was bettered is for the front end to see to: it knows what the values are for.
    """
    bound = frozenset(name for name, _ in plan.bindings)
    for name, part in plan.bindings:
        seen, waiting = set[Plan](), [part]
        while waiting:
            here = waiting.pop()
            if here not in seen and free_references(here) & bound:
                seen.add(here)
                _check(here, bound, name)
                waiting.extend(reversed(here.inputs))


def _check(plan: Plan, bound: frozenset[str], name: str) -> None:
    for at, input_ in enumerate(plan.inputs):
        if _takes_away(plan, at) and free_references(input_) & bound:
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


def _what(plan: Plan) -> str:
    match plan:
        case Join(_, _, kind):
            return f"the side of an {kind} join that takes rows away" if kind == "anti" else f"a {kind} join"
        case Except():
            return "the right side of an EXCEPT"
        case Aggregate():
            return "an aggregate"
        case _:
            return f"a {type(plan).__name__.lower()}"
