"""Recursions that make new values: which do, and which of them nothing can end.

A recursion that only moves values around ends, because there are only so many rows of them. One that computes may go
on for ever. Whether it does is a matter of the data as soon as another relation takes part; but a step that reads
nothing besides its own relation and adds to a column, ``SELECT n + 1 FROM r``, goes on for ever from the first row on
unless a condition bounds that column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from everview.errors import EndlessLoop
from everview.plan.conditions import conjuncts
from everview.plan.expressions import TRUE, Call, Cast, Column, Expression, Literal, rewritten
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Join, Multiway, Project, Recursive, Reference, Union
from everview.plan.references import free_references
from everview.types import BOOLEAN

TURNED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def grows(plan: Recursive) -> bool:
    """May a recursion make values that its inputs do not have?"""
    bound = frozenset(name for name, _ in plan.bindings)
    return any(_makes(part, bound) for _, part in plan.bindings)


def _makes(plan: Plan, bound: frozenset[str]) -> bool:
    if not free_references(plan) & bound:
        return False
    asks = isinstance(plan, Filter | Join | Multiway)  # of rows, and gives those it was given
    return (not asks and any(map(_computes, plan.expressions))) or any(_makes(i, bound) for i in plan.inputs)


def _computes(expression: Expression) -> bool:
    if isinstance(expression, Cast):
        return _computes(expression.argument)
    return not isinstance(expression, Column | Literal) and expression.type != BOOLEAN


# -- what never ends


def check_ends(plan: Recursive) -> None:
    """Refuse a recursion of which one step, by itself, goes on for ever from the first row on."""
    for name, part in plan.bindings:
        for step in _steps(part, name):
            ways = {at: way for at, made in enumerate(step.columns) if (way := _way(made, at)) is not None}
            if ways and all(_stays_true(condition, ways) for condition in step.conditions):
                at = next(iter(ways))
                raise _endless(name, part.schema.names[at], step.columns[at], ways[at])


class _Step:
    """One branch of a recursion that reads nothing but its own relation: columns and conditions over its rows."""

    def __init__(self, columns: tuple[Expression, ...], conditions: tuple[Expression, ...] = ()) -> None:
        self.columns, self.conditions = columns, conditions


def _steps(plan: Plan, name: str) -> Iterator[_Step]:
    match plan:
        case Reference(own) if own == name:
            yield _Step(plan.columns)
        case Union(inputs):
            for branch in inputs:
                yield from _steps(branch, name)
        case Distinct(inner):
            yield from _steps(inner, name)
        case Project(inner, expressions):
            for step in _steps(inner, name):
                yield _Step(tuple(_over(e, step) for e in expressions), step.conditions)
        case Filter(inner, predicate):
            for step in _steps(inner, name):
                yield _Step(step.columns, (*step.conditions, *(_over(c, step) for c in conjuncts(predicate))))
        case _:
            pass


def _over(expression: Expression, step: _Step) -> Expression:
    """The expression over the rows that a step reads."""
    return rewritten(expression, lambda e: step.columns[e.index] if isinstance(e, Column) else e)


def _way(made: Expression, at: int) -> int | None:
    """1 if a column gets more with every round, -1 if less, 0 if longer; None if nobody knows."""
    made = _plain(made)
    if not isinstance(made, Call) or len(made.arguments) != 2:
        return None
    left, right = map(_plain, made.arguments)
    if made.function == "add" and isinstance(left, Literal):
        left, right = right, left
    if made.function == "concat":
        texts = [e for e in (left, right) if isinstance(e, Literal)]
        return 0 if any(_is(e, at) for e in (left, right)) and [e for e in texts if e.value] else None
    by: Any = right.value if isinstance(right, Literal) else None
    if not _is(left, at) or not isinstance(by, int | float) or by == 0:
        return None
    return {"add": 1, "subtract": -1}[made.function] * (1 if by > 0 else -1) if made.function in _STEPS else None


_STEPS: Final = ("add", "subtract")


def _plain(expression: Expression) -> Expression:
    """Without casts, which keep what goes up going up."""
    while isinstance(expression, Cast):
        expression = expression.argument
    return expression


def _is(expression: Expression, at: int) -> bool:
    return isinstance(expression, Column) and expression.index == at


def _stays_true(condition: Expression, ways: Mapping[int, int]) -> bool:
    """Does a condition that is true once stay so in all rounds? So that it ends nothing."""
    if not isinstance(condition, Call):
        return condition == TRUE
    if condition.function == "is_not_null":
        return any(_is(_plain(condition.arguments[0]), at) for at in ways)
    if condition.function not in TURNED:
        return False
    left, right = map(_plain, condition.arguments)
    function = condition.function
    if isinstance(left, Literal):
        left, right, function = right, left, TURNED[function]
    at = next((at for at, way in ways.items() if way and _rises(left, at)), None)
    if at is None or not isinstance(right, Literal):
        return False
    return function in (("greater", "greater_equal") if ways[at] > 0 else ("less", "less_equal"))


def _rises(expression: Expression, at: int) -> bool:
    """The column itself, or the column and a constant."""
    if _is(expression, at):
        return True
    if not isinstance(expression, Call) or expression.function not in _STEPS or len(expression.arguments) != 2:
        return False
    left, right = map(_plain, expression.arguments)
    return _is(left, at) and isinstance(right, Literal)


def _endless(name: str, column: str, made: Expression, way: int) -> EndlessLoop:
    bound = {1: f"{column} < 100", -1: f"{column} > 0", 0: f"length({column}) < 100"}[way]
    return EndlessLoop(
        f'recursive relation "{name}" never ends: {column} becomes {made} in every round, and nothing bounds it',
        hint=f"bound it inside of the recursion, as by {bound}; a LIMIT on its result does not end it",
    )
