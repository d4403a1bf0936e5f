"""Calls of single listeners: how one is told of changes, what a function puts between, and what one that raises means.

A listener that keeps a copy of the rows, as a shape of a view does, has a method ``follow(changes, epoch)``: it takes
the changes at once, and returns a call that tells its own listeners (or None). Whoever tells several listeners lets all
of them take the changes before any of these calls, so that nobody reads a copy that is behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from everview.errors import ListenerError
from everview.listening.subscription import Subscription

Raised = tuple[str, int, Exception]  # the view, the epoch, and what its listener raised


def call_of(subscription: Subscription, changes: Any, epoch: int) -> Callable[[], None] | None:
    """The call that tells a listener of changes, which one that follows has taken by now; None if nothing is told."""
    follow = getattr(subscription.listener, "follow", None)
    if follow is not None:
        return follow(changes, epoch) if subscription.active else None
    return lambda: subscription.listener(changes, epoch) if subscription.active else None


class Through:
    """A listener that is told what a function makes of the changes; one that follows, follows through the function."""

    def __init__(self, listener: Callable[[Any, int], None], made: Callable[[Any], Any]) -> None:
        self._listener, self._made = listener, made

    def __call__(self, changes: Any, epoch: int) -> None:
        self._listener(self._made(changes), epoch)

    @property
    def follow(self) -> Callable[[Any, int], Any] | None:
        """How the listener takes changes before others are told; None if it does not."""
        follow = getattr(self._listener, "follow", None)
        return None if follow is None else lambda changes, epoch: follow(self._made(changes), epoch)


def raise_first(raised: Collection[Raised]) -> None:
    """Report the first listener that raised, if any did; one that was told by another listener is named itself."""
    for view, epoch, error in raised:
        cause = error.__cause__ if isinstance(error, ListenerError) and error.__cause__ else error
        raise ListenerError(
            f"a listener of view {view} raised {type(cause).__name__}: {cause}",
            hint=f"epoch {epoch} has been applied, and all listeners were told",
        ) from cause


def end_all(subscriptions: Iterable[Subscription]) -> None:
    """Tell all listeners that their view has ended, then report the first of them that raised."""
    raised: Exception | None = None
    for subscription in subscriptions:
        try:
            subscription.over()
        except Exception as error:  # noqa: BLE001, whatever it is, the others are told
            raised = raised or error
    if raised is not None:
        raise ListenerError(
            f"a listener raised {type(raised).__name__} when its view ended: {raised}",
            hint="the view has ended, and all listeners were told",
        ) from raised
