"""Upkeep of a state between epochs: merges of what is large, more shards, and files and values that nothing needs.

What it does changes no view. A large state is gone through by tasks, a small one by the driver.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.circuit.circuit import Circuit
from everview.errors import StoreError
from everview.runtimes.embedded.durable import Durable
from everview.runtimes.embedded.prepare import check_shards, prepared
from everview.runtimes.spark.compaction import Compaction, compacting, due
from everview.runtimes.spark.evolving import MERGED_HERE, EvolvingRun, changes_of
from everview.runtimes.spark.resharding import Resharding, require_multiple, resharding, splits
from everview.runtimes.spark.slice_sizes import SliceSizes
from everview.runtimes.spark.sweeping import Sweep, referring, writing
from everview.runtimes.spark.wire import ARROW, SCHEMA, Row, RowKind, edit_of, error_of, from_batches, to_batches
from everview.traces.store import Replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MADE = 64 << 20  # bytes of batches that the driver makes before it lets go of them
ALONE = 64 << 20  # bytes of state that the driver goes through by itself; with more, tasks do
log = logging.getLogger("everview.spark")


class Upkeep:
    """The upkeep of one engine's state."""

    def __init__(
        self, spark: SparkSession, run: EvolvingRun, durable: Durable, partitions: int, sizes: SliceSizes
    ) -> None:
        self.spark, self.run, self.durable, self.partitions = spark, run, durable, partitions
        self.alone = ALONE
        self.uncertain = False  # whether the state on disk is no longer the one that this process holds
        self._sizes = sizes
        self._made = 0  # bytes of batches that the driver has made, and holds

    @property
    def _is_large(self) -> bool:
        return self._sizes.of(self.durable.store.manifest.slices).bytes > self.alone

    def made(self, size: int) -> None:
        """Count bytes that the driver has made, and let go of them once they are many."""
        self._made += size
        if self._made > MADE:
            self.compact()

    def compact(self) -> None:
        """Let go of what the driver has made since the last time, and let tasks merge what is large.

        The epoch is durable, and a merge changes nothing: should this fail, it is tried again later.
        """
        self._made = 0
        try:
            self.run.shed()
            self._merge_by_tasks()
        except StoreError as error:
            self.durable.recover()
            log.warning("%s: merges were not written, and will be later", error.message)

    def _merge_by_tasks(self) -> None:
        names = {name for _, name, _ in self.run.state}
        keys = due(self.durable.store.manifest, names, MERGED_HERE)
        if not keys:
            return
        told = Compaction(self.run.program, self.durable.store.address, self.run.epoch)
        self.durable.edit(self._edits(told.rows(keys), compacting(told)))
        for trace, name, shard in self.run.state:
            if (name, shard) in keys:
                self.run.follow(trace, name, shard)

    def reshard(self, circuit: Circuit, shards: int) -> None:
        """Split every shard, so that there are so many; an epoch of its own. The engine must be opened anew then."""
        before, run = self.run.program, self.run
        require_multiple(before.shards, shards)
        check_shards(shards)
        run.recover()
        self.durable.tidy(run.state)
        after = prepared(circuit, run.tables, shards, as_is=False, stored=True, reuse=True)
        told = Resharding(self.durable.store.address, self.run.epoch, before.shards, shards, splits(before, after))
        edits = self._edits(told.rows(), resharding(told)) if self._is_large else told.here()
        edits += self._no_changes()
        self.uncertain = True  # this process holds the state as it was
        self.durable.reshard(self.run.epoch + 1, after, edits)

    def _no_changes(self) -> Iterable[Replace]:
        """Edits that let go of the last epoch's changes."""
        for view in self.run.views:
            old = tuple(entry.id for entry in self.durable.store.manifest.slices.get((changes_of(view), 0), ()))
            if old:
                yield Replace(changes_of(view), 0, old, None)

    def vacuum(self, keep_epochs: int) -> None:
        """Let go of what only older epochs need, and of values that no row refers to."""
        self.run.vacuum(keep_epochs, self._swept if self._is_large else Sweep.here)

    def _swept(self, sweep: Sweep) -> list[Replace]:
        """The edits of a sweep, found by tasks."""
        return self._edits(sweep.begin(), referring(sweep), writing(sweep))

    def _edits(self, begin: Iterable[Row], *tasks: Any) -> list[Replace]:
        """The edits that tasks have come to, one step after the other."""
        frame = self.spark.createDataFrame(pa.Table.from_batches(list(to_batches(begin)), ARROW))
        for task in tasks:
            frame = frame.repartitionById(self.partitions, "shard").mapInArrow(task, SCHEMA)
        rows = list(from_batches(frame.toArrow().to_batches()))
        for row in rows:
            if row.kind is RowKind.ERROR:
                raise error_of(row)
        return [edit_of(row) for row in rows]

    def sweep(self, keep_epochs: int) -> None:
        """Let go of files that only older epochs need: cheap enough to be done now and then."""
        self.compact()
        self.durable.store.vacuum(keep_epochs)
