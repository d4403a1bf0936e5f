"""The arrays behind the dictionary, and how they grow: see `everview.kernels.dictionary` for what is in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from everview.codes.buffers import Octets
from everview.kernels import dictionary as kernels
from everview.types.words import Words


class EntryArrays(NamedTuple):
    """The arrays that hold the entries, replaced together when they grow; see `everview.kernels.dictionary`."""

    slots: np.ndarray
    codes: Words
    kinds: Words
    bounds: Words
    arena: Octets
    flags: Octets

    @classmethod
    def empty(cls) -> EntryArrays:
        words = np.empty(32, np.int64), np.empty(32, np.int64), np.zeros(33, np.int64)
        return cls(np.full(64, -1, np.int32), *words, np.empty(1024, np.uint8), np.zeros(32, np.uint8))

    def with_room(self, n: int, entries: int, octets: int, indexed: int) -> EntryArrays:
        """The first n entries in arrays for more of them, of so many bytes, with slots for some; none gets smaller."""
        table = self
        if entries > len(table.codes):
            codes, kinds, flags = (_longer(array, n, entries) for array in (table.codes, table.kinds, table.flags))
            bounds = _longer(table.bounds, n + 1, entries + 1)
            table = table._replace(codes=codes, kinds=kinds, flags=flags, bounds=bounds)
        if octets > len(table.arena):
            table = table._replace(arena=_longer(table.arena, int(table.bounds[n]), octets))
        places = len(table.slots)
        while 2 * indexed > places:
            places *= 2
        return table if places == len(table.slots) else table.indexed(n, places)

    def indexed(self, entries: int, places: int) -> EntryArrays:
        """The same arrays with this many new slots, which index the first entries and no others."""
        slots = np.full(places, -1, np.int32)
        kernels.index(entries, slots, self.codes, self.kinds)
        return self._replace(slots=slots)


def _longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    longer = np.empty(size, array.dtype)
    longer[:used] = array[:used]
    return longer
