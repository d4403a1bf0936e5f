"""Arrow arrays as NumPy views of their buffers, and back, without copying where that is possible."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.kernels import fixed as kernels
from everview.kernels.xxh64 import hash_bytes
from everview.types import Type
from everview.types.words import Words

Octets = npt.NDArray[np.uint8]
# An Arrow array or chunked array: pyarrow's stubs know neither parts of nested arrays nor NumPy's buffers.
Column = Any

NO_OCTETS: Final[Octets] = np.empty(0, np.uint8)
LARGEST: Final = 2**31 - 1  # what 32-bit offsets reach


class Bytes(NamedTuple):
    """A column of byte strings: row i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Words
    data: Octets


def octets_of(buffer: Any) -> Octets:
    """The bytes of a buffer; none when there is no buffer."""
    return NO_OCTETS if buffer is None or buffer.size == 0 else np.frombuffer(buffer, np.uint8)


def values_of(array: Column, dtype: npt.DTypeLike, each: int = 1) -> npt.NDArray[Any]:
    """The values of a fixed-width array, `each` items to a row (whatever stands where NULL is)."""
    buffer: Any = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.empty(0, dtype)
    start = array.offset * each * np.dtype(dtype).itemsize
    return np.frombuffer(buffer, dtype, len(array) * each, start)


def bitmap_of(array: Column) -> Octets:
    """The validity bitmap, to be read from bit ``array.offset``; none when nothing is NULL."""
    return octets_of(array.buffers()[0]) if array.null_count else NO_OCTETS


def valid_of(array: Column) -> Octets:
    """Validity as bytes 0 and 1; none when nothing is NULL."""
    bitmap = bitmap_of(array)
    return kernels.unpack_bits(bitmap, array.offset, len(array)) if len(bitmap) else NO_OCTETS


def offsets_of(array: Column) -> Words:
    """The offsets of a string, binary or list array: one more than it has rows."""
    if len(array) == 0:
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    return offsets.astype(np.int64)


def hashes_of(column: Bytes, seed: np.uint64) -> Words:
    """The XXH64 hash of each byte string, under a seed."""
    return hash_bytes(column.offsets, column.data, seed)


def bytes_of(array: Column) -> Bytes:
    """The rows of a string or binary array."""
    return Bytes(offsets_of(array), octets_of(array.buffers()[2]))


def buffer_of(values: Any) -> pa.Buffer:
    """A NumPy array as an Arrow buffer."""
    return pa.py_buffer(values)


def validity(valid: Octets) -> tuple[pa.Buffer | None, int]:
    """A validity bitmap from bytes 0 and 1, and the number of NULLs."""
    if len(valid) == 0:
        return None, 0
    bitmap, nulls = kernels.pack_bits(valid)
    return (buffer_of(bitmap), int(nulls)) if nulls else (None, 0)


def fixed_array(type_: Type, values: npt.NDArray[Any], valid: Octets, each: int = 1) -> Column:
    """A fixed-width array over these values, `each` items to a row."""
    bitmap, nulls = validity(valid)
    return pa.Array.from_buffers(type_.arrow, len(values) // each, [bitmap, buffer_of(values)], nulls)


def bytes_array(arrow: pa.DataType, column: Bytes, valid: Octets) -> Column:
    """A string or binary array over these rows."""
    assert column.offsets[-1] <= LARGEST, "more bytes than 32-bit offsets reach"
    bitmap, nulls = validity(valid)
    buffers = [bitmap, buffer_of(column.offsets.astype(np.int32)), buffer_of(column.data)]
    return pa.Array.from_buffers(arrow, len(column.offsets) - 1, buffers, nulls)


def list_array(type_: Type, offsets: Words, child: Column, valid: Octets) -> Column:
    """An array of lists over its elements."""
    assert offsets[-1] <= LARGEST, "more elements than 32-bit offsets reach"
    bitmap, nulls = validity(valid)
    buffers = [bitmap, buffer_of(offsets.astype(np.int32))]
    return pa.Array.from_buffers(type_.arrow, len(offsets) - 1, buffers, nulls, children=[child])


def struct_array(type_: Type, length: int, children: list[Column], valid: Octets) -> Column:
    """An array of structs over its fields."""
    bitmap, nulls = validity(valid)
    return pa.Array.from_buffers(type_.arrow, length, [bitmap], nulls, children=children)


def nulls(type_: Type, length: int) -> Column:
    """A column of NULL."""
    arrow: Any = type_.arrow
    return pa.nulls(length, arrow)
