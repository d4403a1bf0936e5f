"""Several views of a database followed together: one call of the listener a tick, with the changes of all views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everview.listening import Ended, Together
from everview.types import Schema
from everview.views import Related, Subscription, TreeView, Turns, branch

if TYPE_CHECKING:
    from everview.database.core import Core


class Views:
    """Some views of a database as `Feeds`."""

    def __init__(self, database: Core, names: Sequence[str]) -> None:
        database.access.settle()
        self._database = database
        self._names = tuple(dict.fromkeys(map(database.catalog.find_materialized, names)))

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The columns of each view."""
        return {name: self._database.holdings.schema_of(name) for name in self._names}

    @property
    def lock(self) -> Turns:
        """Blocks changes while held."""
        return self._database.still

    def subscribe(self, listener: Together, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        """Call ``listener({view: changes}, epoch)`` after every tick that changed any of the views."""
        return self._database.telling.subscribe_all(self._names, listener, snapshot=snapshot, ended=ended)


def tree_of(database: Core, name: str, related: Sequence[Related], **how: Any) -> TreeView:
    """The tree of a view's rows and the related rows beneath."""
    names = {name: name, **dict(_paths(name, related))}
    with database.still:
        feeds = Views(database, list(names.values()))
        return TreeView(branch(name, feeds.schemas, related, **how), feeds, name, names=names)


def _paths(above: str, related: Sequence[Related]) -> Iterator[tuple[str, str]]:
    """The view of every branch, by its path."""
    for each in related:
        path = f"{above}.{each.name}"
        yield path, each.view
        yield from _paths(path, each.related)
