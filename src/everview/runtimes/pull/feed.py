"""The end of a pipeline: what a view holds now, and who is told when that changes.

Its rows are shown as those of a database are: a TIMESTAMP without a zone, an ARRAY as a list. Changes are told once a
transaction, after it has been committed, and only if there are any.
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
from everview.runtimes.pull.node import NOTHING, PullNode
from everview.runtimes.pull.ordering import sort_key
from everview.sources.protocol import Update
from everview.types import TIMESTAMP, Array, Schema, Type

if TYPE_CHECKING:
    from everview.runtimes.pull.pipeline import PullPipeline


@dataclass(frozen=True, slots=True)
class Weighted:
    """Rows with weights, as people see them; iterates as (row, weight), in no order."""

    pairs: tuple[tuple[Row, int], ...]

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


class PulledFeed:
    """A view over sources. Made by `PullPipeline.attach`; it holds its rows, and is closed when nobody needs it."""

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
        self._staged: Update = NOTHING
        self.closed = False

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while the rows change and listeners are told."""
        return self._pipeline.lock

    def contents(self) -> Weighted:
        """The rows now, each with its weight."""
        with self.lock:
            return self.shown(self._rows)

    def rows(self, *order: Sort) -> list[Row]:
        """The rows now, each as often as its weight; in an order, ties by all columns."""
        with self.lock:
            every = [row for row, weight in self._rows.items() for _ in range(weight)]
        if order:
            every.sort(key=sort_key(self.schema, (*order, *map(Sort, range(len(self.schema))))))
        return every if self._show is None else list(map(self._show, every))

    def __len__(self) -> int:
        return sum(self._rows.values())

    def __bool__(self) -> bool:
        return True

    def subscribe(self, listener: Listener, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        """Call ``listener(changes, epoch)`` once after every transaction that changed the rows.

        With ``snapshot`` at once, too, with all that is there. ``ended`` is called when there will be no more.
        """
        told = Through(listener, lambda changes: changes[self.name])
        return self._pipeline.subscribe((self,), told, snapshot=snapshot, ended=ended)

    def explain(self) -> str:
        """Its pipeline: nodes, what sources were asked last, rows read and kept."""
        from everview.runtimes.pull.explain import explained

        return explained(self)

    def close(self) -> None:
        """Let it go, and whatever of the pipeline only it needs."""
        self._pipeline.detach(self)

    def shown(self, rows: Mapping[Row, int]) -> Weighted:
        """Rows as people see them."""
        if self._show is None:
            return Weighted(tuple(rows.items()))
        return Weighted(tuple((self._show(row), weight) for row, weight in rows.items()))

    # -- turns

    def hydrate(self) -> None:
        """Pull all there is."""
        rows: dict[Row, int] = {}
        for row in self.root.pull(Demand(keep=True)):
            rows[row] = rows.get(row, 0) + 1
        self._rows = rows

    def stage(self, update: Update) -> None:
        """Put a change aside."""
        for row, weight in update.rows.items():
            total = self._rows.get(row, 0) + weight
            assert total >= 0, f"{self.name} would hold {row} {total} times"
        self._staged = update

    def commit(self) -> Update:
        """Take over the change that was put aside; what it was."""
        change, self._staged = self._staged, NOTHING
        for row, weight in change.rows.items():
            total = self._rows.get(row, 0) + weight
            if total:
                self._rows[row] = total
            else:
                del self._rows[row]
        return change

    def rollback(self) -> None:
        """Forget the change that was put aside."""
        self._staged = NOTHING

    def became(self, other: PulledFeed) -> Update:
        """Hold what another has pulled anew; the difference."""
        before, self._rows, self.root = self._rows, other._rows, other.root
        changes = ((row, self._rows.get(row, 0) - before.get(row, 0)) for row in {**before, **self._rows})
        return Update({row: weight for row, weight in changes if weight})


class PulledFeeds:
    """Several views that change in the same transactions, told of together."""

    def __init__(self, feeds: Mapping[str, PulledFeed], pipeline: PullPipeline) -> None:
        self.feeds, self._pipeline = dict(feeds), pipeline

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The columns of each."""
        return {name: feed.schema for name, feed in self.feeds.items()}

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while rows change and listeners are told."""
        return self._pipeline.lock

    def subscribe(self, listener: Together, *, snapshot: bool = False, ended: Ended | None = None) -> Subscription:
        """Call ``listener({name: changes}, epoch)`` once after every transaction that changed any of them."""
        names = {feed.name: name for name, feed in self.feeds.items()}
        told = Through(listener, lambda changes: {names[name]: changed for name, changed in changes.items()})
        return self._pipeline.subscribe(tuple(self.feeds.values()), told, snapshot=snapshot, ended=ended)

    def let_go(self) -> None:
        """`close`, without waiting for anybody."""
        self._pipeline.leaving.add(self.feeds.values())

    def close(self) -> None:
        """Let all of them go."""
        self._pipeline.detach(*self.feeds.values())


def showing(schema: Schema) -> Callable[[Row], Row] | None:
    """How rows become those that people see; None if they are."""
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
