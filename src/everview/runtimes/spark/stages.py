"""A tick as Spark tasks: every stage of a program is one exchange and one pass over the shards that arrive.

A task runs the same pure steps as one process does. It reads its shards' traces from the store's files as
they were at the last epoch, writes what they gain as one segment of its own, and returns everything else as
rows: what moves on to the next stage, and for the driver the changes of the sinks and the slices written. So
an attempt that fails or runs twice leaves nothing but a file that nobody refers to; only what the driver
commits has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.circuit.nodes import Apply, Feedback, Sink, read_layouts
from everview.circuit.program import Before, Program, Stage
from everview.codes.dictionary import Dictionary, Entries
from everview.errors import EverviewError, WeightOverflow
from everview.operators.exchange import Exchange, spread
from everview.operators.operator import Context, Matrix
from everview.runtimes.spark.wire import (
    SCHEMA,
    Kind,
    Row,
    edit_of,
    edit_row,
    error_of,
    error_row,
    from_batches,
    matrix_of,
    matrix_rows,
    pack_entries,
    to_batches,
    unpack_entries,
)
from everview.runtimes.spark.worker import Replica, replica, settle
from everview.traces.order import ValueOrder
from everview.traces.spine import RATIO, SMALL
from everview.traces.store import Replace, SegmentWriter, Slice
from everview.traces.view import Batches, View, merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Cells = dict[int, Matrix]


@dataclass(frozen=True, slots=True)
class Job:
    """What every task of a tick is told; it travels pickled, and is never stored.

    ``epoch`` is the one that is read, and the next is the one that is written. A stage runs as ``partitions``
    tasks, each of which has the shards that equal its number modulo that.
    """

    program: Program
    path: str
    epoch: int
    partitions: int
    check: bool = False

    def __post_init__(self) -> None:
        assert not any(self.program.loops), "a loop runs in rounds, which a chain of stages does not have"


@dataclass(slots=True)
class Outcome:
    """What the tasks of a tick came to: changes and refused rows by sink node, edits to commit, values."""

    changes: dict[int, list[Matrix]] = field(default_factory=dict[int, list[Matrix]])
    negative: dict[int, list[Matrix]] = field(default_factory=dict[int, list[Matrix]])
    edits: list[Replace] = field(default_factory=list[Replace])
    entries: list[Entries] = field(default_factory=list[Entries])


# -- on the driver


def arriving(job: Job, deltas: Mapping[int, Matrix], entries: Entries | None = None) -> Iterator[Row]:
    """The rows of a tick for its first stage: changes of sources, and interned values not yet committed."""
    program = job.program
    for at, delta in deltas.items():
        for shard, part in enumerate(spread(delta, program.shards)):
            yield from matrix_rows(Kind.CELL, at, shard, part)
    if wakes(program):
        yield from (Row(Kind.WAKE, -1, shard) for shard in range(program.shards))
    if entries is not None and len(entries) and _read_later(program, -1):
        block = pack_entries(entries).data
        yield from (Row(Kind.ENTRIES, -1, partition, 0, block) for partition in range(job.partitions))


def chain(frame: DataFrame, job: Job, first: int = 0) -> DataFrame:
    """The stages from ``first`` on, over a frame of the wire schema: one action runs them all."""
    for number in range(first, len(job.program.stages)):
        frame = frame.repartitionById(job.partitions, "shard").mapInArrow(task(job, number), SCHEMA)
    return frame


def gather(rows: Iterable[Row]) -> Outcome:
    """What the rows of the last stage say; of users' mistakes, the one of the earliest stage is raised."""
    found = Outcome()
    failures: list[Row] = []
    for row in rows:
        match row.kind:
            case Kind.SINK:
                found.changes.setdefault(row.node, []).append(matrix_of(row))
            case Kind.NEGATIVE:
                found.negative.setdefault(row.node, []).append(matrix_of(row))
            case Kind.EDIT:
                found.edits.append(edit_of(row))
            case Kind.NEW:
                found.entries.append(unpack_entries(row.payload))
            case Kind.ERROR:
                failures.append(row)
            case Kind.CELL | Kind.WAKE | Kind.ENTRIES | Kind.HELD | Kind.WOKEN:
                raise AssertionError(f"{row.kind.name} after the last stage")
    if failures:
        raise error_of(min(failures, key=lambda row: (row.node, row.shard)))
    written = [(edit.name, edit.shard) for edit in found.edits]
    assert len(set(written)) == len(written), "a trace has one writer a shard"
    return found


# -- in a task


def task(job: Job, number: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A stage as a function for `mapInArrow`."""

    def run_stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from to_batches(run(job, number, from_batches(batches), _attempt(number)))
        settle()

    return run_stage


def _attempt(number: int) -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "outside of a task, `run` is told its attempt"
    return f"{number}.{context.partitionId()}.{context.attemptNumber()}"


def run(job: Job, number: int, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
    """One stage on the shards that have arrived; in a task, or wherever the state directory can be seen."""
    arrived: dict[int, dict[int, list[Matrix]]] = {}
    blocks: list[Row] = []
    for row in rows:
        match row.kind:
            case Kind.CELL:
                arrived.setdefault(row.shard, {}).setdefault(row.node, []).append(matrix_of(row))
            case Kind.WAKE:
                arrived.setdefault(row.shard, {})
            case Kind.ENTRIES:
                blocks.append(row)
            case _:
                yield row
    shard = -1
    try:
        with SegmentWriter(job.path, job.epoch + 1, attempt) as writer:
            work = _Work(job, number, writer, blocks)
            try:
                for shard in sorted(arrived):
                    yield from work.shard(shard, arrived.pop(shard))
                writer.finish()
                yield from work.values()
            finally:
                work.close()
    except EverviewError as error:
        yield error_row(number, shard, error)
    except OverflowError as error:
        overflow = WeightOverflow(f"{error}, in a trace of shard {shard}", hint="the tick was not applied")
        yield error_row(number, shard, overflow)


class _Work:
    """A task under way: its shards one after the other, all into one segment."""

    def __init__(self, job: Job, number: int, writer: SegmentWriter, blocks: list[Row]) -> None:
        self.job = job
        self.number = number
        self.program = job.program
        self.stage: Stage = job.program.stages[number]
        self.writer = writer
        self.state: Replica = replica(job.path, job.epoch)
        self.blocks = blocks
        reads = _reads_values(job.program, number)
        self.dictionary = self.state.dictionary() if reads else Dictionary()
        self.context = Context(self.dictionary, job.program.circuit.functions, job.check)
        self._committed = self.dictionary.mark()
        for row in blocks if reads else ():
            self.dictionary.load(unpack_entries(row.payload))
        self._arrived = self.dictionary.mark()

    def close(self) -> None:
        """Leave the process's dictionary as the epoch has it."""
        self.dictionary.rollback(self._committed)

    def shard(self, shard: int, arrived: Mapping[int, list[Matrix]]) -> Iterator[Row]:
        """Run the stage on one shard: its edits, its part of the sinks, and what goes on."""
        before = self._before(shard)
        cells = {at: self._joined(at, parts) for at, parts in arrived.items()}
        ran = self.program.run(self.stage, cells, before, self.context)
        appends = ran.appends | self.program.close(cells, before, self.stage)
        for at, batch in appends.items():
            if batch.shape[0]:
                yield edit_row(shard, self._write(at, shard, batch))
        yield from self._sinks(shard, cells, before)
        yield from self._outgoing(shard, cells)

    def values(self) -> Iterator[Row]:
        """Values that the stage has added: once for the driver, and for every task that may need them."""
        entries = self.dictionary.export(self._arrived)
        later = _read_later(self.program, self.number)
        if later:
            yield from self.blocks  # every task has them all, so each keeps its own
        if not len(entries):
            return
        block = pack_entries(entries).data
        yield Row(Kind.NEW, -1, 0, 0, block)
        if later:
            yield from (Row(Kind.ENTRIES, -1, partition, 0, block) for partition in range(self.job.partitions))

    def _before(self, shard: int) -> Before:
        @cache
        def before(at: int) -> Batches:
            arrays = [found.array for found in self._slices(at, shard)]
            return Batches(self.program.traces[at].width + 1, arrays, self._order(at))

        return before

    def _slices(self, at: int, shard: int) -> Iterable[Slice]:
        return self.state.slices(self.program.names[at], shard)

    def _order(self, at: int) -> ValueOrder | None:
        return self.context.order(self.program.circuit.layout(at))

    def _joined(self, at: int, parts: list[Matrix]) -> Matrix:
        """What has arrived for a stream, in its layout; a batch that was cut for the wire is sorted again."""
        if len(parts) == 1:
            return parts[0]
        if not self.program.circuit.layout(at).sorted:
            return np.concatenate(parts)
        whole = parts[0]
        for part in parts[1:]:
            whole = merged(whole, part, self._order(at))
        return whole

    def _write(self, at: int, shard: int, batch: Matrix) -> Replace:
        """The batch as a slice, together with the last slices of its trace that are not much larger."""
        order, taken = self._order(at), list[int]()
        for last in reversed(list(self._slices(at, shard))):
            small = last.array.shape[0] + batch.shape[0] < SMALL
            if not small and last.array.shape[0] >= RATIO * batch.shape[0]:
                break
            batch = merged(last.array, batch, order)
            taken.append(last.id)
        name = self.program.names[at]
        ref = self.writer.add(name, shard, np.ascontiguousarray(batch)) if batch.shape[0] else None
        return Replace(name, shard, tuple(reversed(taken)), ref)

    def _sinks(self, shard: int, cells: Cells, before: Before) -> Iterator[Row]:
        for at in self.stage.nodes:
            sink = self.program.circuit[at]
            if isinstance(sink, Sink) and sink.input in cells:
                delta = cells[sink.input]
                yield from matrix_rows(Kind.SINK, at, shard, delta)
                if sink.positive:
                    yield from matrix_rows(Kind.NEGATIVE, at, shard, _negative(delta, before(sink.input)))

    def _outgoing(self, shard: int, cells: Cells) -> Iterator[Row]:
        later = self.program.stages[self.number + 1 :]
        if not later:
            return
        for at in later[0].moves:
            source, exchange = _moved(self.program, at)
            if source in cells:
                for target, part in enumerate(exchange.split(cells[source], self.program.shards)):
                    yield from matrix_rows(Kind.CELL, at, target, part)
        for at in sorted({at for stage in later for at in stage.stays} & cells.keys()):
            yield from matrix_rows(Kind.CELL, at, shard, cells[at])
        if wakes(self.program):
            yield Row(Kind.WAKE, -1, shard)


def _negative(delta: Matrix, before: View) -> Matrix:
    """The rows of a change whose weights it makes negative, with those weights."""
    rows = delta.copy()
    rows[:, -1] = before.plus(delta).weights(delta, delta.shape[1] - 1)
    return rows[rows[:, -1] < 0]


# -- what a program asks of its tasks


def wakes(program: Program) -> bool:
    """Whether a shard must run even if nothing arrives: some node puts out without being given anything."""
    return any(isinstance(n, Feedback) or (isinstance(n, Apply) and not n.inputs) for n in program.circuit)


def _moved(program: Program, at: int) -> tuple[int, Exchange]:
    """The stream that an exchange node moves."""
    node = program.circuit[at]
    assert isinstance(node, Apply) and isinstance(node.operator, Exchange)
    (source,) = node.inputs
    assert source is not None
    return source, node.operator


def _read_later(program: Program, number: int) -> bool:
    """Whether a stage after this one looks behind the codes."""
    return any(_reads_values(program, later) for later in range(number + 1, len(program.stages)))


def _reads_values(program: Program, number: int) -> bool:
    """Whether a stage calls functions or compares by value, and so needs the dictionary."""
    return any(_node_reads_values(program, at) for at in program.stages[number].nodes)


def _node_reads_values(program: Program, at: int) -> bool:
    node = program.circuit[at]
    if not isinstance(node, Apply):
        return False
    operator = node.operator
    layouts = (operator.output, *read_layouts(operator), *(port.layout for port in operator.inputs))
    return hasattr(operator, "function") or any(layout.by_value for layout in layouts)
