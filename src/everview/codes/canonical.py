"""The canonical encoding of Arrow columns, nested ones included, and back; no Python per row.

See `everview.kernels.canonical` for the bytes. A struct is its fields end to end, an array a list of marked
elements over the bytes of its child, a map one of keys and values: each step works on a whole flat column.

>>> from everview.types import parse_type
>>> of = parse_type("ARRAY<STRUCT<x: INT, s: STRING>>")
>>> column = pa.array([[{"x": 1, "s": "a"}, None], [], None], of.arrow)
>>> from_bytes(of, *to_bytes(of, column)).equals(column)
True
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from everview.codes.buffers import (
    NO_OCTETS,
    Bytes,
    Column,
    Octets,
    bytes_array,
    bytes_of,
    fixed_array,
    list_array,
    offsets_of,
    struct_array,
    valid_of,
)
from everview.codes.fixed import array_of_codes, codes_of, halves_of
from everview.kernels import canonical as kernels
from everview.kernels import canonical_read as reading
from everview.types import ANY, KINDS, STRING, SYMBOL, Array, Decimal, MapType, Struct, Type
from everview.types.words import Words


def to_bytes(type_: Type, array: Column) -> Bytes:
    """The canonical bytes of every row; NULL is its tag."""
    valid = valid_of(array)
    match type_:
        case Array(element):
            lists = offsets_of(array)
            child = array.values.slice(lists[0], lists[-1] - lists[0])
            return Bytes(*kernels.write_arrays(KINDS["ARRAY"], lists, valid, *to_bytes(element, child)))
        case MapType(key, value):
            lists = offsets_of(array)
            first, count = lists[0], lists[-1] - lists[0]
            pairs = [to_bytes(key, array.keys.slice(first, count)), to_bytes(value, array.items.slice(first, count))]
            return Bytes(*kernels.write_arrays(KINDS["MAP"], lists, valid, *_end_to_end(pairs, count)))
        case Struct(fields):
            children = [to_bytes(f.type, array.field(i)) for i, f in enumerate(fields)]
            return _concatenate(children, valid, len(array))
        case Decimal():
            return Bytes(*kernels.write_decimals(type_.scale, halves_of(array), valid))
        case _ if type_ == ANY:
            return Bytes(*kernels.write_encoded(*bytes_of(array), valid))
        case _ if type_.interned:
            return bytes_to_bytes(type_.kind, bytes_of(array), valid)
        case _:
            return Bytes(*kernels.write_words(type_.kind, codes_of(type_, array), valid))


def bytes_to_bytes(kind: int, column: Bytes, valid: Octets) -> Bytes:
    """The canonical bytes of text or binary values of one kind."""
    return Bytes(*kernels.write_bytes(min(kind, KINDS["ATOM"]), kind, *column, valid))


def from_bytes(type_: Type, offsets: Words, data: Octets) -> Column:
    """The inverse of `to_bytes`."""
    return read(type_, data, offsets[:-1])


def read(type_: Type, data: Octets, starts: Words) -> Column:
    """The values of one type that stand at `starts`; -1 and the tag of NULL are NULL."""
    match type_:
        case Array(element):
            offsets, places, valid = reading.read_arrays(data, starts)
            return list_array(type_, offsets, read(element, data, places), valid)
        case MapType(key, value):
            offsets, places, valid = reading.read_arrays(data, starts)
            entries = [read(key, data, places), read(value, data, reading.after(data, places))]
            return list_array(type_, offsets, struct_array(type_.entry, len(places), entries, NO_OCTETS), valid)
        case Struct(fields):
            places, valid = reading.read_structs(data, starts)
            children: list[Column] = []
            for f in fields:
                children.append(read(f.type, data, places))
                places = reading.after(data, places)
            return struct_array(type_, len(starts), children, valid)
        case Decimal():
            halves, valid, wrong = reading.read_decimals(data, starts, type_.scale)
            assert wrong < 0, f"a decimal that is not a {type_}"
            return fixed_array(type_, halves, valid, each=2)
        case _ if type_ == ANY:
            return _read_encoded(data, starts)
        case _ if type_.interned:
            offsets, values, valid = reading.read_bytes(data, starts)
            arrow = pa.string() if type_ in (STRING, SYMBOL) else pa.binary()
            return bytes_array(arrow, Bytes(offsets, values), valid)
        case _:
            return array_of_codes(type_, *reading.read_words(data, starts))


def _end_to_end(columns: list[Bytes], rows: int) -> Bytes:
    """The bytes of several columns one after the other, without the head of a struct."""
    offsets, data = _concatenate(columns, NO_OCTETS, rows)
    keep = np.ones(len(data), bool)
    keep[offsets[:-1]] = keep[offsets[:-1] + 1] = False
    return Bytes(offsets - 2 * np.arange(len(offsets)), data[keep])


def _concatenate(columns: list[Bytes], valid: Octets, rows: int) -> Bytes:
    sizes = np.zeros(rows, np.int64)
    for column in columns:
        sizes += np.diff(column.offsets)
    offsets, data = kernels.open_structs(len(columns), sizes, valid)
    positions = offsets[:-1] + 2
    for column in columns:
        kernels.fill_structs(data, positions, valid, *column)
    return Bytes(offsets, data)


def _read_encoded(data: Octets, starts: Words) -> Column:
    """Values left as they are encoded: slices of the bytes."""
    ends = reading.after(data, starts)
    valid = (starts >= 0) & (data[np.maximum(starts, 0)] != KINDS["NULL"]) if len(data) else starts >= 0
    sizes = np.where(valid, ends - starts, 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    moved = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    return bytes_array(pa.binary(), Bytes(offsets, data[moved]), valid.view(np.uint8))
