"""A trace: the past of closed epochs, and what the open epoch has appended so far.

``before`` reads the past alone, ``after`` adds the open epoch. Closing an epoch moves its batches into the past;
abandoning it forgets them, and nothing has happened. History does not grow with the number of epochs: entries
carry no epoch, and inside a recursive scope their iterations are ordinary last words of the row.

An epoch may also end `unsaved`: it is past for readers, and waits with others like it until a store takes them all
as one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from everview.kernels.weights import largest_weight
from everview.traces.order import ValueOrder
from everview.traces.spine import Ids, Spine
from everview.traces.view import Batches, merged

Matrix = NDArray[np.int64]
SAFE = 1 << 62  # while no sum can be larger, sums need no checking


class Trace:
    """The state behind one `Arrange` on one shard.

    >>> trace = Trace(columns=2)
    >>> trace.push(np.array([[7, 1]])); len(trace.before), len(trace.after)
    (0, 1)
    >>> trace.close(); len(trace.before)
    1
    """

    __slots__ = ("_before", "_reach", "current", "past", "unsaved")

    def __init__(self, columns: int, order: ValueOrder | None = None) -> None:
        self.past = Spine(columns, order)
        self.current: list[Matrix] = []  # of the open epoch, each batch more than twice as large as the next
        self.unsaved: list[Matrix] = []  # of closed epochs, in the same way
        self._before: Batches | None = None  # the past and the unsaved, as long as neither changes
        self._reach = 0  # no row's weight is larger

    def restore(self, slices: Sequence[tuple[Matrix, Ids]]) -> None:
        """Take up stored batches, largest and oldest first, as the past."""
        self._reach = sum(largest_weight(batch) for batch, _ in slices)
        if self._reach > SAFE:
            slices = [(self._in_range(batch for batch, _ in slices), tuple(i for _, ids in slices for i in ids))]
        self.past = Spine.restored(self.past.columns, self.past.order, slices)

    @property
    def before(self) -> Batches:
        """The closed epochs."""
        if not self.unsaved:
            return self.past.view
        if self._before is None:
            self._before = _with(self.past.view, self.unsaved)
        return self._before

    @property
    def after(self) -> Batches:
        """The closed epochs and the open one, as far as it has come."""
        return _with(self.before, self.current)

    def push(self, batch: Matrix) -> None:
        """Append to the open epoch; `OverflowError` if a row's weight would leave 64 bits."""
        if not batch.shape[0]:
            return
        self._reach += largest_weight(batch)
        if self._reach > SAFE:
            # Neighbours may add up beyond the range although all batches together do not: so there are none.
            self.past.compact()
            self._before = None
            self._in_range((*self.past.batches, *self.unsaved, *self.current, batch))
            self._reach = sum(largest_weight(b) for b in (*self.past.batches, *self.unsaved, *self.current, batch))
        self._put(self.current, batch)

    def sum(self) -> Matrix | None:
        """What the open epoch has appended, as one batch."""
        return self._summed(self.current)

    def waiting(self) -> Matrix | None:
        """What closed epochs have left unsaved, as one batch."""
        return self._summed(self.unsaved)

    def close(self, ids: Ids = ()) -> None:
        """End the epoch: its changes become past, which a store may know by ids."""
        if not self.current:
            return
        batch = self.sum()
        self.current.clear()
        if batch is not None:
            self._before = None
            self.past.append(batch, ids)

    def leave(self) -> None:
        """End the epoch without a store: its changes are past for readers, and wait to be saved."""
        if not self.current:
            return
        batch = self.sum()
        self.current.clear()
        if batch is not None:
            self._before = None
            self._put(self.unsaved, batch)

    def saved(self, ids: Ids) -> None:
        """What was `waiting` is in a store."""
        batch = self.waiting()
        self.unsaved.clear()
        self._before = None
        if batch is not None:
            self.past.append(batch, ids)

    def abandon(self) -> None:
        """Forget the open epoch."""
        self.current.clear()

    def _put(self, batches: list[Matrix], batch: Matrix) -> None:
        while batches and batches[-1].shape[0] <= 2 * batch.shape[0]:
            batch = merged(batches.pop(), batch, self.past.order)
        batches.append(batch)

    def _summed(self, batches: list[Matrix]) -> Matrix | None:
        while len(batches) > 1:
            smaller, larger = batches.pop(), batches.pop()
            batches.append(merged(larger, smaller, self.past.order))
        return batches[0] if batches and batches[0].shape[0] else None

    def _in_range(self, batches: Iterable[Matrix]) -> Matrix:
        """The sum of batches, oldest first: as far as they were appended before, each sum was in range once."""
        whole = np.empty((0, self.past.columns), np.int64)
        for batch in batches:
            whole = merged(whole, batch, self.past.order)
        return whole


def _with(view: Batches, batches: Iterable[Matrix]) -> Batches:
    for batch in batches:
        view = view.plus(batch)
    return view
