"""Plans as text: a tree, inputs below the node that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from everview.plan.node import Plan
from everview.plan.nodes import (
    Aggregate,
    Asof,
    Distinct,
    During,
    Except,
    Explode,
    Filter,
    Intersect,
    Join,
    Lateral,
    Leaf,
    Multiway,
    OverOne,
    OverSeveral,
    Project,
    Recursive,
    Reference,
    Scan,
    Top,
    Union,
    Values,
    Window,
    closed,
)
from everview.scalars.expressions import Expression


def explain(plan: Plan) -> str:
    """The plan as a tree, inputs below the node that reads them."""
    return "\n".join(_lines(plan, 0))


def _lines(plan: Plan, depth: int) -> Iterator[str]:
    yield f"{'  ' * depth}{title(plan)}"
    if isinstance(plan, Recursive):
        for name, bound in plan.bindings:
            yield f"{'  ' * (depth + 1)}{name} ="
            yield from _lines(bound, depth + 2)
        yield from _lines(plan.body, depth + 1)
        return
    for input_ in plan.inputs:
        yield from _lines(input_, depth + 1)


def title(plan: Plan) -> str:
    """One line that says what a node does."""
    match closed(plan):
        case Scan() | Values() | Reference() as leaf:
            return _title_of_leaf(leaf)
        case (
            Join()
            | Asof()
            | During()
            | Lateral()
            | Multiway()
            | Union()
            | Intersect()
            | Except()
            | Recursive() as several
        ):
            return _title_over_several(several)
        case one:
            return _title_over_one(one)


def _title_of_leaf(plan: Leaf) -> str:
    match plan:
        case Scan(relation):
            return f"Scan {relation}"
        case Reference(name):
            return f"Reference {name}"
        case Values(rows):
            return f"Values {', '.join('(' + ', '.join(map(str, row)) + ')' for row in rows[:3])}{_more(rows)}"
        case _:
            assert_never(plan)


def _title_over_one(plan: OverOne) -> str:
    match plan:
        case Project(_, expressions, names):
            return f"Project {', '.join(map(_as, expressions, names))}"
        case Filter(_, predicate):
            return f"Filter {predicate}"
        case Aggregate(_, groups, calls, _):
            by = f" by {', '.join(map(str, groups))}" if groups else ""
            return f"Aggregate {', '.join(map(str, calls))}{by}"
        case Distinct():
            return "Distinct"
        case Top():
            return _title_of_top(plan)
        case Window(_, calls, _):
            return f"Window {', '.join(map(str, calls))}"
        case Explode(_, array, name, outer, place):
            names = name if place is None else f"{place}, {name}"
            return f"Explode {array} AS {names}{' outer' if outer else ''}"
        case _:
            assert_never(plan)


def _title_of_top(plan: Top) -> str:
    by = f" of each {', '.join(plan.schema.names[p] for p in plan.partition)}" if plan.partition else ""
    ordered = f" by {', '.join(f'{e} {how}'.strip() for e, how in plan.order)}" if plan.order else ""
    skipped = f" after {plan.offset}" if plan.offset else ""
    return f"Top {'all' if plan.limit is None else plan.limit}{skipped}{by}{ordered}"


def _title_over_several(plan: OverSeveral) -> str:
    match plan:
        case Lateral():
            return f"Lateral {plan.kind}"
        case Join():
            return " on ".join([f"Join {plan.kind}", *map(str, plan.expressions)])
        case Asof(left, right, keys, times):
            on = ", ".join(f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in (*keys, times))
            return f"Asof {plan.how} {plan.direction} on {on}"
        case During():
            bounds = {"since": plan.since, "until": plan.until}
            return " ".join(["During", *(f"{how} {bound}" for how, bound in bounds.items() if bound is not None)])
        case Union():
            return "Union"
        case Intersect() | Except():
            return f"{type(plan).__name__}{' all' if plan.all else ''}"
        case Recursive():
            return f"Recursive {', '.join(f'{n} (bag)' if n in plan.bags else n for n, _ in plan.bindings)}"
        case Multiway():
            return _title_of_multiway(plan)
        case _:
            assert_never(plan)


def _title_of_multiway(plan: Multiway) -> str:
    atoms = ", ".join(f"({', '.join('_' if v is None else f'v{v}' for v in terms)})" for terms in plan.variables)
    bound = "" if plan.order is None else f", binding {', '.join(f'v{v}' for v in plan.order)}"
    return f"Multiway {atoms} → {', '.join(f'v{v}' for v in plan.select)}{bound}"


def _as(expression: Expression, name: str) -> str:
    text = str(expression)
    return text if text == name else f"{text} AS {name}"


def _more(rows: Sequence[Any]) -> str:
    return f", … {len(rows)} rows" if len(rows) > 3 else ""
