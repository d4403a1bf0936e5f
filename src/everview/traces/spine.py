"""A trace's past: a few batches, largest first, merged geometrically with the work spread over ticks.

Meaning: the sum of the batches. Invariant: every batch is sorted and consolidated; two neighbours that are not being
merged differ in size by at least `RATIO`, but for a few small ones at the end, so there are not many.
An append pays for merging in proportion to its own size; no append waits for a whole merge.

A batch may be known to a store by the ids of its slices; a merged batch stands for those of all it was made of.

Every act makes a new list of slots aside, and one assignment puts it in place: whatever raises, wherever, the spine
means what it meant before, or what it means afterwards. A merge that goes on changes no meaning.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from everview.kernels.merge import merge_some, merge_some_by_value
from everview.kernels.sort import arrange, sorted_by_value
from everview.traces.order import ValueOrder
from everview.traces.view import Batches
from everview.types.words import Matrix

Ids = tuple[int, ...]

RATIO = 4  # a batch is merged into its larger neighbour once it is more than a quarter of it
FUEL = 4 * (RATIO + 1)  # rows a merge reads per row appended: done well before its successor must begin
SMALL = 512  # rows; smaller batches are not worth a merge each: they wait until there are a few
FEW = 8
SIP = 4096  # rows; merges go on when they have been given at least so much fuel


@dataclass(slots=True)
class HeldBatch:
    """A batch of the spine, and the stored slices that it stands for."""

    batch: Matrix
    ids: Ids = ()

    def __len__(self) -> int:
        return self.batch.shape[0]


@dataclass(slots=True)
class Merging:
    """Two neighbours on their way to becoming one; until done, readers see both."""

    larger: HeldBatch
    smaller: HeldBatch
    out: Matrix
    order: ValueOrder | None
    reached: tuple[int, int, int] = (0, 0, 0)  # rows taken of both, and rows put out

    @classmethod
    def begin(cls, larger: HeldBatch, smaller: HeldBatch, order: ValueOrder | None) -> Merging:
        return cls(larger, smaller, _untouched(len(larger) + len(smaller), larger.batch.shape[1]), order)

    def go_on(self, fuel: int) -> None:
        i, j, written = self.reached
        state = self.larger.batch, i, self.smaller.batch, j, self.out, written, fuel
        if self.order is None:
            self.reached = merge_some(*state)
        else:
            self.reached = merge_some_by_value(*state, *self.order.arrays)

    @property
    def done(self) -> bool:
        return self.reached[:2] == (len(self.larger), len(self.smaller))

    @property
    def result(self) -> HeldBatch:
        assert self.done, "a merge is read when it is done"
        return HeldBatch(self.out[: self.reached[2]], self.larger.ids + self.smaller.ids)


Slots = list[HeldBatch | Merging]


class Spine:
    """The batches of a trace up to the last committed tick.

    >>> spine = Spine(columns=2)
    >>> for row in range(1000):
    ...     spine.append(np.array([[row, 1]]))
    >>> len(spine), len(spine.batches) <= 12
    (1000, True)
    """

    def __init__(self, columns: int, order: ValueOrder | None = None, *, ratio: int = RATIO) -> None:
        self.columns = columns
        self.order = order
        self.ratio = ratio
        self._stand: tuple[Slots, int] = [], 0  # and the number that came with what was appended last
        self._gone: list[int] = []  # stored slices whose rows have cancelled out
        self._fuel = 0
        self._waiting = 0  # small batches at the end, as far as is known
        self._view: Batches | None = None

    @classmethod
    def restored(cls, columns: int, order: ValueOrder | None, slices: Sequence[tuple[Matrix, Ids]]) -> Spine:
        """The spine of stored batches, largest and oldest first."""
        spine = cls(columns, order)
        spine._stand = [HeldBatch(batch, ids) for batch, ids in slices], 0
        spine.settle()
        return spine

    @property
    def last(self) -> int:
        """The number of the last append: after an exception it tells whether the append was made."""
        return self._stand[1]

    @property
    def view(self) -> Batches:
        """The batches as readers see them now; later appends and merges do not change this view."""
        if self._view is None:
            self._view = Batches(self.columns, self.batches, self.order)
        return self._view

    @property
    def batches(self) -> tuple[Matrix, ...]:
        return tuple([held.batch for held in self._held()])

    def __len__(self) -> int:
        """Entries stored; rows that cancel across batches count until they are merged away."""
        return sum(len(held) for held in self._held())

    @property
    def nbytes(self) -> int:
        merging = sum(slot.reached[2] * self.columns * 8 for slot in self._stand[0] if isinstance(slot, Merging))
        return len(self) * self.columns * 8 + merging

    def append(self, batch: Matrix, ids: Ids = (), number: int = 0) -> None:
        """Add a batch, and do a share of merging in proportion to its size; see `last` for its number."""
        rows = batch.shape[0]
        if rows == 0:
            return
        assert batch.shape[1] == self.columns, "a spine holds batches of one width"
        slots, gone = [*self._stand[0], HeldBatch(batch, ids)], list[int]()
        self._fuel += FUEL * rows
        self._waiting = self._waiting + 1 if rows < SMALL else 0
        changed = self._waiting >= FEW and self._gather(slots, gone)
        if rows >= SMALL or changed or self._fuel >= SIP:
            changed |= self._work(slots, gone, self._fuel)
            self._fuel = 0
        view = None if changed or self._view is None else self._view.plus(batch)
        self._become(slots, gone, number, view)

    def settle(self) -> None:
        """Finish every merge, the small batches included."""
        slots, gone = [*self._stand[0]], list[int]()
        self._gather(slots, gone, 2)
        self._work(slots, gone, 2 * len(self))
        self._fuel = 0
        self._become(slots, gone, self.last)

    def compact(self) -> None:
        """Merge everything into one batch."""
        self.settle()
        held = self._held()
        if len(held) < 2:
            return
        whole = Batches(self.columns, [h.batch for h in held], self.order).consolidated()
        slots, gone = list[HeldBatch | Merging](), list[int]()
        _put(slots, gone, 0, HeldBatch(whole, tuple(i for h in held for i in h.ids)))
        self._become(slots, gone, self.last)

    def _become(self, slots: Slots, gone: list[int], last: int, view: Batches | None = None) -> None:
        self._view = None
        self._stand = slots, last
        self._view = view
        self._gone += gone  # should they be missed, the store keeps slices whose sum is nothing

    # -- what a store must know

    def merges(self) -> list[HeldBatch]:
        """The batches that the store knows only in pieces."""
        return [held for held in self._held() if len(held.ids) > 1]

    def gone(self) -> Ids:
        """The stored slices whose rows have cancelled; each is given out once."""
        gone, self._gone = tuple(self._gone), []
        return gone

    # -- inside

    def _held(self) -> list[HeldBatch]:
        held: list[HeldBatch] = []
        for slot in self._stand[0]:
            held += (slot.larger, slot.smaller) if isinstance(slot, Merging) else (slot,)
        return held

    def _gather(self, slots: Slots, gone: list[int], few: int = FEW) -> bool:
        """Make one batch of the last small ones, when there are a few; whether it did."""
        start = len(slots)
        while start > 0 and isinstance(held := slots[start - 1], HeldBatch) and len(held) < SMALL:
            start -= 1
        self._waiting = len(slots) - start
        if self._waiting < few:
            return False
        small = [held for held in slots[start:] if isinstance(held, HeldBatch)]
        whole = arrange(np.concatenate([h.batch for h in small]), np.arange(self.columns - 1))
        if self.order is not None:
            whole = sorted_by_value(whole, *self.order.arrays)
        _put(slots, gone, start, HeldBatch(whole, tuple(i for h in small for i in h.ids)), len(small))
        self._waiting = 1
        return True

    def _work(self, slots: Slots, gone: list[int], fuel: int) -> bool:
        """Advance every merge under way, then begin those that the sizes call for, smallest first.

        Whether readers now see other batches.
        """
        changed = False
        for slot in range(len(slots) - 1, -1, -1):
            changed |= _advance(slots, gone, slot, fuel)
        slot = len(slots) - 1
        while slot > 0:
            if self._begin(slots, slot):
                changed |= _advance(slots, gone, slot - 1, fuel)
                slot = min(slot, len(slots) - 1)
            else:
                slot -= 1
        return changed

    def _begin(self, slots: Slots, slot: int) -> bool:
        """Begin merging slot ``slot`` into its larger neighbour if their sizes call for it."""
        larger, smaller = slots[slot - 1], slots[slot]
        if isinstance(larger, Merging) or isinstance(smaller, Merging):
            return False
        if len(smaller) < SMALL or len(larger) >= self.ratio * len(smaller):
            return False
        slots[slot - 1 : slot + 1] = [Merging.begin(larger, smaller, self.order)]
        return True


def _advance(slots: Slots, gone: list[int], number: int, fuel: int) -> bool:
    """Go on with the merge in a slot, if there is one; whether that finished it."""
    slot = slots[number]
    if not isinstance(slot, Merging):
        return False
    slot.go_on(fuel)
    if slot.done:
        _put(slots, gone, number, slot.result, 1)
    return slot.done


def _put(slots: Slots, gone: list[int], slot: int, held: HeldBatch, replacing: int = 0) -> None:
    if not len(held):
        gone += held.ids
    slots[slot : slot + replacing] = [held] if len(held) else []


def _untouched(rows: int, columns: int) -> Matrix:
    """Memory whose small pages come into being one by one as a merge reaches them.

    NumPy asks for huge pages, and clearing one of those takes as long as many ticks.
    """
    if rows * columns < 1 << 16:
        return np.empty((rows, columns), np.int64)
    pages = mmap.mmap(-1, rows * columns * 8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, np.int64).reshape(rows, columns)
