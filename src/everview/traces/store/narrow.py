"""Narrow slices: matrices at rest with every column of every block in as few bytes as its values need.

Words are 64 bits wide, and most columns have a small range: keys in order, amounts, weights that are all 1, moments in
whole seconds, the hashes of fifty countries. A block of rows is stored column by column: the distance of each word from
the least one, divided by what all distances are multiples of, in 0, 1, 2, 4 or 8 bytes; or, if the column has at most
256 different words in the block, these and the place of each. Nothing is compressed beyond that, so that writing and
reading cost little more than copying.

```
block := head for each column, then for each column: its table of different words, its words, padding to 8 bytes
head  := bytes a word, least word, step, words of the table      (each an int64)
```
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everview.types.words import Matrix, Words

BLOCK: Final = 1 << 16  # rows
SAMPLED: Final = 1024  # rows of a column that tell whether it may have few different words
SOME: Final = 16  # distances that tell whether all may have a common divisor
FEW: Final = 1 << 16  # a column of a smaller range gains little from a table
TABLE: Final = 256  # words that one byte tells apart
WIDTHS: Final = ((0, np.uint8), (1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 32, np.uint32))
TYPES: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
WORD: Final = 8  # bytes

Octets = NDArray[np.uint8]


class NarrowColumn(NamedTuple):
    """One column of a block: its head, its table of different words if it has one, and its narrow words."""

    width: int
    least: int
    step: int
    table: Words
    words: NDArray[Any]


def narrowed(matrix: Matrix) -> Octets:
    """A matrix in narrow form.

    >>> rows = np.array([[10**12, 7, 1], [10**12 + 1, 900, 1]])
    >>> widened(narrowed(rows), *rows.shape).tolist() == rows.tolist()
    True
    """
    parts: list[Octets] = []
    for start in range(0, matrix.shape[0], BLOCK):
        columns = [_narrow(column) for column in np.ascontiguousarray(matrix[start : start + BLOCK].T)]
        heads = [(each.width, each.least, each.step, len(each.table)) for each in columns]
        parts.append(_octets(np.array(heads, np.int64)))
        for each in columns:
            parts += (_octets(each.table), _octets(each.words))
            parts.append(np.zeros(-each.words.nbytes % WORD, np.uint8))
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)


def widened(octets: Octets, rows: int, columns: int) -> Matrix:
    """The matrix of so many rows and columns whose narrow form is given."""
    blocks = [*widened_blocks(octets, rows, columns)]
    return np.concatenate(blocks) if blocks else np.empty((0, columns), np.int64)


def widened_blocks(octets: Octets, rows: int, columns: int) -> Iterator[Matrix]:
    """The matrix block by block."""
    at = 0
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        heads = octets[at : at + columns * 4 * WORD].view(np.int64).reshape(columns, 4).tolist()
        at += columns * 4 * WORD
        block = np.empty((count, columns), np.int64)
        for place, (width, least, step, size) in enumerate(heads):
            table = octets[at : at + size * WORD].view(np.int64)
            at += size * WORD
            words = octets[at : at + count * width].view(TYPES[width]) if width else np.zeros(1, np.uint8)
            at += count * width + -(count * width) % WORD
            block[:, place] = table[words] if size else _from_least(words, least, step)
        yield block


def _from_least(words: NDArray[Any], least: int, step: int) -> Words:
    """The words at these distances; sums of 64 bits wrap to the right ones."""
    wide = words.astype(np.uint64)
    if step != 1:
        wide *= np.uint64(step)
    wide += np.uint64(least % (1 << 64))
    return wide.view(np.int64)


def _narrow(column: Words) -> NarrowColumn:
    least = int(column.min())
    if int(column.max()) == least:
        return NarrowColumn(0, least, 1, column[:0], np.empty(0, np.uint8))
    distances = column.view(np.uint64) - np.uint64(least % (1 << 64))
    most = int(distances.max())
    if most >= FEW and (table := _few_words(column)) is not None:
        return NarrowColumn(1, 0, 1, table, np.searchsorted(table, column).astype(np.uint8))
    step = _step(distances) if most >= TABLE else 1
    if step != 1:
        distances //= np.uint64(step)
    type_ = next((type_ for bound, type_ in WIDTHS if most // step < bound), np.uint64)
    words = distances.astype(type_)
    return NarrowColumn(words.itemsize, least, step, column[:0], words)


def _step(distances: NDArray[np.uint64]) -> int:
    """The greatest common divisor of all distances; often a sample shows that it is 1."""
    step = math.gcd(*distances[:SOME].tolist())
    if step <= 1:
        return 1
    return step if not (distances % np.uint64(step)).any() else int(np.gcd.reduce(distances))


def _few_words(column: Words) -> Words | None:
    """The different words of a column in order, if one byte can tell them apart."""
    sampled = column[:: max(1, len(column) // SAMPLED)]
    table = np.unique(sampled)
    if len(table) * 2 > len(sampled) >= SAMPLED:
        return None
    for _ in range(2):  # what the sample lacks comes in the second round
        places = np.minimum(np.searchsorted(table, column), len(table) - 1)
        lacking = column[table[places] != column]
        if not len(lacking):
            return table
        table = np.union1d(table, lacking)
        if len(table) > TABLE:
            return None
    return table


def _octets(array: NDArray[Any]) -> Octets:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
