"""Someone who is told of changes, until either side ends it.

>>> told = []
>>> subscription = Subscription(lambda changes, epoch: told.append(epoch), ended=lambda: told.append("end"))
>>> subscription.listener((), 1)
>>> subscription.close()
>>> subscription.active, told
(False, [1])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Listener = Callable[[Any, int], None]  # told (changes, epoch); changes iterate as (row, weight)
Ended = Callable[[], None]


class Subscription:
    """Someone who is told of a view's changes; calling or closing it ends that."""

    def __init__(
        self,
        listener: Listener,
        since: int = 0,
        end: Callable[[Subscription], None] | None = None,
        ended: Ended | None = None,
    ) -> None:
        self.listener = listener
        self.since = since  # it is told of later epochs
        self.active = True
        self._end = end
        self._ended = ended

    def close(self) -> None:
        """Be told no more."""
        self.active = False
        if self._end is not None:
            self._end(self)

    __call__ = close

    def over(self) -> None:
        """What it listens to has ended: tell it so, once."""
        if self.active:
            self.active = False
            if self._ended is not None:
                self._ended()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
