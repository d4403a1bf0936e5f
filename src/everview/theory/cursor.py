"""A cursor: the entries of a trace in order of key, then value, then time, with seeks forward.

For people and for iterators that go one key at a time; operators read whole groups at once through a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from everview.kernels.cursor import next_entry, seek_all
from everview.traces.view import Batches


class Entry(NamedTuple):
    """One entry of a trace, as words."""

    key: tuple[int, ...]
    value: tuple[int, ...]
    time: tuple[int, ...]
    weight: int


class Cursor:
    """A place in a trace: on an entry, or at the end.

    >>> edges = Batches(3, [np.array([[1, 2, 1], [3, 4, 1]]), np.array([[1, 2, 1], [2, 5, -1]])])
    >>> cursor = Cursor(edges, key=1)
    >>> cursor.entry
    Entry(key=(1,), value=(2,), time=(), weight=2)
    >>> cursor.seek([3])
    >>> cursor.entry
    Entry(key=(3,), value=(4,), time=(), weight=1)
    >>> cursor.next()
    >>> cursor.at_end
    True
    """

    def __init__(self, view: Batches, key: int, depth: int = 0) -> None:
        assert view.order is None, "a cursor follows words"
        self._view, self._key, self._depth = view, key, depth
        self._at = np.zeros(len(view.batches), np.int64)
        self._entry: Entry | None = None
        self.next()

    @property
    def at_end(self) -> bool:
        return self._entry is None

    @property
    def entry(self) -> Entry:
        """The entry on which the cursor stands."""
        assert self._entry is not None, "the cursor is at its end"
        return self._entry

    def next(self) -> None:
        """Go to the next entry."""
        position = next_entry(self._view.table, self._view.columns, self._at)
        self._entry = self._read(position[0].tolist()) if position.shape[0] else None

    def seek(self, words: Sequence[int]) -> None:
        """Go forward to the first entry that does not come before these first words; stay, if it stands there."""
        if self._entry is None or self._words(self._entry)[: len(words)] >= tuple(words):
            return
        probe = np.array([[*words, 0]], np.int64)
        seek_all(self._view.table, self._view.columns, self._at, probe, len(words))
        self.next()

    def next_key(self) -> None:
        """Go to the first entry of the next key."""
        key = self.entry.key
        while not self.at_end and self.entry.key == key:
            self.next()

    def __iter__(self) -> Iterator[Entry]:
        while not self.at_end:
            yield self.entry
            self.next()

    def _read(self, row: list[int]) -> Entry:
        value_end = len(row) - 1 - self._depth
        words = tuple(row)
        return Entry(words[: self._key], words[self._key : value_end], words[value_end:-1], words[-1])

    @staticmethod
    def _words(entry: Entry) -> tuple[int, ...]:
        return entry.key + entry.value + entry.time
