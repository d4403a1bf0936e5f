"""Tests on words: parts of a predicate that need no decoded values; the rest is evaluated on the rows that pass."""

from __future__ import annotations

from collections.abc import Sequence

from everview.lowering.constants import python_value
from everview.operators.where import COMPARISONS, Test, testable
from everview.plan.conditions import conjunction, conjuncts
from everview.scalars.expressions import Call, Column, Expression, Literal
from everview.types import Schema

TURNED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}


def told_apart(predicate: Expression, schema: Schema) -> tuple[tuple[Test, ...], Expression | None]:
    """The tests on words that a predicate contains, and the rest of the predicate."""
    tests: list[Test] = []
    rest: list[Expression] = []
    for part in conjuncts(predicate):
        test = _test(part, schema)
        if test is None:
            rest.append(part)
        else:
            tests.append(test)
    return tuple(tests), conjunction(rest)


def _test(part: Expression, schema: Schema) -> Test | None:
    if not isinstance(part, Call):
        return None
    match part.function, part.arguments:
        case ("is_null" | "is_not_null") as how, (Column() as column,):
            return _if_testable(Test(column.index, how), schema)
        case "in", (value, *members):
            return _against(value, "equal", members, schema)
        case how, (a, b) if how in COMPARISONS:
            return _against(a, how, [b], schema) or _against(b, TURNED[how], [a], schema) or _fields(a, b, how, schema)
        case _:
            return None


def _against(value: Expression, how: str, members: Sequence[Expression], schema: Schema) -> Test | None:
    """A column against constants of its type."""
    if not isinstance(value, Column):
        return None
    type_ = schema.fields[value.index].type
    literals = [member for member in members if isinstance(member, Literal) and member.type == type_]
    constants = [python_value(member.value, type_) for member in literals]
    if not constants or len(constants) < len(members) or None in constants:
        return None
    return _if_testable(Test(value.index, how, tuple(constants)), schema)


def _fields(a: Expression, b: Expression, how: str, schema: Schema) -> Test | None:
    """A column against another of its type."""
    if not isinstance(a, Column) or not isinstance(b, Column):
        return None
    if schema.fields[a.index].type != schema.fields[b.index].type:
        return None
    return _if_testable(Test(a.index, how, (), b.index), schema)


def _if_testable(test: Test, schema: Schema) -> Test | None:
    return test if testable(schema.fields[test.field], test.how) else None
