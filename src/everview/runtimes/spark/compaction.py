"""Merging what is too large for the driver to merge: slices of traces, and chunks of values, by tasks.

A merge changes nothing that is true. The driver merges small batches as it appends them, and leaves large ones as they
are; when their sizes are no longer geometric, a job merges them, and the store is told what takes the place of what.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary, Entries
from everview.operators.operator import Context
from everview.runtimes.embedded.interned import NAMES, Chunk, as_slices, chunks_of, joined, ordered, unflagged
from everview.runtimes.spark.stages import reporting
from everview.runtimes.spark.values import attempt
from everview.runtimes.spark.wire import Row, RowKind, edit_row, from_batches, to_batches
from everview.runtimes.spark.worker import Replica, settle
from everview.traces.order import ValueOrder
from everview.traces.spine import RATIO
from everview.traces.store import Manifest, Replace, SegmentWriter
from everview.traces.store.slices import Key
from everview.traces.view import admitted, merged

VALUES = NAMES[0]  # stands for all parts of the dictionary


def due(manifest: Manifest, names: Iterable[str], most: int) -> list[Key]:
    """The traces, and with them the dictionary, that have slices to be merged of more than ``most`` rows."""
    wanted = {*names, VALUES}
    sizes = {key: [entry.ref.rows for entry in entries] for key, entries in manifest.slices.items()}
    return sorted(key for key, rows in sizes.items() if key[0] in wanted and _is_due(rows, most))


def _is_due(rows: Sequence[int], most: int) -> bool:
    start = first_to_merge(rows)
    return len(rows) - start > 1 and max(rows[start:]) > most


def first_to_merge(rows: Sequence[int]) -> int:
    """The place from which on slices of so many rows are to become one, so that sizes are geometric.

    >>> first_to_merge([100, 20, 6]), first_to_merge([100, 20, 3])
    (0, 3)
    """
    start, total = len(rows), 0
    for place in range(len(rows) - 1, -1, -1):
        total += rows[place]
        if place and rows[place - 1] < RATIO * total:
            start = place - 1
    return start


@dataclass(frozen=True, slots=True)
class Compaction:
    """The job of a compaction's tasks; ``epoch`` is the one to read, and stays the last."""

    program: Program
    path: str
    epoch: int

    def rows(self, keys: Iterable[Key]) -> Iterator[Row]:
        """A row for each trace and shard."""
        return (Row(RowKind.WAKE, -1, shard, 0, json.dumps(name).encode()) for name, shard in keys)

    def run(self, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
        """Merge what has arrived, and yield the edits."""
        state, edits = Replica(self.path).at(self.epoch), list[Replace]()
        with SegmentWriter(self.path, self.epoch, attempt) as writer:
            for row in rows:
                name = json.loads(bytes(row.payload))
                edits += (self._values if name == VALUES else self._trace)(state, writer, name, row.shard)
            writer.finish()
        yield from (edit_row(edit.shard, edit) for edit in edits)

    def _trace(self, state: Replica, writer: SegmentWriter, name: str, shard: int) -> Iterator[Replace]:
        slices = [*state.slices(name, shard)]
        slices = slices[first_to_merge([len(part.array) for part in slices]) :]
        order = self._order(name, state.dictionary())
        whole, *others = admitted([part.array for part in reversed(slices)], order)
        try:
            for larger in others:
                whole = merged(larger, whole, order)
        except OverflowError:
            return  # a sum of some batches can leave the range although that of all does not: they stay apart
        ref = writer.add_trace(name, shard, whole) if len(whole) else None
        yield Replace(name, shard, tuple(part.id for part in slices), ref)

    def _order(self, name: str, dictionary: Dictionary) -> ValueOrder | None:
        context = Context(dictionary, self.program.circuit.functions)
        for _, program in self.program.nested():
            for node, layout in program.traces.items():
                if program.names[node] == name:
                    return context.order(layout, program.depth)
        raise AssertionError(f"no trace is named {name}")

    def _values(self, state: Replica, writer: SegmentWriter, first: str, shard: int) -> Iterator[Replace]:
        assert first == VALUES, "the first part stands for all"
        chunks = chunks_of(state.manifest)[shard]
        chunks = chunks[first_to_merge([chunk[0].ref.rows for chunk in chunks]) :]
        whole = ordered(joined([_loaded(state, chunk) for chunk in chunks]))
        for place, (name, _shard, array) in enumerate(as_slices(shard, whole)):
            ref = writer.add(name, shard, np.ascontiguousarray(array))
            yield Replace(name, shard, tuple(chunk[place].id for chunk in chunks), ref)


def _loaded(state: Replica, chunk: Chunk) -> Entries:
    return unflagged(Entries(*(state.array(entry) for entry in chunk)))


def compacting(told: Compaction) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A compaction as a function for `mapInArrow`."""

    def run_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(from_batches(batches))
        yield from to_batches(reporting(-1, lambda: told.run(rows, attempt("merge"))))
        settle()

    return run_task
