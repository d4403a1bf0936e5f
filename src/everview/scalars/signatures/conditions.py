"""Signatures of comparisons, logic and conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from everview.scalars.coercion import FRACTIONS, implicit, mismatch
from everview.scalars.expressions import Call, Expression, Literal
from everview.scalars.kinds import CALENDAR, VOID
from everview.scalars.signatures.rules import (
    Arguments,
    Signatures,
    Typed,
    alike,
    any_type,
    family,
    signed,
    takes,
    widest,
)
from everview.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, STRING, has_map


def _compared(name: str, arguments: Arguments) -> Typed:
    operands = alike(name, arguments)
    if operands[0].type == CALENDAR:
        raise mismatch(name, tuple(a.type for a in arguments), "a month has no number of days: compare its parts")
    refuse_maps(name, operands)
    return Typed(operands, BOOLEAN)


def refuse_maps(name: str, arguments: Arguments) -> None:
    """Refuse values that have no order, and no equality: maps and variants, as Spark does."""
    wrong = next((a.type for a in arguments if has_map(a.type)), None)
    if wrong is not None:
        raise mismatch(name, (wrong,), "compare map_entries(m), or to_json(v); maps and variants are not compared")


def _null_safe(name: str, arguments: Arguments) -> Typed:
    return replace(_compared(name, arguments), nullable=False)


def _least(name: str, arguments: Arguments) -> Typed:
    operands = widest(name, arguments)
    if name != "coalesce":
        refuse_maps(name, operands)
    return Typed(operands, operands[0].type, all(a.nullable for a in operands))


def _nullif(name: str, arguments: Arguments) -> Expression:
    """The value keeps its own type; only the comparison meets in another."""
    test = Call("equal", alike(name, arguments), BOOLEAN, any(a.nullable for a in arguments))
    value = arguments[0]
    return Call("if", (test, Literal(None, value.type), value), value.type, True)


def _if(name: str, arguments: Arguments) -> Typed:
    condition = implicit(arguments[0], BOOLEAN, name)
    branches = widest(name, arguments[1:])
    return Typed((condition, *branches), branches[0].type, any(a.nullable for a in branches))


def _case(name: str, arguments: Arguments) -> Typed:
    """``case(condition, value, …, otherwise)``; without an otherwise it is NULL."""
    if len(arguments) % 2 == 0:
        arguments = (*arguments, Literal(None, VOID))
    conditions = [implicit(c, BOOLEAN, name) for c in arguments[:-1:2]]
    values = widest(name, (*arguments[1::2], arguments[-1]))
    parts: list[Expression] = []
    for condition, value in zip(conditions, values[:-1], strict=True):
        parts += [condition, value]
    return Typed((*parts, values[-1]), values[-1].type, any(v.nullable for v in values))


def _nvl2(name: str, arguments: Arguments) -> Expression:
    tested, a, b = arguments
    test = Call("is_not_null", (tested,), BOOLEAN, False)
    typed = _if(name, (test, a, b))
    return Call("if", typed.arguments, typed.type, bool(typed.nullable))


def _nanvl(name: str, arguments: Arguments) -> Typed:
    type_ = FLOAT if all(a.type == FLOAT for a in arguments) else DOUBLE
    return Typed(tuple(implicit(a, type_, name) for a in arguments), type_)


def _is_nan(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    return Typed((a if a.type in FRACTIONS else implicit(a, DOUBLE, name),), BOOLEAN, False)


def _assert(name: str, arguments: Arguments) -> Typed:
    """NULL where a condition is true; elsewhere it raises."""
    condition, *message = arguments
    said = implicit(message[0], STRING, name) if message else Literal(f"{condition} is not true", STRING)
    return Typed((implicit(condition, BOOLEAN, name), said), STRING, True)


_LOGIC: Final = takes(BOOLEAN, gives=BOOLEAN)

COMPARISONS: Final[Signatures] = family(
    signed(
        *("equal not_equal less less_equal greater greater_equal", 2, 2, _compared),
        **{"equal": "= ==", "not_equal": "<> !=", "less": "<", "less_equal": "<=", "greater": ">"},
        greater_equal=">=",
    ),
    signed("null_safe_equal", 2, 2, _null_safe, null_safe_equal="<=> equal_null"),
    signed("in", 2, None, _compared),
    signed("and or", 2, None, _LOGIC),
    signed("not", 1, 1, _LOGIC, **{"not": "!"}),
    signed("is_null is_not_null", 1, 1, any_type(BOOLEAN, False), is_null="isnull", is_not_null="isnotnull"),
    signed("is_one_row", 1, 1, takes(BIGINT, gives=BOOLEAN)),  # of subqueries
)
CONDITIONS: Final[Signatures] = family(
    signed("case", 2, None, _case, "conditions and values in turn, and the value of `ELSE`"),
    signed("if", 3, 3, _if, "condition, a, b"),
    signed("coalesce", 1, None, _least, "any", coalesce="nvl ifnull"),
    signed("nullif", 2, 2, _nullif, "a, b", "has the type of a"),
    signed("nvl2", 3, 3, _nvl2, "tested, a, b"),
    signed("greatest least", 2, None, _least, "two or more", "NULLs are passed over"),
    signed("is_nan", 1, 1, _is_nan, "number", "false for NULL", is_nan="isnan"),
    signed("nanvl", 2, 2, _nanvl, "a, b"),
    signed("assert_true", 1, 2, _assert, "condition [, message]", "NULL, or it raises and the tick is refused"),
    signed("raise_error", 1, 1, takes(STRING, gives=STRING, nullable=True), "message", "the tick is refused"),
)
