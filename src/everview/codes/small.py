"""Rows to words and back in the shortest way: without Arrow where its calls would dominate.

The meaning is that of `ingest` and `encode`, `decode` and `to_rows`, which also take over whatever the short ways do
not know: many rows, nested types, and rows with a mistake, so that errors have one wording.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, owner STRING, amount DECIMAL(12,2)")
>>> d = Dictionary()
>>> delta = encode_rows(schema, [(1, "Ada", "9.50"), (2, None, None)], d)
>>> decode_rows(schema, delta[:, :-1], d)
[(1, 'Ada', Decimal('9.50')), (2, None, None)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.codes.coerce import Unfit
from everview.codes.dictionary import Dictionary
from everview.codes.encode import decode, encode_weighted
from everview.codes.frames import as_arrow
from everview.codes.ingest import ingest, ingest_weighted, split_weights
from everview.codes.packing import (
    MISTAKES,
    all_of,
    is_whole,
    packed_row,
    packed_rows,
    packers,
    whole_pairs,
)
from everview.codes.rows import to_rows
from everview.codes.structured import array_rows
from everview.codes.tables import table_rows
from everview.codes.unpacking import unpackers
from everview.types import Schema
from everview.types.words import Words

_FEW: Final = 4096  # values; beyond them Arrow is faster


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
        rows = len(data)
        read = whole_pairs(schema) if rows else None
        if read is not None and (delta := read(data)) is not None:
            return delta
        if rows == 1:
            delta = _packed_pair(schema, data[0], dictionary)
        else:
            delta = _packed_pairs(schema, data, dictionary) if 0 < rows * len(schema.fields) <= _FEW else None
    else:
        data, delta = _from_columns(schema, data, dictionary)
    if delta is not None:
        return delta
    # Encoding conforms the columns itself, so a table need not be conformed first.
    parted = split_weights(schema, data) or ingest_weighted(schema, data)
    return encode_weighted(schema, *parted, dictionary)


def _from_columns(schema: Schema, data: Any, dictionary: Dictionary) -> tuple[Any, Words | None]:
    """The data, a frame as an Arrow table; and the delta matrix of a table, unless there is a mistake."""
    if isinstance(data, np.ndarray):
        delta = array_rows(schema, data)
        if delta is not None:
            return data, delta
    table = data if isinstance(data, (pa.Table, pa.RecordBatch)) else as_arrow(data)
    return (data, None) if table is None else (table, table_rows(schema, table, dictionary))


def decode_rows(schema: Schema, words: Words, dictionary: Dictionary) -> list[tuple[Any, ...]]:
    """The rows of a matrix of words as Python values."""
    prepared = unpackers(schema) if 0 < len(words) * len(schema.fields) <= _FEW else ()
    if not prepared:
        return to_rows(schema, decode(schema, words, dictionary))
    columns: list[list[int]] = words.T.tolist()
    return [*zip(*[unpack(columns, dictionary) for unpack in prepared], strict=True)]


def decode_pairs(schema: Schema, delta: Words, dictionary: Dictionary) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The rows of a delta matrix as Python values, each with its weight."""
    few = 0 < len(delta) * len(schema.fields) <= _FEW
    if few and is_whole(schema):
        return zip(_read_words(delta.shape[1] - 1)(np.ascontiguousarray(delta)), delta[:, -1].tolist(), strict=True)
    prepared = unpackers(schema) if few else ()
    if not prepared:
        return zip(to_rows(schema, decode(schema, delta[:, :-1], dictionary)), delta[:, -1].tolist(), strict=True)
    columns: list[list[int]] = delta.T.tolist()
    return zip(zip(*[unpack(columns, dictionary) for unpack in prepared], strict=True), columns[-1], strict=True)


@cache
def _read_words(words: int) -> Callable[[Any], Iterator[tuple[int, ...]]]:
    """How to read the first words of each row of a matrix that has one word more, as tuples."""
    return Struct(f"{words}q8x").iter_unpack


def _packed_pairs(schema: Schema, pairs: list[Any], dictionary: Dictionary) -> Words | None:
    """The delta matrix of a few pairs; None where one has a mistake."""
    if not all_of(tuple, pairs):
        return None
    try:
        rows, weights = zip(*pairs, strict=True)
    except MISTAKES:  # such as a pair that is none
        return None
    return _packed(schema, rows, weights, dictionary) if all_of(int, weights) else None


def _packed_pair(schema: Schema, pair: Any, dictionary: Dictionary) -> Words | None:
    """The delta matrix of one pair; None if it has a mistake."""
    prepared = packers(schema)
    if not prepared or type(pair) is not tuple or len(pair) != 2:
        return None
    row, weight = pair
    if type(weight) is not int:
        return None
    entries = len(dictionary)
    try:
        return packed_row(prepared, row if type(row) is tuple else _row(schema.names, row), weight, dictionary)
    except MISTAKES:  # the way of many rows names the value
        dictionary.keep_first(entries)
        return None


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
