"""Conditions bound to columns: names looked up, values as the columns' types have them, mistakes refused."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from typing import Any, Final

from everview.errors import EverviewError, QueryError, TypeMismatch, shown
from everview.frontends.fluent.conditions import And, Col, ColumnTest, Condition, NotCondition, Or
from everview.plan.typing import call, literal
from everview.scalars.coercion import is_integer, is_number, tightest
from everview.scalars.expressions import FALSE, TRUE, Expression, Literal
from everview.scalars.functions.patterns import like_regex
from everview.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATIONS,
    FLOAT,
    ID,
    STRING,
    SYMBOL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    YEAR_MONTH,
    Array,
    Id,
    MapType,
    Struct,
    Symbol,
    Type,
    Variant,
)
from everview.types import Decimal as DecimalType

Lookup = Callable[[str], Expression]
FUNCTIONS = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
PATTERNS = {"like": "like", "ilike": "ilike"}


def bound(condition: Condition, lookup: Lookup) -> Expression:
    """The expression of a condition; ``lookup`` gives the column of a name."""
    match condition:
        case And(parts):
            return _joined("and", parts, TRUE, lookup)
        case Or(parts):
            return _joined("or", parts, FALSE, lookup)
        case NotCondition(part):
            return call("not", bound(part, lookup))
        case ColumnTest(column, operator, value):
            return _compared(lookup(column), column, operator, value, lookup)
        case _:
            raise AssertionError(f"{condition} is no condition")


def _joined(function: str, parts: tuple[Condition, ...], of_none: Expression, lookup: Lookup) -> Expression:
    conditions = [bound(part, lookup) for part in parts]
    return of_none if not conditions else conditions[0] if len(conditions) == 1 else call(function, *conditions)


def _compared(column: Expression, name: str, operator: str, value: Any, lookup: Lookup) -> Expression:
    if operator.startswith("not "):
        return call("not", _compared(column, name, operator.removeprefix("not "), value, lookup))
    match operator:
        case "is" | "is not":
            return _is(column, name, operator, value)
        case "in":
            return _in(column, name, value, lookup)
        case "between":
            low, high = (_operand(column, name, operator, v, lookup) for v in value)
            return call("and", call("greater_equal", column, low), call("less_equal", column, high))
        case "like" | "ilike":
            return _liked(column, name, operator, value, lookup)
        case _:
            return call(FUNCTIONS[operator], column, _operand(column, name, operator, value, lookup))


def _is(column: Expression, name: str, operator: str, value: Any) -> Expression:
    """``is`` compares with NULL, and with truth values, without ever being unknown."""
    if value is None:
        return call("is_null" if operator == "is" else "is_not_null", column)
    if isinstance(value, bool) and column.type == BOOLEAN:
        test = call("null_safe_equal", column, literal(value))
        return test if operator == "is" else call("not", test)
    raise QueryError(
        f"{name} {operator} {shown(value)}",
        hint="it takes None, or a truth value of a BOOLEAN column; else write = or !=",
    )


def _in(column: Expression, name: str, values: tuple[Any, ...], lookup: Lookup) -> Expression:
    """A test for one of several values; with no values it is false, also for NULL."""
    if not values:
        return FALSE
    return call("in", column, *dict.fromkeys(_operand(column, name, "in", v, lookup) for v in values))


def _liked(column: Expression, name: str, operator: str, value: Any, lookup: Lookup) -> Expression:
    if column.type != STRING:
        raise TypeMismatch(
            f"{name} {operator} …: {name} is of type {column.type}", hint="patterns are of STRING columns"
        )
    if not isinstance(value, str | Col):
        raise TypeMismatch(f"{name} {operator} {shown(value)}", hint="a pattern is text, as in 'A%'")
    if isinstance(value, str):
        like_regex(value, "\\")  # refused now, not when the first row comes
    return call(PATTERNS[operator], column, _operand(column, name, operator, value, lookup))


def _operand(column: Expression, name: str, operator: str, value: Any, lookup: Lookup) -> Expression:
    if isinstance(value, Col):
        other = lookup(value.name)
        if tightest(column.type, other.type) is None:
            raise TypeMismatch(
                f"{name} {operator} {value.name} compares {column.type} and {other.type}",
                hint="compare columns of like types",
            )
        return other
    return constant(value, column.type, f"{name} {operator}")


def constant(value: Any, type_: Type, where: str) -> Literal:
    """A value as a literal to compare a column of that type with; raises `TypeMismatch` if it is none."""
    if value is None:
        return Literal(None, type_)
    try:
        bound_value = _as(value, type_)
    except (EverviewError, ValueError, OverflowError):
        raise TypeMismatch(
            f"{where} {shown(value)}, which is beyond all values to compare with", hint=f"the column is of type {type_}"
        ) from None
    if bound_value is None:
        raise TypeMismatch(
            f"{where} {shown(value)}, which is a {type(value).__name__}", hint=f"the column is of type {type_}"
        )
    return bound_value


_ONLY_TYPE: Final[dict[type, Type]] = {dt.time: TIME, Symbol: SYMBOL, Id: ID, Variant: VARIANT}


def _as(value: Any, type_: Type) -> Literal | None:
    match value:
        case bool():
            return Literal(value, BOOLEAN) if type_ == BOOLEAN else None
        case int() if type_ == YEAR_MONTH:
            return Literal(value, type_)
        case int() | float() | decimal.Decimal():
            return _number(value, type_) if is_number(type_) else None
        case str():
            return _text(value, type_)
        case bytes():
            return _bytes(value, type_)
        case dt.date():
            return _dated(value, type_)
        case dt.timedelta():
            return literal(value) if type_ in DURATIONS else None
        case dt.time() | Symbol() | Id() | Variant():
            return Literal(value, type_) if type_ == _ONLY_TYPE.get(type(value)) else None
        case dict() | list() | tuple():
            return _nested(value, type_)
        case _:
            return None


def _bytes(value: bytes, type_: Type) -> Literal | None:
    if type_ == ID:
        return Literal(Id(value), ID)
    return Literal(value, BINARY) if type_ == BINARY else None


def _dated(value: dt.date, type_: Type) -> Literal | None:
    """A timestamp or a date, beside a column of either; a date is its first moment in UTC."""
    if type_ == TIMESTAMP_NTZ:
        local = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
        return Literal(local, type_) if local.tzinfo is None else None
    if isinstance(value, dt.datetime):
        return literal(value) if type_ in (TIMESTAMP, DATE) else None
    if type_ == TIMESTAMP:
        return literal(dt.datetime(value.year, value.month, value.day))
    return literal(value) if type_ == DATE else None


def _number(value: Any, type_: Type) -> Literal | None:
    """A number to compare a column with: of the column's own type if exact in it, so that the column needs no cast."""
    if type_ == DOUBLE:
        return (
            literal(value) if isinstance(value, int) and 1 << 53 < abs(value) < 10**38 else Literal(float(value), type_)
        )
    if isinstance(type_, DecimalType) and not isinstance(value, float):
        return _decimal(decimal.Decimal(value), type_)
    if isinstance(value, int) and is_integer(type_):
        wide = literal(value)
        return Literal(value, type_) if tightest(wide.type, type_) == type_ else wide
    return Literal(value, DOUBLE) if isinstance(value, float) and type_ == FLOAT else literal(value)


def _decimal(value: decimal.Decimal, type_: DecimalType) -> Literal | None:
    try:
        fitting = value.quantize(decimal.Decimal(1).scaleb(-type_.scale), context=decimal.Context(prec=type_.precision))
    except decimal.InvalidOperation:
        return literal(value)
    return Literal(fitting, type_) if fitting == value else literal(value)


def _text(value: str, type_: Type) -> Literal | None:
    """A text as the column's type: text, a date, a timestamp, a DECIMAL, a symbol or an ID; None if it is none."""
    try:
        if type_ == DATE:
            return Literal(dt.date.fromisoformat(value), DATE)
        if type_ == TIMESTAMP:
            return literal(dt.datetime.fromisoformat(value))
        if type_ == TIMESTAMP_NTZ:
            return _dated(dt.datetime.fromisoformat(value), type_)
        if type_ == TIME:
            return Literal(dt.time.fromisoformat(value), TIME)
        if isinstance(type_, DecimalType):
            return _decimal(decimal.Decimal(value), type_)
    except (ValueError, decimal.InvalidOperation):
        return None
    if type_ == SYMBOL:
        return Literal(Symbol(value), SYMBOL)
    if type_ == ID:
        return Literal(Id(value), ID)
    return Literal(value, STRING) if type_ == STRING else None


def _nested(value: Any, type_: Type) -> Literal | None:
    """A list of elements, or the fields of a record by name or in order, each as its type has it."""
    match type_:
        case Array(element) if not isinstance(value, dict):
            return _all(value, [element] * len(value), type_)
        case Struct(fields) if isinstance(value, dict):
            named = [value[f.name] for f in fields if f.name in value]
            return _all(named, [f.type for f in fields], type_) if len(named) == len(value) else None
        case MapType(key, item) if isinstance(value, dict):
            pairs = [(_exactly(k, key), _exactly(v, item)) for k, v in value.items()]
            good = all(k is not None and v is not None for k, v in pairs)
            return Literal(tuple((k.value, v.value) for k, v in pairs if k and v), type_) if good else None
        case Struct(fields):
            return _all(value, [f.type for f in fields], type_)
        case _:
            return None


def _all(values: Any, types: Sequence[Type], type_: Type) -> Literal | None:
    if len(values) != len(types):
        return None
    literals = [_exactly(value, each) for value, each in zip(values, types, strict=True)]
    return None if any(one is None for one in literals) else Literal(tuple(one.value for one in literals if one), type_)


def _exactly(value: Any, type_: Type) -> Literal | None:
    """A value as a literal of exactly that type; None if there is none."""
    bound_value = Literal(None, type_) if value is None else _as(value, type_)
    if bound_value is not None and type_ == FLOAT:
        return Literal(float(bound_value.value), FLOAT) if bound_value.value is not None else bound_value
    return bound_value if bound_value is not None and bound_value.type == type_ else None
