"""Views over sources that keep almost nothing: hydrated by one pull, kept right by what sources tell.

>>> from everview.plan.nodes import Scan, Top
>>> from everview.sources.memory import Memory
>>> tracks = Memory("id BIGINT, rating BIGINT NOT NULL", "id", [(n, n % 100) for n in range(1000)])
>>> pipeline = Pipeline({"track": tracks})
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
from everview.plan.node import Plan
from everview.process import ProcessLock
from everview.pull.build import Build, prepared
from everview.pull.demand import Demand, Row
from everview.pull.feed import Feed, Feeds, showing
from everview.pull.leaving import Leaving, Lock
from everview.pull.listening import Ended, Subscription, Together, Told
from everview.pull.node import Node, every_node
from everview.pull.transaction import Transaction
from everview.pull.turn import Turn, UnderWay
from everview.sources.protocol import Request, Source, Update
from everview.types import unknown_name
from everview.verify import Verdict, verify_plans
from everview.zset.batch import Batch


def _plainly(node: Node) -> Node:
    return node


class Pipeline:
    """Sources, and the views that are attached over them."""

    def __init__(
        self,
        sources: Mapping[str, Source] | None = None,
        *,
        lock: Lock | None = None,
        around: Callable[[Node], Node] = _plainly,
    ) -> None:
        self.sources: dict[str, Source] = dict(sources or {})
        self.lock: Lock = ProcessLock("the pipeline") if lock is None else lock
        self.feeds: tuple[Feed, ...] = ()
        self.epoch = 0
        self.stale = False  # whether views must be pulled anew
        self._around = around
        self._nodes: dict[Plan, Node] = {}
        self._anew: dict[Plan, Node] = {}
        self._told = Told()
        self._under: UnderWay | None = None
        self._names = count(1)
        self._closed = False
        self.leaving = Leaving(self.lock, self.detach)

    # -- sources

    def add(self, name: str, source: Source) -> None:
        """One source more."""
        with self.lock:
            if name in self.sources:
                raise PipelineError(f"there is a source {name} already", hint="give it another name")
            twice = next((each for each, known in self.sources.items() if known is source), None)
            if twice is not None:
                raise PipelineError(f"the source {name} is attached as {twice}", hint="make another of the same table")
            self.sources = {**self.sources, name: source}

    def drop(self, name: str) -> Source:
        """Let a source go that no view reads; it is not closed."""
        with self.lock:
            self._require_no_turn("a source is dropped")
            self.leaving.sweep()
            readers = [feed.name for feed in self.feeds if name in feed.root.reads]
            if readers:
                raise PipelineError(f"source {name} is read by {', '.join(readers)}", hint="close those views first")
            if name not in self.sources:
                raise unknown_name("source", name, list(self.sources))
            found = self.sources[name]
            self.sources = {each: source for each, source in self.sources.items() if each != name}
            return found

    @property
    def read(self) -> tuple[str, ...]:
        """The sources that views read."""
        every = frozenset[str]().union(*(feed.root.reads for feed in self.feeds))
        return tuple(name for name in self.sources if name in every)

    # -- views

    def attach(self, plan: Plan, name: str | None = None) -> Feed:
        """A view of a plan: one pull from the view up to the sources, and then every change."""
        return self.attach_all({name or "": plan}).feeds[name or ""]

    def attach_all(self, plans: Mapping[str, Plan | Node]) -> Feeds:
        """Views that are attached at one moment, and told of together; what they share is there once."""
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
            return Feeds(feeds, self)

    def _feed(self, name: str, plan: Plan | Node, build: Build) -> Feed:
        unique = f"{name or 'view'}#{next(self._names)}"
        if isinstance(plan, Node):
            return Feed(self, unique, None, plan, plan.schema)
        better = prepared(plan)
        return Feed(self, unique, better, build.of(better), plan.schema, plan)

    def _hydrate(self, feeds: tuple[Feed, ...]) -> None:
        """Pull what new views hold, in a turn of all sources: what these tell then counts for the others."""
        turn = Turn(self)
        try:
            turn.begin(sorted(frozenset[str]().union(*(feed.root.reads for feed in feeds))))
            turn.stage({})
        except BaseException:
            turn.rollback()
            raise
        self.note(turn.take_over())
        try:
            for feed in feeds:
                feed.hydrate()
        finally:
            self._acknowledge(turn)

    def _acknowledge(self, turn: Turn) -> None:
        """Commit sources whose changes have been taken over: if one refuses, it will tell of them again."""
        try:
            turn.commit_sources()
        except BaseException:
            self.stale = True
            turn.rollback()
            raise
        turn.over()

    def detach(self, *feeds: Feed) -> None:
        """Let views go, and the nodes that only they need."""
        with self.lock:
            self.feeds = tuple(feed for feed in self.feeds if feed not in feeds)
            self._keep_only_needed(self._nodes)
            for feed in feeds:
                feed.closed = True
            self._told.end([feed.name for feed in feeds])

    def _keep_only_needed(self, nodes: Mapping[Plan, Node]) -> None:
        """Nodes that no view needs are told of no changes, so nobody may find them. Views go at any time."""
        needed = {id(node) for feed in self.feeds for node in every_node(feed.root)}
        self._nodes = {plan: node for plan, node in nodes.items() if id(node) in needed}

    def close(self) -> None:
        """End all views; the sources are left as they are."""
        with self.lock:
            self._require_no_turn("the pipeline is closed")
            self._closed = True
            self.detach(*self.feeds)

    def subscribe(
        self, feeds: tuple[Feed, ...], listener: Together, *, snapshot: bool, ended: Ended | None
    ) -> Subscription:
        """See `Feed.subscribe` and `Feeds.subscribe`."""
        with self.lock:
            closed = next((feed.name for feed in feeds if feed.closed), None)
            if closed is not None:
                raise PipelineError(f"view {closed} is closed", hint="attach it again")
            found = self._told.add([feed.name for feed in feeds], listener, self.epoch, ended)
            if snapshot:
                try:
                    listener({feed.name: feed.contents() for feed in feeds}, self.epoch)
                except BaseException:
                    found.close()
                    raise
            return found

    def pull(self, *plans: Plan) -> list[list[Row]]:
        """The rows of plans now, all at one moment; nothing is kept."""
        with self.lock:
            self._require_open()
            build = Build(self.sources, {}, self._around)
            roots = [build.of(prepared(plan)) for plan in plans]
            shows = [showing(plan.schema) for plan in plans]
            found = [list(root.pull(Demand())) for root in roots]
            return [rows if show is None else list(map(show, rows)) for rows, show in zip(found, shows, strict=True)]

    # -- changes

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Changes of several sources that count together, when the block ends; an exception leaves no trace of them.

        Views show the state before until it ends, and each is told of once. One inside another joins it: should it
        raise, only its own changes are undone.
        """
        with self.lock:
            self._end_cut_short()
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

    def begin(self, busy: Busy | None = None) -> UnderWay:
        """A transaction that its caller ends, with the lock held all the while; see `UnderWay`.

        One that is ``busy`` with a block is undone by whoever comes next, should an exception cut its end short.
        """
        self._require_open()
        self._require_no_turn("a transaction is begun")
        self.leaving.sweep()
        turn = Turn(self)
        under = UnderWay(self, turn, Transaction(self.sources, turn.begin), busy)
        self._under = under
        return under

    @property
    def _open(self) -> Transaction | None:
        return None if self._under is None else self._under.changes

    def _end_cut_short(self) -> None:
        """Undo a transaction whose end an exception has cut short."""
        under = self._under
        if under is not None and under.busy is not None and not under.busy.alive:
            under.rollback()

    def end(self) -> None:
        """The transaction under way is over."""
        if self._under is not None:  # else an exception came when it was over already
            self._under.changes.closed = True
            self._under = None

    def tell(self) -> None:
        """Tell who listens of what has been committed."""
        self._told.tell()

    def apply(self, changes: Mapping[str, Any]) -> None:
        """One transaction of rows with weights."""
        with self.transaction() as tx:
            tx.apply(changes)

    def poll(self) -> bool:
        """Take what others have changed in all sources, as one transaction; whether any view changed."""
        with self.lock:
            self._require_no_turn("others' changes are taken")
            before, busy = self.epoch, Busy()
            with busy:
                under = self.begin(busy)
                try:
                    under.stage()
                    under.commit()
                except BaseException:
                    under.rollback()
                    raise
            self.tell()
            return self.epoch > before

    # -- whether it is right

    def explain(self) -> str:
        """All views: their pipelines, what sources were asked last, rows read and kept."""
        with self.lock:
            return "\n\n".join(f"{feed.name}: {feed.explain()}" for feed in self.feeds)

    def verify(self) -> Verdict:
        """All views computed from scratch by the oracle, over all rows of their sources, and compared."""
        with self.lock:
            feeds = {feed.name: feed for feed in self.feeds if feed.asked is not None}
            plans = {name: feed.asked for name, feed in feeds.items() if feed.asked is not None}
            tables = {name: _batch(self.sources[name]) for name in self.read}
            held = {name: Batch.of(feed.schema, list(feed.contents())) for name, feed in feeds.items()}
            return verify_plans(plans, tables, held)

    # -- views that must be pulled anew

    def pulled_anew(self) -> dict[Feed, Feed]:
        """Every view as it is when all of it is pulled again; nothing of the old nodes is used."""
        build = Build(self.sources, {}, self._around)
        found: dict[Feed, Feed] = {}
        for feed in self.feeds:
            root = feed.root if feed.plan is None else build.of(feed.plan)
            found[feed] = Feed(self, feed.name, feed.plan, root, feed.schema)
            found[feed].hydrate()
        self._anew = build.nodes
        return found

    def took_anew(self, found: Mapping[Feed, Feed]) -> dict[Feed, Update]:
        """From now on views go on from there; how they differ from before."""
        changes = {feed: feed.became(other) for feed, other in found.items()}
        self._keep_only_needed(self._anew)
        self._anew, self.stale = {}, False
        return changes

    def note(self, changes: Mapping[Feed, Update]) -> None:
        """Changes of views to tell of."""
        found = {feed.name: feed.shown(update.rows) for feed, update in changes.items() if update}
        if found:
            self.epoch += 1
            self._told.note(self.epoch, found)

    def _require_open(self) -> None:
        if self._closed:
            raise PipelineError("the pipeline is closed", hint="make another, or connect again")

    def _require_no_turn(self, what: str) -> None:
        self._end_cut_short()
        if self._open is not None:
            raise TransactionError(f"{what} inside a transaction", hint="do that before or after it")


def _batch(source: Source) -> Batch:
    return Batch.of(source.schema, [(row, 1) for row in source.pull(Request())])
