"""A trace: the past of closed epochs, and what the open epoch has appended so far.

``before`` reads the past alone, ``after`` adds the open epoch. Closing an epoch moves its batches into the past;
abandoning it forgets them, and nothing has happened. History does not grow with the number of epochs: entries
carry no epoch, and inside a recursive scope their iterations are ordinary last words of the row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from everview.traces.order import ValueOrder
from everview.traces.spine import Spine
from everview.traces.view import Batches, merged

Matrix = NDArray[np.int64]


class Trace:
    """The state behind one `Arrange` on one shard.

    >>> trace = Trace(columns=2)
    >>> trace.push(np.array([[7, 1]])); len(trace.before), len(trace.after)
    (0, 1)
    >>> trace.close()
    array([[7, 1]])
    >>> len(trace.before)
    1
    """

    __slots__ = ("current", "past")

    def __init__(self, columns: int, batches: Sequence[Matrix] = (), order: ValueOrder | None = None) -> None:
        self.past = Spine(columns, batches, order)
        self.current: list[Matrix] = []

    @property
    def before(self) -> Batches:
        return self.past.view

    @property
    def after(self) -> Batches:
        view = self.past.view
        return Batches(view.columns, (*view.batches, *self.current), view.order) if self.current else view

    def push(self, batch: Matrix) -> None:
        """Append to the open epoch."""
        if batch.shape[0]:
            self.current.append(batch)

    def close(self) -> Matrix | None:
        """End the epoch: its changes become past. What they came to, or None if nothing changed."""
        if not self.current:
            return None
        whole = self.current[0]
        for batch in self.current[1:]:
            whole = merged(whole, batch, self.past.order)
        self.current.clear()
        self.past.append(whole)
        return whole

    def abandon(self) -> None:
        """Forget the open epoch."""
        self.current.clear()
