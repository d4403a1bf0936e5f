"""Words to columns of Python values without Arrow, prepared for each schema: the inverse of `packing`.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, amount DECIMAL(12,2)")
>>> [unpack([[1, 2], [950, NULL_WORD]], Dictionary()) for unpack in unpackers(schema)]
[[1, 2], [Decimal('9.50'), None]]
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

from everview.codes.atoms import any_value, time_of_day
from everview.codes.coerce import INTEGER_BITS, WIDE
from everview.codes.dictionary import Dictionary
from everview.types import (
    COMPOSITE,
    FIRST_INTERNED,
    NULL_WORD,
    Atom,
    Decimal,
    Field,
    Id,
    ScalarType,
    Schema,
    Symbol,
    Variant,
)

CodeColumn = Sequence[int]  # one word of every row
Unpack = Callable[[Sequence[CodeColumn], Dictionary], Sequence[Any]]  # from all words of some rows to one column

_DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MIDNIGHT: Final = dt.datetime(1970, 1, 1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_LOW_BITS: Final = 2**63 - 1


@cache
def unpackers(schema: Schema) -> tuple[Unpack, ...]:
    """How each column of a schema is read from words; nothing if it has nested types, or no columns."""
    if any(isinstance(f.type, COMPOSITE) for f in schema.fields):
        return ()
    return tuple(_unpacker(f, place.start) for f, place in zip(schema.fields, schema.slices, strict=True))


def _unpacker(field: Field, word: int) -> Unpack:
    type_ = field.type
    match type_:
        case Decimal():
            return partial(_decimals if type_.words() == 1 else _wide_decimals, word, -type_.scale)
        case Atom():
            return partial(_made_of_bytes, word, type_.kind, type_.host.from_bytes)
        case ScalarType("BIGINT") if field.nullable:
            return partial(_flagged, word)
        case ScalarType("STRING"):
            return partial(_texts, word, type_.kind)
        case ScalarType("SYMBOL"):
            return partial(_symbols, word, type_.kind)
        case ScalarType("VARIANT"):
            return partial(_made_of_bytes, word, type_.kind, Variant)
        case ScalarType("BINARY" | "ID" as name):
            return partial(_made_of_bytes, word, type_.kind, None if name == "BINARY" else Id)
        case ScalarType(name) if name in INTEGER_BITS:
            return partial(_integers if field.nullable else _words, word)
        case ScalarType(name):
            return partial(_COLUMNS[name], word)
        case _:
            raise AssertionError(type_)


def _words(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return rows[word]


def _integers(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if code == NULL_WORD else code for code in rows[word]]


def _flagged(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [value if flag else None for flag, value in zip(rows[word], rows[word + 1], strict=True)]


def _truths(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if code == NULL_WORD else code != 0 for code in rows[word]]


def _floats(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    codes = rows[word]
    bits = [code if code >= 0 else code ^ _LOW_BITS for code in codes]
    floats = struct.unpack(f"{len(bits)}d", struct.pack(f"{len(bits)}q", *bits))
    if NULL_WORD not in codes:
        return floats
    return [None if code == NULL_WORD else value for code, value in zip(codes, floats, strict=True)]


def _days(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if code == NULL_WORD else dt.date.fromordinal(code + _DAY_ZERO) for code in rows[word]]


def _moments(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if code == NULL_WORD else _EPOCH + code * _MICROSECOND for code in rows[word]]


def _local_moments(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if code == NULL_WORD else _MIDNIGHT + code * _MICROSECOND for code in rows[word]]


def _times(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if code == NULL_WORD else time_of_day(code) for code in rows[word]]


def _spans(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if code == NULL_WORD else code * _MICROSECOND for code in rows[word]]


def _decimals(word: int, scale: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    number, scaled = decimal.Decimal, WIDE.scaleb
    return [None if code == NULL_WORD else scaled(number(code), scale) for code in rows[word]]


def _wide_decimals(word: int, scale: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [
        None if high == low == NULL_WORD else decimal.Decimal((high << 64) + low - NULL_WORD).scaleb(scale, WIDE)
        for high, low in zip(rows[word], rows[word + 1], strict=True)
    ]


def _texts(word: int, kind: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return dictionary.lookup_texts(kind, rows[word])


def _symbols(word: int, kind: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    return [None if text is None else Symbol(text) for text in dictionary.lookup_texts(kind, rows[word])]


def _made_of_bytes(
    word: int, kind: int, made: Callable[[bytes], Any] | None, rows: Sequence[CodeColumn], dictionary: Dictionary
) -> Sequence[Any]:
    """Values that are made of their interned bytes, or are these."""
    codes = rows[word]
    if NULL_WORD not in codes:
        values = dictionary.lookup_values(kind, codes)
        return values if made is None else [*map(made, values)]
    present = [code for code in codes if code != NULL_WORD]
    following = iter(_made_of_bytes(0, kind, made, [present], dictionary) if present else ())
    return [None if code == NULL_WORD else next(following) for code in codes]


def _anything(word: int, rows: Sequence[CodeColumn], dictionary: Dictionary) -> Sequence[Any]:
    """Values of any kind: each has its kind, then its word or code."""
    kinds, parts = rows[word], [*rows[word + 1]]
    places: dict[int, list[int]] = {}
    for place, kind in enumerate(kinds):
        if kind >= FIRST_INTERNED:
            places.setdefault(kind, []).append(place)
    values: list[Any] = [None] * len(kinds)
    for kind, those in places.items():
        looked_up = dictionary.lookup_values(kind, [parts[place] for place in those])
        for place, value in zip(those, looked_up, strict=True):
            values[place] = any_value(kind, value)
    for place, kind in enumerate(kinds):
        if NULL_WORD < kind < FIRST_INTERNED:
            values[place] = any_value(kind, parts[place])
    return values


_COLUMNS: Final[dict[str, Callable[[int, Sequence[CodeColumn], Dictionary], Sequence[Any]]]] = {
    "BOOLEAN": _truths,
    "FLOAT": _floats,
    "DOUBLE": _floats,
    "DATE": _days,
    "TIMESTAMP": _moments,
    "TIMESTAMP_NTZ": _local_moments,
    "TIME": _times,
    "INTERVAL DAY": _spans,
    "INTERVAL DAY TO SECOND": _spans,
    "INTERVAL YEAR TO MONTH": _integers,
    "ANY": _anything,
}
