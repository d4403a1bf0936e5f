"""Subscriptions: one listener of changes each, until the listener or the view ends it.

>>> told = []
>>> subscription = Subscription(lambda changes, epoch: told.append(epoch), ended=lambda: told.append("end"))
>>> subscription.listener((), 1)
>>> subscription.close()
>>> subscription.active, told
(False, [1])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from everview.blocks import Closing

Listener = Callable[[Any, int], None]  # told (changes, epoch); changes iterate as (row, weight)
Together = Callable[[Mapping[str, Any], int], None]  # told ({view: changes}, epoch)
Ended = Callable[[], None]  # told, once, that no more changes will come


class Handle(Protocol):
    """The listener's handle: closing it ends the subscription."""

    @property
    def active(self) -> bool: ...

    def close(self) -> None:
        """End the subscription: nothing more is told."""
        ...


class Subscription(Closing):
    """A listener that is told of a view's changes; calling or closing the subscription ends it."""

    def __init__(
        self,
        listener: Listener | Together,
        since: int = 0,
        end: Callable[[Subscription], None] | None = None,
        ended: Ended | None = None,
    ) -> None:
        self.listener: Callable[[Any, int], None] = listener
        self.since = since  # the listener is told of later epochs
        self.active = True
        self._end = end
        self._ended = ended

    def close(self) -> None:
        """End the subscription: nothing more is told."""
        self.active = False
        if self._end is not None:
            self._end(self)

    __call__ = close

    def over(self) -> None:
        """Tell the listener, once, that its view has ended."""
        if self.active:
            self.active = False
            if self._ended is not None:
                self._ended()
