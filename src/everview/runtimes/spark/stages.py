"""A tick as Spark tasks: every stage of a program is one exchange and one pass over the shards that arrive.

A task runs the same pure steps as one process does. It reads its shards' traces from the store's files as
they were at the last epoch, writes what they gain as one segment of its own, and returns everything else as
rows: what moves on to the next stage, and for the driver the streams it wants and the slices written. So
an attempt that fails or runs twice leaves nothing but a file that nobody refers to; only what the driver
commits has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.circuit.nodes import Apply, Feedback, Read
from everview.circuit.program import Program, Stage
from everview.circuit.stepping import Before, alone, close_feedbacks, run_stage
from everview.errors import EverviewError, WeightOverflow
from everview.kernels.threads import keep_to
from everview.operators.operator import Context, Moment
from everview.runtimes.embedded.hydrate import Integral
from everview.runtimes.spark.disk import LASTING, refused
from everview.runtimes.spark.leaving import LeavingStage, exchange_of
from everview.runtimes.spark.node_work import TaskWork
from everview.runtimes.spark.passing import Passer, Received, Shared
from everview.runtimes.spark.values import Gathering, TaskDictionary, ValuePassing, attempt, reads_values
from everview.runtimes.spark.wire import (
    SCHEMA,
    Row,
    RowKind,
    edit_row,
    error_row,
    from_batches,
    to_batches,
)
from everview.runtimes.spark.worker import Replica, replica, settle
from everview.runtimes.tables import Resolver
from everview.traces.order import ValueOrder
from everview.traces.spine import RATIO, SMALL
from everview.traces.store import Replace, SegmentWriter, Slice
from everview.traces.view import Batches, admitted, merged
from everview.traces.wide import Wide
from everview.types.words import Matrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Cells = dict[int, Matrix]


@dataclass(frozen=True, slots=True)
class Start:
    """A stream that new traces are computed from: its whole history, read from a stored trace."""

    node: int
    stage: int  # the number of the stage that the stream is of
    trace: int  # the node that owns the trace
    stored: str  # the name by which the state has it
    integral: Integral


@dataclass(frozen=True, slots=True)
class Job:
    """What every task of some stages, ``first`` to ``last``, is told; it travels pickled, and is never stored.

    ``epoch`` is the one that is read, and the next is the one that is written. A stage runs as ``partitions``
    tasks, each of which has the shards that equal its number modulo that. For the sources in ``resolvers`` commands
    arrive, and for those in ``whole`` snapshots.

    With ``starts``, the job is the first tick of new traces: nothing arrives, to every operator there was nothing
    before, and traces that are ``held`` already are left as they are.
    """

    program: Program
    path: str
    epoch: int
    partitions: int
    first: int
    last: int
    check: bool = False
    resolvers: Mapping[int, Resolver] = field(default_factory=dict[int, Resolver])
    whole: frozenset[int] = frozenset()
    divisions: int = 1  # of the codes of values
    views: Mapping[int, int] = field(default_factory=dict[int, int])  # by stream, the bytes that go to the driver
    starts: tuple[Start, ...] | None = None
    held: frozenset[str] = frozenset()

    @property
    def passing(self) -> ValuePassing:
        """Where tasks pass new values on to."""
        return ValuePassing(self.path, self.epoch + 1, self.divisions)


# -- on the driver


def chain(frame: DataFrame, job: Job) -> DataFrame:
    """The stages of a job over a frame of the wire schema: one action runs them all."""
    for number in range(job.first, job.last + 1):
        frame = frame.repartitionById(job.partitions, "shard").mapInArrow(task(job, number), SCHEMA)
    return frame


def wakes(job: Job) -> bool:
    """Whether a shard must run even if nothing arrives: some node has something to do all the same."""
    idle = (isinstance(n, Feedback) or (isinstance(n, Apply) and not n.inputs) for n in job.program.circuit)
    return bool(job.whole) or job.starts is not None or any(idle)


# -- in a task


def task(job: Job, number: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stage as a function for `mapInArrow`."""

    def run_stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_to(1)  # a task has one core
        yield from to_batches(run(job, number, from_batches(batches), attempt(str(number))))
        settle()

    return run_stage


def gathering(told: Gathering) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The job that gathers values as a function for `mapInArrow`."""

    def run_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_to(1)  # a task has one core
        rows = list(from_batches(batches))
        yield from to_batches(reporting(-1, lambda: told.run(rows, attempt("values"))))
        settle()

    return run_task


def run(job: Job, number: int, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
    """One stage on the shards that have arrived; in a task, or wherever the state directory can be seen."""
    received = Received(job.path)
    arrived: dict[int, dict[int, list[Matrix]]] = {}
    by_file: set[tuple[int, int]] = set()
    blocks: list[Row] = []
    shared: list[Row] = []
    for row in rows:
        match row.kind:
            case RowKind.SHARED:
                shared.append(row)
            case RowKind.CELL:
                arrived.setdefault(row.shard, {}).setdefault(row.node, []).append(received.matrix(row))
                if not row.columns:
                    by_file.add((row.shard, row.node))
            case RowKind.WAKE:
                arrived.setdefault(row.shard, {})
            case RowKind.ENTRIES:
                blocks.append(row)
            case _:
                yield row
    yield from _shared_later(job, number, shared)
    given = StageInput(arrived, blocks, received.shared(shared), frozenset(by_file))
    yield from reporting(number, lambda: _run(job, number, given, attempt))


def _shared_later(job: Job, number: int, shared: Iterable[Row]) -> Iterator[Row]:
    """The rows of shared streams that tasks of later stages read, too."""
    later = {node for stage in job.program.stages[number + 1 : job.last + 1] for node in stage.shared}
    yield from (row for row in shared if row.node in later)


def reporting(stage: int, rows: Callable[[], Iterator[Row]]) -> Iterator[Row]:
    """The rows of a task; a user's mistake becomes a row, so that Spark does not try again what cannot succeed."""
    try:
        yield from rows()
    except EverviewError as error:
        yield error_row(stage, -1, error)
    except OverflowError as error:
        yield error_row(stage, -1, WeightOverflow(f"{error}, in a trace", hint="the tick was not applied"))
    except OSError as error:
        if error.errno not in LASTING:
            raise
        yield error_row(stage, -1, refused(error, "a task"))


@dataclass(frozen=True, slots=True)
class StageInput:
    """What a task is given: rows of streams by shard, blocks of values, and streams that every task has whole."""

    arrived: dict[int, dict[int, list[Matrix]]]
    blocks: list[Row]
    shared: Shared
    by_file: frozenset[tuple[int, int]]  # shard and stream of rows that came as a file


def _run(job: Job, number: int, given: StageInput, attempt: str) -> Iterator[Row]:
    with (
        SegmentWriter(job.path, job.epoch + 1, attempt) as writer,
        Passer(job.path, job.epoch + 1, attempt) as passer,
    ):
        work, spent = _Work(job, number, writer, passer, given), TaskWork(job.program)
        try:
            for shard in sorted(given.arrived):
                yield from work.shard(shard, given.arrived.pop(shard))
            writer.finish()
            yield from passer.finish()
            later = reads_values(job.program, number + 1, job.last)
            yield from work.values.rows(job.passing, attempt, job.partitions, later=later)
            yield spent.row()
        finally:
            work.values.close()


class _Work:
    """A task under way: its shards one after the other, all into one segment."""

    def __init__(self, job: Job, number: int, writer: SegmentWriter, passer: Passer, given: StageInput) -> None:
        self.job = job
        self.number = number
        self.program = job.program
        self.stage: Stage = job.program.stages[number]
        self.writer = writer
        self.passer = passer
        self.shared, self.by_file = given.shared, given.by_file
        self.state: Replica = replica(job.path, job.epoch)
        self.starts = [start for start in job.starts or () if start.stage == number]
        by_value = any(job.program.traces[start.trace].by_value for start in self.starts)
        needed = by_value or reads_values(job.program, number, number)
        self.values = TaskDictionary(self.state, given.blocks, needed=needed)
        self.context = Context(self.values.dictionary, job.program.circuit.functions, job.check)
        self.leaving = LeavingStage(job.program, number, job.last, passer)
        self._wide: dict[Read, Wide] = {}

    def shard(self, shard: int, arrived: Mapping[int, list[Matrix]]) -> Iterator[Row]:
        """Run the stage on one shard: yields edits, the cells wanted by the driver, and rows for later stages."""
        before = self._before(shard)
        cells = {node: joined(self.program, node, parts, self.context) for node, parts in arrived.items()}
        cells |= {start.node: self._so_far(start, shard) for start in self.starts}
        given = set(cells) if self.number == self.job.first > 0 else set[int]()
        if self.number == 0:
            yield from self._resolve(shard, cells, before)
        everywhere = self._everywhere if self.program.shards > 1 else alone(cells, before)
        ran = run_stage(self.program, self.stage, cells, before, everywhere, self.context)
        appends = ran.appends | close_feedbacks(self.program, cells, before, self.stage)
        for node, batch in appends.items():
            if batch.shape[0] and self.program.names[node] not in self.job.held:
                yield edit_row(shard, self._write(node, shard, batch))
        known = {node: (shard, node) in self.by_file for node in given}
        many = {node for node, most in self.job.views.items() if node in cells and cells[node].nbytes > most}
        yield from (Row(RowKind.LARGE, node, shard, len(cells[node])) for node in self.leaving.made(many, known))
        yield from self.leaving.rows(shard, {n: rows for n, rows in cells.items() if n not in many}, known)
        yield from self._outgoing(shard, cells)

    def _resolve(self, shard: int, cells: Cells, before: Before) -> Iterator[Row]:
        """Resolve the commands of tables into changes."""
        for node in self.stage.nodes:
            if node in cells:
                yield Row(RowKind.COUNT, node, shard, cells[node].shape[0])
        for node, resolver in self.job.resolvers.items():
            whole = node in self.job.whole
            if node in cells or whole:
                commands = cells.get(node, np.empty((0, self.program.circuit.layout(node).width + 3), np.int64))
                cells.update(resolver.resolve(commands, before, whole=whole))

    def _before(self, shard: int) -> Callable[[int], Batches]:
        @cache
        def before(node: int) -> Batches:
            arrays, order = [part.array for part in self._slices(node, shard)], self._order(node)
            return Batches(self.program.traces[node].width + 1, admitted(arrays, order), order)

        return before

    def _everywhere(self, read: Read) -> Wide:
        """A trace on all shards, read from any file; after the tick, with what all tasks have shared."""
        if read not in self._wide:
            views = [self._before(shard)(read.node) for shard in range(self.program.shards)]
            if read.moment is Moment.AFTER:
                for shard, parts in self.shared.get(read.node, {}).items():
                    views[shard] = views[shard].plus(joined(self.program, read.node, parts, self.context))
            self._wide[read] = Wide(views)
        return self._wide[read]

    def _slices(self, node: int, shard: int) -> Iterable[Slice]:
        """The slices of a trace; in the first tick of new traces there are none."""
        return () if self.job.starts is not None else self.state.slices(self.program.names[node], shard)

    def _so_far(self, start: Start, shard: int) -> Matrix:
        """All that has come by a stream."""
        order = self._order(start.trace)
        arrays = [part.array for part in self.state.slices(start.stored, shard)]
        whole = Batches(self.program.traces[start.trace].width + 1, admitted(arrays, order), order)
        return start.integral.taken(whole.consolidated())

    def _order(self, node: int) -> ValueOrder | None:
        return self.context.order(self.program.circuit.layout(node))

    def _write(self, node: int, shard: int, batch: Matrix) -> Replace:
        """The batch as a slice, together with the last slices of its trace that are not much larger."""
        order, taken = self._order(node), list[int]()
        for last in reversed(list(self._slices(node, shard))):
            small = last.array.shape[0] + batch.shape[0] < SMALL
            if not small and last.array.shape[0] >= RATIO * batch.shape[0]:
                break
            batch = merged(last.array, batch, order)
            taken.append(last.id)
        name = self.program.names[node]
        ref = self.writer.add_trace(name, shard, batch) if batch.shape[0] else None
        return Replace(name, shard, tuple(reversed(taken)), ref)

    def _outgoing(self, shard: int, cells: Cells) -> Iterator[Row]:
        later = self.program.stages[self.number + 1 : self.job.last + 1]
        if not later:
            return
        for node in later[0].moves:
            source, exchange = self.program.moved(node), exchange_of(self.program, node)
            if source in cells:
                for target, part in enumerate(exchange.split(cells[source], self.program.shards)):
                    yield from self.passer.moved(node, target, part)
        made = {*self.stage.nodes, *(start.node for start in self.starts)}
        for node in sorted({node for stage in later for node in stage.shared} & cells.keys() & made):
            self.passer.share(node, shard, cells[node], self.job.partitions)
        for node in sorted({node for stage in later for node in stage.stays} & cells.keys()):
            yield from self.passer.moved(node, shard, cells[node])
        if wakes(self.job):
            yield Row(RowKind.WAKE, -1, shard)


def joined(program: Program, node: int, parts: Sequence[Matrix], context: Context) -> Matrix:
    """The parts of a stream that was cut for the wire; a sorted one is sorted again."""
    layout = program.circuit.layout(node)
    order = context.order(layout)
    parts = admitted(parts, order)
    if len(parts) == 1 or not layout.sorted:
        return one(parts)
    whole, *others = parts
    for part in others:
        whole = merged(whole, part, order)
    return whole


def one(parts: Sequence[Matrix]) -> Matrix:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
