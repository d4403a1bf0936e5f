"""Tables and views as their users see them: contents now, and changes as they come.

Handles know their relation by name: they outlast changes of other definitions, and end when their relation is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from everview.codes import decode
from everview.codes.exits import AsFrames
from everview.codes.rows import to_rows
from everview.database.answers import in_order
from everview.database.together import tree_of
from everview.doors import doors, inside
from everview.errors import ShapeError
from everview.later import Later
from everview.listening import Ended, Listener
from everview.scalars.expressions import Column
from everview.types import Schema
from everview.views import Changes, OrderedView, Policy, Related, ScalarView, Subscription, TableView, TreeView, Turns
from everview.views.order import By
from everview.views.queue import MAXSIZE
from everview.zset.batch import Batch
from everview.zset.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.database.core import Core
    from everview.database.explain import explain_view
    from everview.database.lookup import row_of_key, rows_with
else:
    explain_view = Later("everview.database.explain", "explain_view")
    row_of_key = Later("everview.database.lookup", "row_of_key")
    rows_with = Later("everview.database.lookup", "rows_with")


@doors()
class Contents(AsFrames):
    """The contents of a relation now, in several forms."""

    @inside
    def __init__(self, database: Core, name: str) -> None:
        self._database = database
        self.name = name

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._database.holdings.schema_of(self.name)

    def contents(self) -> Batch:
        """The rows now, each with its weight."""
        return self._database.holdings.contents_of(self.name)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows now, each as often as its weight; of a view with ORDER BY in that order."""
        if self._order:
            return shown(self.schema, to_rows(self.schema, self.to_arrow()))
        with self._database.still:  # a vacuum of another thread would forget what rows were that are gone
            return [row for row, weight in self.contents() for _ in range(weight)]

    def to_arrow(self) -> pa.Table:
        """The rows now as an Arrow table, each as often as its weight."""
        with self._database.still:
            contents = self.contents()
            repeated = np.repeat(contents.rows[:, :-1], np.maximum(contents.weights, 0), axis=0)
            return in_order(decode(contents.schema, np.ascontiguousarray(repeated), contents.dictionary), self._order)

    @property
    def _order(self) -> Any:
        """The order in which the rows are shown, if the definition has one."""
        return getattr(self._database.catalog.relations.get(self.name), "order", ())

    def find(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> list[tuple[Any, ...]]:
        """The rows that have given values in some columns: ``find(country="UK")``, or ``find({"country": "UK"})``.

        By the columns of a table's key, or the first columns of a view, it is a search; by others it looks at each row.
        """
        return rows_with(self._database, self.name, {**(values or {}), **named})

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return int(np.maximum(self.contents().weights, 0).sum())

    def __bool__(self) -> bool:
        return True  # a view without rows is a view

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}: {self.schema}>"

    def _repr_html_(self) -> str:
        return self.contents().to_html()


class Table(Contents):
    """A table of a database."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key; none if the table is a bag."""
        return self._database.catalog.tables[self.name].key

    def get(self, *key: Any) -> tuple[Any, ...] | None:
        """The row of a key, a value for each column of the key; None if there is no such row."""
        return row_of_key(self._database, self.name, key)


@doors()
class View(Contents):
    """A materialized view of a database."""

    @property
    def lock(self) -> Turns:
        """Blocks changes while held."""
        return self._database.still

    def subscribe(self, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        """Call ``listener(changes, epoch)`` after every tick that changed the view.

        With ``snapshot`` it is called at once with all that the view holds; nothing lies between that and the first
        change. A listener may change the database: listeners are called with that change after this one. A listener
        that raises is reported by `ListenerError` when all others have been called. ``ended`` is called when the view
        has been dropped or has other columns now, or the database is closed.
        """
        return self._database.telling.subscribe(self.name, listener, snapshot=snapshot, ended=ended)

    def changes(self, *, snapshot: bool = False, maxsize: int | None = MAXSIZE, policy: Policy = "merge") -> Changes:
        """The changes as an iterator of (changes, epoch), which waits for the next one; see `Changes`.

        ``maxsize`` says how many changes may wait for their reader, ``policy`` what becomes of more: they are merged,
        or the writer waits (``block``), or the reader misses some (``drop``) or is refused (``error``).
        """
        return Changes(self, self.name, snapshot=snapshot, maxsize=maxsize, policy=policy)

    def __aiter__(self) -> Changes:
        """``async for changes in view``: first all that the view holds, then every change, until it ends."""
        return self.changes(snapshot=True)

    def live(self, *, dicts: bool = False) -> Any:
        """The rows, kept in this process as they change: reading them costs nothing.

        A fluent query has the shape that it asks for: a table, an ordered list, a tree or a value.
        """
        from everview.database.fluent import living, part_of

        if part_of(self._database.catalog, self.name) is not None:
            return living(self._database, self.name)
        return TableView(self, dicts=dicts)

    def ordered(
        self, *by: By | Sequence[By], limit: int | None = None, offset: int = 0, dicts: bool = False
    ) -> OrderedView:
        """The rows in an order, kept as they change: ``ordered("rating desc", "name", limit=10)``.

        Without an order, that of the view's ORDER BY.
        """
        return OrderedView(self, *(by or self._own_order()), limit=limit, offset=offset, dicts=dicts)

    def scalar(self, default: Any = None) -> ScalarView:
        """The value of the one column of the one row, kept as it changes."""
        return ScalarView(self, default=default)

    def tree(
        self,
        *related: Related,
        by: By | Sequence[By] = (),
        show: Sequence[str] | None = None,
        one: bool = False,
    ) -> TreeView:
        """The rows in an order, with related rows of other views beneath, as immutable snapshots; see `TreeView`."""
        return tree_of(self._database, self.name, related, by=by or self._own_order(), show=show, one=one)

    def _own_order(self) -> list[By]:
        """The view's ORDER BY, as far as it names columns of the view."""
        names, order = self.schema.names, list[By]()
        for by, how in self._order:
            if not isinstance(by, Column):
                raise ShapeError(
                    f"view {self.name} is ordered by {by}, which is none of its columns",
                    hint='name the columns: ordered("rating desc")',
                )
            order.append((names[by.index], how))
        return order

    def explain(self, *, profile: bool = False) -> str:
        """See `Database.explain`."""
        return explain_view(self._database, self.name, profile=profile)
