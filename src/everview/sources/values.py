"""Rows as sources give them: one Python value for each value, so that equal rows are equal tuples.

>>> from everview.types import Schema
>>> row_of = rows_of(Schema.parse("id BIGINT NOT NULL, at TIMESTAMP, price DECIMAL(8,2)"), "orders")
>>> row_of((1, "2026-01-31", "9.5"))
(1, datetime.datetime(2026, 1, 31, 0, 0, tzinfo=datetime.timezone.utc), Decimal('9.50'))
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from everview.codes.coerce import WIDE, Unfit, coerce
from everview.errors import BadRows, SourceError, WrongArity, shown
from everview.sources.protocol import Row
from everview.types import Array, Decimal, Field, Id, ScalarType, Schema, Struct, Symbol, Type, has_map, unknown_name

NAN: Final = math.nan  # the one NaN: a tuple with it equals itself
_RANGES: Final = {"TINYINT": 1 << 7, "SMALLINT": 1 << 15, "INTEGER": 1 << 31, "BIGINT": 1 << 63}


def canonical(type_: Type, value: Any) -> Any:
    """The canonical form of a value that is not NULL; raises `Unfit`."""
    if value is None:
        raise Unfit(f"NULL is no {type_}", "give a value")
    match type_:
        case ScalarType("DOUBLE" | "FLOAT"):
            number = coerce(type_, value)
            return number + 0.0 if number == number else NAN  # -0.0 + 0.0 is 0.0
        case ScalarType("TIMESTAMP"):
            return coerce(type_, value).astimezone(dt.UTC)
        case ScalarType("SYMBOL"):
            return Symbol(coerce(type_, value))
        case ScalarType("ID"):
            return Id(coerce(type_, value))
        case ScalarType("ANY"):
            return value
        case Array(element):
            return tuple(None if part is None else canonical(element, part) for part in coerce(type_, value))
        case _:
            return coerce(type_, value)


def value_of(type_: Type) -> Callable[[Any], Any]:
    """The function that makes values of a type canonical; fast for values that are."""
    match type_:
        case ScalarType(name) if name in _RANGES:
            limit = _RANGES[name]
            return lambda v: v if type(v) is int and -limit <= v < limit else canonical(type_, v)
        case ScalarType("BOOLEAN"):
            return lambda v: v if type(v) is bool else canonical(type_, v)
        case ScalarType("DOUBLE"):
            return lambda v: v + 0.0 if type(v) is float and v == v else canonical(type_, v)
        case ScalarType("BINARY"):
            return lambda v: v if type(v) is bytes else canonical(type_, v)
        case ScalarType("STRING"):
            return lambda v: v if type(v) is str and v.isascii() else canonical(type_, v)
        case Decimal():
            return _decimal(type_)
        case _:
            return lambda v: canonical(type_, v)


def _decimal(type_: Decimal) -> Callable[[Any], Any]:
    unit, limit = decimal.Decimal(1).scaleb(-type_.scale), decimal.Decimal(10) ** (type_.precision - type_.scale)

    def read(value: Any) -> Any:
        if type(value) is decimal.Decimal or type(value) is int:
            number = decimal.Decimal(value)
        elif type(value) is float:
            number = decimal.Decimal(repr(value))
        else:
            return canonical(type_, value)
        if not number.is_finite() or not -limit < number < limit:
            return canonical(type_, value)
        scaled = number.quantize(unit, context=WIDE)
        return scaled if scaled == number else canonical(type_, value)

    return read


def keyed(schema: Schema, key: str | Sequence[str]) -> tuple[Schema, tuple[str, ...], bool]:
    """The schema with NOT NULL key columns, the key (without one, all columns), and whether there is one."""
    columns = (key,) if isinstance(key, str) else tuple(key)
    places = {schema.index(column) for column in columns}
    fields = (Field(f.name, f.type, f.nullable and place not in places) for place, f in enumerate(schema))
    return Schema(fields), columns or schema.names, bool(columns)


def rows_of(schema: Schema, name: str) -> Callable[[Any], Row]:
    """The function that makes rows, tuples or dicts, canonical; errors begin with the name of the source."""
    check_types(schema, name)
    columns = [(field, value_of(field.type)) for field in schema]
    quick = [(field.nullable, read) for field, read in columns]

    def row_of(given: Any) -> Row:
        if type(given) is tuple and len(given) == len(quick):
            try:
                return tuple([None if v is None and null else read(v) for (null, read), v in zip(quick, given)])  # noqa: B905, checked
            except Unfit:
                pass  # told below
        if isinstance(given, Mapping):
            given = _in_order(schema, name, given)
        if isinstance(given, str | bytes) or not hasattr(given, "__len__") or getattr(given, "shape", None) == ():
            hint = f"a row is a tuple or a dict of {', '.join(schema.names)}"
            raise WrongArity(f"{name}: {shown(given)} is no row", hint=hint)
        if len(given) != len(columns):
            hint = f"the columns are {', '.join(schema.names)}"
            raise WrongArity(f"{name}: a row of {len(given)} values, not {len(columns)}: {shown(given)}", hint=hint)
        return tuple(_checked(field, read, value, name) for (field, read), value in zip(columns, given, strict=True))

    return row_of


def check_types(schema: Schema, name: str) -> None:
    """Refuse columns whose values cannot be compared one by one."""
    for field in schema:
        if isinstance(field.type, Struct) or has_map(field.type):
            raise SourceError(
                f'{name}: column "{field.name}" is a {field.type}, which no source has',
                hint="give its parts as columns of their own",
            )


def _checked(field: Field, read: Callable[[Any], Any], value: Any, name: str) -> Any:
    if value is None:
        if not field.nullable:
            hint = "give it a value, or declare the column without NOT NULL; a key has no NULL"
            raise BadRows(f'{name}: column "{field.name}" is NOT NULL, and a row has NULL there', hint=hint)
        return None
    try:
        return read(value)
    except Unfit as error:
        raise BadRows(f'{name}: column "{field.name}": {error.message}', hint=error.hint) from None


def _in_order(schema: Schema, name: str, given: Mapping[str, Any]) -> Sequence[Any]:
    for column in given:
        if column not in schema:
            error = unknown_name("column", str(column), schema.names)
            raise type(error)(f"{name}: {error.message}", hint=error.hint)
    return [given.get(column) for column in schema.names]
