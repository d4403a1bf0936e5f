"""A trace: the past of closed epochs, and what the open epoch has appended so far.

``before`` reads the past alone, ``after`` adds the open epoch. Closing an epoch moves its batches into the past;
abandoning it forgets them, and nothing has happened. History does not grow with the number of epochs: entries
carry no epoch, and inside a recursive scope their iterations are ordinary last words of the row.

An epoch may also end `unsaved`: it is past for readers, and waits with others like it until a store takes them all
as one batch.

The past may be `deferred`: a store has it, and it is read when someone first asks for it.

Acts that end an epoch may be repeated: whatever raises in the middle of one, doing it once more completes it, and does
nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import ceil

import numpy as np

from everview.kernels.levels import REACH
from everview.kernels.weights import LARGEST, largest_weight
from everview.traces.order import ValueOrder
from everview.traces.slots import Ids
from everview.traces.spine import ANY_SIZE, Spine
from everview.traces.view import Batches, merged
from everview.types.words import Matrix

StoredBatches = Sequence[
    tuple[Matrix, Ids]
]  # batches, largest and oldest first, and the ids by which a store knows each

SAFE = 1 << 62  # while no sum can be larger, sums need no checking
HASTE = 2  # times as fast as levels fill up again, merging that is owed is done


class Trace:
    """The state behind one `Arrange` on one shard.

    >>> trace = Trace(columns=2)
    >>> trace.push(np.array([[7, 1]])); len(trace.before), len(trace.after)
    (0, 1)
    >>> trace.close(); len(trace.before)
    1
    """

    __slots__ = ("_before", "_deferred", "_open", "_unsaved", "columns", "key", "most", "order", "past")

    def __init__(self, columns: int, order: ValueOrder | None = None, key: int = 0) -> None:
        """``key`` is the number of words by which entries are looked up."""
        self.columns, self.order, self.key = columns, order, key
        self.most = ANY_SIZE  # rows of a batch of the past that is still merged here
        self.past = Spine(columns, order, key=key)  # not there while it is deferred: asking for it loads it
        self._deferred: Callable[[], StoredBatches] | None = None
        # The open epoch: its number here, and its batches, each more than twice as large as the next.
        self._open: tuple[int, list[Matrix]] = 1, []
        # Closed epochs that wait to be saved: how often others were, negated; batches as above; the last of them.
        self._unsaved: tuple[int, list[Matrix], int] = -1, [], 0
        self._before: tuple[Batches, list[Matrix], Batches] | None = None  # the past, the unsaved, and their sum

    def restore(self, slices: StoredBatches) -> None:
        """Take up stored batches, largest and oldest first, as the past."""
        _take_up(self.past, slices)

    def defer(self, stored: Callable[[], StoredBatches]) -> None:
        """Replace the past by batches of a store, which are loaded from it when the past is first read.

        >>> trace = Trace(columns=2)
        >>> trace.defer(lambda: [(np.array([[7, 1]]), (4,))])
        >>> trace.is_loaded, len(trace.before), trace.is_loaded
        (False, 1, True)
        """
        self._deferred = stored
        with suppress(AttributeError):  # it is deferred already
            del self.past

    def leave_large(self, most: int) -> None:
        """Let batches of more rows be merged elsewhere."""
        self.most = most
        if self.is_loaded:
            self.past.most = most

    @property
    def is_loaded(self) -> bool:
        """Whether the past is here, and not still to be read from a store."""
        return self._deferred is None

    def __getattr__(self, name: str) -> Spine:
        """Load a deferred past. Python calls this only for a missing attribute, so that a loaded past costs nothing."""
        if name != "past" or self._deferred is None:
            raise AttributeError(name)
        past = Spine(self.columns, self.order, key=self.key)
        past.most = self.most
        _take_up(past, self._deferred())
        self.past, self._deferred = past, None
        return past

    @property
    def before(self) -> Batches:
        """The closed epochs."""
        past, unsaved = self.past.view, self._unsaved[1]
        if not unsaved:
            return past
        known = self._before
        if known is None or known[0] is not past or known[1] is not unsaved:
            known = self._before = past, unsaved, _with(past, unsaved)
        return known[2]

    @property
    def momentary(self) -> Batches:
        """`before` for a reader that is done before anything is appended."""
        return self.past.momentary

    @property
    def unsaved(self) -> list[Matrix]:
        """The batches that closed epochs have left unsaved, each more than twice as large as the next."""
        return self._unsaved[1]

    @property
    def current(self) -> list[Matrix]:
        """What the open epoch has appended so far."""
        return self._open[1]

    @property
    def after(self) -> Batches:
        """The closed epochs and the open one, as far as it has come."""
        return _with(self.before, self.current)

    def push(self, batch: Matrix) -> None:
        """Append to the open epoch; `OverflowError` if a row's weight would leave 64 bits."""
        if not batch.shape[0]:
            return
        if self.order is not None:
            self.order.admit(batch)
        reach = int(self.past.ledger[REACH]) + largest_weight(batch)  # no row's weight is larger
        if reach > SAFE:
            # Neighbours may add up beyond the range although all batches together do not: so there are none.
            self.past.compact()
            self._in_range((*self.past.batches, *self.unsaved, *self.current, batch))
            reach = sum(largest_weight(b) for b in (*self.past.batches, *self.unsaved, *self.current, batch))
        self.past.ledger[REACH] = min(reach, LARGEST)
        number, batches = self._open
        self._open = number, self._put(batches, batch) if batches else [batch]

    def reopen(self, batches: Iterable[Matrix]) -> None:
        """Replace the batches of the open epoch by these: the same sum, or a part of the same rows."""
        self._open = self._open[0], list(batches)

    def sum(self) -> Matrix | None:
        """What the open epoch has appended, as one batch."""
        number, batches = self._open
        if len(batches) > 1:
            batches = self._summed(batches)
            self._open = number, batches
        return batches[0] if batches and batches[0].shape[0] else None

    def waiting(self) -> Matrix | None:
        """What closed epochs have left unsaved, as one batch."""
        number, batches, last = self._unsaved
        if len(batches) > 1:
            batches = self._summed(batches)
            self._unsaved = number, batches, last
        return batches[0] if batches and batches[0].shape[0] else None

    def close(self, ids: Ids = ()) -> None:
        """End the epoch: its changes become past, which a store may know by ids."""
        number, batches = self._open
        if not batches:
            return
        batch = self.sum()
        if batch is not None and not self.past.has(number):
            self.past.append(batch, ids, number)
        self.past.tend()
        self._open = number + 1, []

    def leave(self) -> None:
        """End the epoch without a store: its changes are past for readers, and wait to be saved."""
        number, batches = self._open
        if not batches:
            return
        batch = self.sum()
        saves, unsaved, last = self._unsaved
        if batch is not None and last != number:
            self._unsaved = saves, self._put(unsaved, batch), number
        self.past.show(tuple(self.unsaved))
        self._open = number + 1, []

    def saved(self, ids: Ids) -> None:
        """Note that a store has what was `waiting`."""
        batch = self.waiting()
        number, _, last = self._unsaved
        if batch is not None and not self.past.has(number):
            self.past.append(batch, ids, number)
        self.past.tend()
        self.past.show(())
        self._unsaved = number - 1, [], last

    def abandon(self) -> None:
        """Forget the open epoch."""
        self._open = self._open[0] + 1, []

    def _put(self, batches: list[Matrix], batch: Matrix) -> list[Matrix]:
        """The batches with one more, merged with those that are not much larger; none of more than `most` rows is."""
        keep = len(batches)
        while keep and batches[keep - 1].shape[0] <= min(2 * batch.shape[0], self.most - batch.shape[0]):
            keep -= 1
            batch = merged(batches[keep], batch, self.order)
        return [*batches[:keep], batch]

    def _summed(self, batches: list[Matrix]) -> list[Matrix]:
        """Several batches as one."""
        whole = batches[-1]
        for larger in batches[-2::-1]:
            whole = merged(larger, whole, self.order)
        return [whole]

    def _in_range(self, batches: Iterable[Matrix]) -> Matrix:
        return _in_range(batches, self.columns, self.order)


def _take_up(past: Spine, slices: StoredBatches) -> None:
    """Let a spine be what stored batches say."""
    if past.order is not None:
        for batch, _ in slices:
            past.order.admit(batch)
    reach = sum(largest_weight(batch) for batch, _ in slices)
    if reach > SAFE:
        whole = _in_range((batch for batch, _ in slices), past.columns, past.order)
        slices = [(whole, tuple(i for _, ids in slices for i in ids))]
        reach = sum(largest_weight(batch) for batch, _ in slices)
    past.ledger[REACH] = reach
    past.restore(slices)


def _in_range(batches: Iterable[Matrix], columns: int, order: ValueOrder | None) -> Matrix:
    """The sum of batches, oldest first: as far as they were appended before, each sum was in range once."""
    whole = np.empty((0, columns), np.int64)
    for batch in batches:
        whole = merged(whole, batch, order)
    return whole


def _with(view: Batches, batches: Iterable[Matrix]) -> Batches:
    for batch in batches:
        view = view.plus(batch)
    return view


class Owing:
    """The traces with merging left to do, and how many of them do a share in each tick.

    The traces of a view get their rows in the same ticks, so their levels are often full in the same tick. If all paid
    what they owe in each of the next ticks, these would be as much longer as there are traces. So they take turns.
    """

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self._turn = 0

    def become(self, traces: Iterable[Trace]) -> None:
        """Begin anew with those of some traces that owe merging."""
        owing = [trace for trace in traces if trace.past.owes]
        self._turn = ceil(HASTE * sum(trace.past.owes / trace.past.pace for trace in owing))
        self.traces = owing

    def pay(self) -> None:
        """Let the next traces in turn do a share; those with more to do queue again at the end."""
        turn, others = self.traces[: self._turn], self.traces[self._turn :]
        for trace in turn:
            trace.past.pay()
        self.traces = others + [trace for trace in turn if trace.past.owes]
