"""Interned values in tasks: looked up in the store, passed on as they are met, and gathered into chunks by code.

A task that meets new values passes them on: few in a row, for the driver to take into its dictionary; many in a file,
divided by code. If there are files, a job gathers them: the task of a division takes each value once, sees whether the
store has it already or has another one under its code, and writes the rest as a chunk. The driver commits references.

A task that never looks behind the codes needs no values at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from everview.circuit.nodes import Apply
from everview.circuit.program import Program
from everview.codes.backed import BackedDictionary
from everview.codes.dictionary import Dictionary, Entries
from everview.runtimes.embedded.interned import as_slices, divided, ordered
from everview.runtimes.embedded.stored_entries import MappedChunk
from everview.runtimes.spark.passing import PASSED, PASSING, Received
from everview.runtimes.spark.wire import Row, RowKind, edit_row, pack_entries, unpack_entries
from everview.runtimes.spark.worker import Replica
from everview.traces.store import Replace, SegmentWriter, SliceRef

MANY_BYTES = 1 << 20  # of values that a task passes on at once: more go through a file

ChunkRefs = tuple[SliceRef, ...]  # the parts of a chunk that a task has written


@dataclass(frozen=True, slots=True)
class ValuePassing:
    """Where tasks pass new values on to: the state, the epoch that is written, and by how many codes are divided."""

    path: str
    epoch: int
    divisions: int

    def rows(self, entries: Entries, attempt: str) -> Iterator[Row]:
        """Entries on their way to the driver, or to the job that gathers them."""
        block = pack_entries(entries)
        if block.nbytes <= MANY_BYTES:
            yield Row(RowKind.NEW, -1, 0, 0, block.data)
            return
        with SegmentWriter(self.path, self.epoch, f"{attempt}.v{PASSED}", PASSING) as writer:
            parts = divided(entries, self.divisions)
            refs = [writer.add("passing", division, pack_entries(part)) for division, part in parts]
            writer.finish()
        yield from (Row(RowKind.PASSED, -1, ref.shard, 0, json.dumps(ref).encode()) for ref in refs)


def attempt(stage: str) -> str:
    """A name for this attempt of a task at a stage."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "outside of a task, one is told its attempt"
    return f"{stage}.{context.partitionId()}.{context.attemptNumber()}"


class TaskDictionary:
    """The dictionary of one task; it goes back to what the epoch says when the task is done."""

    def __init__(self, state: Replica, blocks: Sequence[Row], *, needed: bool) -> None:
        self._state, self._blocks = state, blocks
        if needed:
            state.entries.also = tuple(chunk_at(state.path, row) for row in blocks if row.columns)
        self.dictionary = state.dictionary() if needed else Dictionary()
        self._committed = self.dictionary.mark()
        for row in blocks if needed else ():
            if not row.columns:
                self.dictionary.load(unpack_entries(row.payload))
        self._arrived = self.dictionary.mark()

    def close(self) -> None:
        self.dictionary.rollback(self._committed)
        self._state.entries.also = ()

    def rows(self, passing: ValuePassing, attempt: str, partitions: int, *, later: bool) -> Iterator[Row]:
        """Rows with the task's new entries: to be kept and, if needed ``later``, for each partition."""
        if later:
            yield from self._blocks  # every task has them all, so each keeps its own
        entries = self.dictionary.export(self._arrived)
        if not len(entries):
            return
        yield from passing.rows(entries, attempt)
        if later:
            yield from entries_for(entries, partitions)


def entries_for(entries: Entries, partitions: int) -> Iterator[Row]:
    """Dictionary entries of the open epoch as rows for every task."""
    if len(entries):
        block = pack_entries(entries).data
        yield from (Row(RowKind.ENTRIES, -1, partition, 0, block) for partition in range(partitions))


def chunks_for(chunks: Iterable[ChunkRefs], partitions: int) -> Iterator[Row]:
    """Chunks that tasks have written in the open epoch, as rows for every task."""
    for refs in chunks:
        payload = json.dumps(refs).encode()
        yield from (Row(RowKind.ENTRIES, -1, partition, 1, payload) for partition in range(partitions))


def chunk_at(path: str, row: Row) -> MappedChunk:
    """The chunk that a row of `chunks_for` refers to."""
    return mapped_chunk(path, tuple(SliceRef(*ref) for ref in json.loads(bytes(row.payload))))


def mapped_chunk(path: str, refs: ChunkRefs) -> MappedChunk:
    """A chunk that a task has written, to be searched."""
    received = Received(path)
    codes, kinds, offsets, data, flags = (received.array(ref) for ref in refs)
    return MappedChunk.of(Entries(codes, kinds, offsets, data, flags), ordered=True)


def reads_values(program: Program, first: int, last: int) -> bool:
    """Whether an operator of these stages looks up values, and so needs the dictionary."""
    nodes = (program.circuit[node_id] for stage in program.stages[first : last + 1] for node_id in stage.nodes)
    return any(isinstance(node, Apply) and node.operator.reads_values for node in nodes)


# -- gathering


def to_gather(passed: Iterable[Row], blocks: Iterable[Row], divisions: int) -> Iterator[Row]:
    """The rows for tasks that gather values: references to files, and what came as bytes, by division."""
    yield from passed
    for row in blocks:
        for division, part in divided(unpack_entries(row.payload), divisions):
            yield Row(RowKind.NEW, -1, division, 0, pack_entries(part).data)


@dataclass(frozen=True, slots=True)
class Gathering:
    """The job that gathers values; ``epoch`` is the one that is read."""

    path: str
    epoch: int

    def run(self, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
        """Write a chunk for each division that has arrived."""
        by_division: dict[int, list[Row]] = {}
        for row in rows:
            by_division.setdefault(row.shard, []).append(row)
        state = Replica(self.path).at(self.epoch)
        received = Received(self.path)
        with SegmentWriter(self.path, self.epoch + 1, attempt) as writer:
            edits: list[Row] = []
            for division in sorted(by_division):
                values = BackedDictionary(state.entries)
                for row in by_division.pop(division):
                    values.load(unpack_entries(_block(row, received)))
                edits += _written(writer, division, values.export())
            writer.finish()
        yield from edits


def _block(row: Row, received: Received) -> object:
    return row.payload if row.kind is RowKind.NEW else received.array(SliceRef(*json.loads(bytes(row.payload))))


def _written(writer: SegmentWriter, division: int, entries: Entries) -> Iterator[Row]:
    if not len(entries):
        return
    for name, shard, array in as_slices(division, ordered(entries)):
        ref = writer.add(name, shard, np.ascontiguousarray(array))
        yield edit_row(shard, Replace(name, shard, (), ref))


def gathered_chunks(refs: Iterable[SliceRef], names: Sequence[str]) -> list[ChunkRefs]:
    """The parts that tasks have written, those of a chunk together."""
    by_division: dict[int, dict[str, SliceRef]] = {}
    for ref in refs:
        by_division.setdefault(ref.shard, {})[ref.name] = ref
    return [_in_order(parts, names) for _, parts in sorted(by_division.items())]


def _in_order(parts: Mapping[str, SliceRef], names: Sequence[str]) -> ChunkRefs:
    return tuple(parts[name] for name in names)
