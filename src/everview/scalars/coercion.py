"""Coercion by Spark's ANSI rules: the common type of two types, and implicit casts.

- Numbers meet in the wider type; an integer meets FLOAT in DOUBLE, and a DECIMAL meets either in DOUBLE.
- Text meets an integer as BIGINT, a fraction as DOUBLE, a date or a timestamp as that.
- DATE meets TIMESTAMP as TIMESTAMP, as TIMESTAMP_NTZ does; DATE meets TIMESTAMP_NTZ as that.
- A bare NULL is of any type. Nothing else meets.

>>> str(common(INTEGER, Decimal(12, 2)))
'DECIMAL(12,2)'
>>> common(STRING, INTEGER), common(BOOLEAN, INTEGER)
(BIGINT, None)
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from everview.errors import TypeMismatch
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import CALENDAR, DAY, DAY_TIME, INTERVALS, VOID
from everview.scalars.session_zone import cast_in_zone
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGERS,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Array,
    Decimal,
    Field,
    MapType,
    ScalarType,
    Struct,
    Type,
)

MOMENTS: Final = (DATE, TIMESTAMP_NTZ, TIMESTAMP)  # the less general first
FRACTIONS: Final = (FLOAT, DOUBLE)
MOST_DIGITS: Final = 38
_WHOLE: Final[dict[Type, int]] = {TINYINT: 3, SMALLINT: 5, INTEGER: 10, BIGINT: 20}
_LEAST_SCALE: Final = 6  # digits after the point that a product or quotient keeps when it must give some up


def is_integer(type_: Type) -> bool:
    """Whether a type is TINYINT, SMALLINT, INTEGER or BIGINT."""
    return type_ in INTEGERS


def bits(type_: Type) -> int:
    """The number of bits of an integer type."""
    return 8 << INTEGERS.index(type_)


def is_number(type_: Type) -> bool:
    """Whether a type is an integer, a float or a DECIMAL."""
    return type_ in INTEGERS or type_ in FRACTIONS or isinstance(type_, Decimal)


def is_simple(type_: Type) -> bool:
    """Whether values have a plain text: numbers, text, truth values, dates, times, timestamps and intervals."""
    return is_number(type_) or type_ in (STRING, BOOLEAN, TIME, CALENDAR, *MOMENTS, *INTERVALS)


def bounded(precision: int, scale: int) -> Decimal:
    """The DECIMAL of so many digits; beyond 38, digits after the point are dropped, down to six of them."""
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE)))


def decimal_of(given: Expression | Type) -> Decimal:
    """The DECIMAL that holds an integer type; an integer literal takes only the digits it has."""
    if isinstance(given, Literal) and is_integer(given.type) and given.value is not None:
        return Decimal(len(str(abs(given.value))), 0)
    type_ = given.type if isinstance(given, Expression) else given
    return type_ if isinstance(type_, Decimal) else Decimal(_WHOLE[type_], 0)


def wider(a: Decimal, b: Decimal) -> Decimal:
    """The DECIMAL that holds both; beyond 38 digits, those before the point are kept."""
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    if whole + scale <= MOST_DIGITS:
        return Decimal(whole + scale, scale)
    return Decimal(MOST_DIGITS, max(0, MOST_DIGITS - whole))


def tightest(a: Type, b: Type) -> Type | None:
    """The least type that holds both, without converting text; None if there is none."""
    if a == b:
        return a
    if VOID in (a, b):
        return b if a == VOID else a
    if is_number(a) and is_number(b):
        return _numbers(a, b)
    if a in MOMENTS and b in MOMENTS:
        return max(a, b, key=MOMENTS.index)
    if {a, b} == {DAY, DAY_TIME}:
        return DAY_TIME
    if isinstance(a, Array) and isinstance(b, Array):
        element = tightest(a.element, b.element)
        return None if element is None else Array(element)
    if isinstance(a, Struct) and isinstance(b, Struct):
        return _structs(a, b)
    if isinstance(a, MapType) and isinstance(b, MapType):
        return _maps(a, b, tightest)
    return None


def common(a: Type, b: Type) -> Type | None:
    """The type in which two values are compared, added, or put in one column; None if there is none."""
    tight = tightest(a, b)
    if tight is not None:
        return tight
    if isinstance(a, Array) and isinstance(b, Array):
        element = common(a.element, b.element)
        return None if element is None else Array(element)
    if isinstance(a, MapType) and isinstance(b, MapType):
        return _maps(a, b, common)
    if STRING not in (a, b):
        return None
    other = b if a == STRING else a
    if is_integer(other):
        return BIGINT
    if is_number(other):
        return DOUBLE
    return other if other in (BOOLEAN, TIME, BINARY, *MOMENTS) else None


def common_of(arguments: tuple[Expression, ...], what: str) -> Type:
    """The common type of all arguments; raises `TypeMismatch`."""
    shared = arguments[0].type
    for argument in arguments[1:]:
        met = common(shared, argument.type)
        if met is None:
            raise mismatch(what, (shared, argument.type))
        shared = met
    return shared


def coerced(argument: Expression, type_: Type) -> Expression:
    """The argument as that type: itself, a literal, or under a cast."""
    if argument.type == type_:
        return argument
    if isinstance(argument, Literal):
        if argument.value is None:
            return Literal(None, type_)
        if is_integer(argument.type) and type_ in INTEGERS and INTEGERS.index(type_) > INTEGERS.index(argument.type):
            return replace(argument, type=type_)
        if is_integer(argument.type) and isinstance(type_, Decimal) and _fits(argument.value, type_):
            return Literal(decimal.Decimal(argument.value), type_)
        if is_integer(argument.type) and type_ == DOUBLE and abs(argument.value) <= 1 << 53:
            return Literal(float(argument.value), type_)
    return cast_in_zone(argument, type_)


def implicit(argument: Expression, wanted: Type, what: str) -> Expression:
    """The argument as a function takes it; raises `TypeMismatch` where only an explicit cast would do."""
    type_ = argument.type
    if type_ == wanted:
        return argument
    if type_ == VOID or _implied(type_, wanted):
        return coerced(argument, wanted)
    raise mismatch(what, (type_,), f"it takes {wanted}")


def mismatch(what: str, types: tuple[Type, ...], hint: str = "cast one of them") -> TypeMismatch:
    """The error for operands whose types do not go together."""
    return TypeMismatch(f"{what} is not defined on {' and '.join(t.sql for t in types)}", hint=hint)


def _implied(type_: Type, wanted: Type) -> bool:
    if wanted in INTERVALS:
        return (type_, wanted) == (DAY, DAY_TIME)
    if type_ == STRING:
        return isinstance(wanted, (ScalarType, Decimal)) and (is_simple(wanted) or wanted == BINARY)
    if wanted == STRING:
        return is_simple(type_)
    if is_number(type_) and is_number(wanted):
        return _numbers(type_, wanted) == wanted or wanted in FRACTIONS
    if isinstance(type_, Array) and isinstance(wanted, Array):
        return type_.element in (wanted.element, VOID) or _implied(type_.element, wanted.element)
    return type_ in MOMENTS and wanted in MOMENTS


def _numbers(a: Type, b: Type) -> Type:
    if a in INTEGERS and b in INTEGERS:
        return max(a, b, key=INTEGERS.index)
    if a == b == FLOAT:
        return FLOAT
    if a in FRACTIONS or b in FRACTIONS:
        return DOUBLE
    return wider(decimal_of(a), decimal_of(b))


def _maps(a: MapType, b: MapType, met: Callable[[Type, Type], Type | None]) -> Type | None:
    key, value = met(a.key, b.key), met(a.value, b.value)
    return None if key is None or value is None else MapType(key, value)


def _structs(a: Struct, b: Struct) -> Type | None:
    if [f.name.lower() for f in a.fields] != [f.name.lower() for f in b.fields]:
        return None
    return struct_of_both(a, b, tightest)


def struct_of_both(a: Struct, b: Struct, met: Callable[[Type, Type], Type | None]) -> Struct | None:
    """The struct whose parts hold the parts of two others, given the type that holds values of both types."""
    types = [met(x.type, y.type) for x, y in zip(a.fields, b.fields, strict=True)]
    pairs = zip(a.fields, b.fields, types, strict=True)
    fields = [Field(x.name, type_, x.nullable or y.nullable) for x, y, type_ in pairs if type_ is not None]
    return Struct(fields) if len(fields) == len(types) else None


def _fits(value: int, type_: Decimal) -> bool:
    return len(str(abs(value))) <= type_.precision - type_.scale
