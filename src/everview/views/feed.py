"""What a view can be made of: rows that are there now, and someone who tells of every change of them.

A feed is anything with these few methods: a view of a database, a pulled pipeline, a shape of views on another feed.
Its changes iterate as (row, weight), in no order; whoever takes them nets the weights first. Whoever holds its
`lock` sees nothing change. Between the snapshot that a listener is given and the first change that it is told of lies
nothing, and nothing comes twice.

Several feeds that change together are `Feeds`: their listener is called once a transaction, with the changes of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from everview.pull.listening import Through
from everview.types import Schema
from everview.views.subscription import Ended, Listener

Row = tuple[Any, ...]
Weighted = Iterable[tuple[Any, int]]  # rows with weights
Together = Callable[[Mapping[str, Weighted], int], None]  # told ({name: changes}, epoch)


class Ending(Protocol):
    """A subscription as those see it who hold it."""

    @property
    def active(self) -> bool: ...

    def close(self) -> None:
        """Be told no more."""
        ...


class Feed(Protocol):
    """Rows of one relation, as they are and as they change.

    A listener with a method `follow` takes changes by it before any other is told, and says by what it
    returns who else is to be told; see `everview.pull.listening.calls_of`.
    """

    @property
    def schema(self) -> Schema: ...

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held, by the same thread as often as it likes, while the rows change and listeners are told."""
        ...

    def contents(self) -> Weighted:
        """The rows now."""
        ...

    def subscribe(self, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None) -> Ending:
        """Call ``listener(changes, epoch)`` once after every transaction that changed the rows.

        With ``snapshot`` at once, too, with all that is there. ``ended`` is called when there will be no more.
        """
        ...


class Feeds(Protocol):
    """Several relations that change in the same transactions."""

    @property
    def schemas(self) -> Mapping[str, Schema]: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    def subscribe(self, listener: Together, *, snapshot: bool = False, ended: Ended | None = None) -> Ending:
        """Call ``listener({name: changes}, epoch)`` once after every transaction that changed any of them."""
        ...


class Alone:
    """One feed as `Feeds`, under a name."""

    def __init__(self, name: str, feed: Feed) -> None:
        self._name, self._feed = name, feed

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return {self._name: self._feed.schema}

    @property
    def lock(self) -> AbstractContextManager[Any]:
        return self._feed.lock

    def subscribe(self, listener: Together, *, snapshot: bool = False, ended: Ended | None = None) -> Ending:
        """See `Feeds`."""
        told = Through(listener, lambda changes: {self._name: changes})
        return self._feed.subscribe(told, snapshot=snapshot, ended=ended)
