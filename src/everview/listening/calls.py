"""Calls of single listeners: passing on changes, also through a function, and reporting exceptions.

A listener that keeps a copy of the rows, as a shape of a view does, has a method ``follow(changes, epoch)``: it takes
the changes at once, and returns the calls that tell its own listeners. Whoever tells several listeners lets all of them
take the changes before any of these calls, so that nobody reads a copy that is behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

from everview.errors import ListenerError
from everview.listening.subscription import Subscription

Raised = tuple[str, int, Exception]  # the view, the epoch, and what its listener raised
Call = tuple[Subscription, Callable[[], Any]]  # a listener's subscription, and how it is told if that is still active


class Through:
    """A listener behind a function, which is applied to the changes before the listener is called or follows."""

    def __init__(self, listener: Callable[[Any, int], None], made: Callable[[Any], Any]) -> None:
        self.listener, self.made = listener, made

    def __call__(self, changes: Any, epoch: int) -> None:
        self.listener(self.made(changes), epoch)


def calls_of(subscription: Subscription, changes: Any, epoch: int) -> list[Call]:
    """The calls due for changes: to the listener itself, or, if it follows them now, to its own listeners.

    A listener that follows and raises harms no other: its exception is raised by the call that is due for it.
    """
    listener = subscription.listener
    try:
        while isinstance(listener, Through):  # nothing may lie between a call and the listener, see `call_each`
            listener, changes = listener.listener, listener.made(changes)
        follow = getattr(listener, "follow", None)
        if follow is None:
            return [(subscription, partial(listener, changes, epoch))]
        return follow(changes, epoch) if subscription.active else []
    except MemoryError:
        raise  # as Ctrl-C: whoever is left is told the next time
    except Exception as error:  # noqa: BLE001, whatever it is, the others are told
        return [(Subscription(listener), partial(_raise, error))]


def _raise(error: Exception) -> None:
    raise error


def begun(subscription: Subscription, contents: Any, epoch: int) -> Subscription:
    """Tell a new listener of all that is there, as the first thing; one that raises is told of nothing else."""
    try:
        subscription.listener(contents, epoch)
    except BaseException:
        subscription.close()
        raise
    return subscription


def call_each(calls: Iterator[Call]) -> None:
    """Call active listeners until one raises; called again with the same iterator, go on after this one.

    Between taking a call and the listener's first line there is nothing at which the interpreter runs a signal handler.
    So no listener is left out, and none is told twice, not even one that an exception cuts short.
    """
    deque((call() for subscription, call in calls if subscription.active), maxlen=0)


def raise_first(raised: Collection[Raised]) -> None:
    """Report the first listener that raised, if any did; one that was told by another listener is named itself."""
    for view, epoch, error in raised:
        cause = error.__cause__ if isinstance(error, ListenerError) and error.__cause__ else error
        raise ListenerError(
            f"a listener of view {view} raised {type(cause).__name__}: {cause}",
            hint=f"epoch {epoch} has been applied, and all listeners were told",
        ) from cause


def end_all(subscriptions: Iterable[Subscription]) -> None:
    """Tell all listeners of the end of their view, then raise an error for the first one that failed."""
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
