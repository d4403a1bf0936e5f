"""Signatures of operators and functions of numbers; the operators also add and scale moments and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from everview.errors import TypeMismatch
from everview.scalars import coercion
from everview.scalars.coercion import (
    FRACTIONS,
    MOMENTS,
    MOST_DIGITS,
    bits,
    bounded,
    coerced,
    decimal_of,
    implicit,
    is_integer,
    is_number,
    mismatch,
)
from everview.scalars.expressions import Call, Cast, Expression, Literal
from everview.scalars.kinds import CALENDAR, DAY, DAY_TIME, INTERVALS, VOID, YEAR_MONTH
from everview.scalars.signatures.rules import (
    Arguments,
    Rule,
    Signatures,
    Typed,
    alike,
    family,
    narrowed,
    operand,
    signed,
    takes,
    widest,
)
from everview.scalars.signatures.times import moved_by_calendar, moved_time, product, quotient
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    TINYINT,
    Array,
    Decimal,
)


def _number_pair(name: str, a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """Two numbers as one type, or as two DECIMALs of their own."""
    if a.type == b.type == VOID:
        return coerced(a, DOUBLE), coerced(b, DOUBLE)
    met = coercion.common(a.type, b.type)
    if met == STRING:
        met = DOUBLE
    if met is None or not is_number(met):
        raise mismatch(name, (a.type, b.type))
    if isinstance(met, Decimal):
        return _as_decimal(a, met), _as_decimal(b, met)
    return coerced(a, met), coerced(b, met)


def _as_decimal(argument: Expression, met: Decimal) -> Expression:
    return coerced(argument, met if argument.type == VOID else decimal_of(argument))


def _sum_type(a: Decimal, b: Decimal) -> Decimal:
    scale = max(a.scale, b.scale)
    return bounded(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def _product_type(a: Decimal, b: Decimal) -> Decimal:
    return bounded(a.precision + b.precision + 1, a.scale + b.scale)


def _quotient_type(a: Decimal, b: Decimal) -> Decimal:
    scale = max(6, a.scale + b.precision + 1)
    return bounded(a.precision - a.scale + b.scale + scale, scale)


def _remainder_type(a: Decimal, b: Decimal) -> Decimal:
    scale = max(a.scale, b.scale)
    return bounded(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def _arithmetic(of_decimals: Callable[[Decimal, Decimal], Decimal]) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        a, b = _number_pair(name, *arguments)
        if isinstance(a.type, Decimal) and isinstance(b.type, Decimal):
            return Typed((a, b), of_decimals(a.type, b.type))
        return Typed((a, b), a.type)

    return rule


def _attempt(rule: Rule) -> Rule:
    """The rule of a `try_` function: the same types, but NULL where the function fails."""

    def attempted(name: str, arguments: Arguments) -> Typed | Expression:
        typed = rule(name, arguments)
        if isinstance(typed, Typed):
            return replace(typed, nullable=True)
        assert isinstance(typed, Call)
        return replace(typed, function=f"try_{typed.function}", nullable=True)

    return attempted


_numbers_sum: Final = _arithmetic(_sum_type)


def _add(name: str, arguments: Arguments) -> Typed | Expression:
    a, b = arguments
    if CALENDAR in (a.type, b.type):
        moment, span = (b, a) if a.type == CALENDAR else (a, b)
        return moved_by_calendar(name, _moment(name, moment, span), span, "add")
    if a.type in INTERVALS and b.type not in INTERVALS and b.type != VOID:
        a, b = b, a
    if b.type == DATE and is_integer(a.type):
        a, b = b, a
    if a.type == TIME and b.type in INTERVALS:
        return moved_time(name, a, b)
    return _moved(name, a, b) or _numbers_sum(name, (a, b))


def _moment(name: str, moment: Expression, span: Expression) -> Expression:
    if moment.type not in (*MOMENTS, STRING):
        raise mismatch(name, (moment.type, span.type), "such an interval is added to a moment")
    return moment


def _subtract(name: str, arguments: Arguments) -> Typed | Expression:
    a, b = arguments
    if b.type == CALENDAR:
        return moved_by_calendar(name, _moment(name, a, b), b, "subtract")
    if a.type in MOMENTS and b.type in (*MOMENTS, STRING):
        if a.type == DATE and b.type in (DATE, STRING):
            return Call("subtract_dates", (a, implicit(b, DATE, name)), DAY, a.nullable or b.nullable)
        met = coercion.common(a.type, b.type) if b.type != STRING else a.type
        met = TIMESTAMP if met in (None, DATE) else met
        pair = (coerced(a, met), implicit(b, met, name))
        return Call("subtract_timestamps", pair, DAY_TIME, a.nullable or b.nullable)
    if a.type == b.type == TIME:
        return Call("subtract_timestamps", (a, b), DAY_TIME, a.nullable or b.nullable)
    if a.type == TIME and b.type in INTERVALS:
        return replace(moved_time(name, a, b), function="subtract_from_time")
    moved = _moved(name, a, b)
    if moved is not None:
        return replace(
            moved, function=moved.function.replace("add", "subtract", 1).replace("date_subtract", "date_sub")
        )
    return _numbers_sum(name, (a, b))


def _moved(name: str, a: Expression, b: Expression) -> Call | None:
    """A call that moves a moment or an interval by an interval, or a date by days; None for other operands."""
    nullable = a.nullable or b.nullable
    if a.type == DATE and (is_integer(b.type) or b.type in (VOID, STRING)):
        return Call("date_add", (a, implicit(b, INTEGER, name)), DATE, nullable)
    if b.type not in INTERVALS:
        return None
    if a.type in (STRING, VOID):
        a = coerced(a, TIMESTAMP)
    if a.type in INTERVALS:
        met = coercion.common(a.type, b.type)
        if met is None:
            raise mismatch(name, (a.type, b.type))
        return Call("add_intervals", (coerced(a, met), coerced(b, met)), met, nullable)
    if a.type not in MOMENTS:
        raise mismatch(name, (a.type, b.type))
    if b.type == YEAR_MONTH:
        return Call("add_months_to", (a, b), a.type, nullable)
    if a.type == DATE and b.type == DAY:
        return Call("add_days_to", (a, b), DATE, nullable)
    type_ = TIMESTAMP if a.type == DATE else a.type
    return Call("add_time_to", (coerced(a, type_), coerced(b, DAY_TIME)), type_, nullable)


def _multiply(name: str, arguments: Arguments) -> Typed | Expression:
    a, b = arguments
    if a.type in INTERVALS:
        a, b = b, a
    if b.type in INTERVALS:
        return product(name, a, b)
    return _arithmetic(_product_type)(name, arguments)


def _divide(name: str, arguments: Arguments) -> Typed | Expression:
    if arguments[0].type in INTERVALS:
        return quotient(name, *arguments)
    a, b = _number_pair(name, *arguments)
    if isinstance(a.type, Decimal) and isinstance(b.type, Decimal):
        return Typed((a, b), _quotient_type(a.type, b.type))
    return Typed((coerced(a, DOUBLE), coerced(b, DOUBLE)), DOUBLE)


def _integral_divide(name: str, arguments: Arguments) -> Typed:
    a, b = _number_pair(name, *arguments)
    if a.type in FRACTIONS:
        if STRING not in (arguments[0].type, arguments[1].type) and VOID not in (arguments[0].type, arguments[1].type):
            raise mismatch(name, (arguments[0].type, arguments[1].type), "it takes integers or DECIMALs")
        a, b = (coerced(x, BIGINT) for x in arguments)
    if not isinstance(a.type, Decimal):
        a, b = coerced(a, BIGINT), coerced(b, BIGINT)
    return Typed((a, b), BIGINT)


def _same_number(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if a.type in INTERVALS:
        return Typed((a,), a.type)
    a = operand(name, a)
    return Typed((a,), a.type)


def _sign(name: str, arguments: Arguments) -> Typed | Expression:
    (a,) = arguments
    if a.type in INTERVALS:
        return Call("interval_sign", (a,), DOUBLE, a.nullable)
    return _double(name, arguments)


def _double(name: str, arguments: Arguments) -> Typed:
    return Typed(tuple(implicit(a, DOUBLE, name) for a in arguments), DOUBLE)


def _logarithm(name: str, arguments: Arguments) -> Typed:
    return replace(_double(name, arguments), nullable=True)


def _log(name: str, arguments: Arguments) -> Typed | Expression:
    if len(arguments) == 1:
        return Call("ln", _double(name, arguments).arguments, DOUBLE, True)
    return _logarithm(name, arguments)


def _scale_of(name: str, argument: Expression) -> int:
    argument = coerced(argument, INTEGER) if isinstance(argument, Literal) else argument
    negative = isinstance(argument, Call) and argument.function == "negate"
    inner = argument.arguments[0] if isinstance(argument, Call) and negative else argument
    if not isinstance(inner, Literal) or not is_integer(inner.type) or inner.value is None:
        raise TypeMismatch(f"the scale of {name} is not a literal", hint=f"write {name}(x, 2)")
    return -inner.value if negative else inner.value


_NOTHING_LEFT: Final = 310  # digits before the point of which even the greatest DOUBLE has fewer
_EVERY_DIGIT: Final = 400  # digits after the point beyond those of the least DOUBLE


def _rounded(name: str, arguments: Arguments) -> Typed:
    a = operand(name, arguments[0])
    scale = _scale_of(name, arguments[1]) if len(arguments) == 2 else 0
    # Beyond these no digit is left, or none to round: a scale of millions would make numbers of millions of digits.
    scale = max(-_NOTHING_LEFT, min(scale, _EVERY_DIGIT))
    type_ = a.type
    if isinstance(type_, Decimal):
        whole = type_.precision - type_.scale + 1
        if scale < 0:
            type_ = Decimal(min(max(whole, -scale + 1), MOST_DIGITS), 0)
        else:
            after = min(type_.scale, scale)
            type_ = Decimal(min(whole + after, MOST_DIGITS), after)
    return Typed((a, Literal(scale, INTEGER)), type_)


def _ceiling(name: str, arguments: Arguments) -> Typed:
    a = operand(name, arguments[0])
    if len(arguments) == 2:
        a = a if isinstance(a.type, Decimal) or not is_integer(a.type) else coerced(a, decimal_of(a))
        if a.type in FRACTIONS:
            a = coerced(a, Decimal(30, 15) if a.type == DOUBLE else Decimal(14, 7))
        return _rounded(name, (a, arguments[1]))
    if isinstance(a.type, Decimal):
        return Typed((a,), _rounded(name, (a,)).type)
    return Typed((coerced(a, BIGINT) if is_integer(a.type) else coerced(a, DOUBLE),), BIGINT)


def _bits(name: str, arguments: Arguments) -> Typed:
    operands = widest(name, arguments)
    if not is_integer(operands[0].type):
        raise mismatch(name, tuple(a.type for a in arguments), "it takes integers")
    return Typed(operands, operands[0].type)


def _shift(name: str, arguments: Arguments) -> Typed:
    value, by = arguments
    value = implicit(value, INTEGER, name) if value.type != BIGINT else value
    return Typed((value, narrowed(by, name)), value.type)


def _format_number(name: str, arguments: Arguments) -> Typed:
    a = operand(name, arguments[0])
    return Typed((a, implicit(arguments[1], INTEGER, name)), STRING, True)


def _constant(value: float) -> Rule:
    return lambda name, arguments: Literal(value, DOUBLE)


def _counted(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if a.type != BOOLEAN and not is_integer(a.type):
        a = implicit(a, BIGINT, name)
    return Typed((a,), INTEGER)


def _bit(name: str, arguments: Arguments) -> Typed | Expression:
    """A bit at a literal place is shifted to the end and cut off, which is compiled; at another, it is looked up."""
    value, place = arguments
    value = value if is_integer(value.type) else implicit(value, BIGINT, name)
    place = implicit(place, INTEGER, name)
    if not isinstance(place, Literal) or place.value is None or not 0 <= place.value < bits(value.type):
        return Typed((value, place), TINYINT)
    value = value if value.type == BIGINT else coerced(value, INTEGER)
    shifted = Call("shiftright", (value, place), value.type, value.nullable)
    last = Call("bit_and", (shifted, coerced(Literal(1, INTEGER), value.type)), value.type, value.nullable)
    return Cast(last, TINYINT)


def _nullifzero(name: str, arguments: Arguments) -> Expression:
    a = operand(name, arguments[0])
    zero = Call("equal", alike(name, (a, Literal(0, INTEGER))), BOOLEAN, a.nullable)
    return Call("if", (zero, Literal(None, a.type), a), a.type, True)


def _zeroifnull(name: str, arguments: Arguments) -> Expression:
    operands = widest(name, (arguments[0], Literal(0, INTEGER)))
    return Call("coalesce", operands, operands[0].type, False)


def _bucket(name: str, arguments: Arguments) -> Expression:
    """The number of the 32,768 values that a value is among; values from 1 on are in the first, 0 and below before."""
    value = implicit(arguments[0], BIGINT, name)
    whole = _called("integral_divide", _called("subtract", value, _ONE), _SIZE)
    below = _called("integral_divide", value, _SIZE)
    return Call("if", (_positive(value), _called("add", whole, _ONE), below), BIGINT, value.nullable)


def _position(name: str, arguments: Arguments) -> Expression:
    value = implicit(arguments[0], BIGINT, name)
    above = _called("modulo", _called("subtract", value, _ONE), _SIZE)
    below = _called("negate", _called("modulo", value, _SIZE))
    return Call("if", (_positive(value), above, below), BIGINT, value.nullable)


_ONE: Final = Literal(1, BIGINT)
_SIZE: Final = Literal(32_768, BIGINT)


def _called(function: str, *arguments: Expression) -> Expression:
    return Call(function, arguments, BIGINT, any(a.nullable for a in arguments))


def _positive(value: Expression) -> Expression:
    return Call("greater", (value, Literal(0, BIGINT)), BOOLEAN, value.nullable)


_JAVA: Final = "the last digit may differ from Java's"
_ROUND: Final = (
    "a `DOUBLE` is rounded as the shortest decimal that reads back as it; `bround` of floats, and `round` of `FLOAT`, "
    "**d**"
)

ARITHMETIC: Final[Signatures] = family(
    signed("add", 2, 2, _add, add="plus +"),
    signed("subtract", 2, 2, _subtract, subtract="-"),
    signed("multiply", 2, 2, _multiply, multiply="*"),
    signed("divide", 2, 2, _divide, divide="/"),
    signed("integral_divide", 2, 2, _integral_divide, integral_divide="div"),
    signed("modulo pmod", 2, 2, _arithmetic(_remainder_type), modulo="% mod"),
    signed("try_add", 2, 2, _attempt(_add)),
    signed("try_subtract", 2, 2, _attempt(_subtract)),
    signed("try_multiply", 2, 2, _attempt(_multiply)),
    signed("try_divide", 2, 2, _attempt(_divide)),
    signed("try_modulo", 2, 2, _attempt(_arithmetic(_remainder_type)), try_modulo="try_mod"),
    signed("negate positive", 1, 1, _same_number, negate="negative"),
    signed("bit_and bit_or bit_xor", 2, 2, _bits, bit_and="&", bit_or="|", bit_xor="^"),
    signed("bit_not", 1, 1, _bits, bit_not="~"),
    signed("shiftleft shiftright shiftrightunsigned", 2, 2, _shift),
)
NUMBERS: Final[Signatures] = family(
    signed("abs", 1, 1, _same_number, "number or interval", "`sign` gives `DOUBLE`"),
    signed("sign", 1, 1, _sign, "number", "`sign` gives `DOUBLE`", sign="signum"),
    signed(
        *("ceil floor", 1, 2, _ceiling, "number [, literal scale]"),
        "a `DOUBLE` gives `BIGINT`, and raises beyond it; NaN is 0",
        ceil="ceiling",
    ),
    signed("round bround", 1, 2, _rounded, "number [, literal scale]", _ROUND),
    signed("sqrt cbrt exp expm1 sin cos tan atan radians degrees", 1, 1, _double, "`DOUBLE`", _JAVA),
    signed("asin acos sinh cosh tanh asinh acosh atanh cot sec csc", 1, 1, _double, "`DOUBLE`", _JAVA),
    signed("pow atan2 hypot", 2, 2, _double, "`DOUBLE`, `DOUBLE`", _JAVA, pow="power"),
    signed("rint", 1, 1, _double, "`DOUBLE`", "halves to the even number"),
    signed("e", 0, 0, _constant(math.e), "none"),
    signed("pi", 0, 0, _constant(math.pi), "none"),
    signed("factorial", 1, 1, takes(INTEGER, gives=BIGINT, nullable=True), "integer", "NULL outside of 0 to 20"),
    signed("bin", 1, 1, takes(BIGINT, gives=STRING), "integer", "64 bits of a negative one", "d"),
    signed(
        *("conv", 3, 3, takes(STRING, INTEGER, gives=STRING, nullable=True), "text, base, base"),
        *("bases 2 to 36, a negative one for a number with a sign; more than 64 bits raise", "d"),
    ),
    signed("bit_count", 1, 1, _counted, "integer or boolean", "a negative number has 64 bits"),
    signed("bit_get", 2, 2, _bit, "integer, place", "from 0; a place beyond raises", bit_get="getbit"),
    signed(
        *("width_bucket", 4, 4, takes(DOUBLE, DOUBLE, DOUBLE, BIGINT, gives=BIGINT, nullable=True)),
        *("value, least, greatest, buckets", "0 before the first bucket; NULL where there are none"),
    ),
    signed("nullifzero", 1, 1, _nullifzero, "number"),
    signed("zeroifnull", 1, 1, _zeroifnull, "number"),
    signed("ln log10 log2 log1p", 1, 1, _logarithm, "`DOUBLE`; `log(base, x)`", f"NULL where there is none; {_JAVA}"),
    signed("log", 1, 2, _log, "`DOUBLE`; `log(base, x)`", f"NULL where there is none; {_JAVA}"),
    signed(
        *("format_number", 2, 2, _format_number, "number, digits"),
        "halves to the even digit; a format in place of digits is not supported",
        "d",
    ),
)
BITMAPS: Final[Signatures] = family(
    signed("bitmap_bucket_number", 1, 1, _bucket, "`BIGINT`", "32,768 values to a bucket, the first from 1 on"),
    signed("bitmap_bit_position", 1, 1, _position, "`BIGINT`", "the place in its bucket"),
    signed("bitmap_of", 1, 1, takes(Array(BIGINT), gives=BINARY)),  # of aggregates
    signed("bitmap_or_of bitmap_and_of", 1, 1, takes(Array(BINARY), gives=BINARY)),
    signed("bitmap_count", 1, 1, takes(BINARY, gives=BIGINT), "bytes", "how many bits are one", "d"),
)
