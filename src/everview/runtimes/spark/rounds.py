"""A recursion in rounds: every stage of every iteration is a pass of Spark tasks over the shards.

The driver leads: it moves few rows between shards, keeps what belongs to later times, and ends when nothing is in
flight. Of what is large it knows files, which tasks have written for each other (`everview.runtimes.spark.leaving`).
What a round appends is written to segments and read by later rounds from there; nothing of it counts before the driver
commits the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.circuit.nodes import Read
from everview.circuit.program import Program, trace_columns
from everview.circuit.stepping import Everywhere, Owed, Ran, alone_at, run_stage_at
from everview.kernels.threads import keep_to
from everview.kernels.timed import stamped
from everview.operators.operator import Context, Moment, TimedView
from everview.runtimes.pending import At
from everview.runtimes.spark.leaving import LeavingStage
from everview.runtimes.spark.passing import Passer, Received, Shared
from everview.runtimes.spark.stages import joined, one, reporting
from everview.runtimes.spark.values import TaskDictionary, ValuePassing, attempt, reads_values
from everview.runtimes.spark.wire import SCHEMA, Row, RowKind, blocks_table, edit_row, packed, to_batches, unpacked
from everview.runtimes.spark.worker import replica, settle
from everview.traces.store import Replace, SegmentWriter, SliceRef
from everview.traces.view import Batches, admitted
from everview.traces.wide import Wide
from everview.types.words import Matrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WITH_FUNCTION = 256 << 10  # bytes; Spark sends more than a megabyte of a function another way
Written = Mapping[tuple[str, int], Sequence[SliceRef]]  # by trace name and shard, what the open epoch has written
Parts = dict[tuple[RowKind, int], list[Matrix]]  # by kind and node


@dataclass(frozen=True, slots=True)
class Round:
    """The task of one stage of a child at one nested time ``at``, as every shard gets it."""

    program: Program
    stage: int
    at: At
    path: str
    epoch: int
    partitions: int
    written: Written
    check: bool = False
    divisions: int = 1  # of the codes of values

    def run(self, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
        """The stage on the shards that have arrived; what was appended comes back as references to slices."""
        received = Received(self.path)
        arrived: dict[int, Parts] = {}
        by_file: set[tuple[int, int]] = set()
        blocks: list[Row] = []
        shared: list[Row] = []
        for row in rows:
            if row.kind is RowKind.ENTRIES:
                blocks.append(row)
            elif row.kind is RowKind.SHARED:
                shared.append(row)
            else:
                parts = arrived.setdefault(row.shard, {}).setdefault((row.kind, row.node), [])
                parts.append(received.matrix(row))
                if row.kind is RowKind.CELL and not row.columns:
                    by_file.add((row.shard, row.node))
        run = lambda: self._run(arrived, blocks, received.shared(shared), by_file, attempt)  # noqa: E731
        yield from reporting(self.stage, run)

    def _run(
        self,
        arrived: dict[int, Parts],
        blocks: list[Row],
        shared: Shared,
        by_file: set[tuple[int, int]],
        attempt: str,
    ) -> Iterator[Row]:
        needed = reads_values(self.program, self.stage, self.stage)
        values = TaskDictionary(replica(self.path, self.epoch), blocks, needed=needed)
        try:
            with (
                SegmentWriter(self.path, self.epoch + 1, attempt) as writer,
                Passer(self.path, self.epoch + 1, attempt) as passer,
            ):
                leaving = LeavingStage(self.program, self.stage, self.stage, passer)
                for shard in sorted(arrived):
                    context = Context(values.dictionary, self.program.circuit.functions, self.check)
                    everywhere = cache(lambda read, c=context: self._everywhere(read, shared, c))
                    parts = arrived.pop(shard)
                    known = {node: (shard, node) in by_file for kind, node in parts if kind is RowKind.CELL}
                    ran = self._shard(shard, parts, everywhere, context)
                    yield from leaving.rows(shard, ran.cells, known)
                    for kind, matrices in ((RowKind.HELD, ran.held), (RowKind.WOKEN, ran.wakes)):
                        for node, matrix in matrices.items():
                            yield from leaving.later(kind, node, shard, matrix)
                    yield from self._appended(shard, ran, writer)
                writer.finish()
                yield from passer.finish()
            passing = ValuePassing(self.path, self.epoch + 1, self.divisions)
            yield from values.rows(passing, attempt, self.partitions, later=False)
        finally:
            values.close()

    def _shard(self, shard: int, arrived: Parts, everywhere: Everywhere, context: Context) -> Ran:
        kinds: dict[RowKind, dict[int, Matrix]] = {RowKind.CELL: {}, RowKind.HELD: {}, RowKind.WOKEN: {}}
        for (kind, node), parts in arrived.items():
            kinds[kind][node] = joined(self.program, node, parts, context) if kind is RowKind.CELL else one(parts)
        cells = kinds[RowKind.CELL]
        due = Owed(kinds[RowKind.HELD], kinds[RowKind.WOKEN])
        now = np.array(self.at, np.int64)
        readings = lambda node: self._reading(shard, node, context)  # noqa: E731
        everywhere = everywhere if self.program.shards > 1 else alone_at(now, cells, readings)
        return run_stage_at(
            self.program, self.program.stages[self.stage], now, cells, readings, everywhere, due, context
        )

    def _appended(self, shard: int, ran: Ran, writer: SegmentWriter) -> Iterator[Row]:
        """Write what traces get, and refer to it."""
        for node, batch in ran.appends.items():
            if batch.shape[0]:
                name = self.program.names[node]
                ref = writer.add_trace(name, shard, batch)
                yield edit_row(shard, Replace(name, shard, (), ref))._replace(node=node)

    def _reading(self, shard: int, node: int, context: Context) -> TimedView:
        return TimedView(*self._views(shard, node, context))

    def _views(self, shard: int, node: int, context: Context) -> tuple[Batches, Batches]:
        name, layout = self.program.names[node], self.program.traces[node]
        state, received, depth = replica(self.path, self.epoch), Received(self.path), self.program.depth
        past = [s.array for s in state.slices(name, shard)]
        current = [received.slice(ref) for ref in self.written.get((name, shard), ())]
        columns, order = trace_columns(layout, depth), context.order(layout, depth)
        both = admitted((*past, *current), order)
        return Batches(columns, both[: len(past)], order), Batches(columns, both, order)

    def _everywhere(self, read: Read, shared: Shared, context: Context) -> Wide:
        """A trace on all shards; after this very time, with what all tasks have appended."""
        views, now = [self._views(shard, read.node, context)[1] for shard in range(self.program.shards)], self.at
        if read.moment is Moment.AFTER:
            for shard, parts in shared.get(read.node, {}).items():
                rows = stamped(joined(self.program, read.node, parts, context), np.array(now, np.int64))
                views[shard] = views[shard].plus(rows)
        return Wide(views)


def frame(spark: SparkSession, told: Round, rows: Iterable[Row]) -> DataFrame:
    """A stage of a round as a job over rows that the driver has: tasks are given theirs at once, without an exchange.

    A few bytes travel with the function that tasks run, which costs Spark nothing; more travel as a frame.
    """
    blocks = packed(rows, told.partitions)
    if sum(map(len, blocks)) <= WITH_FUNCTION:
        return spark.range(0, len(blocks), 1, len(blocks)).mapInArrow(task(told, blocks), SCHEMA)
    return spark.createDataFrame(blocks_table(blocks)).mapInArrow(task(told), SCHEMA)


def task(
    told: Round, blocks: Sequence[bytes] | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stage of a round as a function for `mapInArrow`, of blocks that were `packed`, or of their numbers."""

    def run_stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_to(1)  # a task has one core
        times = "-".join(map(str, (*told.at, told.stage)))
        for given in (value for batch in batches for value in batch.column(0)):
            block = given.as_buffer() if blocks is None else blocks[given.as_py()]
            yield from to_batches(told.run(unpacked(block), attempt(times)))
        settle()

    return run_stage
