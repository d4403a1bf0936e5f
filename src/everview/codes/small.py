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

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import pyarrow as pa

from everview.codes.atoms import any_value, unpack_word
from everview.codes.coerce import WIDE, Unfit
from everview.codes.dictionary import Dictionary
from everview.codes.encode import decode, encode_weighted
from everview.codes.frames import as_arrow
from everview.codes.ingest import ingest, ingest_weighted, split_weights
from everview.codes.packing import MISTAKES, all_of, packed_rows, packers
from everview.codes.rows import to_rows
from everview.codes.tables import table_rows
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

_FEW: Final = 4096  # values to encode; beyond them Arrow is faster
_FEW_WORDS: Final = 64  # values to decode


def encode_rows(schema: Schema, data: Any, dictionary: Dictionary) -> Words:
    """A delta matrix from rows in any form that `ingest` takes."""
    if type(data) is list:
        few = 0 < len(data) * len(schema.fields) <= _FEW
        delta = _packed(schema, data, [1] * len(data), dictionary) if few else None
    else:
        data, delta = _from_columns(schema, data, dictionary)
    return encode_weighted(schema, *ingest(schema, data), dictionary) if delta is None else delta


def encode_pairs(schema: Schema, data: Any, dictionary: Dictionary) -> Words:
    """A delta matrix from pairs (row, weight), or whatever else `ingest_weighted` takes."""
    if type(data) is list:
        few = 0 < len(data) * len(schema.fields) <= _FEW
        delta = _packed_pairs(schema, data, dictionary) if few else None
    else:
        data, delta = _from_columns(schema, data, dictionary)
    if delta is not None:
        return delta
    # Encoding conforms the columns itself, so a table need not be conformed first.
    parted = split_weights(schema, data) or ingest_weighted(schema, data)
    return encode_weighted(schema, *parted, dictionary)


def _from_columns(schema: Schema, data: Any, dictionary: Dictionary) -> tuple[Any, Words | None]:
    """The data, a frame as an Arrow table; and the delta matrix of a table, unless there is a mistake."""
    table = data if isinstance(data, (pa.Table, pa.RecordBatch)) else as_arrow(data)
    return (data, None) if table is None else (table, table_rows(schema, table, dictionary))


def decode_rows(schema: Schema, words: Words, dictionary: Dictionary) -> list[tuple[Any, ...]]:
    """The rows of a matrix of words as Python values."""
    readers = _readers(schema) if 0 < len(words) * len(schema.fields) <= _FEW_WORDS else ()
    if not readers:
        return to_rows(schema, decode(schema, words, dictionary))
    rows: list[list[int]] = words.tolist()
    return list(zip(*(reader.values(rows, dictionary) for reader in readers), strict=True))


# -- rows to words ----------------------------------------------------------------------------------------


def _packed_pairs(schema: Schema, pairs: list[Any], dictionary: Dictionary) -> Words | None:
    """The delta matrix of a few pairs; None where one has a mistake."""
    if not all_of(tuple, pairs):
        return None
    try:
        rows, weights = zip(*pairs, strict=True)
    except ValueError:  # not two of each
        return None
    return _packed(schema, rows, weights, dictionary) if all_of(int, weights) else None


def _packed(schema: Schema, rows: Sequence[Any], weights: Sequence[int], dictionary: Dictionary) -> Words | None:
    """The delta matrix of a few rows; None where one has a mistake, or the schema has nested types."""
    prepared = packers(schema)
    if not prepared:
        return None
    entries = len(dictionary)
    try:
        columns = [*zip(*rows, strict=True)] if all_of(tuple, rows) else _columns(schema, rows)
        return packed_rows(prepared, columns, weights, dictionary)
    except MISTAKES:  # the way of many rows names the value
        dictionary.keep_first(entries)
        return None


def _columns(schema: Schema, rows: Sequence[Any]) -> list[Sequence[Any]]:
    """The columns of rows of which some are dicts; raises one of `MISTAKES`."""
    names = schema.names
    if all_of(dict, rows) and {*map(len, rows)} == {len(names)}:
        return [[row[name] for row in rows] for name in names]
    return [*zip(*(_row(names, row) for row in rows), strict=True)]


def _row(names: tuple[str, ...], row: Any) -> tuple[Any, ...]:
    """A row as a tuple; a dict may lack names, and has no others."""
    if type(row) is tuple:
        return row
    if type(row) is dict and all(map(names.__contains__, row)):
        return tuple(map(row.get, names))
    raise Unfit("neither a tuple nor a dict of these columns", "")


# -- words to values --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """The way back of one column: from its words to Python values."""

    place: slice
    kind: int  # of interned bytes; 0 where words are numbers, -1 for ANY
    value: Callable[..., Any]
    null: list[int]

    def values(self, rows: list[list[int]], dictionary: Dictionary) -> list[Any]:
        """The values of the column."""
        cells = [row[self.place] for row in rows]
        if self.kind:
            _look_up(self.kind, cells, dictionary)
        return [None if cell == self.null else self.value(*cell) for cell in cells]


@cache
def _readers(schema: Schema) -> tuple[ColumnReader, ...]:
    """How each column is read; nothing if there are none, or nested types."""
    if any(isinstance(f.type, (Array, Struct)) for f in schema.fields):
        return ()
    return tuple(_reader(f, place) for f, place in zip(schema.fields, schema.slices, strict=True))


def _reader(field: Field, place: slice) -> ColumnReader:
    type_ = field.type
    value = _flagged if type_ == BIGINT and field.nullable else _value_of(type_)
    kind = type_.kind if type_.interned else -1 if type_ == ANY else 0
    return ColumnReader(place, kind, value, list(type_.null_words()))


def _value_of(type_: Type) -> Callable[..., Any]:
    match type_:
        case Decimal():
            return _decimal_value(type_)
        case Atom():
            return type_.host.from_bytes
        case ScalarType(name):
            return _VALUES[name]
        case _:
            raise AssertionError(type_)


def _same(value: Any) -> Any:
    return value


def _flagged(_: int, value: int) -> int:
    return value


def _decimal_value(type_: Decimal) -> Callable[..., decimal.Decimal]:
    def one(code: int) -> decimal.Decimal:
        return decimal.Decimal(code).scaleb(-type_.scale, WIDE)

    def two(high: int, low: int) -> decimal.Decimal:
        return one((high << 64) + low - NULL_WORD)

    return one if type_.words() == 1 else two


_VALUES: Final[dict[str, Callable[..., Any]]] = {
    "BOOLEAN": bool,
    "TINYINT": _same,
    "SMALLINT": _same,
    "INTEGER": _same,
    "BIGINT": _same,
    "FLOAT": partial(unpack_word, KINDS["FLOAT"]),
    "DOUBLE": partial(unpack_word, KINDS["FLOAT"]),
    "DATE": partial(unpack_word, KINDS["DATE"]),
    "TIMESTAMP": partial(unpack_word, KINDS["TIMESTAMP"]),
    "STRING": bytes.decode,
    "BINARY": _same,
    "SYMBOL": partial(any_value, KINDS["SYMBOL"]),
    "ID": Id,
    "ANY": any_value,
}


def _look_up(kind: int, cells: list[list[Any]], dictionary: Dictionary) -> None:
    """Put bytes where codes are."""
    places: dict[int, list[list[Any]]] = {}
    for cell in cells:
        if cell[0] != NULL_WORD and (kind > 0 or cell[0] >= FIRST_INTERNED):
            places.setdefault(kind if kind > 0 else cell[0], []).append(cell)
    for interned_kind, those in places.items():
        for cell, value in zip(those, dictionary.lookup_values(interned_kind, [c[-1] for c in those]), strict=True):
            cell[-1] = value
