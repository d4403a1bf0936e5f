"""Stages and rounds as Spark jobs, as the driver sees them: rows out, rows back, and what to commit.

A `StagePlace`. Streams that are wanted later come back as matrices, large ones mapped from the files that the
tasks wrote; what was appended comes back as references, for the commit and for the tasks of later rounds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import pyarrow as pa

from everview.circuit.nodes import Source
from everview.circuit.program import Owed, Program, Ran
from everview.codes.backed import BackedDictionary
from everview.codes.dictionary import Mark
from everview.operators.operator import Context
from everview.runtimes.embedded.interned import NAMES
from everview.runtimes.embedded.stored_entries import StoredEntries
from everview.runtimes.loops import Cells
from everview.runtimes.pending import At
from everview.runtimes.spark import rounds
from everview.runtimes.spark.passing import Passer, Received, discard_passed
from everview.runtimes.spark.stages import Job, chain, gathering, joined, one, wakes
from everview.runtimes.spark.values import (
    ChunkRefs,
    Gathering,
    chunks_for,
    entries_for,
    gathered_chunks,
    mapped_chunk,
    reads_values,
    to_gather,
)
from everview.runtimes.spark.wire import (
    ARROW,
    SCHEMA,
    Row,
    RowKind,
    edit_of,
    error_of,
    from_batches,
    to_batches,
    unpack_entries,
)
from everview.runtimes.state import Path
from everview.runtimes.tables import Resolver
from everview.traces.store import Replace, SliceRef
from everview.types.words import Matrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Written = dict[tuple[str, int], list[SliceRef]]
Describe = Callable[[str], None]  # tells Spark what the next job is


@dataclass
class Cluster:
    """The open epoch in Spark's tasks: what to send to the tasks, and the slices written so far.

    ``frame`` holds the wire rows of the sources, if tasks encode those; else the cells of the first piece do.
    """

    spark: SparkSession
    program: Program
    path: str
    epoch: int  # the one that is read
    partitions: int
    context: Context
    mark: Mark
    entries: StoredEntries  # where the dictionary looks for values: also in chunks of the open epoch
    divisions: int = 1  # of the codes of values
    frame: DataFrame | None = None
    resolvers: Mapping[int, Resolver] = field(default_factory=dict[int, Resolver])
    whole: frozenset[int] = frozenset()
    views: Mapping[int, int] = field(default_factory=dict[int, int])  # by stream, the bytes that go to the driver
    describe: Describe = lambda _: None
    edits: list[Replace] = field(default_factory=list[Replace])
    written: Written = field(default_factory=dict[tuple[str, int], list[SliceRef]])
    counts: Counter[int] = field(default_factory=Counter[int])  # rows that have arrived, by source
    chunks: list[ChunkRefs] = field(default_factory=list[ChunkRefs])  # of values that tasks have gathered
    bad: list[Any] = field(default_factory=list[Any])  # Arrow tables of rows that cannot be taken
    large: Counter[int] = field(default_factory=Counter[int])  # rows of the streams that were left to the state
    jobs: int = 0

    def __post_init__(self) -> None:
        self._received = Received(self.path)

    @property
    def _dictionary(self) -> BackedDictionary:
        assert isinstance(self.context.dictionary, BackedDictionary), "a stored state has the values"
        return self.context.dictionary

    # -- placed

    def run(self, first: int, last: int, cells: Cells) -> None:
        """Some stages of the root as one job."""
        frame = self.frame if first == 0 else None
        resolvers, whole = (self.resolvers, self.whole) if frame is not None else ({}, frozenset[int]())
        job = Job(
            *(self.program, self.path, self.epoch, self.partitions, first, last, self.context.check),
            *(resolvers, whole, self.divisions, self.views),
        )
        self.describe(f"stages {first + 1}–{last + 1} of {len(self.program.stages)}")
        with self._passer(f"{first}") as passer:
            needed = self.program.needed(first, last)
            mine = list(_cells(cells, needed, passer)) if frame is None else []
            _share(cells, self.program.shared(first, last), passer, self.partitions)
            extra = [*mine, *passer.finish(), *self._entries(self.program, first, last)]
            if wakes(job):
                extra += [Row(RowKind.WAKE, -1, shard) for shard in range(self.program.shards)]
            if frame is None and not extra:
                return
            sent = self._frame(extra) if frame is None else frame.union(self._frame(extra)) if extra else frame
            returned = self._note(chain(sent, job))
        for (shard, node), parts in returned[RowKind.LEFT].items():
            cells[shard][node] = joined(self.program, node, parts, self.context)

    def start(self, job: Job) -> None:
        """The first tick of new traces as one job; what they hold comes back as references."""
        self.describe("new traces")
        rows = [Row(RowKind.WAKE, -1, shard) for shard in range(self.program.shards)]
        self._note(chain(self._frame(rows), job))

    def run_at(self, program: Program, path: Path, stage: int, at: At, cells: Cells, due: Sequence[Owed]) -> list[Ran]:
        """A stage of a child at a nested time as one job; what it appends comes back as references."""
        ran = [Ran(shard_cells) for shard_cells in cells]
        self.describe(f"iteration {', '.join(map(str, at))}, stage {stage + 1} of {len(program.stages)}")
        where = self.path, self.epoch, self.partitions, self.written
        told = rounds.Round(program, stage, at, *where, self.context.check, self.divisions)
        with self._passer("-".join(map(str, (*at, stage)))) as passer:
            rows = [*_cells(cells, program.needed(stage, stage), passer), *_due(due, passer)]
            _share(cells, program.shared(stage, stage), passer, self.partitions)
            rows += passer.finish()
            if not rows:
                return ran
            rows += self._entries(program, stage, stage)
            returned = self._note(rounds.frame(self.spark, told, rows), ran)
        for (shard, node), parts in returned[RowKind.LEFT].items():
            cells[shard][node] = joined(program, node, parts, self.context)
        for kind in (RowKind.HELD, RowKind.WOKEN):
            for (shard, node), parts in returned[kind].items():
                {RowKind.HELD: ran[shard].held, RowKind.WOKEN: ran[shard].wakes}[kind][node] = one(parts)
        return ran

    def push(self, path: Path, appends: Sequence[tuple[int, dict[int, Any]]]) -> None:
        for _, batches in appends:
            for ref in batches.values():
                self.written.setdefault(ref.key, []).append(ref)

    def close(self) -> None:
        """Remove the files that carried large cells between the tasks of an epoch."""
        if self.jobs:
            discard_passed(self.path, self.epoch + 1)

    # -- inside

    def _passer(self, name: str) -> Passer:
        return Passer(self.path, self.epoch + 1, f"driver.{name}")

    def _entries(self, program: Program, first: int, last: int) -> Iterator[Row]:
        """The dictionary entries of the open epoch, for stages that look up values."""
        if reads_values(program, first, last):
            yield from entries_for(self._dictionary.export(self.mark), self.partitions)
            yield from chunks_for(self.chunks, self.partitions)

    def _frame(self, rows: Iterable[Row]) -> DataFrame:
        return self.spark.createDataFrame(pa.Table.from_batches(list(to_batches(rows)), ARROW))

    def _note(
        self, frame: DataFrame, ran: list[Ran] | None = None
    ) -> dict[RowKind, dict[tuple[int, int], list[Matrix]]]:
        """Run a job and sort the rows that its tasks return; of users' mistakes, raise that of the earliest stage."""
        self.jobs += 1
        returned: dict[RowKind, dict[tuple[int, int], list[Matrix]]] = {
            RowKind.LEFT: {},
            RowKind.HELD: {},
            RowKind.WOKEN: {},
        }
        failures: list[Row] = []
        values: list[Row] = []
        for row in from_batches(frame.toArrow().to_batches()):
            match row.kind:
                case RowKind.LARGE:
                    self.large[row.node] += row.columns
                case RowKind.LEFT | RowKind.HELD | RowKind.WOKEN:
                    returned[row.kind].setdefault((row.shard, row.node), []).append(self._received.matrix(row))
                case RowKind.EDIT:
                    self._append(row, ran)
                case RowKind.NEW | RowKind.PASSED:
                    values.append(row)
                case RowKind.COUNT:
                    self.counts[row.node] += row.columns
                case RowKind.BAD:
                    self.bad.append(self._bad(row))
                case RowKind.ERROR:
                    failures.append(row)
                case RowKind.CELL | RowKind.WAKE | RowKind.ENTRIES | RowKind.SHARED:
                    raise AssertionError(f"{row.kind.name} after the last stage")
                case _:
                    assert_never(row.kind)
        if failures:
            raise error_of(min(failures, key=lambda row: (row.node, row.shard)))
        self._take_values(values)
        for shard, node in [key for key in returned[RowKind.LEFT] if key[1] in self.large]:
            self.large[node] += sum(map(len, returned[RowKind.LEFT].pop((shard, node))))
        return returned

    def _take_values(self, values: Sequence[Row]) -> None:
        """Take few new values into the dictionary; let tasks gather many, and search what they have written."""
        passed = [row for row in values if row.kind is RowKind.PASSED]
        blocks = [row for row in values if row.kind is RowKind.NEW]
        if not passed:
            for row in blocks:
                self._dictionary.load(unpack_entries(row.payload))
            return
        self.describe("values")
        told = Gathering(self.path, self.epoch)
        sent = self._frame(to_gather(passed, blocks, self.divisions)).repartitionById(self.partitions, "shard")
        refs: list[SliceRef] = []
        for row in from_batches(sent.mapInArrow(gathering(told), SCHEMA).toArrow().to_batches()):
            if row.kind is RowKind.ERROR:
                raise error_of(row)
            new = edit_of(row).new
            assert isinstance(new, SliceRef), "what is gathered is written"
            refs.append(new)
        self.chunks += (chunks := gathered_chunks(refs, NAMES))
        self.entries.also = (*self.entries.also, *(mapped_chunk(self.path, chunk) for chunk in chunks))
        self._require_agreement()

    def _require_agreement(self) -> None:
        """Refuse values of the open epoch that have the code of another one that tasks have gathered."""
        own = self._dictionary.export(self.mark)
        for kind in np.unique(own.kinds).tolist():
            self._dictionary.fetch_all(self.entries.find_also(kind, np.unique(own.codes[own.kinds == kind])))

    def _source(self, node: int) -> str:
        source = self.program.circuit[node]
        assert isinstance(source, Source), "only sources are coded"
        return source.name

    def _bad(self, row: Row) -> pa.Table:
        """The rows of the sources that were refused: ``source``, ``reason`` and ``raw``."""
        bad = json.loads(bytes(row.payload))
        reasons, texts = [reason for reason, _ in bad], [text for _, text in bad]
        return pa.table({"source": [self._source(row.node)] * len(bad), "reason": reasons, "raw": texts})

    def _append(self, row: Row, ran: list[Ran] | None) -> None:
        """A slice that a task has written: at the root an edit for the commit, in a round something to append."""
        edit = edit_of(row)
        if ran is None:
            self.edits.append(edit)
        else:
            appends: dict[int, Any] = ran[row.shard].appends
            appends[row.node] = edit.new


def _cells(cells: Cells, nodes: frozenset[int], passer: Passer) -> Iterator[Row]:
    for shard, shard_cells in enumerate(cells):
        for node in sorted(nodes & shard_cells.keys()):
            yield from passer.rows(RowKind.CELL, node, shard, shard_cells[node])


def _share(cells: Cells, nodes: frozenset[int], passer: Passer, partitions: int) -> None:
    for shard, shard_cells in enumerate(cells):
        for node in sorted(nodes & shard_cells.keys()):
            passer.share(node, shard, shard_cells[node], partitions)


def _due(due: Sequence[Owed], passer: Passer) -> Iterator[Row]:
    for shard, shard_due in enumerate(due):
        for kind, sent in ((RowKind.HELD, shard_due.held), (RowKind.WOKEN, shard_due.woken)):
            for node, matrix in sent.items():
                yield from passer.rows(kind, node, shard, matrix)
