"""Feeds, from which shapes of views are made: the current rows, and every change of the rows.

A feed is anything with these few methods: a view of a database, a view over sources that are not kept, another shape.
Changes iterate as (row, weight), in no order; weights of equal rows are to be summed. While its `lock` is held, a feed
does not change. A listener that asks for a snapshot is told of exactly the changes after it.

Several feeds that change together are `Feeds`: a listener is called once a transaction, with the changes of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from everview.listening import Ended, Handle, Listener, Together
from everview.listening.calls import Through
from everview.types import Schema

Weighted = Iterable[tuple[Any, int]]  # rows with weights


class Feed(Protocol):
    """The rows of one relation, and a way to be told of every change.

    A listener with a method `follow` takes changes by it before any other is told, and says by what it returns who else
    is to be told; see `everview.listening.calls`.
    """

    @property
    def schema(self) -> Schema: ...

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """The reentrant lock that is held while the rows change and listeners are told."""
        ...

    def contents(self) -> Weighted:
        """The rows now, with weights."""
        ...

    def subscribe(self, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None) -> Handle:
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

    def subscribe(self, listener: Together, *, snapshot: bool = False, ended: Ended | None = None) -> Handle:
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

    def subscribe(self, listener: Together, *, snapshot: bool = False, ended: Ended | None = None) -> Handle:
        """See `Feeds`."""
        told = Through(listener, lambda changes: {self._name: changes})
        return self._feed.subscribe(told, snapshot=snapshot, ended=ended)
