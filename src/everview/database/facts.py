"""Rows of texts, as in files of facts: each text is read as a value of its column's type.

>>> from everview.types import Schema
>>> as_values(Schema.parse("id BIGINT, owner STRING, rate DOUBLE"), [("1", "Ada", "0.5"), (2, "Bob", 1.5)])
[(1, 'Ada', 0.5), (2, 'Bob', 1.5)]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from everview.errors import EverviewError, WrongType
from everview.types import ScalarType, Schema, Type

T = TypeVar("T")

_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_TRUTH: Final = {"true": True, "false": False, "1": True, "0": False}


def _whole(text: str) -> Any:
    return int(text) if _WHOLE.fullmatch(text) else text


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _truth(text: str) -> Any:
    return _TRUTH.get(text.strip().lower(), text)


_READ: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), _whole),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _number),
    "BOOLEAN": _truth,
}


def read_value(type_: Type, value: Any) -> Any:
    """A text as a value of a type; other values and unreadable texts stay, to be refused where they are encoded."""
    read = _READ.get(type_.name) if isinstance(type_, ScalarType) and isinstance(value, str) else None
    return value if read is None else read(value)


def as_values(schema: Schema, rows: Iterable[Any]) -> list[Any]:
    """Rows, given by position or by name, with texts as values."""
    return [_row(schema, row) for row in rows]


def as_pairs(schema: Schema, rows: Iterable[Any]) -> list[Any]:
    """Rows with weights, with texts as values."""
    return [(_row(schema, row), weight) for row, weight in rows]


def _row(schema: Schema, row: Any) -> Any:
    if isinstance(row, Mapping):
        return {name: read_value(schema[name].type, v) if name in schema else v for name, v in row.items()}
    if isinstance(row, tuple | list) and len(row) == len(schema):
        return tuple(read_value(field.type, v) for field, v in zip(schema.fields, row, strict=True))
    if len(schema) == 1:
        return read_value(schema.fields[0].type, row)
    return row


def encoded(encode: Callable[[Any], T], read: Callable[[Iterable[Any]], Any], rows: Any) -> T:
    """Encode rows as they are, if they fit; else with their texts read as values."""
    if not isinstance(rows, Iterable) or hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "columns"):
        return encode(rows)
    rows = rows if isinstance(rows, list) else list(rows)
    try:
        return encode(rows)
    except WrongType as error:
        return _again(encode, read, rows, error)


def _again(encode: Callable[[Any], T], read: Callable[[Iterable[Any]], Any], rows: Any, error: EverviewError) -> T:
    try:
        values = read(rows)
    except (TypeError, ValueError):
        raise error from None
    return encode(values)
