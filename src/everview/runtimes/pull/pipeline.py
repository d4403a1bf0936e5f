"""Pipelines: views over sources that keep almost nothing. One pull gives their rows, pushed changes keep them right.

>>> from everview.plan.nodes import Scan, Top
>>> from everview.sources.memory import Memory
>>> tracks = Memory("id BIGINT, rating BIGINT NOT NULL", "id", [(n, n % 100) for n in range(1000)])
>>> pipeline = PullPipeline({"track": tracks})
>>> track = Scan("track", tracks.schema)
>>> best = pipeline.attach(Top(track, ((track.column(1), "desc"),), 2))
>>> sorted(best.rows()), tracks.rows_read
([(99, 99), (199, 99)], 2)
>>> _ = best.subscribe(lambda changes, epoch: print(sorted(changes)))
>>> with pipeline.transaction() as tx:
...     tx.delete("track", [99])
1
[((99, 99), -1), ((299, 99), 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from everview.blocks import Busy
from everview.errors import PipelineError, TransactionError
from everview.listening import Ended, Listener, Listeners, Subscription, Together
from everview.listening.calls import begun
from everview.plan.node import Plan
from everview.process import ProcessLock
from everview.runtimes.pull.build import Build, prepared
from everview.runtimes.pull.demand import Demand, Row
from everview.runtimes.pull.feed import PulledFeed, PulledFeeds, showing
from everview.runtimes.pull.leaving import Leaving, Lock
from everview.runtimes.pull.node import PullNode, every_node
from everview.runtimes.pull.transaction import SourceTransaction
from everview.runtimes.pull.turn import PulledAnew, StagedTransaction, Turn, TurnOwner
from everview.sources.protocol import Request, Source, Update
from everview.types import unknown_name
from everview.verify import Verdict, verify_plans
from everview.zset.batch import Batch


def _plainly(node: PullNode) -> PullNode:
    return node


class PullPipeline:
    """Sources, and the views attached over them."""

    def __init__(
        self,
        sources: Mapping[str, Source] | None = None,
        *,
        lock: Lock | None = None,
        around: Callable[[PullNode], PullNode] = _plainly,
    ) -> None:
        self.sources: dict[str, Source] = dict(sources or {})
        self.lock: Lock = ProcessLock("the pipeline") if lock is None else lock
        self.feeds: tuple[PulledFeed, ...] = ()
        self.epoch = 0
        self.stale = False  # whether views must be pulled anew
        self._around = around
        self._nodes: dict[Plan, PullNode] = {}
        self._listeners = Listeners()
        self._staged: StagedTransaction | None = None
        self._names = count(1)
        self._closed = False
        self.leaving = Leaving(self.lock, self.detach)

    # -- sources

    def add(self, name: str, source: Source) -> None:
        """Add a source."""
        with self.lock:
            if name in self.sources:
                raise PipelineError(f"there is a source {name} already", hint="give it another name")
            twice = next((each for each, known in self.sources.items() if known is source), None)
            if twice is not None:
                raise PipelineError(f"the source {name} is attached as {twice}", hint="make another of the same table")
            self.sources = {**self.sources, name: source}

    def drop(self, name: str) -> Source:
        """Remove and return a source, without closing it; raises if a view reads the source."""
        with self.lock:
            self._require_no_turn("a source is dropped")
            self.leaving.sweep()
            readers = [feed.name for feed in self.feeds if name in feed.root.reads]
            if readers:
                raise PipelineError(f"source {name} is read by {', '.join(readers)}", hint="close those views first")
            if name not in self.sources:
                raise unknown_name("source", name, list(self.sources))
            source = self.sources[name]
            self.sources = {each: source for each, source in self.sources.items() if each != name}
            return source

    @property
    def read(self) -> tuple[str, ...]:
        """The names of the sources that views read."""
        every = frozenset[str]().union(*(feed.root.reads for feed in self.feeds))
        return tuple(name for name in self.sources if name in every)

    # -- views

    def attach(self, plan: Plan, name: str | None = None) -> PulledFeed:
        """Attach a view of a plan: its rows are pulled once, then every change is pushed."""
        return self.attach_all({name or "": plan}).feeds[name or ""]

    def attach_all(self, plans: Mapping[str, Plan | PullNode]) -> PulledFeeds:
        """Attach several views at one moment, told of together; they share the nodes of equal parts."""
        with self.lock:
            self._require_open()
            self._require_no_turn("a view is attached")
            self.leaving.sweep()
            build = Build(self.sources, self._nodes, self._around)
            feeds = {name: self._feed(name, plan, build) for name, plan in plans.items()}
            try:
                self._hydrate(tuple(feeds.values()))
            except BaseException:
                self.tell()  # what others did counts, though the views are not attached
                raise
            self.feeds = (*self.feeds, *feeds.values())
            self._keep_only_needed(build.nodes)
            self.tell()
            return PulledFeeds(feeds, self)

    def _feed(self, name: str, plan: Plan | PullNode, build: Build) -> PulledFeed:
        unique = f"{name or 'view'}#{next(self._names)}"
        if isinstance(plan, PullNode):
            return PulledFeed(self, unique, None, plan, plan.schema)
        better = prepared(plan)
        return PulledFeed(self, unique, better, build.of(better), plan.schema, plan)

    def _hydrate(self, feeds: tuple[PulledFeed, ...]) -> None:
        busy = Busy()
        with busy:
            under = self.begin(busy)
            try:
                under.hydrate(feeds)
            except BaseException:
                under.rollback()
                raise

    def detach(self, *feeds: PulledFeed) -> None:
        """End views, and drop the nodes that only they need."""
        with self.lock:
            self.feeds = tuple(feed for feed in self.feeds if feed not in feeds)
            self._keep_only_needed(self._nodes)
            for feed in feeds:
                feed.closed = True
            self._listeners.end_now([feed.name for feed in feeds])

    def _keep_only_needed(self, nodes: Mapping[Plan, PullNode]) -> None:
        """Forget nodes that no view needs: they get no changes, so no later view may share them."""
        needed = {id(node) for feed in self.feeds for node in every_node(feed.root)}
        self._nodes = {plan: node for plan, node in nodes.items() if id(node) in needed}

    def close(self) -> None:
        """End all views; the sources are left as they are."""
        with self.lock:
            self._require_no_turn("the pipeline is closed")
            self._closed = True
            self.detach(*self.feeds)

    def subscribe(self, feed: PulledFeed, listener: Listener, *, snapshot: bool, ended: Ended | None) -> Subscription:
        """See `PulledFeed.subscribe`."""
        with self.lock:
            self.settle()
            _require_attached((feed,))
            subscription = self._listeners.add(feed.name, listener, self.epoch, ended)
            return begun(subscription, feed.contents(), self.epoch) if snapshot else subscription

    def subscribe_all(
        self, feeds: tuple[PulledFeed, ...], listener: Together, *, snapshot: bool, ended: Ended | None
    ) -> Subscription:
        """See `PulledFeeds.subscribe`."""
        with self.lock:
            self.settle()
            _require_attached(feeds)
            subscription = self._listeners.add_group([feed.name for feed in feeds], listener, self.epoch, ended)
            held = {feed.name: feed.contents() for feed in feeds} if snapshot else {}
            return begun(subscription, held, self.epoch) if snapshot else subscription

    def pull(self, *plans: Plan) -> list[list[Row]]:
        """The rows of plans, all from one moment; nothing is kept."""
        with self.lock:
            self._require_open()
            build = Build(self.sources, {}, self._around)
            roots = [build.of(prepared(plan)) for plan in plans]
            shows = [showing(plan.schema) for plan in plans]
            replies = [list(root.pull(Demand())) for root in roots]
            return [rows if show is None else list(map(show, rows)) for rows, show in zip(replies, shows, strict=True)]

    # -- changes

    @contextmanager
    def transaction(self) -> Generator[SourceTransaction]:
        """Change several sources together: all changes count when the block ends, none if it raises.

        Until then views show the state before; their listeners are told once. A transaction inside another joins it;
        if the inner one raises, only its own changes are undone.
        """
        with self.lock:
            self.settle()
            if self._open is not None:
                with self._open.inner():
                    yield self._open
                return
            busy = Busy()
            with busy:
                under = self.begin(busy)
                try:
                    yield under.changes
                    under.stage()
                    under.commit()
                except BaseException:
                    under.rollback()
                    raise
            self.tell()

    def begin(self, owner: TurnOwner | None = None) -> StagedTransaction:
        """Begin a transaction that the caller ends, holding the lock meanwhile; see `StagedTransaction`.

        Should an exception cut the ``owner`` of a transaction short, the next caller ends the transaction.
        """
        self._require_open()
        self._require_no_turn("a transaction is begun")
        self.leaving.sweep()
        turn = Turn(self)
        staged = StagedTransaction(self, turn, SourceTransaction(self.sources, turn.begin), owner)
        self._staged = staged
        return staged

    @property
    def _open(self) -> SourceTransaction | None:
        return None if self._staged is None else self._staged.changes

    def settle(self) -> None:
        """End a transaction whose end an exception has cut short."""
        staged = self._staged
        if staged is not None and staged.abandoned:
            staged.rollback()

    def end(self) -> None:
        """Note that the open transaction is over."""
        if self._staged is not None:  # else an exception came when it was over already
            self._staged.changes.closed = True
            self._staged = None

    def tell(self) -> None:
        """Tell listeners of the changes that have been committed."""
        self._listeners.tell()

    def apply(self, changes: Mapping[str, Any]) -> None:
        """Apply rows with weights as one transaction."""
        with self.transaction() as tx:
            tx.apply(changes)

    def poll(self) -> bool:
        """Push what others have changed in all sources, as one transaction; whether any view changed."""
        with self.lock:
            self._require_no_turn("others' changes are taken")
            before = self.epoch
            with self.transaction():
                pass  # nothing of our own: staging takes in what others have changed
            return self.epoch > before

    # -- whether it is right

    def explain(self) -> str:
        """All views as text: nodes, last requests to sources, rows read and kept."""
        with self.lock:
            return "\n\n".join(f"{feed.name}: {feed.explain()}" for feed in self.feeds)

    def verify(self) -> Verdict:
        """Compare all views with what the oracle computes from all rows of their sources."""
        with self.lock:
            feeds = {feed.name: feed for feed in self.feeds if feed.asked is not None}
            plans = {name: feed.asked for name, feed in feeds.items() if feed.asked is not None}
            tables = {name: _batch(self.sources[name]) for name in self.read}
            held = {name: Batch.of(feed.schema, list(feed.contents())) for name, feed in feeds.items()}
            return verify_plans(plans, tables, held)

    # -- views that must be pulled anew

    def pulled_anew(self) -> PulledAnew:
        """Pull every view again, with new nodes."""
        build = Build(self.sources, {}, self._around)
        anew: dict[PulledFeed, PulledFeed] = {}
        for feed in self.feeds:
            root = feed.root if feed.plan is None else build.of(feed.plan)
            anew[feed] = PulledFeed(self, feed.name, feed.plan, root, feed.schema)
            anew[feed].hydrate()
        return PulledAnew(anew, build.nodes)

    def take_anew(self, anew: PulledAnew) -> None:
        """Replace the views' rows and nodes by those pulled anew. Repeating the call is harmless."""
        for feed, other in anew.feeds.items():
            feed.become(other)
        self._keep_only_needed(anew.nodes)

    def note(self, epoch: int, changes: Mapping[PulledFeed, Update]) -> None:
        """Begin an epoch with the changes of views, to be told by `tell`. Repeating the call is harmless."""
        shown = {feed.name: feed.shown(update.rows) for feed, update in changes.items() if update}
        if shown and epoch > self.epoch:
            self._listeners.note(epoch, shown)
            self.epoch = epoch

    def _require_open(self) -> None:
        if self._closed:
            raise PipelineError("the pipeline is closed", hint="make another, or connect again")

    def _require_no_turn(self, what: str) -> None:
        self.settle()
        if self._open is not None:
            raise TransactionError(f"{what} inside a transaction", hint="do that before or after it")


def _require_attached(feeds: tuple[PulledFeed, ...]) -> None:
    closed = next((feed.name for feed in feeds if feed.closed), None)
    if closed is not None:
        raise PipelineError(f"view {closed} is closed", hint="attach it again")


def _batch(source: Source) -> Batch:
    return Batch.of(source.schema, [(row, 1) for row in source.pull(Request())])
