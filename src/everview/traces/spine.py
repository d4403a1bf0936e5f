"""A trace's past: a few batches, largest first, merged geometrically with the work spread over ticks.

Meaning: the sum of the batches. Invariant: every batch is sorted and consolidated, and two neighbours that
are not being merged differ in size by at least `RATIO`, so their number is logarithmic with a large base.
An append pays for merging in proportion to its own size; no append waits for a whole merge.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everview.kernels.merge import merge_some, merge_some_by_value
from everview.traces.order import ValueOrder
from everview.traces.view import Batches, merged

Matrix = NDArray[np.int64]

RATIO = 8  # a batch is merged into its larger neighbour once it is more than an eighth of it
FUEL = 4 * (RATIO + 1)  # rows a merge reads per row appended: done well before its successor must begin
SMALL = 512  # two batches that add up to less are merged whatever their sizes


def _untouched(rows: int, columns: int) -> Matrix:
    """Memory whose small pages come into being one by one as a merge reaches them.

    NumPy asks for huge pages, and clearing one of those takes as long as many ticks.
    """
    if rows * columns < 1 << 16:
        return np.empty((rows, columns), np.int64)
    return np.frombuffer(mmap.mmap(-1, rows * columns * 8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.int64).reshape(rows, columns)


@dataclass(slots=True)
class Merging:
    """Two neighbours on their way to becoming one; until done, readers see both."""

    larger: Matrix
    smaller: Matrix
    out: Matrix
    order: ValueOrder | None
    i: int = 0
    j: int = 0
    at: int = 0

    @classmethod
    def begin(cls, larger: Matrix, smaller: Matrix, order: ValueOrder | None) -> Merging:
        return cls(larger, smaller, _untouched(larger.shape[0] + smaller.shape[0], larger.shape[1]), order)

    def go_on(self, fuel: int) -> None:
        state = self.larger, self.i, self.smaller, self.j, self.out, self.at, fuel
        if self.order is None:
            self.i, self.j, self.at = merge_some(*state)
        else:
            self.i, self.j, self.at = merge_some_by_value(*state, *self.order.arrays)

    @property
    def done(self) -> bool:
        return self.i == self.larger.shape[0] and self.j == self.smaller.shape[0]

    @property
    def result(self) -> Matrix:
        assert self.done, "a merge is read when it is done"
        return self.out[: self.at]


class Spine:
    """The batches of a trace up to the last committed tick.

    >>> spine = Spine(columns=2)
    >>> for row in range(1000):
    ...     spine.append(np.array([[row, 1]]))
    >>> len(spine), len(spine.batches) <= 4
    (1000, True)
    """

    def __init__(
        self, columns: int, batches: Sequence[Matrix] = (), order: ValueOrder | None = None, *, ratio: int = RATIO
    ) -> None:
        self.columns = columns
        self.order = order
        self.ratio = ratio
        self._slots: list[Matrix | Merging] = [b for b in batches if b.shape[0]]
        self._view: Batches | None = None

    @property
    def view(self) -> Batches:
        """What readers see; it stays as it is while the spine goes on."""
        if self._view is None:
            self._view = Batches(self.columns, self.batches, self.order)
        return self._view

    @property
    def batches(self) -> tuple[Matrix, ...]:
        found: list[Matrix] = []
        for slot in self._slots:
            if isinstance(slot, Merging):
                found += (slot.larger, slot.smaller)
            else:
                found.append(slot)
        return tuple(found)

    def __len__(self) -> int:
        """Entries stored; rows that cancel across batches count until they are merged away."""
        return sum(b.shape[0] for b in self.batches)

    @property
    def nbytes(self) -> int:
        merging = sum(slot.at * self.columns * 8 for slot in self._slots if isinstance(slot, Merging))
        return len(self) * self.columns * 8 + merging

    def append(self, batch: Matrix) -> None:
        """Add a batch, and do a share of merging in proportion to its size."""
        if batch.shape[0] == 0:
            return
        assert batch.shape[1] == self.columns, "a spine holds batches of one width"
        self._slots.append(batch)
        self._work(FUEL * batch.shape[0])
        self._view = None

    def settle(self) -> None:
        """Finish every merge that has begun."""
        self._work(len(self) + 1)
        self._view = None

    def compact(self) -> None:
        """Merge everything into one batch."""
        self.settle()
        while len(self._slots) > 1:
            smaller, larger = self._slots.pop(), self._slots.pop()
            assert not isinstance(smaller, Merging) and not isinstance(larger, Merging)
            self._put(len(self._slots), merged(larger, smaller, self.order))
        self._view = None

    def _work(self, fuel: int) -> None:
        """Advance every merge under way, then begin those that the sizes call for, smallest first."""
        for at in range(len(self._slots) - 1, -1, -1):
            self._advance(at, fuel)
        at = len(self._slots) - 1
        while at > 0:
            if self._begin(at):
                self._advance(at - 1, fuel)
                at = min(at, len(self._slots) - 1)
            else:
                at -= 1

    def _advance(self, at: int, fuel: int) -> None:
        slot = self._slots[at]
        if isinstance(slot, Merging):
            slot.go_on(fuel)
            if slot.done:
                self._put(at, slot.result, 1)

    def _begin(self, at: int) -> bool:
        """Begin merging slot ``at`` into its larger neighbour if their sizes call for it."""
        larger, smaller = self._slots[at - 1], self._slots[at]
        if isinstance(larger, Merging) or isinstance(smaller, Merging):
            return False
        total = larger.shape[0] + smaller.shape[0]
        if total >= SMALL and larger.shape[0] >= self.ratio * smaller.shape[0]:
            return False
        self._slots[at - 1 : at + 1] = [Merging.begin(larger, smaller, self.order)]
        return True

    def _put(self, at: int, batch: Matrix, replacing: int = 0) -> None:
        self._slots[at : at + replacing] = [batch] if batch.shape[0] else []
