"""Plans as text: a tree, inputs below the node that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from everview.plan.node import Plan
from everview.plan.nodes import (
    Aggregate,
    Asof,
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
    Scan,
    Top,
    Values,
    Window,
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
    match plan:
        case Scan(relation):
            return f"Scan {relation}"
        case Reference(name):
            return f"Reference {name}"
        case Values(rows):
            return f"Values {', '.join('(' + ', '.join(map(str, row)) + ')' for row in rows[:3])}{_more(rows)}"
        case Project(_, expressions, names):
            return f"Project {', '.join(map(_as, expressions, names))}"
        case Filter(_, predicate):
            return f"Filter {predicate}"
        case Aggregate(_, groups, calls, _):
            by = f" by {', '.join(map(str, groups))}" if groups else ""
            return f"Aggregate {', '.join(map(str, calls))}{by}"
        case Top(_, order, limit, offset, partition):
            by = f" of each {', '.join(plan.schema.names[p] for p in partition)}" if partition else ""
            ordered = f" by {', '.join(f'{e} {how}'.strip() for e, how in order)}" if order else ""
            skipped = f" after {offset}" if offset else ""
            return f"Top {'all' if limit is None else limit}{skipped}{by}{ordered}"
        case Window(_, calls, _):
            return f"Window {', '.join(map(str, calls))}"
        case Explode(_, array, name, outer, place):
            names = name if place is None else f"{place}, {name}"
            return f"Explode {array} AS {names}{' outer' if outer else ''}"
        case Lateral():
            return f"Lateral {plan.kind}"
        case Join(_, _, kind, condition):
            return f"Join {kind}{'' if condition is None else f' on {condition}'}"
        case Asof(left, right, keys, at):
            on = ", ".join(f"{left.schema.names[a]} = {right.schema.names[b]}" for a, b in (*keys, at))
            return f"Asof {plan.how} {plan.direction} on {on}"
        case Intersect() | Except():
            return f"{type(plan).__name__}{' all' if plan.all else ''}"
        case Recursive():
            return f"Recursive {', '.join(f'{n} (bag)' if n in plan.bags else n for n, _ in plan.bindings)}"
        case Multiway(_, variables, select):
            atoms = ", ".join(f"({', '.join('_' if v is None else f'v{v}' for v in terms)})" for terms in variables)
            bound = "" if plan.order is None else f", binding {', '.join(f'v{v}' for v in plan.order)}"
            return f"Multiway {atoms} → {', '.join(f'v{v}' for v in select)}{bound}"
        case _:
            return type(plan).__name__


def _as(expression: Expression, name: str) -> str:
    text = str(expression)
    return text if text == name else f"{text} AS {name}"


def _more(rows: Sequence[Any]) -> str:
    return f", … {len(rows)} rows" if len(rows) > 3 else ""
