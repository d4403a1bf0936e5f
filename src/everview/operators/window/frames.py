"""Where partitions, peers and frames begin and end, for rows that lie in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from everview.types.words import Matrix, Words

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Places:
    """Rows in order, each once: the first ``key`` words tell partitions apart, the first ``order`` words peers."""

    rows: Matrix
    key: int
    order: int

    @cached_property
    def at(self) -> Words:
        return np.arange(self.rows.shape[0])

    @cached_property
    def starts(self) -> Words:
        """The first row of each row's partition."""
        return _firsts(_changes(self.rows, self.key))

    @cached_property
    def stops(self) -> Words:
        """The row after the last of each row's partition."""
        return _afters(_changes(self.rows, self.key))

    @cached_property
    def first_peers(self) -> Words:
        return _firsts(self._peers)

    @cached_property
    def after_peers(self) -> Words:
        return _afters(self._peers)

    @cached_property
    def peer_groups(self) -> Words:
        """The number of each row's group of peers, counted over all partitions."""
        return np.cumsum(self._peers, dtype=np.int64)

    @cached_property
    def _peers(self) -> Flags:
        return _changes(self.rows, self.order)

    def frame(self, unit: str, start: int | None, end: int | None) -> tuple[Words, Words]:
        """The frame of each row as (first, end); equal where the frame is empty."""
        start, end = self._within(start), self._within(end)
        if unit == "rows":
            low = self.starts if start is None else np.clip(self.at + start, self.starts, self.stops)
            high = self.stops if end is None else np.clip(self.at + end + 1, self.starts, self.stops)
        elif unit == "groups":
            low = self.starts if start is None else self._first_of(start)
            high = self.stops if end is None else self._first_of(end + 1)
        else:
            low = self.starts if start is None else self.first_peers
            high = self.stops if end is None else self.after_peers
        return low, np.maximum(low, high)

    def _within(self, offset: int | None) -> int | None:
        """An offset cut to the number of rows, so that adding a place to it stays within 64 bits."""
        most = self.rows.shape[0]
        return None if offset is None else max(-most, min(offset, most))

    def _first_of(self, offset: int) -> Words:
        """The first row of the group of peers so many groups further on, within the partition."""
        firsts = np.append(np.flatnonzero(self._peers), self.rows.shape[0])
        groups = np.clip(self.peer_groups - 1 + offset, 0, firsts.size - 1)
        return np.clip(firsts[groups], self.starts, self.stops)

    def by_distance(self, key: Matrix, bound: Matrix, present: Flags, *, after: bool, descending: bool) -> Words:
        """The first row of the partition whose key is not before a bound, or, with ``after``, is beyond the bound.

        Rows without a key are at one end of the partition, and are not looked at.
        """
        known = np.append(0, np.cumsum(present))
        count = known[self.stops] - known[self.starts]
        rows = np.append(np.flatnonzero(present), self.rows.shape[0])
        low = np.where(count > 0, rows[np.minimum(known[self.starts], rows.size - 1)], self.starts)
        high = low + count
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            compared = _compared(key[np.minimum(middle, len(key) - 1)], bound)
            compared = -compared if descending else compared
            before = (compared < 0) | (after & (compared == 0))
            low = np.where(open_ & before, middle + 1, low)
            high = np.where(open_ & ~before, middle, high)
        return low


def _compared(a: Matrix, b: Matrix) -> Words:
    """-1, 0 or 1 for each two rows of words, as the first is less, the same or greater."""
    result = np.zeros(a.shape[0], np.int64)
    for word in reversed(range(a.shape[1])):
        differ = a[:, word] != b[:, word]
        result = np.where(differ, np.where(a[:, word] < b[:, word], -1, 1), result)
    return result


def _changes(rows: Matrix, words: int) -> Flags:
    """Flags of the rows that begin a new group, which their first words tell apart."""
    changed = np.ones(rows.shape[0], np.bool_)
    if rows.shape[0]:
        changed[1:] = (rows[1:, :words] != rows[:-1, :words]).any(axis=1)
    return changed


def _firsts(changes: Flags) -> Words:
    return np.flatnonzero(changes)[np.cumsum(changes) - 1]


def _afters(changes: Flags) -> Words:
    ends = np.append(np.flatnonzero(changes)[1:], changes.size)
    return ends[np.cumsum(changes) - 1]
