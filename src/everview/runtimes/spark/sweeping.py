"""Letting go of interned values that no row refers to any more, by tasks over shards.

First every shard says which codes its rows refer to, to the division of each code; then every division writes its
chunks anew with what is referred to. Where the state is small, the same steps run in one process.

Exceptions are kept, and what stands in their way, whether rows refer to them or not: there are hardly any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.codes import references
from everview.codes.dictionary import Entries
from everview.runtimes.embedded.interned import NAMES, Chunk, as_slices, chunks_of, joined, ordered, picked, unflagged
from everview.runtimes.spark.stages import reporting
from everview.runtimes.spark.values import attempt
from everview.runtimes.spark.wire import (
    Row,
    RowKind,
    edit_of,
    edit_row,
    from_batches,
    matrix_of,
    matrix_rows,
    to_batches,
)
from everview.runtimes.spark.worker import Replica, settle
from everview.traces.store import Replace, SegmentWriter
from everview.types import Schema
from everview.types.words import Words

Codes = Mapping[int, Words]  # by kind


@dataclass(frozen=True, slots=True)
class Sweep:
    """The job of a sweep's tasks.

    ``traces`` are the names of what refers to values, with the columns of their rows; ``kept`` are the codes of
    exceptions and of what stands in their way.
    """

    path: str
    epoch: int
    shards: int
    divisions: int
    traces: tuple[tuple[str, Schema], ...]
    kept: Codes

    def begin(self) -> Iterator[Row]:
        """A row for each shard and each division."""
        return (Row(RowKind.WAKE, -1, each) for each in range(max(self.shards, self.divisions)))

    def refer(self, rows: Iterable[Row]) -> Iterator[Row]:
        """For each shard that has arrived, the codes that its rows refer to, by division."""
        state = Replica(self.path).at(self.epoch)
        for row in rows:
            yield row
            for kind, codes in self._referred(state, row.shard).items():
                division = codes % self.divisions
                for each in range(self.divisions):
                    part = codes[division == each].reshape(-1, 1)
                    yield from matrix_rows(RowKind.CELL, kind, each, part)

    def _referred(self, state: Replica, shard: int) -> Codes:
        by_kind: dict[int, list[Words]] = {}
        for name, schema in self.traces:
            for part in state.slices(name, shard):
                for kind, codes in references(schema, part.array).items():
                    by_kind.setdefault(kind, []).append(codes)
        return {kind: np.unique(np.concatenate(codes)) for kind, codes in by_kind.items()}

    def write(self, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
        """For each division that has arrived, its chunks with nothing but what is referred to, as edits."""
        live: dict[int, dict[int, list[Words]]] = {}
        for row in rows:
            by_kind = live.setdefault(row.shard, {})
            if row.kind is RowKind.CELL:
                by_kind.setdefault(row.node, []).append(matrix_of(row)[:, 0])
        state = Replica(self.path).at(self.epoch)
        edits: list[Row] = []
        with SegmentWriter(self.path, self.epoch, attempt) as writer:
            for division in sorted(live):
                if division < self.divisions:
                    edits += self._rewritten(state, writer, division, live.pop(division))
            writer.finish()
        yield from edits

    def _rewritten(
        self, state: Replica, writer: SegmentWriter, division: int, live: Mapping[int, list[Words]]
    ) -> Iterator[Row]:
        """The chunks of a division; shard 0 has values of every division, and gives each its own."""
        chunks = chunks_of(state.manifest)
        own, mixed = chunks.get(division, []), chunks.get(0, []) if division else []
        entries = [self._live(_loaded(state, chunk), division, live) for chunk in (*own, *mixed)]
        new = ordered(joined(entries)) if any(map(len, entries)) else None
        slices = [None] * len(NAMES) if new is None else [array for _, _, array in as_slices(division, new)]
        for place, (name, array) in enumerate(zip(NAMES, slices, strict=True)):
            old = tuple(chunk[place].id for chunk in own)
            ref = None if array is None else writer.add(name, division, np.ascontiguousarray(array))
            if old or ref is not None:
                yield edit_row(division, Replace(name, division, old, ref))

    def _live(self, entries: Entries, division: int, live: Mapping[int, list[Words]]) -> Entries:
        keep = np.zeros(len(entries), np.bool_)
        for kind in np.unique(entries.kinds).tolist():
            wanted = np.concatenate([*live.get(kind, ()), self.kept.get(kind, np.empty(0, np.int64))])
            keep |= (entries.kinds == kind) & np.isin(entries.codes, wanted)
        return picked(entries, np.flatnonzero(keep & (entries.codes % self.divisions == division)))

    def here(self) -> list[Replace]:
        """The edits, found in this process."""
        return [edit_of(row) for row in self.write(self.refer(self.begin()), "sweep")]


def _loaded(state: Replica, chunk: Chunk) -> Entries:
    return unflagged(Entries(*(state.array(entry) for entry in chunk)))


Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def referring(sweep: Sweep) -> Task:
    """The first step as a function for `mapInArrow`."""

    def run_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(from_batches(batches))
        yield from to_batches(reporting(-1, lambda: sweep.refer(rows)))
        settle()

    return run_task


def writing(sweep: Sweep) -> Task:
    """The second step as a function for `mapInArrow`."""

    def run_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(from_batches(batches))
        failed = [row for row in rows if row.kind is RowKind.ERROR]
        yield from to_batches(failed or reporting(-1, lambda: sweep.write(rows, attempt("sweep"))))
        settle()

    return run_task
