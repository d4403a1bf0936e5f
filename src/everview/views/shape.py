"""Shapes of views: each follows a feed, and is a feed itself.

A shape takes a snapshot, and then every change, netted before it is applied. Its own listeners are told once a
transaction, if what the shape shows has changed, and after all shapes of the feed have taken the change: so a listener
reads the new state, of this shape and of others. A listener that raises harms neither the others nor the shape. When
the feed ends, the shape stays readable as it was last.

An exception such as Ctrl-C may interrupt a shape that is taking a change. Then the shape goes back to the rows before
that change, of which its listeners know, before anything else, also before it is read; the change is told again. If it
is not, as after an exception that a listener may raise, the shape takes the difference between its rows and the feed's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import AbstractContextManager
from operator import length_hint
from typing import Any, Final
from weakref import ref

from everview.blocks import Busy, Closing
from everview.doors import doors
from everview.errors import ListenerError
from everview.listening import Ended, Handle, Listener, Subscription
from everview.listening.calls import Call, call_each, calls_of, end_all
from everview.process import forks
from everview.views.change import Change, Net, less
from everview.views.changes import Changes
from everview.views.queue import MAXSIZE, Policy

MISSED: Final = -1  # instead of an epoch: of a change that will not be told again
FormerRows = dict[Hashable, tuple[Any, int] | None]  # by their keys: rows as they were, None if they were not there


class Follower:
    """The listener of a shape at its feed, which refers to the shape weakly unless the shape has listeners itself.

    A feed calls `follow` of all shapes before any of their listeners is told. The first call brings all rows.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = ref(shape)
        self._held: Shape | None = None
        self._begun = False

    def hold(self, shape: Shape | None) -> None:
        """Keep the shape alive while there are listeners; None lets go of the shape."""
        self._held = shape

    def follow(self, changes: Any, epoch: int) -> list[Call]:
        """See `Shape.follow`."""
        shape, whole = self._shape(), not self._begun
        self._begun = True
        return [] if shape is None else shape.follow(changes, epoch, self, whole=whole)

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
class Shape(Closing, ABC):
    """The base of all shapes: follows a feed, and tells its own listeners."""

    def __init__(self, name: str, lock: AbstractContextManager[Any]) -> None:
        self.name = name
        self._lock = lock
        self._feed: Any = None
        self._taking: Busy | None = None  # a change
        self._former: tuple[int, list[FormerRows | None]] | None = (
            None  # before it: the epoch, and the rows that it touches
        )
        self._owed: int | None = None  # the epoch of a change that was begun, and has not been taken
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
        if self._cut_short or self._owed == MISSED:
            self._mend()
        return self._lock

    @abstractmethod
    def contents(self) -> Change:
        """All that the shape shows now, with weights."""

    # -- following

    def _follow(self, feed: Any) -> None:
        """Take a snapshot of a feed, and then every change."""
        self._follower.hold(None)
        self._feed, self._follower = feed, Follower(self)
        self._hold()
        self._following = feed.subscribe(self._follower, snapshot=True, ended=self._follower.ended)

    @abstractmethod
    def _parts(self) -> list[Net]:
        """The rows that are held: one net, or one for each feed."""

    @abstractmethod
    def _rebuild(self, parts: list[Net]) -> None:
        """Hold these rows and no others; what an exception cuts short can be repeated."""

    @property
    def _cut_short(self) -> bool:
        return self._former is not None and (self._taking is None or not self._taking.alive)

    def _mend(self) -> None:
        """Undo what was taken of a change before an exception came; make up for a change that will not come again."""
        with self._lock:
            if self._former is not None and self._cut_short:
                epoch, former = self._former
                self._rebuild([_with(rows, before) for rows, before in zip(self._parts(), former, strict=True)])
                self.epoch, self._former = epoch, None
            if self._owed == MISSED and self._following is not None and not self._closed:
                self._follow(self._feed)  # the former follower is not listened to; closing it may end the feed

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
                self._hold()
            return subscription

    def changes(self, *, snapshot: bool = False, maxsize: int | None = MAXSIZE, policy: Policy = "merge") -> Changes:
        """The changes as an iterator, which waits for the next one; see `Changes`."""
        return Changes(self, self.name, snapshot=snapshot, maxsize=maxsize, policy=policy)  # pyright: ignore[reportArgumentType]

    def __aiter__(self) -> Changes:
        """``async for changes in view``: first all that there is, then every change."""
        return self.changes(snapshot=True)

    @abstractmethod
    def _netted(self, changes: Any, epoch: int) -> list[Change] | None:
        """The net changes of all `_parts`; None if the feed has other columns now."""

    @abstractmethod
    def _take(self, changes: list[Change], epoch: int) -> Change | None:
        """Take net changes; the part of them that shows, None if nobody listens."""

    def follow(self, changes: Any, epoch: int, by: Follower, *, whole: bool) -> list[Call]:
        """Take a change, or the ``whole`` of the rows, with all shapes of this one; the calls that tell listeners."""
        if self._cut_short:
            self._mend()
        if whole:
            change = self._taken(changes, epoch, whole)
        elif self._owed is not None and self._owed != epoch:
            self._owed = MISSED
            self._mend()
            return []
        elif by is not self._follower:
            return []
        elif epoch > self.epoch:
            change = self._taken(changes, epoch, whole)
        elif self._recent[0] == epoch:
            change = self._recent[1]  # it has been taken, and an exception came before anyone was told
        else:
            return []  # it was in the snapshot
        if not change:
            return []
        return [call for each in tuple(self._listeners) for call in calls_of(each, change, epoch)]

    def _taken(self, changes: Any, epoch: int, whole: bool) -> Change | None:
        busy = Busy()
        with self._lock, busy:
            self._taking, self._owed = busy, MISSED if whole else epoch
            try:
                change = self._taken_net(changes, epoch, whole)
            except MemoryError:
                raise  # the change is told again, as after Ctrl-C
            except Exception:
                self._owed = MISSED  # whoever tells others goes on without this shape
                raise
            self._recent = epoch, change
            self._former, self._owed = None, None
        return change

    def _taken_net(self, changes: Any, epoch: int, whole: bool) -> Change | None:
        net = self._netted(changes, epoch)
        if net is None:
            self.close()
            return None
        parts = self._parts()
        if whole:
            net = [less(change, rows) if rows else change for change, rows in zip(net, parts, strict=True)]
        self._former = self.epoch, [_touched(rows, each) for rows, each in zip(parts, net, strict=True)]
        self.epoch = epoch
        return self._take(net, epoch)

    def _hold(self) -> None:
        """Keep the shape alive while it has listeners."""
        self._follower.hold(self if self._listeners else None)

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._listeners:
            self._listeners.remove(subscription)
        self._hold()

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
            self._hold()
        end_all(ending)

    def __del__(self) -> None:
        following = getattr(self, "_following", None) if getattr(self, "_born", None) == forks() else None
        if following is not None and following.active:
            following.close()

    def __bool__(self) -> bool:
        return True  # a view without rows is a view


def _touched(rows: Net, change: Change) -> FormerRows | None:
    """The rows that a change touches, as they are before it; None if there are no rows at all."""
    return {key: rows.get(key) for key in change.net} if rows else None


def _with(rows: Net, former: FormerRows | None) -> Net:
    """Rows as they were before a change."""
    if former is None:
        return {}
    whole = {**rows, **former}
    return {key: held for key, held in whole.items() if held is not None}


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
