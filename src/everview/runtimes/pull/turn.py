"""Turns of a pipeline: what several sources change together, and what this changes in all views.

A turn begins the turns of its sources. `stage` writes to the sources, reads all their changes and pushes these through
the pipeline, where new states are put aside; if anything raises until then, `rollback` leaves everything as it was. The
sources are committed next, then the new states are taken over, by whoever comes next should an exception cut that
short. Two databases are committed one after the other: if the second refuses, the first has its changes, and the next
turn pulls all views anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from everview.plan.node import Plan
from everview.runtimes.pull.feed import PulledFeed
from everview.runtimes.pull.node import NOTHING, PullNode
from everview.runtimes.pull.transaction import SourceTransaction
from everview.sources.protocol import Update

if TYPE_CHECKING:
    from everview.runtimes.pull.pipeline import PullPipeline


@dataclass(frozen=True, slots=True)
class PulledAnew:
    """All views of a pipeline pulled once more: each new view by the one it replaces, and the nodes of the new ones."""

    feeds: dict[PulledFeed, PulledFeed]
    nodes: dict[Plan, PullNode]


class Turn:
    """One turn, from the first request to a source until commit or rollback."""

    def __init__(self, pipeline: PullPipeline) -> None:
        self._pipeline = pipeline
        self._begun: list[str] = []
        self._pushed: list[PullNode] = []
        self._changed: dict[PulledFeed, Update] = {}
        self._anew: PulledAnew | None = None
        self._counts = False  # whether the new states are to be taken over, whatever happens
        self._epoch = pipeline.epoch + 1

    def begin(self, names: Iterable[str]) -> None:
        """Begin the turns of sources that have not begun yet."""
        for name in names:
            if name not in self._begun:
                self._begun.append(name)  # first: should it begin, and an exception come, it is ended
                try:
                    self._pipeline.sources[name].begin()
                except Exception:
                    self._begun.remove(name)
                    raise

    def stage(self, writes: Mapping[str, Update]) -> bool:
        """Write to sources, and push all their changes; whether any view changes."""
        written = {name: update for name, update in writes.items() if update}
        self.begin((*written, *self._pipeline.read))
        sources = self._pipeline.sources
        for name, update in written.items():
            sources[name].write(update)
        changes = {name: sources[name].changes() for name in self._begun}
        if self._pipeline.stale:
            self._anew = self._pipeline.pulled_anew()
            self._changed = {feed: feed.difference(other) for feed, other in self._anew.feeds.items()}
            return True
        self._push({name: update for name, update in changes.items() if update})
        return bool(self._changed)

    def _push(self, changes: Mapping[str, Update]) -> None:
        if not changes:
            return
        done: dict[int, Update] = {}
        changed = frozenset(changes)
        for feed in self._pipeline.feeds:
            update = self._of(feed.root, changes, changed, done)
            if update:
                self._changed[feed] = update
                feed.stage(update)

    def _of(
        self, node: PullNode, changes: Mapping[str, Update], changed: frozenset[str], done: dict[int, Update]
    ) -> Update:
        """The change of a node, computed after those of its inputs."""
        update = done.get(id(node))
        if update is not None:
            return update
        if not node.reads & changed:
            update = NOTHING
        elif not node.inputs:
            (name,) = node.reads
            update = node.push(changes[name])
        else:
            updates = [self._of(each, changes, changed, done) for each in node.inputs]
            self._pushed.append(node)
            update = node.push(*updates) if any(updates) else NOTHING
        done[id(node)] = update
        return update

    def commit_sources(self) -> None:
        """Commit the sources; if one refuses after another has committed, the next turn pulls all views anew."""
        committed, stale = 0, self._pipeline.stale
        self._pipeline.stale = True  # should an exception come that no source raises, nobody knows what counts
        try:
            while self._begun:
                self._pipeline.sources[self._begun[0]].commit()
                del self._begun[0]
                committed += 1
        except Exception:
            self._pipeline.stale = stale or committed > 0
            del self._begun[0]  # a source that could not commit has ended its turn
            raise

    def take_over(self) -> None:
        """Take over the new states of nodes and views, and note the changes for listeners.

        What an exception cuts short, `rollback` finishes: repeating the call is harmless.
        """
        self._counts = self._pipeline.stale = True
        if self._anew is not None:
            self._pipeline.take_anew(self._anew)
        for node in self._pushed:
            node.commit()
        for feed in self._changed:
            feed.commit()
        self._pipeline.note(self._epoch, self._changed)

    def over(self) -> None:
        """The sources have committed, and the views have taken over their changes."""
        self._pipeline.stale = False

    def rollback(self) -> None:
        """Undo the turn: nodes, views and sources are as before; if the new states count, take them over instead."""
        if self._counts:
            self.take_over()
        for feed in self._changed:
            feed.rollback()
        for node in self._pushed:
            node.rollback()
        errors: list[Exception] = []
        for name in self._begun:
            try:
                self._pipeline.sources[name].rollback()
            except Exception as error:  # noqa: BLE001, the others are rolled back whatever happens
                errors.append(error)
        self._begun = []
        if errors:
            raise errors[0]


class TurnOwner(Protocol):
    """Whoever ends a transaction while ``alive``; afterwards the next caller does."""

    @property
    def alive(self) -> bool: ...


class StagedTransaction:
    """A transaction of a pipeline in three steps, between which another system can commit.

    `stage` raises if anything is wrong; `rollback` undoes it. `commit` commits the sources and takes over the new
    states. Listeners are told afterwards, by `PullPipeline.tell`.
    """

    def __init__(
        self, pipeline: PullPipeline, turn: Turn, changes: SourceTransaction, owner: TurnOwner | None = None
    ) -> None:
        self._pipeline, self._turn, self.changes, self._owner = pipeline, turn, changes, owner

    @property
    def abandoned(self) -> bool:
        """Whether an exception has cut its owner short, so that the owner will not end it."""
        return self._owner is not None and not self._owner.alive

    def stage(self) -> None:
        """Write what has been collected, and push all changes of the sources."""
        self._turn.stage(self.changes.updates())

    def commit(self) -> None:
        """Commit the sources, and take over the new states."""
        self._turn.commit_sources()
        self._turn.take_over()
        self._turn.over()
        self._pipeline.end()

    def hydrate(self, feeds: Iterable[PulledFeed]) -> None:
        """Pull the rows of new views, and push what others have changed meanwhile to the views that are there."""
        self._turn.begin(sorted(frozenset[str]().union(*(feed.root.reads for feed in feeds))))
        self._turn.stage({})
        self._turn.take_over()
        try:
            for feed in feeds:
                feed.hydrate()
        finally:
            self._turn.commit_sources()
            self._turn.over()
        self._pipeline.end()

    def rollback(self) -> None:
        """Undo the transaction, or finish it if its sources have committed."""
        try:
            self._turn.rollback()
        finally:
            self._pipeline.end()
