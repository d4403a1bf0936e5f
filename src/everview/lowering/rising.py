"""Functions of time that never fall: of a moment that is not before another, the value is not before the other's."""

from __future__ import annotations

import re
from typing import Final

from everview.scalars.expressions import Call, Cast, Column, Expression, Literal
from everview.scalars.kinds import DAY, DAY_TIME
from everview.types import BIGINT, DATE, DOUBLE, INTEGER, TIMESTAMP, TIMESTAMP_NTZ

_WITH_CONSTANT: Final = frozenset(
    {
        *("add", "subtract", "add_time_to", "add_days_to", "subtract_time_to", "subtract_days_to"),
        *("date_add", "date_sub", "datediff"),
    }
)
_BY_POSITIVE: Final = frozenset({"multiply", "integral_divide", "divide"})
_OF_ONE: Final = frozenset(
    {
        *("unix_micros", "unix_millis", "unix_seconds", "unix_timestamp", "year", "floor", "ceil", "last_day"),
        *("timestamp_micros", "timestamp_millis", "timestamp_seconds"),
    }
)
MOMENTS: Final = (TIMESTAMP, TIMESTAMP_NTZ)
_CASTS: Final = (
    *((a, b) for a in (*MOMENTS, DATE) for b in (*MOMENTS, DATE)),
    *((INTEGER, BIGINT), (BIGINT, DOUBLE), (INTEGER, DOUBLE)),
)
_SHORT: Final = (BIGINT, INTEGER, DATE, *MOMENTS, DAY, DAY_TIME)
_IN_ORDER: Final = re.compile(r"yyyy([-/:. ]?)(MM([-/:. ]?)(dd([-/:. ]?(HH([-/:. ]?(mm([-/:. ]?(ss)?)?)?)?)?)?)?)?")


def rising_in(expression: Expression) -> Column | None:
    """The one column that an expression depends on, if the expression never falls as the column rises."""
    match expression:
        case Column():
            return expression
        case Cast(argument, type_) if (argument.type, type_) in _CASTS:
            return rising_in(argument)
        case Cast(Call("date_format", (_, Literal("yyyy-MM-dd"))) as text, type_) if type_ == DATE:
            return rising_in(text)
        case Call("date_format", (argument, Literal(pattern))) if _IN_ORDER.fullmatch(str(pattern)):
            return rising_in(argument)
        case Call("date_trunc", (Literal(), argument)) | Call("trunc", (argument, Literal())):
            return rising_in(argument)
        case Call("time_bucket", (Literal(), argument, Literal())):
            return rising_in(argument)
        case Call(function, (argument,)) if function in _OF_ONE:
            return rising_in(argument)
        case Call("subtract", (whole, Call("pmod", (part, Literal(size))))) if _is_rest(whole, part, size):
            return rising_in(whole)
        case Call("subtract", (whole, Call("modulo", (part, Literal(size))))) if part == whole and _is_positive(size):
            return rising_in(whole)
        case _:
            return _with_constant(expression)


def _with_constant(expression: Expression) -> Column | None:
    """The column of a sum with a constant, or of a product with a positive one."""
    match expression:
        case Call(function, (argument, constant)) if function in _WITH_CONSTANT and _is_constant(constant):
            return rising_in(argument) if argument.type in _SHORT else None
        case Call(function, (argument, Literal(constant))) if function in _BY_POSITIVE and _is_positive(constant):
            return rising_in(argument) if argument.type in (BIGINT, INTEGER, DOUBLE) else None
        case Call("add", (constant, argument)) if _is_constant(constant) and argument.type in _SHORT:
            return rising_in(argument)
        case _:
            return None


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


def _is_constant(expression: Expression) -> bool:
    while isinstance(expression, Cast):
        expression = expression.argument
    return isinstance(expression, Literal) and expression.value is not None and expression.type in _SHORT


def _is_rest(whole: Expression, part: Expression, size: object) -> bool:
    """Whether ``whole - pmod(part, size)`` rounds down: the part is the whole, or differs from it by a constant."""
    if not isinstance(size, int) or size <= 0:
        return False
    match part:
        case Call("subtract" | "add", (same, constant)) if _is_constant(constant):
            return same == whole
        case _:
            return part == whole
