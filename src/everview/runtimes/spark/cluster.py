"""Stages and rounds as Spark jobs, as the driver sees them: rows out, rows back, and what to commit.

A `StagePlace`. Streams that are wanted later come back as matrices, large ones as references to files, which later jobs
are given; what was appended comes back as references, for the commit and for the tasks of later rounds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import pyarrow as pa

from everview.circuit.nodes import Source
from everview.circuit.program import Program
from everview.circuit.stepping import Owed, Ran
from everview.codes.backed import BackedDictionary
from everview.codes.dictionary import Mark
from everview.operators.operator import Context
from everview.runtimes.embedded.interned import NAMES
from everview.runtimes.embedded.stored_entries import StoredEntries
from everview.runtimes.loops import Cells, Left
from everview.runtimes.pending import At
from everview.runtimes.spark import rounds
from everview.runtimes.spark.node_work import take_work
from everview.runtimes.spark.passing import (
    Passer,
    Received,
    discard_passed,
    is_large,
    reference,
    referred,
    shared_rows,
)
from everview.runtimes.spark.scattered import (
    CellPart,
    Scattered,
    ScatteredByTime,
    parts_of,
    rows_of,
    scattered_in,
)
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
    matrix_of,
    matrix_rows,
    to_batches,
    unpack_entries,
)
from everview.runtimes.state import Path
from everview.runtimes.tables import Resolver
from everview.traces.store import Replace, SliceRef
from everview.types.words import Matrix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ReturnedParts = dict[RowKind, dict[tuple[int, int], list[tuple[CellPart, At]]]]  # by kind, shard and node
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
    carried: int = 0  # bytes of streams that the driver has been given, or has given to tasks as rows

    def __post_init__(self) -> None:
        self._received = Received(self.path)
        self._puts = 0

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
            mine = self._cells(self.program, cells, needed, passer) if frame is None else []
            mine += self._shared(cells, self.program.shared(first, last), passer)
            extra = [*mine, *passer.finish(), *self._entries(self.program, first, last)]
            if wakes(job):
                extra += [Row(RowKind.WAKE, -1, shard) for shard in range(self.program.shards)]
            if frame is None and not extra:
                return
            sent = self._frame(extra) if frame is None else frame.union(self._frame(extra)) if extra else frame
            returned = self._note(chain(sent, job), work=self.program)
        self._put(self.program, returned, cells)

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
            rows = [*self._cells(program, cells, program.needed(stage, stage), passer), *_due(due, passer)]
            rows += [*self._shared(cells, program.shared(stage, stage), passer), *passer.finish()]
            if not rows:
                return ran
            self.carried += sum(memoryview(row.payload).nbytes for row in rows)
            rows += self._entries(program, stage, stage)
            returned = self._note(rounds.frame(self.spark, told, rows), ran)
        self._put(program, returned, cells)
        for kind in (RowKind.HELD, RowKind.WOKEN):
            for (shard, node), parts in returned[kind].items():
                later = {RowKind.HELD: ran[shard].held, RowKind.WOKEN: ran[shard].wakes}[kind]
                later[node] = self._later(program, node, parts)
        return ran

    def fetch(self, program: Program, cells: Cells, nodes: Collection[int]) -> None:
        """Make cells matrices, mapped from the files that tasks have written."""
        for shard, node, cell in list(scattered_in(cells, nodes)):
            cells[shard][node] = joined(program, node, self._here(cell), self.context)

    def fetch_due(self, due: Sequence[Owed]) -> list[Owed]:
        """Owed rows, as matrices."""
        fetched = lambda sent: {n: m if isinstance(m, np.ndarray) else one(self._here(m)) for n, m in sent.items()}  # noqa: E731
        return [Owed(fetched(owed.held), fetched(owed.woken)) for owed in due]

    def put_aside(self, left: Left) -> Left:
        """Write the rows that have left a loop to a file; rows written by tasks stay where they are."""
        self._puts += 1
        aside: Left = []
        with self._passer(f"aside-{self._puts}") as passer:
            for shard, exports in enumerate(left):
                kept = {
                    export: [part for cell in cells for part in parts_of(cell)] for export, cells in exports.items()
                }
                aside.append({export: [_aside(passer, shard, parts)] for export, parts in kept.items()})
            _ = list(passer.finish())
        return aside

    def push(self, path: Path, appends: Sequence[tuple[int, dict[int, Any]]]) -> None:
        for _, batches in appends:
            for ref in batches.values():
                self.written.setdefault(ref.key, []).append(ref)

    def close(self) -> None:
        """Remove the files that carried large cells between the tasks of an epoch."""
        if self.jobs:
            discard_passed(self.path, self.epoch + 1)

    # -- inside

    def _here(self, cell: Scattered) -> list[Matrix]:
        """The parts of a cell, mapped where they are files."""
        parts = [self._received.slice(part) if isinstance(part, SliceRef) else part for part in cell.parts]
        self.carried += sum(part.nbytes for part in parts)
        return parts

    def _cells(self, program: Program, cells: Cells, nodes: frozenset[int], passer: Passer) -> list[Row]:
        """Cells for tasks. The driver lets go of large ones, and of files that tasks will consolidate."""
        rows: list[Row] = []
        fed = {input_ for _, input_ in program.feedbacks} if program.depth else set[int]()
        for shard, shard_cells in enumerate(cells):
            for node in sorted(nodes & shard_cells.keys()):
                cell = shard_cells[node]
                if isinstance(cell, np.ndarray) and is_large(cell):
                    cell = shard_cells[node] = Scattered((passer.written(shard, cell),), cell.shape[1])
                rows += _rows(RowKind.CELL, node, shard, cell)
                if node in fed and isinstance(cell, Scattered):
                    del shard_cells[node]
        return rows

    def _shared(self, cells: Cells, nodes: frozenset[int], passer: Passer) -> list[Row]:
        """Cells that every task needs of all shards."""
        rows: list[Row] = []
        for shard, shard_cells in enumerate(cells):
            for node in sorted(nodes & shard_cells.keys()):
                for part in parts_of(shard_cells[node]):
                    if isinstance(part, SliceRef):
                        rows += shared_rows(node, part, self.partitions)
                    else:
                        passer.share(node, shard, part, self.partitions)
        return rows

    def _put(self, program: Program, returned: ReturnedParts, cells: Cells) -> None:
        """Put streams that tasks have returned into the cells; files stay files."""
        for (shard, node), parts in returned[RowKind.LEFT].items():
            matrices = [part for part, _ in parts if isinstance(part, np.ndarray)]
            if len(matrices) == len(parts):
                cells[shard][node] = joined(program, node, matrices, self.context)
            else:
                cells[shard][node] = Scattered(tuple(part for part, _ in parts), program.empty(node).shape[1])

    def _later(self, program: Program, node: int, parts: Sequence[tuple[CellPart, At]]) -> Any:
        """Rows owed to later times: with the times in the rows, or as files by time."""
        matrices = [part for part, _ in parts if isinstance(part, np.ndarray)]
        if matrices:
            assert len(matrices) == len(parts), "a shard is one task's"
            return one(matrices)
        return ScatteredByTime(tuple((at, Scattered((part,), _width(part))) for part, at in parts))

    def _passer(self, name: str) -> Passer:
        return Passer(self.path, self.epoch + 1, f"driver.{name}")

    def _entries(self, program: Program, first: int, last: int) -> Iterator[Row]:
        """The dictionary entries of the open epoch, for stages that look up values."""
        if reads_values(program, first, last):
            yield from entries_for(self._dictionary.export(self.mark), self.partitions)
            yield from chunks_for(self.chunks, self.partitions)

    def _frame(self, rows: Iterable[Row]) -> DataFrame:
        return self.spark.createDataFrame(pa.Table.from_batches(list(to_batches(rows)), ARROW))

    def _note(self, frame: DataFrame, ran: list[Ran] | None = None, work: Program | None = None) -> ReturnedParts:
        """Run a job and sort the rows that its tasks return; of users' mistakes, raise that of the earliest stage.

        What the nodes of tasks have done counts as ``work`` of this program.
        """
        self.jobs += 1
        returned: ReturnedParts = {RowKind.LEFT: {}, RowKind.HELD: {}, RowKind.WOKEN: {}}
        failures: list[Row] = []
        values: list[Row] = []
        for row in from_batches(frame.toArrow().to_batches()):
            match row.kind:
                case RowKind.LEFT | RowKind.HELD | RowKind.WOKEN:
                    self.carried += memoryview(row.payload).nbytes
                    part = referred(row) or (matrix_of(row), ())
                    returned[row.kind].setdefault((row.shard, row.node), []).append(part)
                case RowKind.EDIT:
                    self._append(row, ran)
                case RowKind.NEW | RowKind.PASSED:
                    values.append(row)
                case RowKind.ERROR:
                    failures.append(row)
                case RowKind.LARGE | RowKind.COUNT | RowKind.BAD | RowKind.WORK:
                    self._tell(row, work)
                case RowKind.CELL | RowKind.WAKE | RowKind.ENTRIES | RowKind.SHARED:
                    raise AssertionError(f"{row.kind.name} after the last stage")
                case _:
                    assert_never(row.kind)
        if failures:
            raise error_of(min(failures, key=lambda row: (row.node, row.shard)))
        self._take_values(values)
        for shard, node in [key for key in returned[RowKind.LEFT] if key[1] in self.large]:
            self.large[node] += sum(rows_of(part) for part, _ in returned[RowKind.LEFT].pop((shard, node)))
        return returned

    def _tell(self, row: Row, work: Program | None) -> None:
        """Take in the report of a task: rows of nodes, refused rows, and the work done."""
        if row.kind is RowKind.LARGE:
            self.large[row.node] += row.columns
        elif row.kind is RowKind.COUNT:
            self.counts[row.node] += row.columns
        elif row.kind is RowKind.BAD:
            self.bad.append(self._bad(row))
        elif work is not None:
            take_work(work, row)

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


def _rows(kind: RowKind, node: int, shard: int, cell: Matrix | Scattered) -> Iterator[Row]:
    """A cell for a task: rows for what is here, references for files."""
    for part in parts_of(cell):
        if isinstance(part, SliceRef):
            yield reference(kind, node, shard, part)
        else:
            yield from matrix_rows(kind, node, shard, part)


def _width(part: CellPart) -> int:
    return part.shape[1] if isinstance(part, np.ndarray) else part.columns


def _aside(passer: Passer, shard: int, parts: Sequence[CellPart]) -> Scattered:
    """Parts of a cell, with those that were in memory in one file."""
    matrices = [part for part in parts if isinstance(part, np.ndarray)]
    refs = [part for part in parts if isinstance(part, SliceRef)]
    if matrices:
        refs.append(passer.written(shard, np.concatenate(matrices)))
    return Scattered(tuple(refs), _width(parts[0]))


def _due(due: Sequence[Owed], passer: Passer) -> Iterator[Row]:
    sent: Mapping[int, Any]
    for shard, shard_due in enumerate(due):
        for kind, sent in ((RowKind.HELD, shard_due.held), (RowKind.WOKEN, shard_due.woken)):
            for node, matrix in sent.items():
                if isinstance(matrix, np.ndarray):
                    yield from passer.rows(kind, node, shard, matrix)
                else:
                    yield from _rows(kind, node, shard, matrix)
