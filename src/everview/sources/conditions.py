"""Conditions on rows: true, false, or None for unknown, as in SQL.

`normal` rewrites a condition so that its values are of the columns' types; then it means the same in Python, SQLite and
PostgreSQL. A number that a column cannot hold is replaced by the nearest one that it can.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, name STRING")
>>> normal(Compare("id", "<", 3.5), schema)
Compare(column='id', operator='<=', value=3)
>>> holds = test(Not(Compare("name", "like", "A%")), schema)
>>> holds((1, "Bob")), holds((2, "Ada")), holds((3, None))
(True, False, None)
"""

from __future__ import annotations

import decimal
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, assert_never

from everview.codes.coerce import WIDE, Unfit
from everview.errors import WrongType
from everview.scalars.functions.patterns import like_regex
from everview.sources.protocol import All, Any_, Compare, Condition, Not, Row
from everview.sources.values import canonical
from everview.types import INTEGERS, Decimal, ScalarType, Schema, Type

Test = Callable[[Row], bool | None]
_LIMIT: Final = 10**40  # beyond every exact number that a column may hold


# -- conditions that mean the same everywhere


def normal(condition: Condition, schema: Schema) -> Condition:
    """The condition with canonical values; raises if it names an unknown column, or a value that cannot be compared."""
    match condition:
        case Compare():
            return _normal_compare(condition, schema)
        case All(conditions):
            return All(tuple(normal(each, schema) for each in conditions))
        case Any_(conditions):
            return Any_(tuple(normal(each, schema) for each in conditions))
        case Not(inner):
            return Not(normal(inner, schema))
        case _:
            assert_never(condition)


def _normal_compare(compare: Compare, schema: Schema) -> Condition:
    type_, value = schema[compare.column].type, compare.value
    if compare.operator in ("in", "not in"):
        return _normal_list(compare, type_)
    if compare.operator in ("like", "not like"):
        if value is not None:
            _pattern(compare.column, type_, value)
        return compare
    if value is None:
        return compare
    return _fitted(compare, type_)


def _normal_list(compare: Compare, type_: Type) -> Condition:
    given = tuple(compare.value)
    kept: dict[Any, None] = {}
    for value in given:
        fitted = None if value is None else _fitted(Compare(compare.column, "=", value), type_)
        if fitted is None:
            kept[None] = None
        elif isinstance(fitted, Compare):
            kept[fitted.value] = None
    if given and not kept:
        never = _never(compare.column, type_)
        return never if compare.operator == "in" else Not(never)
    return Compare(compare.column, compare.operator, tuple(kept))


def _fitted(compare: Compare, type_: Type) -> Condition:
    """The comparison as one with a value of the column's type."""
    exact = _scale(type_)
    if exact is None or not _is_number(compare.value):
        return Compare(compare.column, compare.operator, _comparand(compare.column, type_, compare.value))
    return _snapped(compare, type_, exact)


def _scale(type_: Type) -> int | None:
    """The number of digits after the point in an exact type; None for other types."""
    match type_:
        case ScalarType() if type_ in INTEGERS:
            return 0
        case Decimal(_, scale):
            return scale
        case _:
            return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)


def _snapped(compare: Compare, type_: Type, scale: int) -> Condition:
    value = _within(compare.value)
    unit = decimal.Decimal(1).scaleb(-scale)
    low = value.quantize(unit, decimal.ROUND_FLOOR, WIDE)
    high = value.quantize(unit, decimal.ROUND_CEILING, WIDE)
    as_type: Callable[[decimal.Decimal], Any] = int if isinstance(type_, ScalarType) else lambda number: number
    column, held = compare.column, not isinstance(type_, ScalarType) or -(1 << 63) <= low < 1 << 63
    if low == high and held:
        return Compare(column, compare.operator, as_type(low))
    never = _never(column, type_)
    match compare.operator:
        case "<" | "<=":
            return Compare(column, "<=", as_type(low)) if held else Not(never) if low > 0 else never
        case ">" | ">=":
            return Compare(column, ">=", as_type(high)) if held else never if low > 0 else Not(never)
        case "=":
            return never
        case "!=":
            return Not(never)
        case "is":
            return All((Compare(column, "is not", None), never))
        case _:
            return Not(All((Compare(column, "is not", None), never)))


def _within(value: Any) -> decimal.Decimal:
    """A number as a decimal that is in range; infinity and NaN are beyond all values of a column."""
    if value != value:
        return decimal.Decimal(_LIMIT)
    if isinstance(value, float):
        value = math.copysign(_LIMIT, value) if math.isinf(value) else value
        value = decimal.Decimal(repr(value)) if abs(value) < _LIMIT else decimal.Decimal(int(value))
    number = decimal.Decimal(value)
    if not number.is_finite():
        number = decimal.Decimal(_LIMIT).copy_sign(number)
    return max(min(number, decimal.Decimal(_LIMIT)), decimal.Decimal(-_LIMIT))


def _never(column: str, type_: Type) -> Condition:
    """A condition that is false of every value, and unknown of NULL."""
    zero = 0 if isinstance(type_, ScalarType) else decimal.Decimal(0)
    return All((Compare(column, "<", zero), Compare(column, ">", zero)))


def _comparand(column: str, type_: Type, value: Any) -> Any:
    try:
        if type_ in _FLOATS and _is_number(value):
            return canonical(_FLOATS[0], _as_float(value))
        return canonical(type_, value)
    except Unfit as error:
        raise WrongType(f'column "{column}" is compared: {error.message}', hint=error.hint) from None


_FLOATS: Final = (ScalarType("DOUBLE"), ScalarType("FLOAT"))


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _pattern(column: str, type_: Type, value: Any) -> str:
    if type_ != ScalarType("STRING") or not isinstance(value, str):
        hint = "it compares a column of STRING with a pattern in text"
        raise WrongType(f'like is for text: column "{column}" is {type_}, and the pattern {value!r}', hint=hint)
    return like_regex(value, "\\")


# -- as a function of rows


def test(condition: Condition, schema: Schema) -> Test:
    """The function from rows to what a normal condition says of them."""
    match condition:
        case Compare():
            return _compare(condition, schema)
        case All(conditions):
            return decided([test(each, schema) for each in conditions], by=False)
        case Any_(conditions):
            return decided([test(each, schema) for each in conditions], by=True)
        case Not(inner):
            return negated(test(inner, schema))
        case _:
            assert_never(condition)


def decided(tests: Sequence[Test], by: bool) -> Test:
    """Several tests as one, decided ``by`` the first that says so, else unknown if one of them is.

    By False this is AND, by True it is OR.
    """
    if len(tests) == 1:
        return tests[0]

    def holds(row: Row) -> bool | None:
        unknown = False
        for each in tests:
            truth = each(row)
            if truth is by:
                return by
            unknown |= truth is None
        return None if unknown else not by

    return holds


def negated(inner: Test) -> Test:
    """The test that holds where another does not; unknown where that is."""

    def holds(row: Row) -> bool | None:
        truth = inner(row)
        return None if truth is None else not truth

    return holds


def _compare(compare: Compare, schema: Schema) -> Test:
    place, value = schema.index(compare.column), compare.value
    match compare.operator:
        case "is":
            return lambda row: _same(row[place], value)
        case "is not":
            return lambda row: not _same(row[place], value)
        case "in":
            return _within_list(place, value)
        case "not in":
            return negated(_within_list(place, value))
        case "like" | "not like":
            return _like(compare, schema)
        case _:
            return _ordered(place, compare.operator, value)


def _same(a: Any, b: Any) -> bool:
    return a is b or (a is not None and b is not None and a == b)


def _within_list(place: int, values: tuple[Any, ...]) -> Test:
    known, unknown = {v for v in values if v is not None}, None if None in values else False
    missed = None if values else False

    def holds(row: Row) -> bool | None:
        value = row[place]
        if value is None:
            return missed
        return True if value in known else unknown

    return holds


def _like(compare: Compare, schema: Schema) -> Test:
    place, value = schema.index(compare.column), compare.value
    if value is None:
        return lambda row: None
    matches = re.compile(_pattern(compare.column, schema[place].type, value)[:-1] + r"\Z").match
    wanted = compare.operator == "like"
    return lambda row: None if row[place] is None else (matches(row[place]) is not None) is wanted


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _ordered(place: int, name: str, value: Any) -> Test:
    if value is None:
        return lambda row: None
    compared = _OPERATORS[name]

    def holds(row: Row) -> bool | None:
        own = row[place]
        if own is None:
            return None
        if own != own or value != value:  # NaN equals itself, and is greater than all others
            return compared(own != own, value != value)
        return compared(own, value)

    return holds
