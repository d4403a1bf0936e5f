"""Rows in an order, in blocks: one row more or less costs a search and a block, however many there are.

>>> names = Ordered([(3, "c"), (5, "e")])
>>> names.add(4, "d")
>>> list(names.after(3)), list(names.after())
(['d', 'e'], ['c', 'd', 'e'])
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

BLOCK: Final = 512


class Ordered:
    """Rows by sort keys, in blocks of at most twice `BLOCK`. Equal keys may be there several times, with equal rows."""

    __slots__ = ("keys", "last", "rows")

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        """Of pairs (sort key, row), which are sorted."""
        pairs = list(pairs)
        parts = [pairs[i : i + BLOCK] for i in range(0, len(pairs), BLOCK)]
        self.keys = [[key for key, _ in part] for part in parts]
        self.rows = [[row for _, row in part] for part in parts]
        self.last = [keys[-1] for keys in self.keys]  # of each block

    def __bool__(self) -> bool:
        return bool(self.keys)

    def add(self, key: Any, row: Any) -> None:
        if not self.keys:
            self.keys, self.rows, self.last = [[key]], [[row]], [key]
            return
        block = min(bisect_left(self.last, key), len(self.last) - 1)
        keys, rows = self.keys[block], self.rows[block]
        at = bisect_right(keys, key)
        keys.insert(at, key)
        rows.insert(at, row)
        self.last[block] = keys[-1]
        if len(keys) > 2 * BLOCK:
            self._split(block)

    def remove(self, key: Any) -> None:
        """Without one row of a key that is there."""
        block = bisect_left(self.last, key)
        keys, rows = self.keys[block], self.rows[block]
        at = bisect_left(keys, key)
        assert keys[at] == key, "what is removed is there"
        del keys[at], rows[at]
        if keys:
            self.last[block] = keys[-1]
        else:
            del self.keys[block], self.rows[block], self.last[block]

    def after(self, key: Any = None) -> Iterator[Any]:
        """The rows in order, those after a key if one is given."""
        return self._rows(key, bisect_right)

    def since(self, key: Any) -> Iterator[Any]:
        """The rows in order from a key on, or from where it would be."""
        return self._rows(key, bisect_left)

    def _rows(self, key: Any, place: Callable[[list[Any], Any], int]) -> Iterator[Any]:
        first = 0 if key is None else place(self.last, key)
        if first == len(self.last):
            return
        start = 0 if key is None else place(self.keys[first], key)
        yield from self.rows[first][start:]
        for block in range(first + 1, len(self.rows)):
            yield from self.rows[block]

    def _split(self, block: int) -> None:
        keys, rows = self.keys[block], self.rows[block]
        self.keys[block : block + 1] = [keys[:BLOCK], keys[BLOCK:]]
        self.rows[block : block + 1] = [rows[:BLOCK], rows[BLOCK:]]
        self.last[block : block + 1] = [keys[BLOCK - 1], keys[-1]]
