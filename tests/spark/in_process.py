"""What the engine asks of Spark, done in this process: rows move to partitions by shard, and functions run over them.

What a task is given has been pickled, and what it gives has been record batches, so that nothing passes that would not
pass between processes. Fast enough for property tests; that real Spark does the same is tested beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa
from pyspark import cloudpickle

from everview.circuit import Circuit
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.placement import Decision, Place, Placement
from everview.runtimes.spark.wire import ARROW
from everview.runtimes.tables import Table
from everview.zset.batch import Batch

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Runner = Callable[[Task, list[pa.RecordBatch], int], list[pa.RecordBatch]]
PARTITIONS = 2


def once(task: Task, batches: list[pa.RecordBatch], partition: int, attempt: int = 0) -> list[pa.RecordBatch]:
    """One attempt of a task."""
    task = cloudpickle.loads(cloudpickle.dumps(task))
    context = SimpleNamespace(partitionId=lambda: partition, attemptNumber=lambda: attempt)
    with patch("pyspark.TaskContext.get", return_value=context):
        return list(task(batches))


@dataclass
class Frame:
    """Record batches in partitions."""

    session: Session
    parts: list[list[pa.RecordBatch]]

    def repartitionById(self, partitions: int, column: str) -> Frame:
        rows = [batch.slice(i, 1) for part in self.parts for batch in part for i in range(batch.num_rows)]
        parts: list[list[pa.RecordBatch]] = [[] for _ in range(partitions)]
        for row in rows:
            parts[row.column(column)[0].as_py() % partitions].append(row)
        return Frame(self.session, parts)

    def mapInArrow(self, task: Task, schema: str) -> Frame:
        return Frame(self.session, [self.session.runner(task, part, at) for at, part in enumerate(self.parts)])

    def union(self, other: Frame) -> Frame:
        return Frame(self.session, [*self.parts, *other.parts])

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches([batch for part in self.parts for batch in part], ARROW)


@dataclass
class Session:
    """As much of a SparkSession as the engine uses; ``runner`` is how a task runs."""

    runner: Runner = once
    jobs: int = field(default=0)

    def createDataFrame(self, table: pa.Table) -> Frame:
        self.jobs += 1
        return Frame(self, [table.to_batches()])

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        self.jobs += 1
        numbers = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(start, end, step)]
        return Frame(self, [numbers[part::partitions] for part in range(partitions)])


def engine(
    circuit: Circuit,
    path: Path | str,
    *,
    session: Any = None,
    place: Place = "cluster",
    shards: int = 4,
    tables: dict[str, Table] | None = None,
    **options: Any,
) -> Engine:
    """An engine whose tasks run here, or in a session."""
    return Engine(
        cast("Any", session or Session()),
        circuit,
        str(path),
        shards=shards,
        tables=tables or {},
        placement=Placement(place),
        partitions=PARTITIONS,
        **options,
    )


def tick(run: Engine, changes: Any) -> dict[str, Batch]:
    """A tick where the engine is told to run; the driver encodes."""
    where = "driver" if run.placement.place == "driver" else "cluster"
    return dict(run.tick(changes, {}, Decision(where, "test"), lambda _: None).changes)
