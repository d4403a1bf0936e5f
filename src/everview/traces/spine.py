"""A trace's past: a few batches, largest first, merged geometrically with the work spread over ticks.

Meaning: the sum of the batches. Invariant: every batch is sorted and consolidated; two neighbours that are not being
merged differ in size by at least `RATIO`, but for the small ones at the end, so there are not many.
An append pays for merging in proportion to its own size; no append waits for a whole merge.

Small batches are **levels** (see `everview.kernels.levels`): compiled code merges them among each other, and once they
are a thousand rows they become a batch like the others. The spine's ledger is what compiled code reads and appends to.

A batch may be known to a store by the ids of its slices; a merged batch stands for those of all it was made of.

Every act makes a new list of slots aside, and one assignment puts it in place: whatever raises, wherever, the spine
means what it meant before, or what it means afterwards. A merge that goes on changes no meaning.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import finalize

import numpy as np

from everview.kernels import levels
from everview.kernels.merge import merge_some, merge_some_by_value
from everview.traces.order import ValueOrder
from everview.traces.view import NO_BATCHES, Batches
from everview.types.words import Matrix, Words

Ids = tuple[int, ...]

RATIO = 4  # a batch is merged into its larger neighbour once it is more than a quarter of it
FUEL = 4 * (RATIO + 1)  # rows a merge reads per row appended: done well before its successor must begin
ANY_SIZE = 1 << 62
SMALL = 512  # rows; smaller batches are not worth a merge each: they are levels first


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


class Stand(NamedTuple):
    """The slots of a spine at a moment; the ledger's levels are the spine's, too, if they are of this generation."""

    slots: Slots
    last: int = 0  # the number that came with the batch that was appended last
    generation: int = 0  # how often levels have become a batch


class LevelIds(NamedTuple):
    """The stored slices that the levels of a generation stand for; ``last`` is the number of the last append."""

    generation: int = 0
    last: int = 0
    ids: Ids = ()


class _All:
    """A spine's own batches together with the unsaved ones that readers see beside them."""

    def __init__(self, spine: Spine) -> None:
        self._spine = spine

    @property
    def batches(self) -> tuple[Matrix, ...]:
        return (*self._spine.batches, *self._spine.besides)


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
        self.most = ANY_SIZE  # rows of a batch that is still merged with smaller ones here, and not elsewhere
        self.ledger: Words = levels.new_ledger(columns)
        self._lines = self.ledger[levels.HEAD : levels.OWNERS].reshape(-1, 2)
        self._stand = Stand([])
        self.besides: tuple[Matrix, ...] = ()  # batches that are not the spine's, but read with it
        self._shown: tuple[Stand, tuple[Matrix, ...]] = self._stand, ()  # what the ledger shows
        self._gone: list[int] = []  # stored slices whose rows have cancelled out
        self._level_ids = LevelIds()
        self._view: tuple[Stand, int, Batches] | None = None  # of a stand and a version of the ledger
        finalize(self, _let_go, self.ledger).atexit = False

    def restore(self, slices: Sequence[tuple[Matrix, Ids]]) -> None:
        """Become what stored batches say, largest and oldest first."""
        slots: Slots = [HeldBatch(batch, ids) for batch, ids in slices if len(batch) >= SMALL]
        gone: list[int] = []
        self._work(slots, gone, 2 * sum(len(batch) for batch, _ in slices))
        self._become(slots, gone, 0, self._stand.generation + 1)
        for batch, ids in slices:
            if 0 < len(batch) < SMALL:
                self._enter(batch, ids, 0)

    def has(self, number: int) -> bool:
        """Whether the last batch was appended with this number: after an exception it tells whether it was."""
        return number in (self._stand.last, self.ledger[levels.LAST])

    @property
    def view(self) -> Batches:
        """The batches as readers see them now; later appends and merges do not change this view."""
        version = int(self.ledger[levels.VERSION])
        known = self._view
        if known is None or known[0] is not self._stand or known[1] != version:
            known = self._view = self._stand, version, Batches(self.columns, self.batches, self.order)
        return known[2]

    @property
    def momentary(self) -> Batches:
        """`view` for a reader that is done before anything is appended."""
        return Batches.momentary(self.columns, self.order, _All(self), self.table)

    @property
    def table(self) -> Matrix:
        """The (address, rows) of each batch, for compiled code that is done before anything is appended."""
        if self._shown[0] is not self._stand or self._shown[1] is not self.besides:
            self._follow()
        return self._lines[: self.ledger.item(levels.ALL)]

    @property
    def batches(self) -> tuple[Matrix, ...]:
        return (*(held.batch for held in self._held()), *self._levels())

    def __len__(self) -> int:
        """Entries stored; rows that cancel across batches count until they are merged away."""
        return sum(len(held) for held in self._held()) + sum(map(len, self._levels()))

    @property
    def nbytes(self) -> int:
        merging = sum(slot.reached[2] * self.columns * 8 for slot in self._stand.slots if isinstance(slot, Merging))
        return len(self) * self.columns * 8 + merging

    def append(self, batch: Matrix, ids: Ids = (), number: int = 0) -> None:
        """Add a batch, and do a share of merging in proportion to its size; see `has` for its number."""
        rows = batch.shape[0]
        if rows == 0:
            return
        assert batch.shape[1] == self.columns, "a spine holds batches of one width"
        if rows < SMALL:
            self._enter(batch, ids, number)
            return
        slots, gone = [*self._stand.slots, HeldBatch(batch, ids)], list[int]()
        self._work(slots, gone, FUEL * rows)
        self._become(slots, gone, number, self._stand.generation)

    @property
    def is_full(self) -> bool:
        """Whether the levels are about to become a batch."""
        return self.ledger.item(levels.ROWS) >= self.ledger.item(levels.LIMIT)

    def tend(self) -> None:
        """Make the levels a batch like the others, if they are full, and do a share of merging. It may be repeated."""
        self._follow()
        if self.is_full:
            self.harden()

    def settle(self) -> None:
        """Finish every merge, the levels included."""
        self.harden()
        slots, gone = [*self._stand.slots], list[int]()
        self._work(slots, gone, 2 * len(self))
        self._become(slots, gone, self._stand.last, self._stand.generation)

    def compact(self) -> None:
        """Merge everything into one batch."""
        self.settle()
        held = self._held()
        if len(held) < 2:
            return
        whole = Batches(self.columns, [h.batch for h in held], self.order).consolidated()
        slots, gone = list[HeldBatch | Merging](), list[int]()
        _put(slots, gone, 0, HeldBatch(whole, tuple(i for h in held for i in h.ids)))
        self._become(slots, gone, self._stand.last, self._stand.generation)

    def show(self, besides: tuple[Matrix, ...]) -> None:
        """Let compiled code read these batches with the spine's own, in place of those before. It may be repeated."""
        self.besides = besides
        self._follow()

    # -- levels

    def note_ids(self, ids: Ids, number: int) -> None:
        """Remember the ids of what is entered to the levels with a number, once for each number."""
        generation, last, known = self._level_ids
        if generation != self._stand.generation:
            known, last = (), 0
        if number == 0 or last != number:
            self._level_ids = LevelIds(self._stand.generation, number, known + ids)

    def _enter(self, batch: Matrix, ids: Ids, number: int) -> None:
        self._follow()
        self.note_ids(ids, number)
        if self.order is None:
            full = levels.enter(self.ledger, batch, number)
        else:
            full = levels.enter_by_value(self.ledger, batch, number, *self.order.arrays)
        if full:
            self.harden()

    def _levels(self) -> list[Matrix]:
        self._follow()
        ledger = self.ledger
        return [levels.level(ledger, b) for b in range(ledger[levels.SLOTS], ledger[levels.ALL])]

    def harden(self) -> None:
        """Make the levels a batch like the others; of levels whose rows have cancelled, the stored slices are gone."""
        self._follow()
        generation, _, ids = self._level_ids
        ids = ids if generation == self._stand.generation else ()
        if self.ledger[levels.ALL] == self.ledger[levels.SLOTS]:
            if ids:
                self._become(self._stand.slots, [*ids], self._stand.last, self._stand.generation + 1)
            return
        if self.order is None:
            batch = levels.gathered(self.ledger)
        else:
            batch = levels.gathered_by_value(self.ledger, *self.order.arrays)
        slots, gone = [*self._stand.slots], list[int]()
        _put(slots, gone, len(slots), HeldBatch(batch, ids))
        self._work(slots, gone, FUEL * int(self.ledger[levels.ROWS]))
        self._become(slots, gone, self._stand.last, self._stand.generation + 1)

    def _become(self, slots: Slots, gone: list[int], last: int, generation: int) -> None:
        self._stand = Stand(slots, last, generation)
        self._gone += gone  # should they be missed, the store keeps slices whose sum is nothing
        self._follow()

    def _follow(self) -> None:
        """Let the ledger show the stand, if an exception came between; the batches that it shows are kept as long."""
        stand, besides = self._stand, self.besides
        if self._shown[0] is stand and self._shown[1] is besides:
            return
        table = Batches(self.columns, [*(held.batch for held in self._held()), *besides]).table
        assert table.shape[0] < levels.MOST - 16, "a spine has few batches"
        levels.follow(self.ledger, table, stand.generation)
        self._shown = stand, besides

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
        for slot in self._stand.slots:
            held += (slot.larger, slot.smaller) if isinstance(slot, Merging) else (slot,)
        return held

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
        if len(larger) >= self.ratio * len(smaller) or len(larger) > self.most:
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


def _let_go(ledger: Words) -> None:
    """Free the levels of a spine that is no more."""
    if ledger[levels.ALL] > ledger[levels.SLOTS]:
        levels.follow(ledger, NO_BATCHES, int(ledger[levels.GENERATION]) + 1)


def _untouched(rows: int, columns: int) -> Matrix:
    """Memory whose small pages come into being one by one as a merge reaches them.

    NumPy asks for huge pages, and clearing one of those takes as long as many ticks.
    """
    if rows * columns < 1 << 16:
        return np.empty((rows, columns), np.int64)
    pages = mmap.mmap(-1, rows * columns * 8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, np.int64).reshape(rows, columns)
