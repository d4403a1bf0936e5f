"""Rows to words and back without Arrow, for the few rows of a small tick, where Arrow's calls would dominate.

The meaning is that of `ingest` and `encode`, `decode` and `to_rows`, which also take over whatever this does
not know: large inputs, tables and frames, nested types, and rows with a mistake, so that errors have one
wording.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, owner STRING, amount DECIMAL(12,2)")
>>> d = Dictionary()
>>> delta = encode_rows(schema, [(1, "Ada", "9.50"), (2, None, None)], d)
>>> decode_rows(schema, delta[:, :-1], d)
[(1, 'Ada', Decimal('9.50')), (2, None, None)]
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np

from everview.codes.atoms import any_part, any_value, microseconds, pack, unpack_word
from everview.codes.coerce import WIDE, Unfit, coerce
from everview.codes.dictionary import Dictionary
from everview.codes.encode import decode, encode_weighted
from everview.codes.ingest import ingest, ingest_weighted, split_weights
from everview.codes.rows import to_rows
from everview.errors import EverviewError, shown
from everview.types import (
    ANY,
    BIGINT,
    FIRST_INTERNED,
    KINDS,
    NULL_WORD,
    Array,
    Atom,
    Decimal,
    Field,
    Id,
    ScalarType,
    Schema,
    Struct,
    Type,
)
from everview.types.words import Words

_FEW: Final = 64  # values; beyond them Arrow is faster
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_LOW: Final = 2**64 - 1
_DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()


def encode_rows(schema: Schema, data: Any, dictionary: Dictionary) -> Words:
    """A delta matrix from rows in any form that `ingest` takes."""
    if isinstance(data, list) and (parts := _parts(schema, len(data))) is not None:
        rows = [_row(schema, row) for row in data]
        delta = _encode_few(parts, rows, [1] * len(rows), dictionary)
        if delta is not None:
            return delta
    return encode_weighted(schema, *ingest(schema, data), dictionary)


def encode_pairs(schema: Schema, data: Any, dictionary: Dictionary) -> Words:
    """A delta matrix from pairs (row, weight), or whatever else `ingest_weighted` takes."""
    if isinstance(data, list) and (parts := _parts(schema, len(data))) is not None:
        pairs = [p for p in data if type(p) is tuple and len(p) == 2 and type(p[1]) is int]
        if len(pairs) == len(data):
            rows = [_row(schema, row) for row, _ in pairs]
            delta = _encode_few(parts, rows, [w for _, w in pairs], dictionary)
            if delta is not None:
                return delta
    # Encoding conforms the columns itself, so a table need not be conformed first.
    parted = split_weights(schema, data) or ingest_weighted(schema, data)
    return encode_weighted(schema, *parted, dictionary)


def decode_rows(schema: Schema, words: Words, dictionary: Dictionary) -> list[tuple[Any, ...]]:
    """The rows of a matrix of words as Python values."""
    parts = _parts(schema, len(words))
    if parts is None:
        return to_rows(schema, decode(schema, words, dictionary))
    rows: list[list[int]] = words.tolist()
    return list(zip(*(part.values(rows, dictionary) for part in parts), strict=True))


# -- how one column goes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnCoder:
    """The coder of one column: a value that is not NULL to words, or to bytes to intern; and back."""

    of: Type
    place: slice
    nullable: bool
    kind: int  # of the bytes; 0 where the value is a number, -1 for ANY
    plain: type  # the Python type that needs no `coerce`
    code: Callable[[Any], Any]
    value: Callable[..., Any]
    null: list[int]

    def words(self, value: Any) -> list[Any]:
        """The words of a value; bytes stand for the code that they will have."""
        if type(value) is not self.plain:
            value = coerce(self.of, value)
        if value is not None:
            return self.code(value)
        if not self.nullable:
            raise Unfit("NULL in a NOT NULL column", "")
        return self.null

    def values(self, rows: list[list[int]], dictionary: Dictionary) -> list[Any]:
        """The values of the column."""
        cells = [row[self.place] for row in rows]
        if self.kind:
            _look_up(self.kind, cells, dictionary)
        return [None if cell == self.null else self.value(*cell) for cell in cells]


@cache
def _plan(schema: Schema) -> tuple[ColumnCoder, ...] | None:
    if not schema.fields or any(isinstance(f.type, (Array, Struct)) for f in schema.fields):
        return None
    return tuple(_part(f, place) for f, place in zip(schema.fields, schema.slices, strict=True))


def _parts(schema: Schema, rows: int) -> tuple[ColumnCoder, ...] | None:
    return _plan(schema) if 0 < rows * len(schema.fields) <= _FEW else None


def _part(field: Field, place: slice) -> ColumnCoder:
    type_ = field.type
    plain, code, value = _FLAGGED if type_ == BIGINT and field.nullable else _coder(type_)
    kind = type_.kind if type_.interned else -1 if type_ == ANY else 0
    return ColumnCoder(type_, place, field.nullable, kind, plain, code, value, list(type_.null_words()))


Coder = tuple[type, Callable[[Any], list[Any]], Callable[..., Any]]
_COERCED: Final = type(None)  # no value has this type: all go through `coerce`


def _coder(type_: Type) -> Coder:
    match type_:
        case Decimal():
            return _COERCED, _decimal_code(type_), _decimal_value(type_)
        case Atom():
            return _COERCED, _alone, type_.host.from_bytes
        case ScalarType(name):
            return _CODERS[name]
        case _:
            raise AssertionError(type_)


def _alone(value: Any) -> list[Any]:
    return [value]


def _same(value: Any) -> Any:
    return value


def _whole(value: int) -> list[int]:
    return [_in_range(value)]


def _in_range(value: int) -> int:
    if _LEAST <= value <= _GREATEST:
        return value
    raise Unfit(f"{value} has more than 64 bits", "")


def _float_code(value: float) -> list[int]:
    return [any_part(pack(value))[1]]


def _decimal_code(type_: Decimal) -> Callable[[decimal.Decimal], list[int]]:
    def one(value: decimal.Decimal) -> list[int]:
        return [int(value.scaleb(type_.scale, WIDE))]

    def two(value: decimal.Decimal) -> list[int]:
        number = int(value.scaleb(type_.scale, WIDE))
        return [number >> 64, (number & _LOW) + NULL_WORD]

    return one if type_.words() == 1 else two


def _decimal_value(type_: Decimal) -> Callable[..., decimal.Decimal]:
    def one(code: int) -> decimal.Decimal:
        return decimal.Decimal(code).scaleb(-type_.scale, WIDE)

    def two(high: int, low: int) -> decimal.Decimal:
        return one((high << 64) + low - NULL_WORD)

    return one if type_.words() == 1 else two


_FLAGGED: Final[Coder] = (int, lambda v: [1, _in_range(v)], lambda _, v: v)
_CODERS: Final[dict[str, Coder]] = {
    "BOOLEAN": (bool, lambda v: [int(v)], bool),
    "TINYINT": (_COERCED, _alone, _same),
    "SMALLINT": (_COERCED, _alone, _same),
    "INTEGER": (_COERCED, _alone, _same),
    "BIGINT": (int, _whole, _same),
    "FLOAT": (_COERCED, _float_code, partial(unpack_word, KINDS["FLOAT"])),
    "DOUBLE": (float, _float_code, partial(unpack_word, KINDS["FLOAT"])),
    "DATE": (dt.date, lambda v: [v.toordinal() - _DAY_ZERO], partial(unpack_word, KINDS["DATE"])),
    "TIMESTAMP": (dt.datetime, lambda v: [microseconds(v)], partial(unpack_word, KINDS["TIMESTAMP"])),
    "STRING": (str, lambda v: [v.encode()], bytes.decode),
    "BINARY": (bytes, _alone, _same),
    "SYMBOL": (_COERCED, lambda v: [v.encode()], partial(any_value, KINDS["SYMBOL"])),
    "ID": (_COERCED, _alone, Id),
    "ANY": (_COERCED, lambda v: list(any_part(v)), any_value),
}


# -- all rows ---------------------------------------------------------------------------------------------


def _row(schema: Schema, row: Any) -> Any:
    """A dict as a tuple if the schema has all of its names; other rows as they are."""
    if type(row) is dict and all(name in schema.names for name in row):
        return tuple(row.get(name) for name in schema.names)
    return row


def _encode_few(
    parts: tuple[ColumnCoder, ...], rows: Sequence[Any], weights: list[int], dictionary: Dictionary
) -> Words | None:
    """The delta matrix, or None where a row has a mistake."""
    try:
        matrix = [_words(parts, row, weight) for row, weight in zip(rows, weights, strict=True)]
    except (Unfit, EverviewError, UnicodeEncodeError):
        return None
    except (TypeError, ValueError, AttributeError, struct.error):  # the way of many rows names the value
        return None
    _intern(parts, matrix, dictionary)
    return np.array(matrix, np.int64)


def _words(parts: tuple[ColumnCoder, ...], row: Any, weight: int) -> list[Any]:
    """The words of one row, with bytes where codes will be."""
    if type(row) is not tuple or len(row) != len(parts):
        raise Unfit(f"{shown(row)} is no tuple of {len(parts)}", "")
    words: list[Any] = []
    for part, value in zip(parts, row, strict=True):
        words += part.words(value)
    words.append(_in_range(weight))
    return words


def _intern(parts: tuple[ColumnCoder, ...], matrix: list[list[Any]], dictionary: Dictionary) -> None:
    """Put codes where bytes are: one call for every kind."""
    places: dict[int, list[tuple[list[Any], int]]] = {}
    for part in parts:
        if part.kind == 0:
            continue
        word = part.place.stop - 1
        for row in matrix:
            if type(row[word]) is bytes:
                places.setdefault(part.kind if part.kind > 0 else row[word - 1], []).append((row, word))
    for kind, wanted in places.items():
        codes = dictionary.intern_values(kind, [row[word] for row, word in wanted])
        for (row, word), code in zip(wanted, codes, strict=True):
            row[word] = code


def _look_up(kind: int, cells: list[list[Any]], dictionary: Dictionary) -> None:
    """Put bytes where codes are."""
    places: dict[int, list[list[Any]]] = {}
    for cell in cells:
        if cell[0] != NULL_WORD and (kind > 0 or cell[0] >= FIRST_INTERNED):
            places.setdefault(kind if kind > 0 else cell[0], []).append(cell)
    for interned_kind, those in places.items():
        for cell, value in zip(those, dictionary.lookup_values(interned_kind, [c[-1] for c in those]), strict=True):
            cell[-1] = value
