"""Views as a single value: the only column of the only row.

>>> from everview import connect
>>> db = connect()
>>> _ = db.sql("CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(n) AS total FROM t")
>>> total = ScalarView(db.view("v"))
>>> _ = db.apply({"t": [((5,), 1), ((2,), 1)]})
>>> total.value
7
"""

from __future__ import annotations

from html import escape
from typing import Any

from everview.errors import ShapeError
from everview.views.bag import Bag
from everview.views.change import Change
from everview.views.feed import Feed
from everview.zset.tables import readable

ONE = "a single value is one column of one row"


class ScalarView(Bag):
    """The value of a feed of one column and at most one row; without a row, ``default``."""

    def __init__(self, feed: Feed, *, default: Any = None, name: str | None = None) -> None:
        if len(feed.schema) != 1:
            columns = ", ".join(feed.schema.names)
            raise ShapeError(f"{ONE}, and here are {len(feed.schema)} columns", hint=f"select one of {columns}")
        self.default = default
        super().__init__(feed, name)

    def _hydrate(self) -> None:
        pass

    def _apply(self, change: Change) -> Change:
        return change

    @property
    def value(self) -> Any:
        """The value now; an error if there are several rows."""
        with self.lock:
            count = len(self)
            if count > 1:
                raise ShapeError(
                    f"{ONE}, and {self.name} has {count} rows", hint="aggregate them, or take a table or ordered view"
                )
            return next((row[0] for row, weight in self._held.values() if weight > 0), self.default)

    def contents(self) -> Change:
        """The row now, with its weight."""
        with self.lock:
            return self._shown(dict(self._held), self.epoch, snapshot=True)

    def __len__(self) -> int:
        """The number of rows: 0 or 1, unless the view is no single value."""
        return sum(max(weight, 0) for _, weight in self._held.values())

    def __repr__(self) -> str:
        with self.lock:
            return f"<scalar view {self.name}: {self.value if len(self) < 2 else f'{len(self)} rows'!r}>"

    def _repr_html_(self) -> str:
        with self.lock:
            return f"<code>{escape(readable(self.value))}</code>" if len(self) < 2 else self._html([], len(self))
