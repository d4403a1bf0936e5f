"""One turn of a pipeline: what several sources change together, and what that changes in all views.

A turn begins those of its sources. `stage` writes to them, takes all their changes and pushes those through the
pipeline, where every new state is put aside; should anything raise until then, `rollback` leaves everything as it was.
`commit` commits the sources, then takes over the states. Two databases are committed one after the other: should the
second refuse, the first has its changes. Then the views are pulled anew by the next turn, so that they are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from everview.blocks import Busy
from everview.pull.feed import Feed
from everview.pull.node import NOTHING, Node
from everview.pull.transaction import Transaction
from everview.sources.protocol import Update

if TYPE_CHECKING:
    from everview.pull.pipeline import Pipeline


class Turn:
    """What is under way between the first thing that is asked of a source, and the end."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._begun: list[str] = []
        self._pushed: list[Node] = []
        self._changed: list[Feed] = []
        self._anew: dict[Feed, Feed] | None = None
        self._stale = False  # whether views must be pulled anew, after this turn, too

    def begin(self, names: Iterable[str]) -> None:
        """See to it that sources have begun."""
        for name in names:
            if name not in self._begun:
                self._begun.append(name)  # first: should it begin, and an exception come, it is ended
                try:
                    self._pipeline.sources[name].begin()
                except Exception:
                    self._begun.remove(name)
                    raise

    def stage(self, writes: Mapping[str, Update]) -> bool:
        """Write to sources, and push all that they tell; whether any view changes."""
        written = {name: update for name, update in writes.items() if update}
        self.begin((*written, *self._pipeline.read))
        sources = self._pipeline.sources
        for name, update in written.items():
            sources[name].write(update)
        changes = {name: sources[name].changes() for name in self._begun}
        if self._pipeline.stale:
            self._anew = self._pipeline.pulled_anew()
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
                self._changed.append(feed)
                feed.stage(update)

    def _of(
        self, node: Node, changes: Mapping[str, Update], changed: frozenset[str], done: dict[int, Update]
    ) -> Update:
        """The change of a node, after those of all that it reads."""
        found = done.get(id(node))
        if found is not None:
            return found
        if not node.reads & changed:
            found = NOTHING
        elif not node.inputs:
            (name,) = node.reads
            found = node.push(changes[name])
        else:
            updates = [self._of(each, changes, changed, done) for each in node.inputs]
            self._pushed.append(node)
            found = node.push(*updates) if any(updates) else NOTHING
        done[id(node)] = found
        return found

    def commit_sources(self) -> None:
        """Commit the sources; if one refuses after another has not, all views are pulled anew by the next turn."""
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
        self._stale = stale

    def take_over(self) -> dict[Feed, Update]:
        """The new states count from now on; the changes of the views, which are to be noted: then it is `over`."""
        if self._anew is not None:
            self._stale = False
            return self._pipeline.took_anew(self._anew)
        for node in self._pushed:
            node.commit()
        return {feed: feed.commit() for feed in self._changed}

    def over(self) -> None:
        """The sources have committed, and the views have taken over their changes."""
        self._pipeline.stale = self._stale

    def rollback(self) -> None:
        """All is as it was."""
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


class UnderWay:
    """A transaction of a pipeline in three steps, between which another system can commit.

    `stage` raises if anything is wrong, and nothing has happened then but what `rollback` undoes. `commit` commits the
    sources and takes over the new states. Who listens is told afterwards, by `Pipeline.tell`.
    """

    def __init__(self, pipeline: Pipeline, turn: Turn, changes: Transaction, busy: Busy | None = None) -> None:
        self._pipeline, self._turn, self.changes = pipeline, turn, changes
        self.busy = busy  # the block that ends it, if it is one of the pipeline's own

    def stage(self) -> None:
        """Write what has been collected, and push all that sources tell."""
        self._turn.stage(self.changes.updates())

    def commit(self) -> None:
        """Commit the sources, take over the states."""
        self._turn.commit_sources()
        self._pipeline.note(self._turn.take_over())
        self._turn.over()
        self._pipeline.end()

    def rollback(self) -> None:
        """Nothing of it counts."""
        try:
            self._turn.rollback()
        finally:
            self._pipeline.end()
