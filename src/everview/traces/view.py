"""What operators read: the state of a trace at one moment, by key.

`View` is the seam: a spine's batches implement it with kernels; a database table can implement it by
pushing keyed and ordered reads down. A view never changes; `plus` gives the view after a delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from everview.kernels import ends, probe
from everview.kernels.merge import merge, merge_by_value
from everview.kernels.table import with_batch
from everview.kernels.tally import tally
from everview.traces.order import ValueOrder

Matrix = NDArray[np.int64]
Words = NDArray[np.int64]


NO_BATCHES = np.empty((0, 2), np.int64)


class View(Protocol):
    """Keyed reads of a sorted collection of weighted rows. Probes and groups come sorted."""

    columns: int

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

    def last_rows(self, groups: Matrix, key: int) -> Matrix:
        """The greatest row of each group."""
        ...

    def tally(self, dense: Matrix, groups: Matrix, key: int) -> None:
        """Add the weight of each row (group, place) to ``dense[group, place]``."""
        ...

    def consolidated(self) -> Matrix:
        """Everything, as one batch."""
        ...

    def plus(self, batch: Matrix) -> View:
        """The view after this batch is added."""
        ...


class Batches:
    """A view of a few batches: the sum of them. With an order, the batches follow values instead of words."""

    __slots__ = ("batches", "columns", "order", "table")

    def __init__(self, columns: int, batches: Sequence[Matrix] = (), order: ValueOrder | None = None) -> None:
        self.columns = columns
        self.batches = tuple(batches)
        self.order = order
        self.table = NO_BATCHES
        for batch in self.batches:
            self.table = with_batch(self.table, batch)

    def __len__(self) -> int:
        return int(self.table[:, 1].sum())

    def join(self, delta: Matrix, key: int, pick: Words) -> Matrix:
        return probe.join(delta, self.table, self.columns, key, pick)

    def weights(self, probes: Matrix, key: int) -> Words:
        return probe.weights(probes, self.table, self.columns, key)

    def group_rows(self, groups: Matrix, key: int) -> Matrix:
        return probe.group_rows(groups, self.table, self.columns, key)

    def first_rows(self, groups: Matrix, key: int, skip: int, limit: int) -> Matrix:
        if self.order is None:
            return ends.first_rows(groups, self.table, self.columns, key, skip, limit)
        return ends.first_rows_by_value(groups, self.table, self.columns, key, skip, limit, *self.order.arrays)

    def last_rows(self, groups: Matrix, key: int) -> Matrix:
        if self.order is None:
            return ends.last_rows(groups, self.table, self.columns, key)
        return ends.last_rows_by_value(groups, self.table, self.columns, key, *self.order.arrays)

    def tally(self, dense: Matrix, groups: Matrix, key: int) -> None:
        tally(dense, groups, self.table, self.columns, key)

    def consolidated(self) -> Matrix:
        whole = np.empty((0, self.columns), np.int64)
        for batch in reversed(self.batches):
            whole = merged(batch, whole, self.order)
        return whole

    def plus(self, batch: Matrix) -> Batches:
        if not batch.shape[0]:
            return self
        more = Batches(self.columns, (), self.order)
        more.batches = (*self.batches, batch)
        more.table = with_batch(self.table, batch)
        return more


def merged(a: Matrix, b: Matrix, order: ValueOrder | None) -> Matrix:
    """The sum of two batches in the same order."""
    return merge(a, b) if order is None else merge_by_value(a, b, *order.arrays)
