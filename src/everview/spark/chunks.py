"""Frames whose rows pass the driver in chunks: it has one of Spark's partitions at a time, as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT_ONCE: Final = 200_000  # rows of a partition
PACKED: Final = "_packed"


def parts_for(rows: int) -> int:
    """How many partitions so many rows are divided into."""
    return rows // AT_ONCE + 1


def chunks(frame: DataFrame) -> Iterator[pa.Table]:
    """The rows of a frame, partition by partition and in the order that each has."""
    for row in frame.mapInArrow(pack, f"{PACKED} BINARY").toLocalIterator():
        with pa.ipc.open_stream(row[PACKED]) as stream:
            yield stream.read_all()


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as the bytes of a stream of Arrow, in a row of one column."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch({PACKED: pa.array([sink.getvalue().to_pybytes()], pa.binary())})
