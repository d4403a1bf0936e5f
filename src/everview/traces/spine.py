"""A trace's past: a few batches, largest first, merged geometrically with the work spread over ticks.

Meaning: the sum of the batches. Invariant: every batch is sorted and consolidated; two neighbours that are not being
merged differ in size by at least `RATIO`, but for the small ones at the end, so there are not many.
An append pays for merging in proportion to its own size; no append waits for a whole merge. What many small appends
have to pay together is owed for a while, and paid in shares by those that follow.

Small batches are **levels** (see `everview.kernels.levels`): compiled code merges them among each other, and once they
are two thousand rows they become a batch like the others. The spine's ledger is what compiled code reads and appends
to.

A batch may be known to a store by the ids of its slices; a merged batch stands for those of all it was made of.

Once keys are looked up beside a large batch, all other rows have a **sieve** (see `everview.kernels.sieve`), so that
keys which only the large batch has are not searched for in the others.

Every act makes a new list of slots aside, and one assignment puts it in place: whatever raises, wherever, the spine
means what it meant before, or what it means afterwards. A merge that goes on changes no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import finalize

from everview.kernels import levels
from everview.kernels.rows import LINE, SIEVE
from everview.kernels.sieve import entered, is_worn, new_sieve
from everview.traces import pages
from everview.traces.order import ValueOrder
from everview.traces.slots import HeldBatch, Ids, Merging, Slots, advance, held_in, put
from everview.traces.view import NO_BATCHES, Batches
from everview.types.words import Matrix, Words

RATIO = 4  # a batch is merged into its larger neighbour once it is more than a quarter of it
FUEL = 2 * (RATIO + 1)  # rows a merge reads per row appended: done well before its successor must begin
ANY_SIZE = 1 << 62
SHARE = 4096  # rows that a merge reads at an append of those that are owed
SMALL = 512  # rows; smaller batches are not worth a merge each: they are levels first
LARGE = 1 << 14  # rows of the largest batch, from which on a sieve of the others is worth its keeping


class Stand(NamedTuple):
    """The slots of a spine at a moment; the ledger's levels are the spine's, too, if they are of this generation."""

    slots: Slots
    last: int = 0  # the number that came with the batch that was appended last
    generation: int = 0  # how often levels have become a batch
    sieve: Words | None = None  # which knows the keys of all levels, and of the batches that have it


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

    >>> import numpy as np
    >>> spine = Spine(columns=2)
    >>> for row in range(1000):
    ...     spine.append(np.array([[row, 1]]))
    >>> len(spine), len(spine.batches) <= 12
    (1000, True)
    """

    def __init__(self, columns: int, order: ValueOrder | None = None, *, key: int = 0, ratio: int = RATIO) -> None:
        """``key`` is the number of words by which rows are looked up."""
        self.columns = columns
        self.order = order
        self.key = key
        self._asked = False  # whether Python has looked up keys; whether compiled code has, the ledger says
        self.ratio = ratio
        self.most = ANY_SIZE  # rows of a batch that is still merged with smaller ones here, and not elsewhere
        self.ledger: Words = levels.new_ledger(columns, None if order is None else order.words)
        self._lines = self.ledger[levels.HEAD : levels.OWNERS].reshape(-1, LINE)
        self._address: int = self._lines.ctypes.data
        self._stand = Stand([])
        self._owed = 0  # rows that merges may still read for levels that have become a batch
        self._version = 0  # of the ledger when levels became a batch
        self._filled_by = 1  # appends, the levels that did so
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
        """A line for each batch, for compiled code that looks up keys and is done before anything is appended."""
        return self._lines[: self.located[1]]

    @property
    def located(self) -> tuple[int, int]:
        """The address of the `table`, and the number of its lines."""
        self._asked = True
        if self._shown[0] is not self._stand or self._shown[1] is not self.besides:
            self._follow()
        return self._address, self.ledger.item(levels.ALL)

    @property
    def batches(self) -> tuple[Matrix, ...]:
        return (*(held.batch for held in self._held()), *self._levels())

    def __len__(self) -> int:
        """Entries stored; rows that cancel across batches count until they are merged away."""
        return sum(len(held) for held in self._held()) + sum(map(len, self._levels()))

    @property
    def nbytes(self) -> int:
        merging = sum(slot.reached[2] * self.columns * 8 for slot in self._stand.slots if isinstance(slot, Merging))
        sieve = 0 if self._stand.sieve is None else self._stand.sieve.nbytes
        return len(self) * self.columns * 8 + merging + sieve

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
        self._work(slots, gone, _fuel(rows))
        self._become(slots, gone, number, self._stand.generation)
        pages.appended(rows)

    @property
    def is_full(self) -> bool:
        """Whether the levels are about to become a batch."""
        return self.ledger.item(levels.ROWS) >= self.ledger.item(levels.LIMIT)

    @property
    def owes(self) -> int:
        """How many shares of merging are left to be done by the next appends."""
        return -(-self._owed // SHARE)

    @property
    def pace(self) -> int:
        """How many appends have filled the levels that became a batch last."""
        return self._filled_by

    @property
    def spreads(self) -> bool:
        """Whether merging for the levels is left to the next appends: as many as have filled them can pay in shares."""
        return self._appends() * SHARE >= _fuel(self.ledger.item(levels.ROWS))

    def tend(self) -> None:
        """Make the levels a batch like the others, if they are full. It may be repeated."""
        self._follow()
        if self.is_full:
            self.harden()

    def pay(self) -> None:
        """Do a share of the merging that is owed, if any is."""
        self._follow()
        if self._owed:
            self._pay()

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
        put(slots, gone, 0, HeldBatch(whole, tuple(i for h in held for i in h.ids)))
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
            pages.let_go()
        elif self._owed:
            self._pay()

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
        put(slots, gone, len(slots), HeldBatch(batch, ids, self._stand.sieve))
        fuel = _fuel(self.ledger.item(levels.ROWS))
        at_once = 0 if self.spreads else fuel
        self._work(slots, gone, self._owed + at_once)
        self._owed, self._filled_by = fuel - at_once, max(1, self._appends())
        self._become(slots, gone, self._stand.last, self._stand.generation + 1)
        self._version = self.ledger.item(levels.VERSION)

    def _appends(self) -> int:
        """How many appends the levels have had."""
        return self.ledger.item(levels.VERSION) - self._version

    def _pay(self) -> None:
        """Let every merge under way read a share of the rows that are owed."""
        before = self._stand.slots
        slots, gone = [*before], list[int]()
        if self._work(slots, gone, SHARE) or len(slots) != len(before):
            self._become(slots, gone, self._stand.last, self._stand.generation)
        under_way = any(isinstance(slot, Merging) for slot in slots)
        self._owed = max(0, self._owed - SHARE) if under_way else 0

    def _become(self, slots: Slots, gone: list[int], last: int, generation: int) -> None:
        self._stand = Stand(slots, last, generation, self._sieve(slots, generation))
        self._gone += gone  # should they be missed, the store keeps slices whose sum is nothing
        self._follow()

    def _follow(self) -> None:
        """Let the ledger show the stand, if an exception came between; the batches that it shows are kept as long."""
        stand, besides = self._stand, self.besides
        if self._shown[0] is stand and self._shown[1] is besides:
            return
        table = Batches(self.columns, [*(held.batch for held in self._held()), *besides]).table
        assert table.shape[0] < levels.MOST - 16, "a spine has few batches"
        address = 0 if stand.sieve is None else stand.sieve.ctypes.data
        for line, held in enumerate(self._held() if address else ()):
            table[line, SIEVE] = address if held.sieve is stand.sieve else 0
        levels.follow(self.ledger, table, stand.generation, address)
        self._shown = stand, besides

    def _sieve(self, slots: Slots, generation: int) -> Words | None:
        """The sieve of all batches but the largest: the present one, completed, or a new one.

        It knows a batch before the batch says so; whatever raises between, the batch is searched, or entered again.
        """
        held = held_in(slots)
        largest = max(held, key=len, default=None)
        if largest is None or len(largest) < LARGE or not self.key:
            return None
        if not self._asked and not self.ledger.item(levels.ASKED):
            return None
        newer, sieve = [each for each in held if each is not largest], self._stand.sieve
        rows = sum(map(len, newer)) + self.ledger.item(levels.ROWS)
        if sieve is None or is_worn(sieve, rows):
            sieve = new_sieve(self.key, max(2 * rows, len(largest) // RATIO))
            for level in self._levels() if generation == self._stand.generation else ():
                entered(sieve, level)
        for each in newer:
            if each.sieve is not sieve:
                entered(sieve, each.batch)
                each.sieve = sieve
        return sieve

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
        return held_in(self._stand.slots)

    def _work(self, slots: Slots, gone: list[int], fuel: int) -> bool:
        """Advance every merge under way, then begin those that the sizes call for, smallest first.

        Whether readers now see other batches.
        """
        changed = False
        for slot in range(len(slots) - 1, -1, -1):
            changed |= advance(slots, gone, slot, fuel)
        slot = len(slots) - 1
        while slot > 0:
            if self._begin(slots, slot):
                changed |= advance(slots, gone, slot - 1, fuel)
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


def _fuel(rows: int) -> int:
    """The number of rows that merges may read for an append; a large append gives them more."""
    return FUEL * rows if rows < LARGE else 2 * FUEL * rows


def _let_go(ledger: Words) -> None:
    """Free the levels of a spine that is no more."""
    if ledger[levels.ALL] > ledger[levels.SLOTS]:
        levels.follow(ledger, NO_BATCHES, int(ledger[levels.GENERATION]) + 1, 0)
