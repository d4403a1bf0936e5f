"""Memory that large epochs have freed is given back to the system, which the allocator does not do by itself.

The allocator keeps blocks that were freed for whoever asks next. After a load of a million rows these are more than
the traces hold.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final

MUCH: Final = 1 << 19  # rows that an epoch appends, from which on what it frees is worth a walk through the allocator's
FEW: Final = 1 << 14  # rows; an epoch of fewer is small


def give_back() -> None:
    """Give what is free to the system, where its allocator can be told to."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], Any] | None:
    """What the GNU allocator has for it; others have nothing, or give memory back by themselves."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None


class LargeEpochs:
    """When to give memory back: after a large epoch at once, but after other large ones only when a small one follows.

    A series of loads uses the same blocks again and again, and touching a page anew takes longer than filling it.

    >>> given = []
    >>> epochs = LargeEpochs(lambda: given.append("all that is free"))
    >>> for rows in (MUCH, MUCH, 10):
    ...     epochs.appended(rows)
    ...     epochs.over()
    ...     print(given)
    ['all that is free']
    ['all that is free']
    ['all that is free', 'all that is free']
    """

    __slots__ = ("_gives_back", "_rows", "_waits")

    def __init__(self, gives_back: Callable[[], None] = give_back) -> None:
        self._gives_back = gives_back
        self._rows = 0  # that the open epoch has appended
        self._waits = False  # whether there has been a large epoch, and no small one since

    def appended(self, rows: int) -> None:
        """Note that the open epoch has appended so many rows."""
        self._rows += rows

    def over(self) -> None:
        """Note that the open epoch is over."""
        rows, self._rows = self._rows, 0
        begins, ends = rows >= MUCH and not self._waits, rows < FEW and self._waits
        if begins or ends:
            self._waits = begins
            self._gives_back()


LARGE_EPOCHS: Final = LargeEpochs()  # of this process
