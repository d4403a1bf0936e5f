"""Following: a database that only reads the directory of another process, which writes to it.

It shows one epoch, whole, until `StateFollower.refresh` moves on to the last that the writer has committed: rows,
definitions and all. Who listens to a view is told how it differs.
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
from everview.runtimes.embedded import Embedded
from everview.zset.batch import Batch
from everview.zset.shown import as_changes

if TYPE_CHECKING:
    from everview.database.core import Core


@dataclass(frozen=True, slots=True)
class CommittedEpoch:
    """The definitions and the state of an epoch that a writer has committed."""

    run: Embedded
    catalog: Catalog
    assembled: Assembled


@dataclass(frozen=True, slots=True)
class StateFollower:
    """What a reader knows of its writer: where it writes, its last epoch, and how an epoch is read."""

    path: Path
    last_epoch: Callable[[], int]
    read: Callable[[], CommittedEpoch]

    def refresh(self, core: Core) -> dict[str, Batch]:
        """Move to the last epoch; the change of every view that differs. See `Database.refresh`."""
        with core.still:
            core.access.ready()
            core.access.require_open()
            changes: dict[str, Batch] = {}
            if self.last_epoch() != core.run.epoch:
                before = {name: core.holdings.now(name) for name in core.run.views if name not in core.catalog.guards}
                committed = self.read()
                core.access.unfinished = lambda: changes.update(_moved(core, committed, before))
                core.access.finish()
            core.telling.tell_of_ends()
            core.telling.listeners.tell()
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
    """What rows have changed since others were held, whose words are those of another dictionary."""
    rows = decode(held.schema, np.ascontiguousarray(held.rows[:, :-1]), held.dictionary)
    encoded = encode_weighted(held.schema, rows, held.weights, after.dictionary)
    return after - type(after).consolidated(held.schema, encoded, after.dictionary)
