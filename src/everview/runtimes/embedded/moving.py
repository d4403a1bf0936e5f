"""Moving a run that only reads to a later epoch of its directory, at the cost of what the writer has changed since.

A trace is a sum of slices. Those that two epochs have in common say nothing about their difference, and are not read:
what is new is appended, and what is gone is subtracted. Gone are the slices that the writer has merged, so over time a
reader pays for merges what the writer pays.

Nothing that a reader sees changes until `EpochMove.take` is called, and repeating that call is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from everview.errors import CodeCollision, CorruptState
from everview.kernels.large import arrange
from everview.kernels.linear import negated
from everview.runtimes.embedded import interned
from everview.runtimes.embedded.runtime import Embedded
from everview.traces.store import ManifestEntry, Reader
from everview.traces.trace import StoredBatches, Trace
from everview.types.words import Matrix
from everview.zset.batch import Batch

Entries = tuple[ManifestEntry, ...]


@dataclass(frozen=True)
class SliceDifference:
    """The slices of a trace's shard that only one of two epochs has."""

    before: Reader
    after: Reader
    gone: Entries
    new: Entries

    @cached_property
    def rows(self) -> Matrix:
        """The change, in the order of words."""
        arrays = [*self.appended, *(negated(self.before.array(entry)) for entry in self.gone)]
        whole = np.concatenate(arrays)
        return arrange(whole, np.arange(whole.shape[1] - 1))

    @cached_property
    def appended(self) -> list[Matrix]:
        """The new slices, in the order of the trace."""
        return [self.after.array(entry) for entry in self.new]


@dataclass
class EpochMove:
    """The way of a run from one epoch to a later one."""

    run: Embedded
    epoch: int
    changed: dict[tuple[str, int], SliceDifference]
    changes: dict[str, Batch] = field(default_factory=dict[str, Batch])  # of every view that differs
    _pushed: list[Trace] = field(default_factory=list[Trace])
    _anew: list[tuple[Trace, StoredBatches]] = field(default_factory=list[tuple[Trace, StoredBatches]])

    def prepare(self) -> None:
        """Append what is new to the open epochs of traces, which no reader sees, and find how views differ."""
        for trace, name, shard in self.run.state:
            if trace.current:
                trace.abandon()  # left by a move that an exception cut short before it counted
            difference = self.changed.get((name, shard))
            if difference is None:
                continue
            if not difference.gone:
                self._push(trace, difference.appended)
            elif trace.order is None:
                self._push(trace, [difference.rows])
            else:  # rows in the order of values are not subtracted here
                after = difference.after
                self._anew.append((trace, [(s.array, (s.id,)) for s in after.slices(name, shard)]))
        self.changes = self._of_views()

    def _push(self, trace: Trace, batches: Iterable[Matrix]) -> None:
        self._pushed.append(trace)
        for batch in batches:
            trace.push(batch)

    def abandon(self) -> None:
        """Forget what was prepared."""
        for trace in self._pushed:
            trace.abandon()

    def take(self) -> dict[str, Batch]:
        """Let the run be at the later epoch; the change of every view that differs."""
        for trace in self._pushed:
            trace.close()
        for trace, slices in self._anew:
            trace.restore(slices)
        self.run.epoch = self.epoch
        return self.changes

    def _of_views(self) -> dict[str, Batch]:
        by_trace: dict[str, list[Matrix]] = {}
        wanted = {self.run.program.names[view.node] for view in self.run.views.values() if view.node is not None}
        for (trace, _), difference in self.changed.items():
            if trace in wanted:
                by_trace.setdefault(trace, []).append(difference.rows)
        changes: dict[str, Batch] = {}
        for name, view in self.run.views.items():
            rows = [] if view.node is None else by_trace.get(self.run.program.names[view.node], [])
            if any(map(len, rows)):
                whole = arrange(np.concatenate(rows), np.arange(view.schema.width))
                changes[name] = Batch(view.schema, whole, self.run.dictionary)
        return {name: change for name, change in changes.items() if len(change)}


def prepared_move(run: Embedded, before: Reader, after: Reader) -> EpochMove | None:
    """The move of a run from the epoch of one state to that of another, prepared; None if it must be read anew.

    That is so after other definitions, and if a value has got the code that another had.
    """
    then, now = before.manifest, after.manifest
    if before.epoch != run.epoch or not before.epoch < after.epoch or then.plan != now.plan or then.meta != now.meta:
        return None
    try:
        _take_values(run, before, after)
    except (CodeCollision, CorruptState):
        return None
    changed: dict[tuple[str, int], SliceDifference] = {}
    for key in {**then.slices, **now.slices}:
        old, new = then.slices.get(key, ()), now.slices.get(key, ())
        if old is not new and key[0] not in interned.NAMES:
            changed[key] = _difference(before, after, old, new)
    move = EpochMove(run, after.epoch, {key: each for key, each in changed.items() if each.gone or each.new})
    try:
        move.prepare()
    except BaseException:
        move.abandon()
        raise
    return move


def _take_values(run: Embedded, before: Reader, after: Reader) -> None:
    """Take in the values that were interned since."""
    known = {_identity(chunk[0]) for chunks in interned.chunks_of(before.manifest).values() for chunk in chunks}
    fresh = [
        interned.unflagged(interned.Entries(*(after.array(entry) for entry in chunk)))
        for chunks in interned.chunks_of(after.manifest).values()
        for chunk in chunks
        if _identity(chunk[0]) not in known
    ]
    if fresh:
        run.dictionary.load(interned.joined(fresh))


def _difference(before: Reader, after: Reader, old: Entries, new: Entries) -> SliceDifference:
    both = {*map(_identity, old)} & {*map(_identity, new)}
    gone, come = (tuple(entry for entry in side if _identity(entry) not in both) for side in (old, new))
    return SliceDifference(before, after, gone, come)


def _identity(entry: ManifestEntry) -> tuple[Any, ...]:
    """A key that two slices share exactly if their contents are equal: a rewind gives ids out again."""
    return entry.id, entry.ref.rows, entry.ref.columns, entry.ref.checksum
