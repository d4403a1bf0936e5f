"""Rows in order, in pieces of a bounded size: finding, adding and removing one costs a few microseconds.

A row stands where its key belongs; a row that is there several times stands there as often.

>>> rows = SortedRows([(key, f"row {key}") for key in (5, 1, 3)])
>>> rows.add(2, "row 2"), rows.remove(5), list(rows), rows[1], rows[1:]
(1, (3, 'row 5'), ['row 1', 'row 2', 'row 3'], 'row 2', ['row 2', 'row 3'])
>>> list(rows.since(2)), list(rows.after(2))
(['row 2', 'row 3'], ['row 3'])
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from operator import itemgetter
from typing import Any, overload

PIECE = 512  # rows of a piece when it is made; it is split when it has twice as many
ALL = 1 << 62  # more places than there are rows


class SortedRows:
    """A list of rows that is ordered by keys."""

    __slots__ = ("_keys", "_last", "_len", "_rows")

    def __init__(self, keyed: Iterable[tuple[Any, Any]] = ()) -> None:
        """Sort pairs (key, row)."""
        pairs = sorted(keyed, key=itemgetter(0))
        starts = range(0, len(pairs), PIECE)
        self._keys = [[key for key, _ in pairs[start : start + PIECE]] for start in starts]
        self._rows = [[row for _, row in pairs[start : start + PIECE]] for start in starts]
        self._last = [keys[-1] for keys in self._keys]  # the greatest key of each piece
        self._len = len(pairs)

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._rows)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._len)
            return list(self._between(start, stop)) if step == 1 else [self[p] for p in range(start, stop, step)]
        place = index + self._len if index < 0 else index
        if not 0 <= place < self._len:
            raise IndexError(f"place {index} of {self._len} rows")
        piece, within = self._find(place)
        return self._rows[piece][within]

    def add(self, key: Any, row: Any, upto: int = ALL) -> int:
        """Put a row where it belongs; its place, or ``upto`` if that is less."""
        self._len += 1
        if not self._keys:
            self._keys, self._rows, self._last = [[key]], [[row]], [key]
            return 0
        piece = min(bisect_left(self._last, key), len(self._last) - 1)
        keys = self._keys[piece]
        position = bisect_right(keys, key)
        place = self._place(piece, position, upto) if upto else 0
        keys.insert(position, key)
        self._rows[piece].insert(position, row)
        self._last[piece] = keys[-1]
        if len(keys) > 2 * PIECE:
            self._split(piece)
        return place

    def remove(self, key: Any, upto: int = ALL) -> tuple[int, Any]:
        """Remove a row with this key, which must be there; return its place, or ``upto`` if less, and the row."""
        piece = bisect_left(self._last, key)
        keys = self._keys[piece]
        position = bisect_left(keys, key)
        assert keys[position] == key, "a row that is removed is there"
        place = self._place(piece, position, upto) if upto else 0
        self._len -= 1
        del keys[position]
        row = self._rows[piece].pop(position)
        if keys:
            self._last[piece] = keys[-1]
        else:
            del self._keys[piece], self._rows[piece], self._last[piece]
        return place, row

    def since(self, key: Any) -> Iterator[Any]:
        """The rows in order from a key on, or from where it would be; without a key, all."""
        return self._rows_from(key, bisect_left)

    def after(self, key: Any = None) -> Iterator[Any]:
        """The rows in order after a key; without one, all."""
        return self._rows_from(key, bisect_right)

    def _rows_from(self, key: Any, place: Callable[[list[Any], Any], int]) -> Iterator[Any]:
        first = 0 if key is None else place(self._last, key)
        if first == len(self._last):
            return
        start = 0 if key is None else place(self._keys[first], key)
        yield from self._rows[first][start:]
        for piece in range(first + 1, len(self._rows)):
            yield from self._rows[piece]

    def _place(self, piece: int, position: int, upto: int) -> int:
        """The place of a row of a piece; whoever looks at the first places only need not count them all."""
        place = 0
        for before in range(piece):
            place += len(self._keys[before])
            if place >= upto:
                return upto
        return min(place + position, upto)

    def _find(self, place: int) -> tuple[int, int]:
        """The piece of a place, and where in it."""
        for piece, rows in enumerate(self._rows):
            if place < len(rows):
                return piece, place
            place -= len(rows)
        return len(self._rows), place

    def _split(self, piece: int) -> None:
        keys, rows = self._keys[piece], self._rows[piece]
        half = len(keys) // 2
        self._keys[piece : piece + 1] = [keys[:half], keys[half:]]
        self._rows[piece : piece + 1] = [rows[:half], rows[half:]]
        self._last[piece : piece + 1] = [keys[half - 1], keys[-1]]

    def _between(self, start: int, stop: int) -> Iterator[Any]:
        if start >= stop:
            return iter(())
        piece, within = self._find(start)
        return islice(chain.from_iterable(islice(self._rows, piece, None)), within, within + stop - start)
