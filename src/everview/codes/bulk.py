"""Large Arrow tables to delta matrices: texts first, column by column, and then all columns, block by block.

A matrix stands row by row, so that a column by itself would touch all of its memory. Blocks of rows are filled whole,
while a processor's cache holds them, on several threads. Texts are hashed beside each other on threads, too; of a
column with few different ones Arrow finds those, and only they are looked up. The dictionary is one thread's alone,
the caller's; because a text's code is its hash, other threads fill in rows meanwhile.
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
class TextColumn:
    """A column of text that is not interned: the codes of its rows, or of its different texts and which one a row has.

    A text's code is its hash, unless another text has that already. So rows can be filled in before the dictionary, or
    while it, has been told the texts; what `intern` corrects is then filled in again.
    """

    kind: int
    codes: Words
    pieces: tuple[tuple[Bytes, Octets], ...]  # the texts that the codes are of, in order
    places: NDArray[np.int32] | None = None

    def of_rows(self, first: int, last: int) -> Words:
        """The codes of some rows."""
        return self.codes[first:last] if self.places is None else self.codes[self.places[first:last]]

    def intern(self, dictionary: Dictionary) -> bool:
        """Add the texts to the dictionary; whether some have another code than their hash, which is corrected here.

        After the first piece the dictionary makes room for all that may come.
        """
        known, first, corrected = len(dictionary), 0, False
        for number, (texts, valid) in enumerate(self.pieces):
            last = first + len(texts.offsets) - 1
            wanted = self.codes[first:last]
            codes = dictionary.intern_bytes(self.kind, texts, valid, wanted)
            if not np.array_equal(codes, wanted):
                self.codes[first:last], corrected = codes, True
            if number == 0 and len(self.pieces) > 1:
                share = (len(dictionary) - known) / last
                octets = sum(int(rest.offsets[-1] - rest.offsets[0]) for rest, _ in self.pieces[1:])
                dictionary.reserve(int(share * (len(self.codes) - last)), int(share * octets))
            first = last
        return corrected


def text_columns(columns: Sequence[tuple[Field, Column]], dictionary: Dictionary) -> list[TextColumn]:
    """Whole columns of text, beside each other on threads; raises if one is no text."""
    return each(lambda column: _read(*column, dictionary), columns)


def filled(data: pa.Table | pa.RecordBatch, fill: Filling, beside: Callable[[], None]) -> bool:
    """Let rows be filled in, block by block, while the caller's thread does something else; False if some cannot."""
    table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    blocks = list(_numbered(table.to_batches(max_chunksize=BLOCK)))
    size = -(-len(blocks) // (PARTS * allowed()))
    parts = [blocks[first : first + size] for first in range(0, len(blocks), size)]
    return all(each(lambda part: all(fill(first, block) for first, block in part), parts, beside))


def _numbered(blocks: Sequence[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = 0
    for block in blocks:
        yield first, block
        first += block.num_rows


def _read(field: Field, column: Column, dictionary: Dictionary) -> TextColumn:
    """All that can be found out of a column of text without adding to the dictionary."""
    check_text(field.name, field.type, column)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = field.type.kind
    if _has_few(chunks[0].slice(0, SAMPLE)):
        return _few(kind, pa.chunked_array(chunks), dictionary)
    pieces = [chunk.slice(lo, PIECE) for chunk in chunks for lo in range(0, len(chunk), PIECE)]
    texts = tuple((bytes_of(piece), valid_of(piece)) for piece in pieces)
    return TextColumn(kind, np.concatenate([_hashes(*piece, dictionary) for piece in texts]), texts)


def _has_few(sample: Any) -> bool:
    return FEW * len(sample.unique()) <= len(sample)


def _few(kind: int, column: Any, dictionary: Dictionary) -> TextColumn:
    """A column by its different texts."""
    encoded = column.dictionary_encode().unify_dictionaries()
    texts = encoded.chunk(0).dictionary
    absent = len(texts)
    places = np.concatenate([chunk.indices.fill_null(absent).to_numpy() for chunk in encoded.chunks])
    piece = bytes_of(texts), valid_of(texts)
    return TextColumn(kind, np.append(_hashes(*piece, dictionary), NULL_WORD), (piece,), places)


def _hashes(texts: Bytes, valid: Octets, dictionary: Dictionary) -> Words:
    """The codes that texts get unless they are taken."""
    hashes = dictionary.hashes(texts)
    if len(valid):
        hashes[valid == 0] = NULL_WORD
    return hashes
