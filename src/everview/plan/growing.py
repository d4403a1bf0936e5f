"""Recursions with new values, and the refusal of recursions that can never end.

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
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Join, Multiway, Project, Recursive, Reference, Union
from everview.plan.references import free_references
from everview.scalars.expressions import TRUE, Call, Cast, Column, Expression, Literal, rewritten
from everview.types import BOOLEAN

DEEPEST: Final = 16  # projections and filters around a relation; a step with more is not looked at
MOST: Final = 200  # parts of a plan on the way to its steps; branches that share parts may be very many
TURNED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def grows(plan: Recursive) -> bool:
    """Whether a recursion may make values that its inputs do not have."""
    bound = frozenset(name for name, _ in plan.bindings)
    seen, waiting = set[Plan](), [part for _, part in plan.bindings]
    while waiting:  # plans may be deep, and share parts
        part = waiting.pop()
        if part in seen or not free_references(part) & bound:
            continue
        seen.add(part)
        asks = isinstance(part, Filter | Join | Multiway)  # of rows, and gives those it was given
        if not asks and any(map(_computes, part.expressions)):
            return True
        waiting += part.inputs
    return False


def _computes(expression: Expression) -> bool:
    if isinstance(expression, Cast):
        return _computes(expression.argument)
    return not isinstance(expression, Column | Literal) and expression.type != BOOLEAN


# -- what never ends


def check_ends(plan: Recursive) -> None:
    """Refuse a recursion of which one step, by itself, goes on for ever from the first row on."""
    for name, part in plan.bindings:
        for step in _steps(part, name):
            ways = {column: way for column, made in enumerate(step.columns) if (way := _way(made, column)) is not None}
            if ways and all(_stays_true(condition, ways) for condition in step.conditions):
                column = next(iter(ways))
                raise _endless(name, part.schema.names[column], step.columns[column], ways[column])


class _Step:
    """One branch of a recursion that reads nothing but its own relation: columns and conditions over its rows."""

    def __init__(self, columns: tuple[Expression, ...], conditions: tuple[Expression, ...] = ()) -> None:
        self.columns, self.conditions = columns, conditions


def _steps(plan: Plan, name: str) -> Iterator[_Step]:
    """The branches of a plan that only filter and project one relation, each as a single step."""
    waiting: list[tuple[Plan, tuple[Project | Filter, ...]]] = [(plan, ())]
    for _ in range(MOST):
        if not waiting:
            return
        part, around = waiting.pop()
        if name not in free_references(part):
            continue
        match part:
            case Reference():
                yield _within(_Step(part.columns), around)
            case Union() | Distinct():
                waiting += [(inner, around) for inner in reversed(part.inputs)]
            case Project() | Filter() if len(around) < DEEPEST:
                waiting.append((part.input, (*around, part)))
            case _:
                pass


def _within(step: _Step, around: tuple[Project | Filter, ...]) -> _Step:
    """A step with the projections and filters around it applied, the innermost first."""
    for part in reversed(around):
        if isinstance(part, Project):
            step = _Step(tuple(_over(e, step) for e in part.expressions), step.conditions)
        else:
            conditions = (_over(c, step) for c in conjuncts(part.predicate))
            step = _Step(step.columns, (*step.conditions, *conditions))
    return step


def _over(expression: Expression, step: _Step) -> Expression:
    """The expression over the rows that a step reads."""
    return rewritten(expression, lambda e: step.columns[e.index] if isinstance(e, Column) else e)


def _way(made: Expression, column: int) -> int | None:
    """The direction of a column in every round: 1 if rising, -1 if falling, 0 if growing longer, None if unknown."""
    made = _plain(made)
    if not isinstance(made, Call) or len(made.arguments) != 2:
        return None
    left, right = map(_plain, made.arguments)
    if made.function == "add" and isinstance(left, Literal):
        left, right = right, left
    if made.function == "concat":
        texts = [e for e in (left, right) if isinstance(e, Literal)]
        return 0 if any(_is(e, column) for e in (left, right)) and [e for e in texts if e.value] else None
    by: Any = right.value if isinstance(right, Literal) else None
    if not _is(left, column) or not isinstance(by, int | float) or by == 0:
        return None
    return {"add": 1, "subtract": -1}[made.function] * (1 if by > 0 else -1) if made.function in _STEPS else None


_STEPS: Final = ("add", "subtract")


def _plain(expression: Expression) -> Expression:
    """The expression without its casts, which never change whether it rises or falls."""
    while isinstance(expression, Cast):
        expression = expression.argument
    return expression


def _is(expression: Expression, column: int) -> bool:
    return isinstance(expression, Column) and expression.index == column


def _stays_true(condition: Expression, ways: Mapping[int, int]) -> bool:
    """Whether a condition, once true, stays true in all rounds and so never ends the recursion."""
    if not isinstance(condition, Call):
        return condition == TRUE
    if condition.function == "is_not_null":
        return any(_is(_plain(condition.arguments[0]), column) for column in ways)
    if condition.function not in TURNED:
        return False
    left, right = map(_plain, condition.arguments)
    function = condition.function
    if isinstance(left, Literal):
        left, right, function = right, left, TURNED[function]
    column = next((column for column, way in ways.items() if way and _rises(left, column)), None)
    if column is None or not isinstance(right, Literal):
        return False
    return function in (("greater", "greater_equal") if ways[column] > 0 else ("less", "less_equal"))


def _rises(expression: Expression, column: int) -> bool:
    """Whether an expression is the column itself, or the column plus a constant."""
    if _is(expression, column):
        return True
    if not isinstance(expression, Call) or expression.function not in _STEPS or len(expression.arguments) != 2:
        return False
    left, right = map(_plain, expression.arguments)
    return _is(left, column) and isinstance(right, Literal)


def _endless(name: str, column: str, made: Expression, way: int) -> EndlessLoop:
    bound = {1: f"{column} < 100", -1: f"{column} > 0", 0: f"length({column}) < 100"}[way]
    return EndlessLoop(
        f'recursive relation "{name}" never ends: {column} becomes {made} in every round, and nothing bounds it',
        hint=f"bound it inside of the recursion, as by {bound}; a LIMIT on its result does not end it",
    )
