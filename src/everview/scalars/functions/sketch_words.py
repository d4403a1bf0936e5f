"""Sketches as words: what hashes go into them, and columns of sketches taken apart and put together.

A sketch is bytes of a format of our own, 64-bit words with the least byte first. The first word says what it is: four
letters, the version, the kind, and a parameter of the kind; `docs/reference/sketches.md` has the rest. A sketch is a
function of the values alone, however they came, so that a view of sketches is the same after any changes that lead to
the same rows. Bytes that are none of these are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.buffers import LARGEST, NO_OCTETS, Bytes, bytes_array, bytes_of, hashes_of
from everview.scalars.functions.kernel import (
    Checked,
    Kernel,
    Kind,
    Mask,
    Value,
    from_numbers,
    nulls,
    numbers,
    truth,
    whole,
)
from everview.scalars.functions.lists import Lists, spans

MARK: Final = int.from_bytes(b"EVSK", "little")
VERSION: Final = 1
SEED: Final = np.uint64(0)
TOO_LARGE: Final = "the sketches of one column would have more than 2 GiB"
FOREIGN: Final = "the bytes are no {0} sketch of Everview's format"


class SketchKind(IntEnum):
    """What a sketch holds; an HLL sketch has one of two forms."""

    COUPONS = 1
    REGISTERS = 2
    THETA = 3
    BIGINT = 4
    DOUBLE = 5
    FLOAT = 6


def header(kind: Any, parameter: Any) -> Any:
    """The first words of sketches."""
    return (np.uint64(MARK | VERSION << 32) | np.asarray(kind, np.uint64) << np.uint64(40)) | (
        np.asarray(parameter, np.uint64) << np.uint64(48)
    )


# -- columns of sketches


@dataclass(frozen=True, slots=True)
class Sketches:
    """A column of sketches: their words one behind the other, and where those of each begin."""

    words: Any  # unsigned
    begins: Any
    sizes: Any
    kinds: Any  # 0 of what is no sketch
    parameters: Any
    missing: Mask  # where the column is NULL

    @staticmethod
    def of(column: Value) -> Sketches:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        lengths = numbers(pc.binary_length(column)).astype(np.int64)
        taken = ~missing & (lengths % 8 == 0) & (lengths > 0)
        if not taken.all():
            column = pc.if_else(pa.array(taken), column, pa.scalar(b"", column.type))
        offsets, data = bytes_of(column)
        words = data[offsets[0] : offsets[-1]].copy().view(np.uint64)
        begins, sizes = (offsets[:-1] - offsets[0]) // 8, np.diff(offsets) // 8
        first = np.zeros(len(sizes), np.uint64)
        first[taken] = words[begins[taken]]
        own = (first & np.uint64(0xFFFFFFFFFF)) == np.uint64(MARK | VERSION << 32)
        kinds = np.where(own, first >> np.uint64(40) & np.uint64(0xFF), 0).astype(np.int64)
        return Sketches(words, begins, sizes, kinds, (first >> np.uint64(48)).astype(np.int64), missing)

    def word(self, place: int, where: Mask) -> Any:
        """The word at a place of some sketches, 0 of the others; those must have it."""
        found = np.zeros(len(self.sizes), np.uint64)
        found[where] = self.words[self.begins[where] + place]
        return found

    def items(self, skipped: int, where: Mask) -> tuple[Any, Any]:
        """The words of some sketches behind the first ones, and the row of each."""
        sizes = np.where(where, self.sizes - skipped, 0)
        places = spans(self.begins + skipped, sizes)
        return self.words[places], np.repeat(np.arange(len(sizes)), sizes)


def rows_with(wrong: Mask, rows: Any, count: int) -> Mask:
    """Which of so many rows have an item that is wrong."""
    found = np.zeros(count, bool)
    found[rows[wrong]] = True
    return found


def falls(items: Any, rows: Any) -> Mask:
    """Which items are not greater than the one before in the same row."""
    wrong = np.zeros(len(items), bool)
    wrong[1:] = (rows[1:] == rows[:-1]) & (items[1:] <= items[:-1])
    return wrong


# -- sketches put together


@dataclass(frozen=True, slots=True)
class Writing:
    """Words of new sketches, to be filled; ``kept`` has the rows that have a place."""

    words: Any
    begins: Any
    kept: Mask
    _missing: Mask

    @staticmethod
    def of(sizes: Any, missing: Mask) -> Writing:
        sizes = np.where(missing, 0, sizes)
        kept = np.cumsum(sizes.astype(np.float64)) * 8 <= LARGEST
        sizes = np.where(kept, sizes, 0)
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        return Writing(np.zeros(total, np.uint64), ends - sizes, kept & ~missing, missing)

    def put(self, place: int, values: Any) -> None:
        """Write the word at a place of every sketch."""
        self.words[self.begins[self.kept] + place] = values[self.kept]

    def column(self, out: Kind) -> Any:
        offsets = 8 * np.append(self.begins, len(self.words))
        valid = (~self._missing).astype(np.uint8) if self._missing.any() else NO_OCTETS
        made = bytes_array(out, Bytes(offsets, self.words.view(np.uint8)), valid)
        beyond = ~self.kept & ~self._missing
        return Checked(made, beyond, TOO_LARGE) if beyond.any() else made


def refused(result: Any, failed: Mask, reason: str) -> Any:
    """A result, failed in some rows for a reason of its own, if it has not failed already."""
    if not failed.any():
        return result
    if not isinstance(result, Checked):
        return Checked(result, failed, reason)
    first = np.argmax(failed) <= np.argmax(result.failed)
    return Checked(result.value, result.failed | failed, reason if first else result.reason)


# -- sketches given together: as an array, or as several arguments


@dataclass(frozen=True, slots=True)
class Parts:
    """Sketches to be combined: all in one column, and the row of the result that each is for."""

    sketches: Sketches
    parents: Any
    rows: int
    missing: Mask  # rows of the result that are NULL

    @staticmethod
    def of_arrays(array: Value) -> Parts:
        """The sketches of each row's array; NULL among them does not count."""
        lists = Lists.of(array, len(array))
        missing = nulls(array)
        none = np.zeros(len(array), bool) if missing is None else missing
        return Parts(Sketches.of(lists.elements), lists.parents, len(array), none)

    @staticmethod
    def of_columns(*columns: Value) -> Parts:
        """A sketch of each column; NULL if one of them is."""
        rows = max(len(c) for c in columns if not isinstance(c, pa.Scalar))
        both = pa.concat_arrays([whole(c, rows) for c in columns])
        missing = nulls(*(whole(c, rows) for c in columns))
        none = np.zeros(rows, bool) if missing is None else missing
        return Parts(Sketches.of(both), np.tile(np.arange(rows), len(columns)), rows, none)

    @property
    def there(self) -> Mask:
        """The sketches that count."""
        return ~self.sketches.missing & ~self.missing[self.parents]

    def any(self, of_sketches: Mask) -> Mask:
        """The rows that have such a sketch."""
        return rows_with(of_sketches, self.parents, self.rows)

    def extreme(self, function: Any, values: Any, without: Any) -> Any:
        """The least or greatest number of the sketches of each row that count."""
        found = np.full(self.rows, without, np.asarray(values).dtype)
        function.at(found, self.parents[self.there], values[self.there])
        return found


def per_row(value: Value, rows: int) -> Any:
    """An argument that may be one for all rows, as numbers."""
    return numbers(whole(value, rows)).astype(np.int64)


# -- what goes into sketches


def _hash(out: Kind, column: Value) -> Any:
    """The hash of each value; of NULL, and of text, bytes and arrays of no length, there is none."""
    missing = nulls(column)
    absent = np.zeros(len(column), bool) if missing is None else missing
    kind = column.type
    if pa.types.is_list(kind):
        lists = Lists.of(column, len(column))
        data = numbers(lists.elements).astype(np.int64)
        offsets, absent = 8 * np.append(lists.begins, len(data)), absent | (lists.sizes == 0)
        return from_numbers(hashes_of(Bytes(offsets, data.view(np.uint8)), SEED), out, absent)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        octets = bytes_of(column)
        return from_numbers(hashes_of(octets, SEED), out, absent | (np.diff(octets.offsets) == 0))
    values = numbers(column)
    if pa.types.is_floating(kind):
        values = np.where(np.isnan(values), np.nan, values.astype(np.float64)) + 0.0
    else:
        values = values.astype(np.int64)
    data = np.ascontiguousarray(values).view(np.uint8)
    return from_numbers(hashes_of(Bytes(8 * np.arange(len(column) + 1), data), SEED), out, absent)


def rounded(estimates: Any) -> Any:
    """Numbers as integers, halves upwards; what is beyond all counts as the greatest that is told."""
    return np.floor(np.minimum(np.nan_to_num(estimates, nan=0.0, posinf=2.0**62), 2.0**62) + 0.5).astype(np.int64)


def flags(value: Value, rows: int) -> Mask:
    """Truth values, one a row."""
    return truth(whole(value, rows))


KERNELS: Final[dict[str, Kernel]] = {"sketch_hash": _hash}
