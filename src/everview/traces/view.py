"""What operators read: the state of a trace at one moment, by key.

`TraceView` is the seam: a spine's batches implement it with kernels; a database table can implement it by
pushing keyed and ordered reads down. A view never changes; `plus` gives the view after a delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from everview.kernels import asof, ends, probe, top
from everview.kernels.merge import merge, merge_by_value
from everview.kernels.rows import LINE
from everview.kernels.table import with_batch
from everview.kernels.tally import tally
from everview.traces.looking import Look
from everview.traces.order import ValueOrder
from everview.types.words import Matrix, Words

NO_BATCHES = np.empty((0, LINE), np.int64)
NO_BOUND = np.empty(0, np.int64)


class TraceView(Protocol):
    """Keyed reads of a sorted collection of weighted rows. Probes and groups come sorted."""

    @property
    def columns(self) -> int: ...

    def __len__(self) -> int: ...

    def join(self, delta: Matrix, key: int, pick: Words) -> Matrix:
        """Each delta row with each row of its key; ``pick`` takes delta word c, or word ~c of the view's row."""
        ...

    def weights(self, probes: Matrix, key: int) -> Words:
        """The summed weight of the rows that begin with each probe's ``key`` words."""
        ...

    def group_rows(self, groups: Matrix, key: int) -> Matrix:
        """All rows of the groups, in no particular order, perhaps with weights still to be summed."""
        ...

    def first_rows(self, groups: Matrix, key: int, skip: int, limit: int) -> Matrix:
        """Of each group, the rows that take places ``skip`` to ``skip + limit``."""
        ...

    def first_rows_change(self, change: Matrix, groups: Matrix, key: int, skip: int, limit: int) -> Matrix:
        """How `first_rows` change when a batch is added."""
        ...

    def last_rows(self, groups: Matrix, key: int) -> Matrix:
        """The greatest row of each group."""
        ...

    def in_force(self, probes: Matrix, look: Look) -> Matrix:
        """For each probe the present row that is nearest to its time, with weight one; zeros if there is none."""
        ...

    def spans(self, changed: Matrix, look: Look) -> Matrix:
        """(group, from, to, 1): when rows at some changed times are, were or will be in force; no two overlap."""
        ...

    def within(self, spans: Matrix, group: int) -> Matrix:
        """All rows whose times lie in the spans of their groups, perhaps with weights still to be summed."""
        ...

    def tally(self, dense: Matrix, groups: Matrix, key: int) -> None:
        """Add the weight of each row (group, place) to ``dense[group, place]``."""
        ...

    def consolidated(self) -> Matrix:
        """Everything, as one batch."""
        ...

    def plus(self, batch: Matrix) -> TraceView:
        """The view after this batch is added."""
        ...

    def upto(self, bound: Words) -> TraceView:
        """Of timed entries, what lies within a bound in every coordinate of time; rows show without their times."""
        ...

    def join_at(self, delta: Matrix, key: int, pick: Words, now: Words) -> Matrix:
        """`join` with timed entries; each result ends in the join of ``now`` and its entry's time."""
        ...

    def later_times(self, groups: Matrix, key: int, now: Words) -> Matrix:
        """(group, time, 1) for every later time at which a group that changes now must be looked at again."""
        ...


class HasBatches(Protocol):
    """A holder of batches."""

    @property
    def batches(self) -> tuple[Matrix, ...]: ...


class Batches:
    """A view of the sum of a few batches. With an order, the batches are sorted by values instead of words.

    Inside a recursive scope entries end in words of time. Such a view reads what lies within a bound, and shows rows
    without their times; `join_at` and `later_times` show them.
    """

    __slots__ = ("_parts", "bound", "columns", "order", "table")

    def __init__(self, columns: int, batches: Sequence[Matrix] = (), order: ValueOrder | None = None) -> None:
        self.columns = columns
        self.order = order
        self.bound = NO_BOUND
        self.table = NO_BATCHES
        for batch in batches:
            self.table = with_batch(self.table, batch)
        self._parts: tuple[Matrix | HasBatches, ...] = tuple(batches)

    @classmethod
    def momentary(cls, columns: int, order: ValueOrder | None, holder: HasBatches, table: Matrix) -> Batches:
        """A view of what a holder has, for a reader that is done before the holder changes."""
        view = cls.__new__(cls)
        view.columns, view.order, view.bound, view.table, view._parts = columns, order, NO_BOUND, table, (holder,)
        return view

    @property
    def batches(self) -> tuple[Matrix, ...]:
        batches: list[Matrix] = []
        for part in self._parts:
            batches += (part,) if isinstance(part, np.ndarray) else part.batches
        return tuple(batches)

    def __len__(self) -> int:
        return int(self.table[:, 1].sum())

    def join(self, delta: Matrix, key: int, pick: Words) -> Matrix:
        assert not self.bound.size, "a join of timed entries has times of its own"
        return probe.join(delta, self.table, self.columns, key, pick)

    def weights(self, probes: Matrix, key: int) -> Words:
        return probe.weights(probes, self.table, self.columns, key, self.bound)

    def group_rows(self, groups: Matrix, key: int) -> Matrix:
        return probe.group_rows(groups, self.table, self.columns, key, self.bound)

    def first_rows(self, groups: Matrix, key: int, skip: int, limit: int) -> Matrix:
        where = groups, self.table, self.columns, key, skip, limit, self.bound
        return ends.first_rows(*where) if self.order is None else ends.first_rows_by_value(*where, *self.order.arrays)

    def first_rows_change(self, change: Matrix, groups: Matrix, key: int, skip: int, limit: int) -> Matrix:
        assert not self.bound.size, "timed entries change at several times"
        where = groups, with_batch(self.table, change), self.columns, key, skip, limit
        if self.order is None:
            return top.first_rows_change(*where)
        return top.first_rows_change_by_value(*where, *self.order.arrays)

    def last_rows(self, groups: Matrix, key: int) -> Matrix:
        where = groups, self.table, self.columns, key, self.bound
        return ends.last_rows(*where) if self.order is None else ends.last_rows_by_value(*where, *self.order.arrays)

    def in_force(self, probes: Matrix, look: Look) -> Matrix:
        where = probes, self.table, self.columns, *look
        return asof.in_force(*where) if self.order is None else asof.in_force_by_value(*where, *self.order.arrays)

    def spans(self, changed: Matrix, look: Look) -> Matrix:
        where = changed, self.table, self.columns, *look
        return asof.spans(*where) if self.order is None else asof.spans_by_value(*where, *self.order.arrays)

    def within(self, spans: Matrix, group: int) -> Matrix:
        return asof.within_spans(spans, self.table, self.columns, group)

    def tally(self, dense: Matrix, groups: Matrix, key: int) -> None:
        tally(dense, groups, self.table, self.columns, key, self.bound)

    def consolidated(self) -> Matrix:
        assert not self.bound.size, "a bounded view is read by key"
        if len(self.batches) == 1:
            return self.batches[0]
        whole = np.empty((0, self.columns), np.int64)
        for batch in reversed(self.batches):
            whole = merged(batch, whole, self.order)
        return whole

    def plus(self, batch: Matrix) -> Batches:
        if not batch.shape[0]:
            return self
        return self._like((*self._parts, batch), with_batch(self.table, batch), self.bound)

    # -- timed entries

    def upto(self, bound: Words) -> Batches:
        """What lies within a bound in every coordinate of time."""
        return self._like(self._parts, self.table, bound)

    def join_at(self, delta: Matrix, key: int, pick: Words, now: Words) -> Matrix:
        """`join` with entries of any time; each result ends in the join of ``now`` and its entry's time."""
        return probe.join_at(delta, self.table, self.columns, key, pick, now)

    def later_times(self, groups: Matrix, key: int, now: Words) -> Matrix:
        """(group, time) for every later time at which a group that changes now must be looked at again."""
        return probe.later_times(groups, self.table, self.columns, key, now)

    def _like(self, parts: tuple[Matrix | HasBatches, ...], table: Matrix, bound: Words) -> Batches:
        other = Batches.__new__(Batches)
        other.columns, other.order = self.columns, self.order
        other._parts, other.table, other.bound = parts, table, bound
        return other


def admitted(batches: Sequence[Matrix], order: ValueOrder | None) -> Sequence[Matrix]:
    """Batches whose values can be compared from now on; only values that were not at hand are looked for."""
    return batches if order is None else [order.admit(batch) for batch in batches]


def merged(a: Matrix, b: Matrix, order: ValueOrder | None) -> Matrix:
    """The sum of two batches in the same order."""
    return merge(a, b) if order is None else merge_by_value(a, b, *order.arrays)
