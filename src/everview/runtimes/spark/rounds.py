"""A recursion in rounds: every stage of every iteration is a pass of Spark tasks over the shards.

The driver does what one process does (`Tick`): it moves rows between shards, keeps what belongs to later times,
and ends when nothing is in flight. Only the stages run elsewhere. What a round appends is written to segments and
read by later rounds from there; nothing of it counts before the driver commits the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from everview.circuit.nodes import Feedback
from everview.circuit.program import Due, Program, Ran, trace_columns
from everview.codes.dictionary import Dictionary
from everview.operators.nested import Reading
from everview.operators.operator import Context, Matrix
from everview.runtimes.embedded.pending import At
from everview.runtimes.embedded.state import Path
from everview.runtimes.embedded.tick import Cells
from everview.runtimes.spark.wire import (
    ARROW,
    SCHEMA,
    Kind,
    Row,
    edit_of,
    edit_row,
    from_batches,
    matrix_of,
    matrix_rows,
    to_batches,
)
from everview.runtimes.spark.worker import Replica, replica, settle
from everview.traces.store import Replace, SegmentWriter, SliceRef
from everview.traces.view import Batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Written = Mapping[tuple[str, int], Sequence[SliceRef]]  # by trace name and shard, what the open epoch has written


@dataclass(frozen=True, slots=True)
class Round:
    """What every task of one stage is told: at the root, or at a nested time ``at``."""

    program: Program
    stage: int
    at: At
    path: str
    epoch: int
    written: Written

    def run(self, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
        """The stage on the shards that have arrived; what was appended comes back as references to slices."""
        arrived = _by_shard(rows)
        with SegmentWriter(self.path, self.epoch + 1, attempt) as writer:
            for shard in sorted(arrived):
                yield from self._shard(shard, *arrived[shard], writer)
            writer.finish()

    def _shard(self, shard: int, cells: dict[int, Matrix], due: Due, writer: SegmentWriter) -> Iterator[Row]:
        state = replica(self.path, self.epoch)
        context = Context(Dictionary(), self.program.circuit.functions)
        stage = self.program.stages[self.stage]
        if self.at:
            now = np.array(self.at, np.int64)
            ran = self.program.run_at(
                stage, now, cells, lambda n: self._reading(state, shard, n, context), due, context
            )
        else:
            ran = self.program.run(stage, cells, lambda n: self._reading(state, shard, n, context).past, context)
        for kind, found in ((Kind.CELL, ran.cells), (Kind.HELD, ran.held), (Kind.WOKEN, ran.wakes)):
            for node, matrix in found.items():
                yield from matrix_rows(kind, node, shard, matrix)
        for node, batch in ran.appends.items():
            if batch.shape[0]:
                name = self.program.names[node]
                ref = writer.add(name, shard, np.ascontiguousarray(batch))
                yield edit_row(shard, Replace(name, shard, (), ref))._replace(node=node)

    def _reading(self, state: Replica, shard: int, node: int, context: Context) -> Reading:
        name, layout = self.program.names[node], self.program.traces[node]
        depth = self.program.depth
        past = [s.array for s in state.slices(name, shard)]
        current = [state.uncommitted(ref) for ref in self.written.get((name, shard), ())]
        columns, order = trace_columns(layout, depth), context.order(layout, depth)
        return Reading(Batches(columns, past, order), Batches(columns, (*past, *current), order))


@dataclass
class OnSpark:
    """Stages as Spark tasks: a `Placed` for `Tick`. ``written`` is what the epoch's commit must list."""

    spark: SparkSession
    program: Program
    path: str
    epoch: int
    partitions: int
    written: dict[tuple[str, int], list[SliceRef]] = field(default_factory=dict[tuple[str, int], list[SliceRef]])

    def __post_init__(self) -> None:
        assert not any(isinstance(node, Feedback) for node in self.program.circuit), "z⁻¹ at the root runs in stages"

    def run(self, stage: int, cells: Cells) -> None:
        ran = self._tasks(self.program, stage, (), cells, [Due()] * len(cells))
        self.push((), [(shard, found.appends) for shard, found in enumerate(ran)])

    def run_at(self, program: Program, path: Path, stage: int, at: At, cells: Cells, due: Sequence[Due]) -> list[Ran]:
        return self._tasks(program, stage, at, cells, due)

    def push(self, path: Path, appends: Sequence[tuple[int, dict[int, Any]]]) -> None:
        for _, found in appends:
            for ref in found.values():
                self.written.setdefault(ref.key, []).append(ref)

    def _tasks(self, program: Program, stage: int, at: At, cells: Cells, due: Sequence[Due]) -> list[Ran]:
        found = [Ran(here) for here in cells]
        rows = list(_rows(cells, due))
        if not rows:
            return found
        told = Round(program, stage, at, self.path, self.epoch, self.written)
        frame = self.spark.createDataFrame(pa.Table.from_batches(to_batches(rows), ARROW))
        frame = frame.repartitionById(self.partitions, "shard").mapInArrow(_task(told), SCHEMA)
        _note(found, from_batches(frame.toArrow().to_batches()))
        return found


def _rows(cells: Cells, due: Sequence[Due]) -> Iterator[Row]:
    for shard, here in enumerate(cells):
        for kind, sent in ((Kind.CELL, here), (Kind.HELD, due[shard].held), (Kind.WOKEN, due[shard].woken)):
            for node, matrix in sent.items():
                yield from matrix_rows(kind, node, shard, matrix)


def _note(found: list[Ran], rows: Iterable[Row]) -> None:
    """Take in what the tasks say; their references stand for the batches they appended."""
    parts: dict[tuple[Kind, int, int], list[Matrix]] = {}
    appends: Any
    for row in rows:
        if row.kind is Kind.EDIT:
            appends = found[row.shard].appends
            appends[row.node] = edit_of(row).new
        else:
            parts.setdefault((row.kind, row.shard, row.node), []).append(matrix_of(row))
    for (kind, shard, node), matrices in parts.items():
        whole = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
        ran = found[shard]
        {Kind.CELL: ran.cells, Kind.HELD: ran.held, Kind.WOKEN: ran.wakes}[kind][node] = whole


def _by_shard(rows: Iterable[Row]) -> dict[int, tuple[dict[int, Matrix], Due]]:
    parts: dict[tuple[int, Kind, int], list[Matrix]] = {}
    for row in rows:
        parts.setdefault((row.shard, row.kind, row.node), []).append(matrix_of(row))
    found: dict[int, tuple[dict[int, Matrix], dict[int, Matrix], dict[int, Matrix]]] = {}
    for (shard, kind, node), matrices in parts.items():
        cells, held, woken = found.setdefault(shard, ({}, {}, {}))
        target = {Kind.CELL: cells, Kind.HELD: held, Kind.WOKEN: woken}[kind]
        target[node] = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
    return {shard: (cells, Due(held, woken)) for shard, (cells, held, woken) in found.items()}


def _task(told: Round) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stage of a round as a function for `mapInArrow`."""

    def run_stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this runs in a task"
        settle()
        times = "-".join(map(str, (*told.at, told.stage)))
        attempt = f"{times}.{context.partitionId()}.{context.attemptNumber()}"
        return to_batches(told.run(from_batches(batches), attempt))

    return run_stage
