"""The columns of a SQLite table as ours: declared types, and values that SQLite keeps in one way only.

SQLite lets every column hold every value. What is read is checked, and an error names what does not fit. Booleans are
kept as 0 and 1, dates and timestamps as text (``2026-01-31``, ``2026-01-31 12:00:00``, with six more digits if it has
a fraction, in UTC), decimals as numbers; in these forms SQLite compares them as we do.

>>> declared("VARCHAR(20)"), declared("DECIMAL(8,2)"), declared("UNSIGNED BIG INT")
(STRING, Decimal(precision=8, scale=2), BIGINT)
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable
from typing import Any, Final

from everview.codes.coerce import Unfit
from everview.errors import BadRows, SourceError
from everview.sources.protocol import Row
from everview.sources.values import value_of
from everview.types import Decimal, Field, ScalarType, Schema, Type
from everview.types.kinds import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP

SqliteColumn = tuple[str, str, bool, int]  # name, declared type, NOT NULL, place in the primary key or 0
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN")


def declared(text: str) -> Type | None:
    """The type that a declaration in SQLite means; None if it means none."""
    text = text.upper()
    digits = re.search(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text)
    if digits:
        return Decimal(int(digits[1]), int(digits[2] or 0))
    for word, type_ in _WORDS:
        if word in text:
            return type_
    return None


# In this order: SQLite's own rules of affinity look for words in the declared type, too.
_WORDS: Final[tuple[tuple[str, Type], ...]] = (
    ("BOOL", BOOLEAN),
    ("DATETIME", TIMESTAMP),
    ("TIMESTAMP", TIMESTAMP),
    ("DATE", DATE),
    ("INT", BIGINT),
    ("CHAR", STRING),
    ("CLOB", STRING),
    ("TEXT", STRING),
    ("STRING", STRING),
    ("BLOB", BINARY),
    ("REAL", DOUBLE),
    ("FLOA", DOUBLE),
    ("DOUB", DOUBLE),
    ("DECIMAL", DOUBLE),
    ("NUMERIC", DOUBLE),
)


def schema_of(columns: list[SqliteColumn], name: str) -> Schema:
    """The schema by the table's own declarations."""
    fields: list[Field] = []
    for column, text, required, key in columns:
        type_ = declared(text)
        if type_ is None:
            raise SourceError(
                f'{name}: column "{column}" is declared {text or "without a type"}, which says nothing of its values',
                hint='give the columns: schema="id BIGINT, ..."',
            )
        fields.append(Field(column, type_, not required and not key))
    return Schema(fields)


def check_columns(schema: Schema, columns: list[SqliteColumn], name: str) -> None:
    """Refuse what SQLite does not keep exactly, or does not compare as we do."""
    known = {column: text for column, text, _, _ in columns}
    for field in schema:
        type_, affinity = field.type, _affinity(known[field.name])
        if not isinstance(type_, Decimal) and (type_ not in _READERS or type_ == ScalarType("ANY")):
            raise SourceError(f'{name}: column "{field.name}" cannot be {type_}', hint="SQLite has no such values")
        if isinstance(type_, Decimal) and type_.precision > (18 if type_.scale == 0 else 15):
            raise SourceError(
                f'{name}: column "{field.name}": SQLite does not keep {type_} exactly',
                hint="it keeps 15 digits, or 18 without a fraction; declare fewer, or STRING",
            )
        if affinity == "TEXT" and (
            isinstance(type_, Decimal) or (isinstance(type_, ScalarType) and type_.name in _NUMBERS)
        ):
            raise SourceError(
                f'{name}: column "{field.name}" keeps numbers as text, and so compares them as text',
                hint=f"declare it as a number in SQLite, or as STRING here, not as {type_}",
            )


def _affinity(text: str) -> str:
    text = text.upper()
    if "INT" in text:
        return "INTEGER"
    return "TEXT" if any(word in text for word in ("CHAR", "CLOB", "TEXT")) else "OTHER"


# -- values


def _boolean(value: Any) -> bool:
    if type(value) is int and 0 <= value <= 1:
        return bool(value)
    raise Unfit(f"{value!r} is no BOOLEAN", "SQLite keeps booleans as 0 and 1")


def _date(value: Any) -> dt.date:
    try:
        date = dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        date = None
    if date is None or date.isoformat() != value:
        raise Unfit(f"{value!r} is no DATE", 'keep dates as text, as in "2026-01-31"; or declare the column STRING')
    return date


def _timestamp(value: Any) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.isoformat(" ") != value or moment.tzinfo is not None:
        hint = 'keep them as text in UTC, as in "2026-01-31 12:00:00" or "2026-01-31 12:00:00.250000"'
        raise Unfit(f"{value!r} is no TIMESTAMP", f"{hint}; or declare the column STRING")
    return moment.replace(tzinfo=dt.UTC)


def _number(type_: Type) -> Callable[[Any], Any]:
    read = value_of(type_)

    def number(value: Any) -> Any:
        if type(value) is int or type(value) is float:
            return read(value)
        raise Unfit(f"{value!r} is no {type_}", "SQLite lets any column hold any value: repair the row")

    return number


def _typed(type_: Type, python: type) -> Callable[[Any], Any]:
    def typed(value: Any) -> Any:
        if isinstance(value, python):
            return value
        raise Unfit(f"{value!r} is no {type_}", "SQLite lets any column hold any value: repair the row")

    return typed


_READERS: Final[dict[Type, Callable[[Any], Any]]] = {
    BOOLEAN: _boolean,
    DATE: _date,
    TIMESTAMP: _timestamp,
    STRING: _typed(STRING, str),
    BINARY: _typed(BINARY, bytes),
    **{of: _number(of) for of in map(ScalarType, ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"))},
}


def reader(schema: Schema, name: str) -> Callable[[tuple[Any, ...]], Row]:
    """The function that makes rows of SQLite canonical."""
    readers = [_READERS.get(field.type) or _number(field.type) for field in schema]
    pairs = list(zip(schema, readers, strict=True))

    def read(row: tuple[Any, ...]) -> Row:
        try:
            return tuple([None if v is None and f.nullable else r(v) for (f, r), v in zip(pairs, row, strict=True)])
        except Unfit:
            raise _unfit(row) from None

    def _unfit(row: tuple[Any, ...]) -> BadRows:
        for (field, each), value in zip(pairs, row, strict=True):
            if value is None and not field.nullable:
                hint = "SQLite allows NULL even in a primary key: declare it NOT NULL, or give no key"
                return BadRows(f'{name}: column "{field.name}" has NULL in a row', hint=hint)
            try:
                _ = value is None or each(value)
            except Unfit as error:
                return BadRows(f'{name}: column "{field.name}": {error.message}', hint=error.hint)
        raise AssertionError(row)

    return read


def bound(type_: Type, value: Any) -> Any:
    """A canonical value as SQLite keeps it."""
    match value:
        case None | str() | bytes() | float():
            return value
        case bool():
            return int(value)
        case int():
            return value
        case decimal.Decimal():
            whole = value == value.to_integral_value() and abs(value) < 1 << 63
            return int(value) if whole else float(value)
        case dt.datetime():
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ")
        case dt.date():
            return value.isoformat()
        case _:
            raise AssertionError((type_, value))
