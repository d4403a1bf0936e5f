"""Rows made up for a schema, the same each time: a few, small, and such that rows of different relations meet.

Each type has two values. The first row has the first value in all columns, the second row the second, the third NULL
wherever that may be; so columns of one type that are joined are equal in some rows, and different in others.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

from everview.types import VARIANT, Array, Decimal, Field, MapType, Schema, Struct, Type, Variant

VALUES: dict[str, tuple[Any, Any]] = {
    "BOOLEAN": (True, False),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "ANY"), (1, 2)),
    **dict.fromkeys(("FLOAT", "DOUBLE"), (1.0, 2.0)),
    "DATE": (dt.date(2024, 2, 28), dt.date(2024, 2, 29)),
    "TIMESTAMP": (dt.datetime(2024, 2, 28, tzinfo=dt.UTC), dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    "TIMESTAMP_NTZ": (dt.datetime(2024, 2, 28), dt.datetime(2024, 2, 29)),
    "TIME": (dt.time(1), dt.time(2)),
    "INTERVAL YEAR TO MONTH": (1, 2),
    **dict.fromkeys(("INTERVAL DAY", "INTERVAL DAY TO SECOND"), (dt.timedelta(1), dt.timedelta(2))),
    "STRING": ("1", "2"),
    "BINARY": (b"1", b"2"),
}

Row = tuple[Any, ...]


class NothingDrawn(Exception):
    """A type whose values only its users know."""


def drawn_rows(schema: Schema) -> list[tuple[Row, int]]:
    """Three rows of a schema with weights; none if a column is of a type whose values are not known.

    >>> drawn_rows(Schema.parse("id BIGINT NOT NULL, name STRING"))
    [((1, '1'), 1), ((2, '2'), 1), ((1, None), 1)]
    """
    try:
        return [(tuple(_value(f, number) for f in schema.fields), 1) for number in range(3)]
    except NothingDrawn:
        return []


def _value(field: Field, number: int) -> Any:
    if number == 2:
        return None if field.nullable else _value(field, 0)
    try:
        return _of_type(field.type, number)
    except NothingDrawn:
        if not field.nullable:
            raise
        return None


def _of_type(type_: Type, number: int) -> Any:
    if isinstance(type_, Decimal):
        digits = min(number + 1, 10**type_.precision - 1)
        return decimal.Decimal(digits).scaleb(-type_.scale if type_.scale == type_.precision else 0)
    if isinstance(type_, Array):
        return [_of_type(type_.element, n) for n in range(number + 1)]
    if isinstance(type_, Struct):
        return {f.name: _value(f, number) for f in type_.fields}
    if isinstance(type_, MapType):
        return {_of_type(type_.key, n): _of_type(type_.value, n) for n in range(number + 1)}
    if type_ == VARIANT:
        return Variant.of({"a": number})
    if type_.sql not in VALUES:
        raise NothingDrawn(type_.sql)
    return VALUES[type_.sql][number]
