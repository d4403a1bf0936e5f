"""Large Arrow tables to delta matrices: texts first, column by column, and then all columns, block by block.

A matrix stands row by row, so that a column by itself would touch all of its memory. Blocks of rows are filled whole,
while a processor's cache holds them, on several threads. Texts are hashed beside each other on threads, too; of a
column with few different ones Arrow finds those, and only they are looked up. The dictionary is one thread's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.codes.buffers import Bytes, Column, Octets, bytes_of, valid_of
from everview.codes.conform import check_text
from everview.codes.dictionary import Dictionary
from everview.kernels.threads import PARTS, allowed, each
from everview.types import NULL_WORD, Field
from everview.types.words import Words

BLOCK: Final = 1 << 12  # rows that are filled at once
PIECE: Final = 1 << 17  # texts that are looked up at once
SAMPLE: Final = 1 << 12  # texts by which a column is judged
FEW: Final = 8  # a column has few different texts if each stands this often among those

Filling = Callable[[int, pa.RecordBatch], bool]  # of the first row, and the rows; whether they could be filled


@dataclass(frozen=True, slots=True)
class ColumnCodes:
    """The codes of a column of text: those of its rows, or those of its different texts and which one a row has."""

    codes: Words
    places: NDArray[np.int32] | None = None

    def of_rows(self, first: int, last: int) -> Words:
        """The codes of some rows."""
        return self.codes[first:last] if self.places is None else self.codes[self.places[first:last]]


def text_codes(columns: Sequence[tuple[Field, Column]], dictionary: Dictionary) -> list[ColumnCodes]:
    """The codes of whole columns of text; raises if one is no text."""
    read = each(lambda column: _read(*column, dictionary), columns)
    return [coded(dictionary) for coded in read]


def filled(data: pa.Table | pa.RecordBatch, fill: Filling) -> bool:
    """Let all rows be filled in, block by block; False if some could not be."""
    table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    blocks = list(_numbered(table.to_batches(max_chunksize=BLOCK)))
    size = -(-len(blocks) // (PARTS * allowed()))
    parts = [blocks[first : first + size] for first in range(0, len(blocks), size)]
    return all(each(lambda part: all(fill(first, block) for first, block in part), parts))


def _numbered(blocks: Sequence[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = 0
    for block in blocks:
        yield first, block
        first += block.num_rows


Coding = Callable[[Dictionary], ColumnCodes]  # what is left to one thread


def _read(field: Field, column: Column, dictionary: Dictionary) -> Coding:
    """All that can be found out of a column of text without adding to the dictionary."""
    check_text(field.name, field.type, column)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = field.type.kind
    if _has_few(chunks[0].slice(0, SAMPLE)):
        return _few(kind, pa.chunked_array(chunks))
    pieces = [chunk.slice(lo, PIECE) for chunk in chunks for lo in range(0, len(chunk), PIECE)]
    texts = [(bytes_of(piece), valid_of(piece)) for piece in pieces]
    hashed = [(octets, valid, dictionary.hashes(octets)) for octets, valid in texts]
    return lambda dictionary: _interned(kind, hashed, dictionary)


def _has_few(sample: Any) -> bool:
    return FEW * len(sample.unique()) <= len(sample)


def _few(kind: int, column: Any) -> Coding:
    """The codes of a column by those of its different texts."""
    encoded = column.dictionary_encode().unify_dictionaries()
    texts = encoded.chunk(0).dictionary
    absent = len(texts)
    places = np.concatenate([chunk.indices.fill_null(absent).to_numpy() for chunk in encoded.chunks])

    def coded(dictionary: Dictionary) -> ColumnCodes:
        codes = np.full(absent + 1, NULL_WORD, np.int64)
        codes[:absent] = dictionary.intern_bytes(kind, bytes_of(texts), valid_of(texts))
        return ColumnCodes(codes, places)

    return coded


def _interned(kind: int, pieces: Sequence[tuple[Bytes, Octets, Words]], dictionary: Dictionary) -> ColumnCodes:
    """The codes of pieces of a column; after the first one the dictionary makes room for all that may come."""
    known, out = len(dictionary), list[Words]()
    for number, (texts, valid, hashes) in enumerate(pieces):
        out.append(dictionary.intern_bytes(kind, texts, valid, hashes))
        if number == 0 and len(pieces) > 1:
            share = (len(dictionary) - known) / len(hashes)
            rest = pieces[1:]
            octets = sum(int(texts.offsets[-1] - texts.offsets[0]) for texts, _, _ in rest)
            dictionary.reserve(int(share * sum(len(h) for _, _, h in rest)), int(share * octets))
    return ColumnCodes(np.concatenate(out))
