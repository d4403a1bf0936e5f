"""Conditions bound to columns: names looked up, values as the columns' types have them, mistakes refused."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from typing import Any

from everview.errors import EverviewError, QueryError, TypeMismatch, shown
from everview.frontends.fluent.conditions import And, Col, Compare, Condition, Not, Or
from everview.plan.typing import call, literal
from everview.scalars.coercion import is_integer, is_number, tightest
from everview.scalars.expressions import FALSE, TRUE, Expression, Literal
from everview.scalars.functions.patterns import like_regex
from everview.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    ID,
    STRING,
    SYMBOL,
    TIMESTAMP,
    Array,
    Id,
    Struct,
    Symbol,
    Type,
)
from everview.types import Decimal as DecimalType

Lookup = Callable[[str], Expression]
FUNCTIONS = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
PATTERNS = {"like": "like", "ilike": "ilike"}


def bound(condition: Condition, of: Lookup) -> Expression:
    """The expression of a condition; ``of`` finds the column of a name."""
    match condition:
        case And(parts):
            return _joined("and", parts, TRUE, of)
        case Or(parts):
            return _joined("or", parts, FALSE, of)
        case Not(part):
            return call("not", bound(part, of))
        case Compare(column, operator, value):
            return _compared(of(column), column, operator, value, of)
        case _:
            raise AssertionError(f"{condition} is no condition")


def _joined(function: str, parts: tuple[Condition, ...], of_none: Expression, of: Lookup) -> Expression:
    found = [bound(part, of) for part in parts]
    return of_none if not found else found[0] if len(found) == 1 else call(function, *found)


def _compared(column: Expression, name: str, operator: str, value: Any, of: Lookup) -> Expression:
    if operator.startswith("not "):
        return call("not", _compared(column, name, operator.removeprefix("not "), value, of))
    match operator:
        case "is" | "is not":
            return _is(column, name, operator, value)
        case "in":
            return _in(column, name, value, of)
        case "between":
            low, high = (_operand(column, name, operator, v, of) for v in value)
            return call("and", call("greater_equal", column, low), call("less_equal", column, high))
        case "like" | "ilike":
            return _liked(column, name, operator, value, of)
        case _:
            return call(FUNCTIONS[operator], column, _operand(column, name, operator, value, of))


def _is(column: Expression, name: str, operator: str, value: Any) -> Expression:
    """``is`` compares with NULL, and with truth values, without ever being unknown."""
    if value is None:
        return call("is_null" if operator == "is" else "is_not_null", column)
    if isinstance(value, bool) and column.type == BOOLEAN:
        found = call("null_safe_equal", column, literal(value))
        return found if operator == "is" else call("not", found)
    raise QueryError(
        f"{name} {operator} {shown(value)}",
        hint="it takes None, or a truth value of a BOOLEAN column; else write = or !=",
    )


def _in(column: Expression, name: str, values: tuple[Any, ...], of: Lookup) -> Expression:
    """Of no values it is false, also for NULL."""
    if not values:
        return FALSE
    return call("in", column, *dict.fromkeys(_operand(column, name, "in", v, of) for v in values))


def _liked(column: Expression, name: str, operator: str, value: Any, of: Lookup) -> Expression:
    if column.type != STRING:
        raise TypeMismatch(
            f"{name} {operator} …: {name} is of type {column.type}", hint="patterns are of STRING columns"
        )
    if not isinstance(value, str | Col):
        raise TypeMismatch(f"{name} {operator} {shown(value)}", hint="a pattern is text, as in 'A%'")
    if isinstance(value, str):
        like_regex(value, "\\")  # refused now, not when the first row comes
    return call(PATTERNS[operator], column, _operand(column, name, operator, value, of))


def _operand(column: Expression, name: str, operator: str, value: Any, of: Lookup) -> Expression:
    if isinstance(value, Col):
        other = of(value.name)
        if tightest(column.type, other.type) is None:
            raise TypeMismatch(
                f"{name} {operator} {value.name} compares {column.type} and {other.type}",
                hint="compare columns of like types",
            )
        return other
    return constant(value, column.type, f"{name} {operator}")


def constant(value: Any, of: Type, where: str) -> Literal:
    """A value as a literal to compare a column of that type with; raises `TypeMismatch` if it is none."""
    if value is None:
        return Literal(None, of)
    try:
        found = _as(value, of)
    except (EverviewError, ValueError, OverflowError):
        raise TypeMismatch(
            f"{where} {shown(value)}, which is beyond all values to compare with", hint=f"the column is of type {of}"
        ) from None
    if found is None:
        raise TypeMismatch(
            f"{where} {shown(value)}, which is a {type(value).__name__}", hint=f"the column is of type {of}"
        )
    return found


def _as(value: Any, of: Type) -> Literal | None:
    match value:
        case bool():
            return Literal(value, BOOLEAN) if of == BOOLEAN else None
        case int() | float() | decimal.Decimal():
            return _number(value, of) if is_number(of) else None
        case str():
            return _text(value, of)
        case bytes():
            return Literal(value, BINARY) if of == BINARY else Literal(Id(value), ID) if of == ID else None
        case dt.datetime():
            return literal(value) if of in (TIMESTAMP, DATE) else None
        case dt.date():
            return literal(value) if of == DATE else _moment(value) if of == TIMESTAMP else None
        case Symbol():
            return Literal(value, SYMBOL) if of == SYMBOL else None
        case Id():
            return Literal(value, ID) if of == ID else None
        case dict() | list() | tuple():
            return _nested(value, of)
        case _:
            return None


def _moment(value: dt.date) -> Literal:
    """Its first moment, in UTC."""
    return literal(dt.datetime(value.year, value.month, value.day))


def _number(value: Any, of: Type) -> Literal | None:
    """A number of the column's own type where that holds it exactly, so that the column is compared as it is."""
    if of == DOUBLE:
        return literal(value) if isinstance(value, int) and 1 << 53 < abs(value) < 10**38 else Literal(float(value), of)
    if isinstance(of, DecimalType) and not isinstance(value, float):
        return _decimal(decimal.Decimal(value), of)
    if isinstance(value, int) and is_integer(of):
        wide = literal(value)
        return Literal(value, of) if tightest(wide.type, of) == of else wide
    return Literal(value, DOUBLE) if isinstance(value, float) and of == FLOAT else literal(value)


def _decimal(value: decimal.Decimal, of: DecimalType) -> Literal | None:
    try:
        fitting = value.quantize(decimal.Decimal(1).scaleb(-of.scale), context=decimal.Context(prec=of.precision))
    except decimal.InvalidOperation:
        return literal(value)
    return Literal(fitting, of) if fitting == value else literal(value)


def _text(value: str, of: Type) -> Literal | None:
    """Text, or what text says of a date, a moment or a decimal number."""
    try:
        if of == DATE:
            return Literal(dt.date.fromisoformat(value), DATE)
        if of == TIMESTAMP:
            return literal(dt.datetime.fromisoformat(value))
        if isinstance(of, DecimalType):
            return _decimal(decimal.Decimal(value), of)
    except (ValueError, decimal.InvalidOperation):
        return None
    if of == SYMBOL:
        return Literal(Symbol(value), SYMBOL)
    if of == ID:
        return Literal(Id(value), ID)
    return Literal(value, STRING) if of == STRING else None


def _nested(value: Any, of: Type) -> Literal | None:
    """A list of elements, or the fields of a record by name or in order, each as its type has it."""
    match of:
        case Array(element) if not isinstance(value, dict):
            return _all(value, [element] * len(value), of)
        case Struct(fields) if isinstance(value, dict):
            named = [value[f.name] for f in fields if f.name in value]
            return _all(named, [f.type for f in fields], of) if len(named) == len(value) else None
        case Struct(fields):
            return _all(value, [f.type for f in fields], of)
        case _:
            return None


def _all(values: Any, types: Sequence[Type], of: Type) -> Literal | None:
    if len(values) != len(types):
        return None
    found = [_exactly(value, each) for value, each in zip(values, types, strict=True)]
    return None if any(one is None for one in found) else Literal(tuple(one.value for one in found if one), of)


def _exactly(value: Any, of: Type) -> Literal | None:
    """A value as one of that very type."""
    found = Literal(None, of) if value is None else _as(value, of)
    if found is not None and of == FLOAT:
        return Literal(float(found.value), FLOAT) if found.value is not None else found
    return found if found is not None and found.type == of else None
