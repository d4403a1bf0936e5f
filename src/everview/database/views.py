"""Tables and views as their users see them: contents now, and changes as they come.

They are known by name, so they go on when other views are added or dropped, and end when their own is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from everview.codes import decode
from everview.codes.rows import to_rows
from everview.database.answers import in_order
from everview.database.shown import shown
from everview.errors import EverviewError
from everview.types import Schema
from everview.zset.batch import Batch

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.database.database import Database

Listener = Callable[[Batch, int], None]


class Subscription:
    """Someone who is told of a view's changes; calling or closing it ends that."""

    def __init__(self, listener: Listener, since: int, end: Callable[[Subscription], None]) -> None:
        self.listener = listener
        self.since = since  # it is told of later epochs
        self.active = True
        self._end = end

    def close(self) -> None:
        """Be told no more."""
        self.active = False
        self._end(self)

    __call__ = close

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Contents:
    """What a relation holds now, in whatever form."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self.name = name

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._database.schema_of(self.name)

    def contents(self) -> Batch:
        """The rows now, each with its weight."""
        return self._database.contents_of(self.name)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows now, each as often as its weight; of a view with ORDER BY in that order."""
        if self._order:
            return shown(self.schema, to_rows(self.schema, self.to_arrow()))
        return [row for row, weight in self.contents() for _ in range(weight)]

    def to_arrow(self) -> pa.Table:
        """The rows now as an Arrow table, each as often as its weight."""
        found = self.contents()
        repeated = np.repeat(found.rows[:, :-1], np.maximum(found.weights, 0), axis=0)
        return in_order(decode(found.schema, np.ascontiguousarray(repeated), found.dictionary), self._order)

    @property
    def _order(self) -> Any:
        """In which order the rows are shown, if that is said."""
        return getattr(self._database.catalog.relations.get(self.name), "order", ())

    def to_pandas(self) -> Any:
        """The rows now as a pandas frame."""
        return self.to_arrow().to_pandas()

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
        """The columns of its primary key; none if it is a bag."""
        return self._database.catalog.tables[self.name].key


class View(Contents):
    """A materialized view of a database."""

    def subscribe(self, listener: Listener, *, snapshot: bool = False) -> Subscription:
        """Call ``listener(changes, epoch)`` after every tick that changed the view.

        With ``snapshot`` it is called at once with all that the view holds; nothing lies between that and the first
        change. A listener may change the database: whoever listens is told of that after this. One that raises is
        reported by `ListenerError` when all others have been told.
        """
        return self._database.subscribe(self.name, listener, snapshot=snapshot)

    def changes(self, *, snapshot: bool = False) -> Changes:
        """The changes as an iterator of (changes, epoch), which waits for the next one; see `Changes`."""
        return Changes(self, snapshot=snapshot)

    def explain(self) -> str:
        """See `Database.explain`."""
        return self._database.explain(self.name)


class Changes:
    """A view's changes as they come, from the moment this was made.

    Iterating waits for the next one, without end; `next` with a timeout gives up. For another thread than the one
    that changes the database.
    """

    def __init__(self, view: View, *, snapshot: bool) -> None:
        self._queue: SimpleQueue[tuple[Batch, int] | None] = SimpleQueue()
        self.name = view.name
        self._subscription = view.subscribe(lambda batch, epoch: self._queue.put((batch, epoch)), snapshot=snapshot)

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        while (found := self._queue.get()) is not None:
            yield found

    def next(self, timeout: float | None = None) -> tuple[Batch, int]:
        """The next change; an error if none comes within so many seconds."""
        try:
            found = self._queue.get(timeout=timeout)
        except Empty:
            raise EverviewError(f"view {self.name} did not change within {timeout} s", hint="wait longer") from None
        if found is None:
            raise EverviewError(f"the changes of view {self.name} are closed", hint="ask the view for new ones")
        return found

    def ready(self) -> list[tuple[Batch, int]]:
        """Those that are there, without waiting."""
        found: list[tuple[Batch, int]] = []
        while not self._queue.empty() and (one := self._queue.get()) is not None:
            found.append(one)
        return found

    def close(self) -> None:
        """No more of them; who waits, waits no longer."""
        self._subscription.close()
        self._queue.put(None)

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
