"""Columns as variants, without a Python value for each row: the bytes of a variant are put together by column.

A variant without keys is the same few bytes of metadata, a byte that says the kind, and the value. Values whose form
depends on more than their kind, such as decimals, are written once for each different one.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import Value, assembled, nulls, numbers
from everview.types import BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, Variant
from everview.types.variants import SingleFloat

_BYTES: Final = pa.binary()
_SHORT: Final = 64  # bytes of texts whose length stands in the byte that says the kind


def _before(value: Any, size: int) -> bytes:
    """The bytes of a variant before its value, which is so many bytes long."""
    return Variant.of(value).raw[:-size]


def plain_variants(value: Value, type_: Type) -> Value | None:
    """A column of values without parts as variants; None if the type is another."""
    if type_ == BOOLEAN:
        yes, no = (pa.scalar(Variant.of(truth).raw, _BYTES) for truth in (True, False))
        return pc.if_else(value, yes, no)
    if type_ in (STRING, BINARY):
        return _texts(value, type_)
    if type_ in (FLOAT, DOUBLE):
        return _floats(value, type_)
    if pa.types.is_integer(type_.arrow):
        return _integers(value)
    if type_ in _MOMENTS:
        sample, kind = _MOMENTS[type_]
        words = numbers(value).astype(kind)
        return _fixed(_before(sample, words.itemsize), words, nulls(value))
    if pa.types.is_decimal(type_.arrow):
        coded = value.dictionary_encode()
        made = [Variant.of(one).raw for one in coded.dictionary.to_pylist()]
        return pa.array(made, _BYTES).take(coded.indices)
    return None


# A moment of each type, from whose variant the bytes before the value are taken, and the form of the value.
_MOMENTS: Final[dict[Type, tuple[dt.date, str]]] = {
    DATE: (dt.date(1970, 1, 1), "<i4"),
    TIMESTAMP: (dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "<i8"),
    TIMESTAMP_NTZ: (dt.datetime(1970, 1, 1), "<i8"),
}


def _fixed(before: bytes, words: Any, missing: Any) -> Value:
    """Words of one length, each after the same bytes."""
    rows: Any = np.empty((len(words), len(before) + words.itemsize), np.uint8)
    rows[:, : len(before)] = np.frombuffer(before, np.uint8)
    rows[:, len(before) :] = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), words.itemsize)
    ends: Any = np.arange(len(words) + 1, dtype=np.int32) * rows.shape[1]
    made = pa.Array.from_buffers(_BYTES, len(words), [None, pa.py_buffer(ends), pa.py_buffer(rows)])
    return made if missing is None else pc.if_else(pa.array(~missing), made, pa.scalar(None, _BYTES))


def _integers(value: Value) -> Value:
    """Whole numbers in as few bytes as they need."""
    words, missing = numbers(value).astype(np.int64), nulls(value)
    sizes = np.full(len(words), 8)
    for size in (4, 2, 1):
        sizes[(words >= -(1 << 8 * size - 1)) & (words < 1 << 8 * size - 1)] = size
    parts, places = list[Value](), list[Any]()
    for size in (1, 2, 4, 8):
        chosen = np.flatnonzero(sizes == size)
        if len(chosen):
            before = _before((1 << 8 * size - 1) - 1, size)
            parts.append(
                _fixed(before, words[chosen].astype(f"<i{size}"), None if missing is None else missing[chosen])
            )
            places.append(chosen)
    return parts[0] if len(parts) == 1 else assembled(parts, places, _BYTES) if parts else pa.array([], _BYTES)


def _floats(value: Value, type_: Type) -> Value:
    words = numbers(value).astype("<f4" if type_ == FLOAT else "<f8")
    words[np.isnan(words)] = np.nan  # one of many
    before = _before(SingleFloat(1) if type_ == FLOAT else 1.0, words.itemsize)
    return _fixed(before, words, nulls(value))


def _texts(value: Value, type_: Type) -> Value:
    """Texts and bytes, after their lengths."""
    data = value.cast(_BYTES)
    lengths = pc.binary_length(data).fill_null(0).to_numpy(zero_copy_only=False)
    sample: Any = "x" * _SHORT if type_ == STRING else b"x"
    head = _before(sample, 4 + len(sample))
    counted = _fixed(head, lengths.astype("<i4"), None)
    if type_ == STRING:
        short = pa.array([_before("x" * n, n) if n else Variant.of("").raw for n in range(_SHORT)], _BYTES)
        counted = pc.if_else(pa.array(lengths < _SHORT), short.take(pa.array(np.minimum(lengths, _SHORT - 1))), counted)
    return pc.binary_join_element_wise(counted, data, pa.scalar(b"", _BYTES))
