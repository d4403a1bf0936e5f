"""Columns of fixed-width types: Arrow arrays to words in a matrix, and back."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.codes.buffers import (
    NO_OCTETS,
    Column,
    Octets,
    bitmap_of,
    buffer_of,
    fixed_array,
    octets_of,
    validity,
    values_of,
)
from everview.kernels import fixed as kernels
from everview.types import BIGINT, BOOLEAN, Decimal, ScalarType, Type
from everview.types.words import Words

_DTYPES: Final[dict[str, type]] = {
    "TINYINT": np.int8,
    "SMALLINT": np.int16,
    "INTEGER": np.int32,
    "BIGINT": np.int64,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "DATE": np.int32,
    "TIMESTAMP": np.int64,
    "TIMESTAMP_NTZ": np.int64,
    "TIME": np.int64,
    "INTERVAL DAY": np.int64,
    "INTERVAL DAY TO SECOND": np.int64,
    "INTERVAL YEAR TO MONTH": np.int32,
}
_LOW_BITS: Final = np.int64(2**63 - 1)


def put(out: Words, column: int, type_: Type, nullable: bool, array: Column) -> int:
    """Write the words of an array into a matrix; returns the first row that has no code, or -1."""
    bitmap = bitmap_of(array)
    if isinstance(type_, Decimal):
        size = type_.words()
        return int(kernels.put_decimals(out, column, halves_of(array), bitmap, array.offset, size))
    values = _numbers_of(type_, array)
    if values.dtype == np.float64:
        return int(kernels.put_doubles(out, column, values, bitmap, array.offset))
    if type_ != BIGINT:
        return int(kernels.put_words(out, column, values, bitmap, array.offset))
    if nullable:
        return int(kernels.put_flagged(out, column, values, bitmap, array.offset))
    kernels.put_words(out, column, values, bitmap, array.offset)
    return -1


def take(matrix: Words, column: int, type_: Type, nullable: bool) -> Column:
    """The Arrow array of a column of words."""
    if isinstance(type_, Decimal):
        halves, valid = kernels.take_decimals(matrix, column, type_.words())
        return fixed_array(type_, halves, valid, each=2)
    if type_ != BIGINT:
        values, valid = kernels.take_words(matrix, column)
        return array_of_codes(type_, values, valid)
    if nullable:
        values, valid = kernels.take_flagged(matrix, column)
        return fixed_array(type_, values, valid)
    return fixed_array(type_, matrix[:, column].copy(), NO_OCTETS)


def codes_of(type_: Type, array: Column) -> Words:
    """One word for every row of an array of a one-word type; what stands where NULL is does not count."""
    out = np.empty((len(array), 1), np.int64)
    put(out, 0, type_, False, array)
    return out.reshape(-1)


def array_of_codes(type_: Type, codes: Words, valid: Octets) -> Column:
    """The inverse of `codes_of`."""
    assert isinstance(type_, ScalarType)
    if type_ == BOOLEAN:
        bits, _ = kernels.pack_bits(codes.astype(np.uint8))
        bitmap, nulls = validity(valid)
        return pa.Array.from_buffers(type_.arrow, len(codes), [bitmap, buffer_of(bits)], nulls)
    dtype = _DTYPES[type_.name]
    if type_.name in ("FLOAT", "DOUBLE"):
        doubles = (codes ^ ((codes >> 63) & _LOW_BITS)).view(np.float64)
        return fixed_array(type_, doubles.astype(dtype, copy=False), valid)
    return fixed_array(type_, codes.astype(dtype, copy=False), valid)


def halves_of(array: Column) -> Words:
    """The 128-bit integers of a decimal array, each as its low and its high half."""
    return values_of(array, np.int64, each=2)


def _numbers_of(type_: Type, array: Column) -> npt.NDArray[Any]:
    """The values as int64 or float64."""
    assert isinstance(type_, ScalarType)
    if type_ == BOOLEAN:
        return kernels.unpack_bits(octets_of(array.buffers()[1]), array.offset, len(array)).astype(np.int64)
    values = values_of(array, _DTYPES[type_.name])
    return values.astype(np.float64 if type_.name in ("FLOAT", "DOUBLE") else np.int64, copy=False)
