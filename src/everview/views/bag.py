"""The base of shapes that hold rows: rows by key, each with its weight, kept as a feed changes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from everview.types import Schema
from everview.views.change import Change, Net, add_one
from everview.views.feed import Feed, Weighted
from everview.views.identity import identity
from everview.views.shape import Shape


class Bag(Shape):
    """A shape that holds the rows of one feed."""

    def __init__(self, feed: Feed, name: str | None = None) -> None:
        super().__init__(name or getattr(feed, "name", type(self).__name__), feed.lock)
        self.schema: Schema = feed.schema
        self._key = identity(self.schema)
        self._held: Net = {}
        self._follow(feed)

    def _parts(self) -> list[Net]:
        return [self._held]

    def _rebuild(self, parts: list[Net]) -> None:
        (self._held,) = parts
        self._hydrate()

    def _netted(self, changes: Weighted, epoch: int) -> list[Change] | None:
        if not self._fits(getattr(changes, "schema", None)):
            return None
        return [Change.of(changes, epoch, self._key, schema=self.schema)]

    def _take(self, changes: list[Change], epoch: int) -> Change | None:
        (change,) = changes
        if self._held:
            for key, (row, weight) in change.net.items():
                add_one(self._held, key, row, weight)
            shown = self._apply(change)
        else:
            self._held = dict(change.net)
            self._hydrate()
            shown = replace(self.contents(), snapshot=False) if self._listeners else None
        return shown if self._listeners else None

    def _fits(self, schema: Schema | None) -> bool:
        """Whether the shape can take rows of a schema: the same one, or one of other types while there are no rows."""
        if schema is None or schema == self.schema:
            return True
        if self._held or schema.names != self.schema.names:
            return False
        self._key = identity(schema)
        self.schema = schema
        return True

    @abstractmethod
    def _hydrate(self) -> None:
        """Build the shape from all rows that are held."""

    @abstractmethod
    def _apply(self, change: Change) -> Change:
        """Update the shape by a change that the held rows include; the part of the change that shows."""

    def _shown(self, net: Net, epoch: int, *, snapshot: bool = False) -> Change:
        return Change(net, epoch, epoch - 1, snapshot, self.schema)

    def _html(self, rows: list[Any], count: int) -> str:
        from everview.zset.tables import table

        return table(self.schema.names, rows, count)
