"""Views at the end of a pipeline: the rows that a view holds, and the listeners that are told when these change.

Rows are shown as those of a database are: a TIMESTAMP without a zone, an ARRAY as a list. Listeners are told once for
each transaction that changed the rows, after it has been committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.listening import Ended, Listener, Subscription, Together
from everview.listening.calls import Through
from everview.plan.node import Plan
from everview.runtimes.pull.demand import Demand, Row, Sort
from everview.runtimes.pull.node import PullNode
from everview.runtimes.pull.ordering import sort_key
from everview.sources.protocol import Update
from everview.types import TIMESTAMP, Array, Schema, Type

if TYPE_CHECKING:
    from everview.runtimes.pull.pipeline import PullPipeline


@dataclass(frozen=True, slots=True)
class Weighted:
    """Rows with weights, as users see them; iterates as (row, weight), in no order."""

    pairs: tuple[tuple[Row, int], ...]

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


class PulledFeed:
    """A view over sources, with its rows in memory: made by `PullPipeline.attach`, ended by `close`."""

    def __init__(
        self,
        pipeline: PullPipeline,
        name: str,
        plan: Plan | None,
        root: PullNode,
        schema: Schema,
        asked: Plan | None = None,
    ) -> None:
        self._pipeline, self.name, self.root, self.schema = pipeline, name, root, schema
        self.plan, self.asked = plan, asked  # as it was built, and as it was given
        self._show = showing(schema)
        self._rows: dict[Row, int] = {}
        self._staged: dict[Row, int] = {}  # how often rows will be there
        self.closed = False

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while the rows change and listeners are told."""
        return self._pipeline.lock

    def contents(self) -> Weighted:
        """The rows now, each with its weight."""
        with self.lock:
            self._pipeline.settle()
            return self.shown(self._rows)

    def rows(self, *order: Sort) -> list[Row]:
        """The rows now, each as often as its weight; in an order, ties by all columns."""
        with self.lock:
            self._pipeline.settle()
            every = [row for row, weight in self._rows.items() for _ in range(weight)]
        if order:
            every.sort(key=sort_key(self.schema, (*order, *map(Sort, range(len(self.schema))))))
        return every if self._show is None else list(map(self._show, every))

    def __len__(self) -> int:
        with self.lock:
            self._pipeline.settle()
            return sum(self._rows.values())

    def __bool__(self) -> bool:
        return True

    def subscribe(self, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        """Call ``listener(changes, epoch)`` once after every transaction that changed the rows.

        With ``snapshot`` at once, too, with all that is there. ``ended`` is called when there will be no more.
        """
        return self._pipeline.subscribe(self, listener, snapshot=snapshot, ended=ended)

    def explain(self) -> str:
        """The view's nodes as text, with the last request to each source, and the rows read and kept."""
        from everview.runtimes.pull.explain import explained

        return explained(self)

    def close(self) -> None:
        """End the view, and drop the nodes that only this view needs."""
        self._pipeline.detach(self)

    def shown(self, rows: Mapping[Row, int]) -> Weighted:
        """Rows as users see them."""
        if self._show is None:
            return Weighted(tuple(rows.items()))
        return Weighted(tuple((self._show(row), weight) for row, weight in rows.items()))

    # -- turns

    def hydrate(self) -> None:
        """Pull all rows of the view."""
        rows: dict[Row, int] = {}
        for row in self.root.pull(Demand(keep=True)):
            rows[row] = rows.get(row, 0) + 1
        self._rows = rows

    def stage(self, update: Update) -> None:
        """Put a change aside until `commit`."""
        staged = {row: self._rows.get(row, 0) + weight for row, weight in update.rows.items()}
        for row, total in staged.items():
            assert total >= 0, f"{self.name} would hold {row} {total} times"
        self._staged = staged

    def commit(self) -> None:
        """Apply the change that was put aside. Repeating the call is harmless."""
        for row, total in self._staged.items():
            if total:
                self._rows[row] = total
            else:
                self._rows.pop(row, None)

    def rollback(self) -> None:
        """Forget the change that was put aside."""
        self._staged = {}

    def difference(self, other: PulledFeed) -> Update:
        """The difference between the rows of the same view pulled anew and the rows now."""
        changes = ((row, other._rows.get(row, 0) - self._rows.get(row, 0)) for row in {**self._rows, **other._rows})
        return Update({row: weight for row, weight in changes if weight})

    def become(self, other: PulledFeed) -> None:
        """Take over the rows and nodes of a view that was pulled anew."""
        self._rows, self.root = other._rows, other.root


class PulledFeeds:
    """Several views that change in the same transactions; a listener is told of all of them in one call."""

    def __init__(self, feeds: Mapping[str, PulledFeed], pipeline: PullPipeline) -> None:
        self.feeds, self._pipeline = dict(feeds), pipeline

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The columns of each view."""
        return {name: feed.schema for name, feed in self.feeds.items()}

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while rows change and listeners are told."""
        return self._pipeline.lock

    def subscribe(self, listener: Together, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        """Call ``listener({name: changes}, epoch)`` once after every transaction that changed any of them."""
        names = {feed.name: name for name, feed in self.feeds.items()}
        told = Through(listener, lambda changes: {names[name]: changed for name, changed in changes.items()})
        return self._pipeline.subscribe_all(tuple(self.feeds.values()), told, snapshot=snapshot, ended=ended)

    def let_go(self) -> None:
        """`close`, without waiting for anybody."""
        self._pipeline.leaving.add(self.feeds.values())

    def close(self) -> None:
        """End all views."""
        self._pipeline.detach(*self.feeds.values())


def showing(schema: Schema) -> Callable[[Row], Row] | None:
    """The function from stored rows to rows as users see them; None if both are the same."""
    shows = [_showing(type_) for type_ in schema.types]
    if not any(shows):
        return None

    def show(row: Row) -> Row:
        pairs = zip(row, shows, strict=True)
        return tuple([value if value is None or how is None else how(value) for value, how in pairs])

    return show


def _showing(type_: Type) -> Callable[[Any], Any] | None:
    if type_ == TIMESTAMP:
        return lambda moment: moment.replace(tzinfo=None)
    return list if isinstance(type_, Array) else None
