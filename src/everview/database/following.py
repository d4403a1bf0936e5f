"""Following: a database that only reads the directory of another process, which writes to it.

It shows one epoch, whole, until `StateFollower.refresh` moves on to the last that the writer has committed, at the cost
of what has changed since; after other definitions, the epoch is read as a whole. Who listens to a view is told how it
differs. While a database shows an epoch, the writer's vacuum leaves what the epoch refers to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from everview.codes import decode
from everview.codes.encode import encode_weighted
from everview.database.catalog import Assembled, Catalog
from everview.later import Later
from everview.runtimes.embedded import Embedded
from everview.zset.batch import Batch
from everview.zset.shown import as_changes

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.runtimes.embedded.history import StateReader
    from everview.runtimes.embedded.moving import EpochMove, prepared_move
else:
    prepared_move = Later("everview.runtimes.embedded.moving", "prepared_move")


@dataclass(frozen=True, slots=True)
class CommittedEpoch:
    """The definitions and the state of an epoch that a writer has committed."""

    run: Embedded
    catalog: Catalog
    assembled: Assembled
    state: StateReader | None = None  # the directory at this epoch


@dataclass(slots=True)
class StateFollower:
    """A reader's view of its writer: the state's path, the way to read the last epoch, and the epoch shown now."""

    path: Path
    read: Callable[[], CommittedEpoch]
    shown: StateReader | None = None

    def close(self) -> None:
        """Let the writer vacuum what is shown."""
        if self.shown is not None:
            self.shown.close()

    def refresh(self, core: Core) -> dict[str, Batch]:
        """Move to the last epoch; the change of every view that differs. See `Database.refresh`."""
        with core.still:
            core.access.ready()
            core.access.require_open()
            assert self.shown is not None, "a database that follows shows an epoch"
            changes: dict[str, Batch] = {}
            later = self.shown.at()
            if later.epoch == core.run.epoch:
                self._show(later)  # the log may be another one, which is read on from here
            else:
                core.access.unfinished = self._way(core, later, changes)
                core.access.finish()
            core.telling.tell_of_ends()
            core.telling.listeners.tell()
            return changes

    def _way(self, core: Core, later: StateReader, changes: dict[str, Batch]) -> Callable[[], None]:
        """The act that moves a database on, which may be repeated, and leaves the changes of views."""
        assert self.shown is not None, "an epoch is shown"
        move = prepared_move(core.run, self.shown, later)
        if move is not None:

            def moved() -> None:
                changes.update(_moved_by(core, move))
                self._show(later)

            return moved
        later.close()
        before = {name: core.holdings.now(name) for name in core.run.views if name not in core.catalog.guards}
        committed = self.read()

        def read_anew() -> None:
            changes.update(_moved(core, committed, before))
            if committed.state is not None:
                self._show(committed.state)

        return read_anew

    def _show(self, state: StateReader) -> None:
        shown, self.shown = self.shown, state
        if shown is not None and shown is not state:
            shown.close()


def _moved_by(core: Core, move: EpochMove) -> dict[str, Batch]:
    """Let a database show the epoch of a move. Repeating the call is harmless."""
    changed = move.take()
    changes = {name: as_changes(change) for name, change in changed.items() if name not in core.catalog.guards}
    core.telling.note_epoch(changes)
    return changes


def _moved(core: Core, committed: CommittedEpoch, before: dict[str, Batch]) -> dict[str, Batch]:
    """Let a database show another epoch, and note how views differ.

    Repeating the call is harmless, and completes one that was cut short.
    """
    core.run = committed.run
    core.access.show(committed.run)
    core.saving.show(committed.run)
    core.definitions.take(committed.catalog, committed.assembled)
    changes = _differences(core, before)
    core.telling.note_epoch(changes)
    return changes


def _differences(core: Core, before: dict[str, Batch]) -> dict[str, Batch]:
    """The changes of all views since the rows held before; every row of a new view."""
    changes: dict[str, Batch] = {}
    for name in core.run.views:
        if name in core.catalog.guards:
            continue
        after, held = core.holdings.now(name), before.get(name)
        if held is not None and held.schema != after.schema:
            core.telling.listeners.end(name)
            continue
        if held is not None and len(held):
            after = _without(after, held)
        if len(after):
            changes[name] = as_changes(after)
    return changes


def _without(after: Batch, held: Batch) -> Batch:
    """The difference of two batches, of which the one before has the words of another dictionary."""
    rows = decode(held.schema, np.ascontiguousarray(held.rows[:, :-1]), held.dictionary)
    encoded = encode_weighted(held.schema, rows, held.weights, after.dictionary)
    return after - type(after).consolidated(held.schema, encoded, after.dictionary)
