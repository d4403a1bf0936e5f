"""Shapes of views: each follows a feed, and is a feed itself.

A shape takes a snapshot, and then every change, netted before it is applied. Its own listeners are told once a
transaction, if what the shape shows has changed, and after all shapes of the feed have taken the change: so a listener
reads the new state, of this shape and of others. A listener that raises harms neither the others nor the shape. When
the feed ends, the shape stays readable as it was last.

An exception such as Ctrl-C may interrupt a shape that is taking a change. Then the shape takes a snapshot again before
anything else, also before it is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from operator import length_hint
from typing import Any, Self
from weakref import ref

from everview.blocks import Busy
from everview.doors import doors
from everview.errors import ListenerError
from everview.listening import Ended, Handle, Listener, Subscription
from everview.listening.calls import Call, call_each, calls_of, end_all
from everview.process import forks
from everview.views.change import Change
from everview.views.changes import Changes
from everview.views.queue import MAXSIZE, Policy


class Follower:
    """The listener of a shape at its feed, which refers to the shape weakly unless the shape has listeners itself.

    A feed calls `follow` of all shapes before any of their listeners is told.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = ref(shape)
        self._held: Shape | None = None

    def hold(self, shape: Shape | None) -> None:
        """Keep the shape alive while there are listeners; None lets go of the shape."""
        self._held = shape

    def follow(self, changes: Any, epoch: int) -> list[Call]:
        """See `Shape.follow`."""
        shape = self._shape()
        return [] if shape is None else shape.follow(changes, epoch)

    def ended(self) -> None:
        """End the shape, because its feed has ended."""
        shape = self._shape()
        if shape is not None:
            shape.end()

    def __call__(self, changes: Any, epoch: int) -> None:
        calls, shape = self.follow(changes, epoch), self._shape()
        if shape is not None:
            _tell(shape.name, calls, epoch)


@doors()
class Shape(ABC):
    """The base of all shapes: follows a feed, and tells its own listeners."""

    def __init__(self, name: str, lock: AbstractContextManager[Any]) -> None:
        self.name = name
        self._lock = lock
        self._feed: Any = None
        self._taking: Busy | None = None  # a change
        self._unsure = False  # whether one has been taken in part
        self.epoch = 0  # of the last change
        self._recent: tuple[int, Change | None] = -1, None  # that change, and its epoch, if it came as one
        self._born = forks()
        self._listeners: list[Subscription] = []
        self._follower = Follower(self)
        self._following: Handle | None = None
        self._closed = False

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """The lock of the feed: nothing changes while it is held."""
        if self._cut_short:
            self._renew()
        return self._lock

    @abstractmethod
    def contents(self) -> Change:
        """All that the shape shows now, with weights."""

    # -- following

    def _follow(self, feed: Any) -> None:
        """Take a snapshot of a feed, and then every change."""
        self._feed = feed
        self._following = feed.subscribe(self._follower, snapshot=True, ended=self._follower.ended)

    @abstractmethod
    def _clear(self) -> None:
        """Forget all rows, because a snapshot comes next."""

    @property
    def _cut_short(self) -> bool:
        return self._unsure and (self._taking is None or not self._taking.alive)

    def _renew(self) -> None:
        """Take a snapshot again, because a change may have been taken in part."""
        with self._lock:
            before = self._following
            self._clear()
            self.epoch, self._unsure = -1, False
            if not self._closed:
                self._follow(self._feed)
            if before is not None:
                before.close()

    # -- being told

    def subscribe(self, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        """Call ``listener(changes, epoch)`` after every transaction that changed what the shape shows.

        With ``snapshot`` it is called at once with all that there is; nothing lies between that and the first change.
        ``ended`` is called when there will be no more.
        """
        with self.lock:
            subscription = Subscription(listener, self.epoch, self._forget, ended)
            if snapshot:
                listener(self.contents(), self.epoch)
            if self._closed:
                subscription.over()
            else:
                self._listeners.append(subscription)
                self._follower.hold(self)
            return subscription

    def changes(self, *, snapshot: bool = False, maxsize: int | None = MAXSIZE, policy: Policy = "merge") -> Changes:
        """The changes as an iterator, which waits for the next one; see `Changes`."""
        return Changes(self, self.name, snapshot=snapshot, maxsize=maxsize, policy=policy)  # pyright: ignore[reportArgumentType]

    def __aiter__(self) -> Changes:
        """``async for changes in view``: first all that there is, then every change."""
        return self.changes(snapshot=True)

    @abstractmethod
    def take(self, changes: Any, epoch: int) -> Change | None:
        """Take a change of the feed; the part of it that shows, None if nobody listens."""

    def follow(self, changes: Any, epoch: int) -> list[Call]:
        """Take a change, with all shapes of this shape; the calls that tell their listeners afterwards."""
        if self._cut_short:
            self._renew()
            change = self.contents() if self._listeners else None
        elif epoch <= self.epoch and self._following is not None:
            if self._recent[0] != epoch:
                return []  # it was in the snapshot
            change = self._recent[1]  # it has been taken, and an exception came before anyone was told
        else:
            change = self._taken(changes, epoch)
        if not change:
            return []
        return [call for each in tuple(self._listeners) for call in calls_of(each, change, epoch)]

    def _taken(self, changes: Any, epoch: int) -> Change | None:
        busy = Busy()
        with busy:
            self._taking, self._unsure = busy, True
            change = self.take(changes, epoch)
            self._recent = epoch, change
            self._unsure = False
        return change

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._listeners:
            self._listeners.remove(subscription)
        if not self._listeners:
            self._follower.hold(None)

    # -- the end

    @property
    def closed(self) -> bool:
        """Whether the shape no longer follows its feed."""
        return self._closed

    def close(self) -> None:
        """Stop following the feed; listeners are told that this is the end."""
        if self._following is not None:
            self._following.close()
        self.end()

    def end(self) -> None:
        """Tell listeners that the feed has ended."""
        with self.lock:
            self._closed = True
            ending, self._listeners = self._listeners, []
            self._follower.hold(None)
        end_all(ending)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        following = getattr(self, "_following", None) if getattr(self, "_born", None) == forks() else None
        if following is not None and following.active:
            following.close()

    def __bool__(self) -> bool:
        return True  # a view without rows is a view


def _tell(name: str, calls: list[Call], epoch: int) -> None:
    """Tell the listeners of a shape of a change."""
    raised: Exception | None = None
    left = iter(calls)
    while length_hint(left):
        try:
            call_each(left)
        except Exception as error:  # noqa: BLE001, whatever it is, the others are told
            raised = raised or error
    if raised is not None:
        raise ListenerError(
            f"a listener of {name} raised {type(raised).__name__}: {raised}",
            hint=f"epoch {epoch} has been applied, and all listeners were told",
        ) from raised
