"""Construct expressions: resolve names, coerce arguments, infer types, refuse mistakes.

>>> from everview.types import INTEGER, Decimal
>>> from everview.scalars.expressions import Column
>>> price = Column(0, "price", Decimal(12, 2))
>>> call("multiply", price, literal(3)).type.sql
'DECIMAL(14,2)'
>>> call("equal", price, literal(True))
Traceback (most recent call last):
everview.errors.TypeMismatch: equal is not defined on DECIMAL(12,2) and BOOLEAN
  hint: cast one of them
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from typing import Any, Final

from everview.errors import ArithmeticFailure, EverviewError, TypeMismatch, UnknownName, WrongArity
from everview.scalars.coercion import coerced, common, implicit, is_integer, is_number, tightest
from everview.scalars.expressions import NULL, Call, Expression, Literal
from everview.scalars.kinds import DAY, DAY_TIME, INTERVALS, MICROS, MONTHS, VOID, YEAR_MONTH
from everview.scalars.session_zone import cast_in_zone, in_session_zone
from everview.scalars.signatures import ALIASES, INTERNAL, SIGNATURES, FunctionSignature
from everview.scalars.signatures.conditions import refuse_maps
from everview.scalars.signatures.variants import cast_from_variant, held_in_variant
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    COMPOSITE,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    VARIANT,
    Array,
    Decimal,
    MapType,
    ScalarType,
    Struct,
    Type,
    Variant,
    parts_of_type,
    unknown_name,
)

__all__ = [
    "call",
    "cast",
    "coerced",
    "common",
    "implicit",
    "interval",
    "is_function",
    "is_integer",
    "is_number",
    "literal",
    "number",
    "tightest",
]


def is_function(name: str) -> bool:
    """Whether there is a scalar function of that name that queries may call."""
    known = ALIASES.get(name.lower(), name.lower())
    return known in SIGNATURES and known not in INTERNAL


def call(name: str, *arguments: Expression) -> Expression:
    """A call of a scalar function, its arguments cast as SQL says; raises `TypeMismatch`, `WrongArity`, `UnknownName`.

    `name` is that of `SIGNATURES`, or one that SQL has for it: ``call("mod", a, b)``, ``call("%", a, b)``.
    """
    name = ALIASES.get(name.lower(), name.lower())
    signature = SIGNATURES.get(name)
    if signature is None:
        raise unknown_name("function", name, sorted(SIGNATURES))
    _check_arity(name, signature, len(arguments))
    if name in _COMPARING:
        refuse_maps(name, arguments)
    ruled = signature.rule(name, arguments)
    if isinstance(ruled, Expression):
        return in_session_zone(ruled)
    nullable = any(a.nullable for a in ruled.arguments) if ruled.nullable is None else ruled.nullable
    return in_session_zone(Call(name, ruled.arguments, ruled.type, nullable))


# Functions that compare elements, or hash them, which is not defined on maps and variants.
_COMPARING: Final = (
    *("array_contains", "array_distinct", "sort_array", "array_sort", "array_min", "array_max", "array_union"),
    *("array_intersect", "array_except", "arrays_overlap", "array_remove", "array_position", "hash", "xxhash64"),
)


def _check_arity(name: str, signature: FunctionSignature, count: int) -> None:
    least, most = signature.least, signature.most
    if count >= least and (most is None or count <= most):
        return
    takes = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
    raise WrongArity(f"{name} takes {takes} arguments, and was given {count}", hint=f"write {name} with {takes}")


def item(array: Expression, index: Expression) -> Expression:
    """``array[index]`` of Spark's: the first is at 0, and an index below that is an error as one beyond the end is."""
    known, zero = index.value if isinstance(index, Literal) else None, literal(0)
    if isinstance(known, int):
        return call("element_at", array, literal(max(known + 1, 0)))
    place = call("add", index, literal(1))
    return call("element_at", array, call("if", call("less", place, zero), zero, place))


def literal(value: Any, type_: Type | None = None) -> Literal:
    """A literal of a Python value; by default of the type that SQL gives it.

    >>> literal(1).type, literal(2**40).type, literal(decimal.Decimal("1.50")).type.sql
    (INTEGER, BIGINT, 'DECIMAL(3,2)')
    """
    if type_ is not None:
        return Literal(_inward(value, type_), type_)
    match value:
        case None:
            return NULL
        case bool():
            return Literal(value, BOOLEAN)
        case int():
            return _integer(value)
        case float():
            return Literal(value, DOUBLE)
        case decimal.Decimal():
            return number(value)
        case str():
            return Literal(value, STRING)
        case bytes():
            return Literal(value, BINARY)
        case dt.datetime():
            return Literal(_inward(value, TIMESTAMP), TIMESTAMP)
        case dt.date():
            return Literal(value, DATE)
        case dt.time() if value.tzinfo is None:
            return Literal(value, TIME)
        case dt.timedelta():
            return Literal(_inward(value, DAY_TIME), DAY if not value % dt.timedelta(1) else DAY_TIME)
        case Variant():
            return Literal(value, VARIANT)
        case _:
            hint = "give a number, text, bytes, a date, a time, a datetime or a timedelta"
            raise TypeMismatch(f"{value!r} is no literal", hint=hint)


def _integer(value: int) -> Literal:
    for type_, bits in ((INTEGER, 31), (BIGINT, 63)):
        if -(1 << bits) <= value < (1 << bits):
            return Literal(value, type_)
    if value.bit_length() > 128:  # the digits of a very long one take very long to find
        raise _too_many_digits()
    return number(decimal.Decimal(value))


def _too_many_digits() -> ArithmeticFailure:
    return ArithmeticFailure("a number of more than 38 digits", hint="DECIMAL has 38 at most; a DOUBLE may be larger")


def number(value: decimal.Decimal) -> Literal:
    """A literal of a DECIMAL just wide enough; raises `ArithmeticFailure` if none is.

    >>> number(decimal.Decimal("1.5e2")).type.sql, number(decimal.Decimal("0e9")).type.sql
    ('DECIMAL(3,0)', 'DECIMAL(1,0)')
    """
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeMismatch(f"{value} is no DECIMAL", hint="use DOUBLE for NaN and infinity")
    if exponent > 0 and not value:
        digits, exponent, value = (0,), 0, decimal.Decimal(0)
    if len(digits) + max(exponent, 0) > 38 or -exponent > 38:  # an exponent alone may stand for gigabytes of zeros
        raise _too_many_digits()
    if exponent > 0:
        digits, exponent, value = (*digits, *(0,) * exponent), 0, decimal.Decimal(int(value))
    return Literal(value, Decimal(max(len(digits), -exponent), -exponent))


def _inward(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    match type_:
        case Array(element):
            return tuple(_inward(v, element) for v in value)
        case Struct(fields):
            values = [value[f.name] for f in fields] if isinstance(value, dict) else value
            return tuple(_inward(v, f.type) for v, f in zip(values, fields, strict=True))
        case MapType(key, item):
            pairs = value.items() if isinstance(value, Mapping) else value
            return tuple((_inward(k, key), _inward(v, item)) for k, v in pairs)
        case _ if type_ == TIMESTAMP and isinstance(value, dt.datetime):
            return value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        case _ if type_ in INTERVALS and isinstance(value, dt.timedelta):
            return value // dt.timedelta(microseconds=1)
        case _:
            return value


def interval(amount: int | decimal.Decimal, unit: str) -> Literal:
    """A literal interval: ``interval(3, "month")``.

    >>> interval(2, "year").value, interval(1, "week").type, interval(1, "hour").value
    (24, INTERVAL DAY, 3600000000)
    """
    unit = unit.lower().removesuffix("s")
    if unit in MONTHS:
        return Literal(int(amount) * MONTHS[unit], YEAR_MONTH)
    if unit not in MICROS:
        raise unknown_unit(unit)
    type_ = DAY if unit in ("day", "week") else DAY_TIME
    return Literal(int(amount * MICROS[unit]), type_)


def unknown_unit(unit: str) -> EverviewError:
    """The error for a unit of time that there is not."""
    if unit.startswith("nanosecond"):
        return UnknownName("nanoseconds are not supported", hint="moments and intervals are counted in microseconds")
    return unknown_name("unit", unit, [*MONTHS, *MICROS])


_SCALAR_CASTS: Final[dict[str, frozenset[str]]] = {
    "BOOLEAN": frozenset(["number", "STRING"]),
    "number": frozenset(["number", "BOOLEAN", "STRING"]),
    "DATE": frozenset(["STRING", "TIMESTAMP", "TIMESTAMP_NTZ"]),
    "TIMESTAMP": frozenset(["STRING", "DATE", "number", "TIMESTAMP_NTZ", "TIME"]),
    "TIMESTAMP_NTZ": frozenset(["STRING", "DATE", "TIMESTAMP", "TIME"]),
    "TIME": frozenset(["STRING"]),
    "INTERVAL": frozenset(["STRING"]),  # of months and days
    "STRING": frozenset(
        [
            "number",
            "BOOLEAN",
            "DATE",
            "TIME",
            "TIMESTAMP",
            "TIMESTAMP_NTZ",
            "BINARY",
            *(type_.name for type_ in INTERVALS),
        ]
    ),
    "BINARY": frozenset(["STRING"]),
}


def cast(argument: Expression, type_: Type, *, try_: bool = False) -> Expression:
    """``CAST(argument AS type)``; raises `TypeMismatch` where SQL has no such cast."""
    if argument.type == type_:
        return argument
    if not castable(argument.type, type_):
        what = "try_cast" if try_ else "cast"
        raise TypeMismatch(f"there is no {what} of {argument.type} to {type_}", hint=f"the value is {argument}")
    if isinstance(argument, Literal) and argument.value is None:
        return Literal(None, type_)
    return cast_in_zone(argument, type_, try_)


def castable(a: Type, b: Type) -> bool:
    """Whether SQL has a cast from one type to another."""
    if VOID in (a, b) or a == b:
        return b != VOID
    if VARIANT in (a, b):
        return cast_from_variant(b) if a == VARIANT else held_in_variant(a)
    if isinstance(a, Array) and isinstance(b, Array):
        return castable(a.element, b.element)
    if isinstance(a, Struct) and isinstance(b, Struct):
        return len(a.fields) == len(b.fields) and all(
            castable(x.type, y.type) and (y.nullable or not x.nullable) for x, y in zip(a.fields, b.fields, strict=True)
        )
    if isinstance(a, MapType) and isinstance(b, MapType):
        return castable(a.key, b.key) and castable(a.value, b.value)
    if isinstance(a, COMPOSITE) and b == STRING:
        return all(part == STRING or castable(part, STRING) for part in parts_of_type(a))
    if (a in INTERVALS or b in INTERVALS) and STRING not in (a, b):
        both = a in INTERVALS and b in INTERVALS and YEAR_MONTH not in (a, b)
        return both or _is_exact(a) or _is_exact(b)
    if a == TIME and _is_exact(b):
        return True
    if b == STRING and a in INTERVALS:
        return True
    if a == TIMESTAMP or b == TIMESTAMP:
        return _cast_name(b) in _SCALAR_CASTS.get(_cast_name(a), frozenset()) or (is_number(a) and b == TIMESTAMP)
    return _cast_name(b) in _SCALAR_CASTS.get(_cast_name(a), frozenset())


def _is_exact(type_: Type) -> bool:
    return is_integer(type_) or isinstance(type_, Decimal)


def _cast_name(type_: Type) -> str:
    if is_number(type_):
        return "number"
    return type_.name if isinstance(type_, ScalarType) else type_.sql
