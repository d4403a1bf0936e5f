"""Types that meet: which can be equal or compared, and the type of a constant beside a column.

Integers of all widths and DECIMALs are one family, FLOAT and DOUBLE another; a variable stays within one. A constant
becomes what it stands beside: ``1`` a DECIMAL or a DOUBLE, ``"2026-01-01"`` a DATE.

>>> from everview.scalars.expressions import Column
>>> from everview.types import DATE
>>> [str(e) for e in alike(Column(0, "at", DATE), literal("2026-01-01"))]
['at', "CAST('2026-01-01' AS DATE)"]
"""

from __future__ import annotations

import decimal
import struct
from typing import Any

from everview.plan.typing import call, cast, castable, coerced, is_integer, is_number, literal
from everview.scalars.coercion import struct_of_both, wider
from everview.scalars.expressions import Call, Expression, Literal
from everview.scalars.kinds import VOID
from everview.types import (
    ANY,
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGERS,
    SYMBOL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Struct,
    Symbol,
    Type,
)

__all__ = ["alike", "as_type", "family", "literal", "met", "written"]


def written(value: Any, type_: Type | None = None) -> Literal:
    """A constant; an integer is a BIGINT, so that computing with it does not overflow 32 bits."""
    constant = literal(value, type_)
    return Literal(value, BIGINT) if type_ is None and constant.type == INTEGER else constant


def family(type_: Type) -> object:
    """The family of a type: types of one family hold values that can be equal."""
    if is_integer(type_) or isinstance(type_, Decimal):
        return "exact"
    if isinstance(type_, Struct):
        return tuple(family(f.type) for f in type_.fields)
    return "float" if type_ in (FLOAT, DOUBLE) else type_


def met(a: Type, b: Type) -> Type | None:
    """The type of a column that holds values of both; None if there is none within a family."""
    if a == b:
        return a
    if VOID in (a, b):
        return b if a == VOID else a
    if family(a) != family(b):
        return None
    if isinstance(a, Struct) and isinstance(b, Struct):
        return struct_of_both(a, b, met)
    if family(a) == "float":
        return DOUBLE
    if is_integer(a) and is_integer(b):
        return max(a, b, key=INTEGERS.index)
    return wider(_decimal(a), _decimal(b))


def _decimal(type_: Type) -> Decimal:
    return type_ if isinstance(type_, Decimal) else Decimal(19 if type_ == BIGINT else 10, 0)


def alike(a: Expression, b: Expression) -> tuple[Expression, Expression] | None:
    """Both expressions cast to a type in which they can be compared; None if there is none."""
    if a.type == b.type:
        return a, b
    for constant, other, swap in ((a, b, False), (b, a, True)):
        made = _beside(constant, other.type)
        if made is not None:
            return (other, made) if swap else (made, other)
    if is_number(a.type) and is_number(b.type):
        type_ = met(a.type, b.type) or DOUBLE
        return coerced(a, type_), coerced(b, type_)
    if isinstance(a.type, Struct) and isinstance(b.type, Struct) and family(a.type) == family(b.type):
        type_ = met(a.type, b.type)
        both = None if type_ is None else (as_type(a, type_), as_type(b, type_))
        return None if both is None or None in both else both  # pyright: ignore[reportReturnType]
    return None


def as_type(given: Expression, type_: Type) -> Expression | None:
    """The expression cast to a type of its family; None if the type is of another."""
    if given.type == type_:
        return given
    made = _beside(given, type_)
    if made is not None:
        return made
    if given.type == VOID:
        return Literal(None, type_)
    if isinstance(given, Call) and given.function == "named_struct" and isinstance(type_, Struct):
        return _built(given, type_)
    if met(given.type, type_) is None or (isinstance(given, Literal) and is_number(type_)):
        return None
    return cast(given, type_)


def _built(given: Call, type_: Struct) -> Expression | None:
    """A record as a value of a struct type, with the names and types of its fields; None if it does not fit."""
    values = given.arguments[1::2]
    if len(values) != len(type_.fields):
        return None
    parts: list[Expression] = []
    for f, value in zip(type_.fields, values, strict=True):
        made = as_type(value, f.type)
        if made is None:
            return None
        parts += [literal(f.name), made]
    built = call("named_struct", *parts)
    return built if built.type == type_ else cast(built, type_) if castable(built.type, type_) else None


def _beside(given: Expression, type_: Type) -> Expression | None:
    """A constant as a value of another type; None if it is no constant, or the type has no such value."""
    value = _constant(given)
    if value is None:
        return Literal(None, type_) if given.type == VOID else None
    if is_number(type_) and isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
        return _number(value, type_)
    if isinstance(value, str):
        if type_ in (DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ):
            return cast(literal(value), type_)
        if type_ == SYMBOL:
            return Literal(Symbol(value), SYMBOL)
    return Literal(value, ANY) if type_ == ANY else None


def _constant(given: Expression) -> Any:
    return given.value if isinstance(given, Literal) else None


def _number(value: Any, type_: Type) -> Expression | None:
    """A number as a value of a type; None if the type cannot hold it exactly."""
    if type_ == FLOAT:  # the number that 32 bits hold
        return Literal(struct.unpack("f", struct.pack("f", float(value)))[0], type_)
    if type_ == DOUBLE:
        return Literal(float(value), type_)
    exact = decimal.Decimal(str(value))
    if isinstance(type_, Decimal):
        shifted = exact.scaleb(type_.scale)
        fits = shifted == shifted.to_integral_value() and abs(shifted) < decimal.Decimal(10) ** type_.precision
        return Literal(exact, type_) if fits else None
    bits = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}[type_.sql]
    if exact != exact.to_integral_value() or not -(1 << bits) <= exact < 1 << bits:
        return None
    return Literal(int(exact), type_)
