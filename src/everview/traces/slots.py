"""The slots of a spine, largest first: each is a batch, or two neighbours that are being merged."""

from __future__ import annotations

from dataclasses import dataclass

from everview.kernels.merge import merge_some, merge_some_by_value
from everview.traces.order import ValueOrder
from everview.traces.pages import shortened, untouched
from everview.types.words import Matrix, Words

Ids = tuple[int, ...]


@dataclass(slots=True)
class HeldBatch:
    """A batch of the spine, its stored slices, and the sieve that has all of its keys."""

    batch: Matrix
    ids: Ids = ()
    sieve: Words | None = None

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
        return cls(larger, smaller, untouched(len(larger) + len(smaller), larger.batch.shape[1]), order)

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
        sieve = self.larger.sieve if self.larger.sieve is self.smaller.sieve else None
        return HeldBatch(shortened(self.out, self.reached[2]), self.larger.ids + self.smaller.ids, sieve)


Slots = list[HeldBatch | Merging]


def held_in(slots: Slots) -> list[HeldBatch]:
    """The batches that readers see."""
    held: list[HeldBatch] = []
    for slot in slots:
        held += (slot.larger, slot.smaller) if isinstance(slot, Merging) else (slot,)
    return held


def advance(slots: Slots, gone: list[int], number: int, fuel: int) -> bool:
    """Go on with the merge in a slot, if there is one; whether that finished it."""
    slot = slots[number]
    if not isinstance(slot, Merging):
        return False
    slot.go_on(fuel)
    if slot.done:
        put(slots, gone, number, slot.result, 1)
    return slot.done


def put(slots: Slots, gone: list[int], slot: int, held: HeldBatch, replacing: int = 0) -> None:
    """Put a batch in place of so many slots; of one whose rows have cancelled, the stored slices are gone."""
    if not len(held):
        gone += held.ids
    slots[slot : slot + replacing] = [held] if len(held) else []
