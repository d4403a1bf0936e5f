"""Order by value: interned codes are hashes, so an index that must follow the values compares dictionary bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everview.codes.dictionary import Dictionary
from everview.kernels.dictionary import FIRST_INTERNED
from everview.types import ANY, Schema

DESCENDING, NULL_MOVED = 1, 2
Fields = tuple[tuple[int, int], ...]  # (field, mode), for the fields that are compared by value


@dataclass(frozen=True, eq=False)
class ValueOrder:
    """An index order that compares some words by the values they stand for in a dictionary."""

    words: NDArray[np.int64]  # (kind, mode) of each word
    dictionary: Dictionary

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels take; read anew for every call, because the dictionary grows."""
        return (self.words, *self.dictionary.arrays())

    def admit(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same rows, now that the dictionary has the values by which they are compared."""
        if self.dictionary.is_partial and len(rows):
            for word, kind in enumerate(self.words[:, 0].tolist()):
                if kind > 0:
                    self.dictionary.require(kind, np.ascontiguousarray(rows[:, word]))
                elif kind < 0:
                    self._admit_any(rows, word)
        return rows

    def _admit_any(self, rows: NDArray[np.int64], word: int) -> None:
        """`admit` for a word of which the word before says the kind."""
        kinds = rows[:, word - 1]
        for kind in np.unique(kinds).tolist():
            if kind >= FIRST_INTERNED:
                self.dictionary.require(kind, np.ascontiguousarray(rows[kinds == kind, word]))


def value_order(schema: Schema, fields: Fields, dictionary: Dictionary, depth: int = 0) -> ValueOrder | None:
    """The order that compares these fields by value; None if there are none. Words of time follow the row's."""
    return ValueOrder(words_by_value(schema, fields, depth), dictionary) if fields else None


@cache
def words_by_value(schema: Schema, fields: Fields, depth: int = 0) -> NDArray[np.int64]:
    """The (kind, mode) of each word, as `everview.kernels.ordering` takes them."""
    words = np.zeros((schema.width + depth, 2), np.int64)
    for field, mode in fields:
        type_, span = schema.fields[field].type, schema.words(field)
        words[span, 1] = mode
        if type_ == ANY:
            words[span.start + 1, 0] = -1  # its first word says the kind
        else:
            words[span, 0] = type_.kind
    return words
