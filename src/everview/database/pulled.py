"""Fluent queries over sources that are attached and not kept: answered by pulling, and followed as living views.

Such a view belongs to this process: it is not stored, and closing it ends the following of its sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from everview.frontends.fluent import QueryPart
from everview.listening import Handle
from everview.runtimes.pull import PulledFeed, PulledFeeds
from everview.runtimes.pull.fluent import AtPipeline
from everview.types import Schema
from everview.views import OrderedView, ScalarView, Shape, TableView, TreeView
from everview.views import feed as views

if TYPE_CHECKING:
    from everview.database.core import Core


def at_sources(database: Core) -> AtPipeline:
    """The home of queries over a database's sources."""
    return AtPipeline(database.attached.pipeline, _living)


def _living(name: str, part: QueryPart, feeds: PulledFeeds) -> Shape:
    return in_shape(name, part, Root(feeds, name), Owned(feeds))


def in_shape(name: str, part: QueryPart, root: views.Feed, feeds: views.Feeds) -> Shape:
    """The living view of a query in the shape that it asks for: a value, a list, a table, or a tree."""
    if part.scalar:
        return ScalarView(root, name=name)
    if part.plain and part.ordered:
        names = root.schema.names
        return OrderedView(root, *((names[place], way) for place, way in part.order), dicts=True, name=name)
    if part.plain:
        return TableView(root, dicts=True, name=name)
    return TreeView(part, feeds, name)


class _Ending:
    """A subscription with feeds of its own, closed when the subscription ends."""

    def __init__(self, subscription: Handle, feeds: PulledFeeds) -> None:
        self._subscription, self._feeds = subscription, feeds

    @property
    def active(self) -> bool:
        return self._subscription.active

    def close(self) -> None:
        self._subscription.close()
        self._feeds.let_go()  # the collector of garbage closes views anywhere, whoever holds what


class Owned:
    """Feeds that are closed when their one subscription ends."""

    def __init__(self, feeds: PulledFeeds) -> None:
        self._feeds = feeds

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return self._feeds.schemas

    @property
    def lock(self) -> AbstractContextManager[Any]:
        return self._feeds.lock

    def subscribe(self, listener: Any, *, snapshot: bool = False, ended: Any = None) -> Handle:
        """See `Feeds`."""
        return _Ending(self._feeds.subscribe(listener, snapshot=snapshot, ended=ended), self._feeds)


class Root:
    """The feed of a query's own rows, which is closed when its one subscription ends."""

    def __init__(self, feeds: PulledFeeds, name: str) -> None:
        self._feeds, self.name = feeds, name

    @property
    def _feed(self) -> PulledFeed:
        return self._feeds.feeds[self.name]

    @property
    def schema(self) -> Schema:
        return self._feed.schema

    @property
    def lock(self) -> AbstractContextManager[Any]:
        return self._feed.lock

    def contents(self) -> Iterable[tuple[Any, int]]:
        """See `Feed`."""
        return self._feed.contents()

    def subscribe(self, listener: Any, *, snapshot: bool = False, ended: Any = None) -> Handle:
        """See `Feed`."""
        return _Ending(self._feed.subscribe(listener, snapshot=snapshot, ended=ended), self._feeds)
