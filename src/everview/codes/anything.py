"""ANY columns: values of every kind in two words, (kind, word of that kind).

In Arrow such a column is binary: the canonical bytes of each value. Words of kinds below `FIRST_INTERNED` are
the values' own codes; the others are dictionary codes of the kind, so a string in an ANY column has the code
that it has in a STRING column. The work goes by kind: one pass for each that occurs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from everview.codes.buffers import NO_OCTETS, Bytes, Column, bytes_array, bytes_of, valid_of
from everview.codes.canonical import bytes_to_bytes
from everview.codes.dictionary import Dictionary
from everview.kernels import canonical as kernels
from everview.kernels import canonical_read as reading
from everview.kernels import dictionary as tables
from everview.types import FIRST_INTERNED, KINDS, NULL_WORD
from everview.types.words import Words


def put(out: Words, column: int, array: Column, dictionary: Dictionary) -> None:
    """Write the words of an ANY column into a matrix."""
    encoded = bytes_of(array)
    kinds = reading.tags(*encoded, valid_of(array))
    out[:, column] = kinds
    out[:, column + 1] = NULL_WORD
    for kind, rows in _by_kind(kinds):
        out[rows, column + 1] = _words_of_kind(kind, encoded, rows, dictionary)


def take(matrix: Words, column: int, dictionary: Dictionary) -> Column:
    """The canonical bytes of an ANY column of words."""
    kinds = np.ascontiguousarray(matrix[:, column])
    entries = np.full(len(kinds), -1, np.int64)
    groups: list[Bytes] = []
    placed = 0
    for kind, rows in _by_kind(kinds):
        groups.append(_bytes_of_kind(kind, matrix[rows, column + 1], dictionary))
        entries[rows] = np.arange(placed, placed + len(rows))
        placed += len(rows)
    together = Bytes(*tables.gather(entries, *_join(groups)))
    return bytes_array(pa.binary(), together, (entries >= 0).view(np.uint8))


def codes_by_kind(matrix: Words, column: int) -> Iterator[tuple[int, Words]]:
    """The dictionary codes in an ANY column of words, by kind."""
    for kind, rows in _by_kind(np.ascontiguousarray(matrix[:, column])):
        if kind >= FIRST_INTERNED:
            yield kind, matrix[rows, column + 1]


def _by_kind(kinds: Words) -> Iterator[tuple[int, Words]]:
    for kind in np.unique(kinds):
        if kind != NULL_WORD:
            yield int(kind), np.flatnonzero(kinds == kind)


def _is_text(kind: int) -> bool:
    """Whether values of a kind are interned by their raw bytes; others are by their canonical bytes."""
    return KINDS["STRING"] <= kind <= KINDS["ID"] or kind == KINDS["VARIANT"] or kind > KINDS["ATOM"]


def _words_of_kind(kind: int, encoded: Bytes, rows: Words, dictionary: Dictionary) -> Words:
    starts = encoded.offsets[rows]
    if kind < FIRST_INTERNED:
        return reading.read_words(encoded.data, starts)[0]
    if _is_text(kind):
        offsets, data, _ = reading.read_bytes(encoded.data, starts)
        return dictionary.intern_bytes(kind, Bytes(offsets, data), NO_OCTETS)
    return dictionary.intern_bytes(kind, Bytes(*tables.gather(rows, *encoded)), NO_OCTETS)


def _bytes_of_kind(kind: int, words: Words, dictionary: Dictionary) -> Bytes:
    if kind < FIRST_INTERNED:
        return Bytes(*kernels.write_words(kind, words, NO_OCTETS))
    column, _ = dictionary.lookup_bytes(kind, words)
    return bytes_to_bytes(kind, column, NO_OCTETS) if _is_text(kind) else column


def _join(groups: list[Bytes]) -> Bytes:
    """Concatenate columns of bytes."""
    offsets = [np.zeros(1, np.int64)]
    for group in groups:
        offsets.append(group.offsets[1:] + offsets[-1][-1])
    return Bytes(np.concatenate(offsets), np.concatenate([NO_OCTETS, *(g.data for g in groups)]))
