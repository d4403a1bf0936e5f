"""Epochs over one store, on the driver or on the cluster: the runtime behind a pipeline.

The driver holds the circuit's state as one process does (`EvolvingRun`), mapped from the store. A tick that tasks took
part in is committed by reference to what they wrote; the driver then maps that in place of what it had. With the
commit go the offsets of the sources and the changes of views that sinks have yet to be given, so that after a crash
everything goes on from the same moment.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from everview.blocks import Closing
from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.program import Program
from everview.codes.dictionary import Mark
from everview.kernels.linear import project
from everview.operators.operator import Context, word_columns
from everview.runtimes.embedded.durable import Durable, Note
from everview.runtimes.embedded.interned import DIVIDED
from everview.runtimes.embedded.turning import TurnPlan
from everview.runtimes.in_process import InProcess
from everview.runtimes.loops import Cells
from everview.runtimes.spark.adaptive import Adaptive
from everview.runtimes.spark.beside import CheckpointFiles, is_remote, local_folder
from everview.runtimes.spark.cluster import Cluster, Describe
from everview.runtimes.spark.disk import disk_told
from everview.runtimes.spark.evolving import (
    EvolvingRun,
    Fed,
    Ready,
    always_ready,
    changes_of,
    last_changes,
    nothing_fed,
)
from everview.runtimes.spark.hydrating import MANY_ROWS, hydration_job
from everview.runtimes.spark.node_work import WorkNote, take_times
from everview.runtimes.spark.passing import INLINE_BYTES
from everview.runtimes.spark.placement import Decision, Placement
from everview.runtimes.spark.slice_sizes import SliceSizes
from everview.runtimes.spark.stored import DEFINITIONS, KEYS, ZONE, StoredDefinition
from everview.runtimes.spark.stored_change import MOST_BYTES, Change, StoredChange, read_from_state
from everview.runtimes.spark.upkeep import MADE, Upkeep
from everview.runtimes.spark.worker import made_at
from everview.runtimes.state import Pushed
from everview.runtimes.tables import Table
from everview.scalars.session_zone import UTC
from everview.traces.store import Policy, Replace, Store
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERED = 1_000_000  # rows of traces in the order of values: with more, tasks read them, each its own
Edits = Callable[[], Iterable[Replace]]  # what a commit also writes, made when it is due
Inspect = Callable[[Sequence[pa.Table]], None]
log = logging.getLogger("everview.spark")


@dataclass(frozen=True, slots=True)
class Ticked:
    """The outcome of an epoch: the changes of its views, and where and how it ran."""

    epoch: int
    changes: Mapping[str, Change]
    arrived: Mapping[str, int]
    decisions: tuple[Decision, ...]
    tick: float  # seconds
    commit: float


def _no_edits() -> Iterable[Replace]:
    return ()


class Engine(Closing):
    """A circuit on Spark with its state in a directory."""

    def __init__(
        self,
        spark: SparkSession,
        circuit: Circuit,
        path: str,
        *,
        shards: int,
        tables: Mapping[str, Table],
        placement: Placement,
        partitions: int,
        delivered: Iterable[str] = (),
        check_functions: bool = False,
        loops: LoopBounds | None = None,
        fed: Fed = nothing_fed,
        ready: Ready = always_ready,
        zone: str = UTC,
    ) -> None:
        """``delivered`` names the views whose last change is kept, for sinks.

        A state of another circuit is turned to this one's: ``fed`` says from its offsets which sources it has read, and
        ``ready`` is called before. The state says which time ``zone`` its views were made in.
        """
        self.spark = spark
        self.placement = placement
        self.partitions = partitions
        self.run = EvolvingRun(
            *(circuit, path),
            delivered=tuple(delivered),
            fed=fed,
            ready=ready,
            elsewhere=self._by_tasks,
            shards=shards,
            tables=tables,
            check_functions=check_functions,
            policy=Policy(),
            loops=loops,
        )
        assert self.run.durable is not None, "a pipeline has a state directory"
        self.durable: Durable = self.run.durable
        if zone != UTC:
            self.durable.also_say({ZONE: zone})
        self._definitions: list[list[str]] = []  # as the state says them
        self._keys: dict[str, list[str]] = {}
        self._work = WorkNote(self.store.address)
        self.path = self.store.address
        self._files = CheckpointFiles(local_folder(self.path) / "spark") if is_remote(self.path) else None
        self.uncertain_here = False
        self._also: Edits = _no_edits
        self._sizes = SliceSizes()
        self.upkeep = Upkeep(spark, self.run, self.durable, partitions, self._sizes)

    def say_definitions(self, views: Iterable[StoredDefinition]) -> None:
        """Let the state say how its views were written, from the next commit on."""
        said = [list(view) for view in views]
        if said != self._definitions:
            self._definitions = said
            self.durable.also_say({DEFINITIONS: said})
        keys = {name: list(table.key) for name, table in self.run.tables.items() if table.key}
        if keys != self._keys:
            self._keys = keys
            self.durable.also_say({KEYS: keys})

    @staticmethod
    def exists(path: str) -> bool:
        """Whether there is a state in a directory."""
        return Store.exists(path)

    @staticmethod
    def shards_of(path: str) -> int | None:
        """The number of shards of a state, which is fixed when it is made; None if there is none yet."""
        if not Store.exists(path):
            return None
        with Store.attach(path) as state:
            return state.manifest.meta.get("shards")

    @staticmethod
    def zone_of(path: str) -> str | None:
        """The time zone that the views of a state were made in; None if there are none yet."""
        if not Store.exists(path):
            return None
        with Store.attach(path) as state:
            meta = state.manifest.meta
            return meta.get(ZONE, UTC) if "shards" in meta else None

    @staticmethod
    def is_split(path: str) -> bool:
        """Whether a state has been given more shards than it was made with."""
        if not Store.exists(path):
            return False
        with Store.attach(path) as state:
            return DIVIDED in state.manifest.meta

    @staticmethod
    def made_at(path: str) -> tuple[int, ...] | None:
        """The identity of the state at a path, which tells it from a later one there; None if there is none."""
        try:
            return made_at(path)
        except OSError:
            return None

    @property
    def program(self) -> Program:
        return self.run.program

    @property
    def delivered(self) -> Collection[str]:
        """The views whose last change is kept."""
        return self.run.delivered

    @property
    def store(self) -> Store:
        return self.durable.store

    @property
    def epoch(self) -> int:
        return self.run.epoch

    @property
    def uncertain(self) -> bool:
        """Whether a failure left open what is on disk, so that the state must be opened again."""
        return (
            self.uncertain_here or self.upkeep.uncertain or self.store.uncertain or self.store.epoch != self.run.epoch
        )

    @property
    def divisions(self) -> int:
        """The number of divisions of values' codes, where tasks write them."""
        return self.durable.divisions

    @property
    def offsets(self) -> Mapping[str, Any]:
        return self.store.manifest.offsets

    @property
    def state_bytes(self) -> int:
        return self._sizes.of(self.store.manifest.slices).bytes

    @property
    def trace_rows(self) -> int:
        return self.rows_by_trace.total()

    @property
    def _ordered_by_value(self) -> int:
        """The rows of traces in the order of values, which whoever reads them must have in memory."""
        slices, state = self.store.manifest.slices, self.run.state
        keys = {(name, shard) for trace, name, shard in state if trace.order is not None}
        return sum(entry.ref.rows for key in keys for entry in slices.get(key, ()))

    @property
    def rows_by_trace(self) -> Counter[str]:
        """The rows of every trace, on all shards; what is not loaded is counted as the store lists it."""
        rows, slices = Counter[str](), self._sizes.of(self.store.manifest.slices)
        for trace, name, shard in self.run.state:
            rows[name] += len(trace.before) if trace.is_loaded else slices.rows(name, shard)
        return rows

    def rows_of(self, view: str) -> int:
        """The most rows that a view can have on all shards, without reading them."""
        node = self.program.contents(view)
        return 0 if node is None else self.rows_by_trace[self.program.names[node]]

    def rows_of_table(self, source: str) -> int:
        """The most rows that a source can hold on all shards, without reading them."""
        node = self.program.table(source)
        return 0 if node is None else self.rows_by_trace[self.program.names[node]]

    def contents(self, source: str) -> Batch:
        """The contents of a source, its columns in their own order."""
        table = self.run.table(source).contents()
        schema = self.program.circuit.layout(self.program.circuit.sources[source]).schema
        places = tuple(table.schema.index(name) for name in schema.names)
        return Batch.consolidated(schema, project(table.rows, word_columns(table.schema, places)), table.dictionary)

    # -- ticking

    def tick(
        self, changes: Mapping[str, Any], offsets: Mapping[str, Any], decision: Decision, describe: Describe
    ) -> Ticked:
        """Run a tick of rows that the driver has; large iterations of a recursion may go to the cluster."""
        if self.placement.place == "auto" and decision.where == "driver" and (rows := self._ordered_by_value) > ORDERED:
            reason = f"traces in the order of texts have {rows:,} rows: the driver would have to read the texts"
            decision = Decision("cluster", reason)
        return self._epoch(lambda _: self.run.encode(changes), None, frozenset(), offsets, decision, describe)

    def tick_on_cluster(
        self,
        frame: Callable[[Mark], DataFrame],
        whole: frozenset[int],
        offsets: Mapping[str, Any],
        decision: Decision,
        describe: Describe,
        inspect: Inspect,
    ) -> Ticked:
        """Rows that tasks encode: a frame of the wire schema; sources in ``whole`` are snapshots.

        ``inspect`` is shown the rows that cannot be taken, before anything is committed; it may refuse.
        """
        self.durable.tidy(self.run.state)

        def nothing(_: Mark) -> Cells:
            return [{} for _ in range(self.run.shards)]

        return self._epoch(nothing, frame, whole, offsets, decision, describe, inspect)

    def _epoch(
        self,
        begin: Callable[[Mark], Cells],
        frame: Callable[[Mark], DataFrame] | None,
        whole: frozenset[int],
        offsets: Mapping[str, Any],
        decision: Decision,
        describe: Describe,
        inspect: Inspect | None = None,
    ) -> Ticked:
        start = perf_counter()
        run, program = self.run, self.program
        run.make_room()
        take_times(run.state, run.epoch)
        views = read_from_state(program)
        with disk_told("the driver"), run.begin() as mark:
            cells = begin(mark)
            cluster = Cluster(
                *(self.spark, program, self.path, run.epoch, self.partitions, run.context, mark, run.entries),
                divisions=self.divisions,
                frame=None if frame is None else frame(mark),
                resolvers={node: r for node, r in run.arriving.resolvers.items() if r.keyed or node in whole},
                whole=whole,
                views={node: MOST_BYTES if name in self.delivered else INLINE_BYTES for node, name in views.items()},
                describe=describe,
            )
            here = InProcess(program, run.state, run.context, alone=False)
            place = Adaptive(here, cluster, self.placement, decision)
            with closing(cluster):
                outputs: dict[str, Change] = {**run.compute(cells, place)}
            for node, rows in cluster.large.items():
                view = views[node]
                outputs[view] = StoredChange(self.path, view, run.view(view).schema, run.epoch, run.epoch + 1, rows)
            ticked = perf_counter()
            if inspect is not None:
                inspect(cluster.bad)
            describe("commit")
            committed = self._commit(mark, place, outputs, dict(offsets))
        run.epoch += 1
        self._take_in(committed)
        run.entries.also = ()  # the store lists them now
        self.store.let_go(MADE)
        self._work.write(run.epoch, run.state)
        done = perf_counter()
        names = {node: name for name, node in program.circuit.sources.items()}
        arrived = {names[node]: rows for node, rows in cluster.counts.items()}
        for made in place.decisions:
            log.info("epoch %d on the %s: %s", run.epoch, made.where, made.reason)
        return Ticked(
            *(run.epoch, outputs, arrived, tuple(place.decisions)),
            *(ticked - start, done - ticked),
        )

    def _commit(
        self, mark: Mark, place: Adaptive, outputs: Mapping[str, Change], offsets: dict[str, Any]
    ) -> Callable[[], None]:
        """Make the epoch durable; returns the act that lets this process follow it."""
        run, state, epoch = self.run, self.run.state, self.run.epoch + 1
        files = self._files.edits(self.store) if self._files else ()
        changes = (*self._last_changes(outputs), *files, *self._also())
        note = place.note(offsets)
        if note is None:
            pushed = state.pushed()
            listed = run.entries.marks if run.dictionary.mark() != mark else None
            ids = self.durable.commit(epoch, pushed, run.dictionary, mark, Note(changes, (), offsets))
            if listed is not None:
                run.entries.all_here(listed)
            return lambda: self._close(ids, pushed)
        pushed = state.pushed(set(self.program.names.values()))  # inside loops, all is written
        note = Note((*note.replaces, *changes), note.segments, offsets)
        self.durable.commit(epoch, pushed, run.dictionary, mark, note)
        edited = {(edit.name, edit.shard) for edit in note.replaces}
        written = {ref.key for ref in note.segments} | {(name, shard) for _, name, shard, _ in pushed}
        return lambda: self._reload(edited | written)

    @contextmanager
    def committing(self, edits: Edits) -> Generator[None]:
        """Let the commit of an epoch inside a block have further edits, of what is kept beside the traces."""
        self._also = edits
        try:
            yield
        finally:
            self._also = _no_edits

    def _take_in(self, committed: Callable[[], None]) -> None:
        """The epoch is durable, whatever happens now; if this process fails to follow, it must read it again."""
        self.uncertain_here = True
        committed()
        self.run.note_saved()
        self.uncertain_here = False

    def redefine(self, circuit: Circuit, tables: Mapping[str, Table], delivered: Iterable[str]) -> None:
        """Go on with another circuit, as an epoch of its own; a failure changes nothing."""
        with disk_told("the driver"):
            self.run.redefine(circuit, tables, tuple(delivered))

    def _by_tasks(self, run: EvolvingRun, plan: TurnPlan, context: Context) -> list[Replace] | None:
        """The new traces of a turn as tasks have written them; None if the driver is to compute them."""
        place, rows = self.placement.place, sum(plan.read.values())
        few = place == "driver" or (place == "auto" and rows < MANY_ROWS)
        if few or run.durable is None or plan.program.shards == 1:
            return None
        path, divisions = run.durable.store.address, run.durable.divisions
        job = hydration_job(plan, path, self.partitions, check=context.check, divisions=divisions)
        if job is None:
            return None
        where = self.spark, job.program, path, job.epoch, self.partitions
        cluster = Cluster(*where, context, run.dictionary.mark(), run.entries, divisions=divisions)
        with closing(cluster):
            cluster.start(job)
        log.info("new traces are computed by tasks: %d rows are read", rows)
        return [*cluster.edits, *(Replace(*ref.key, (), ref) for chunk in cluster.chunks for ref in chunk)]

    def _close(self, ids: Sequence[int], pushed: Sequence[Pushed]) -> None:
        self.run.state.close(ids, pushed)
        self.durable.settle(self.run.state)
        self.upkeep.made(sum(batch.nbytes for _, _, _, batch in pushed))

    def _reload(self, touched: set[tuple[str, int]]) -> None:
        """Let the driver's traces be what the store says."""
        self.run.state.abandon()
        for trace, name, shard in self.run.state:
            if (name, shard) in touched:
                self.run.follow(trace, name, shard)

    # -- the changes that sinks are given

    def _last_changes(self, outputs: Mapping[str, Change]) -> Iterable[Replace]:
        """Edits that put this epoch's changes in place of the last one's; views without a sink lose theirs."""
        for view, changes in outputs.items():
            name, new = changes_of(view), None
            if view in self.delivered and len(changes):
                new = changes.block if isinstance(changes, StoredChange) else np.ascontiguousarray(changes.rows)
            old = tuple(entry.id for entry in self.store.manifest.slices.get((name, 0), ()))
            if old or new is not None:
                yield Replace(name, 0, old, new)

    def last_changes(self) -> dict[str, Change]:
        """The changes of the last epoch, for every delivered view."""
        schemas = {view: self.run.view(view).schema for view in self.delivered}
        return last_changes(self.store, schemas, self.run.dictionary)

    def restore_files(self) -> None:
        """Let Spark's checkpoint beside a state in an object store be that of the state's last epoch."""
        if self._files is not None:
            self._files.restore(self.store)

    def close(self) -> None:
        self.run.close()
