"""What crosses an exchange: one schema for all streams, one row per (stream, shard) batch.

A row says what it is, which node and shard it is for, and carries bytes: a matrix of words, dictionary
entries, or JSON. Spark moves rows by their shard and looks no further. A long matrix is cut, so that neither
its rows nor a record batch of them come near the 2 GiB that an Arrow column of bytes can hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview import errors
from everview.circuit.blame import NODE
from everview.codes.dictionary import Entries
from everview.errors import EverviewError
from everview.traces.store import Replace, SliceRef
from everview.types.words import Matrix

Octets = NDArray[np.uint8]

SCHEMA = "kind INT, node INT, shard INT, columns INT, payload BINARY"
NUMBERS = ("kind", "node", "shard", "columns")
ARROW = pa.schema([*((name, pa.int32()) for name in NUMBERS), ("payload", pa.binary())])
PACKED = pa.schema([("rows", pa.binary())])
ROW_BYTES = 16 << 20  # a longer matrix travels as several rows
BATCH_BYTES = 64 << 20  # of payload in one record batch, about


class RowKind(IntEnum):
    """The content of a row. Cells, shared ones, wakes and entries are for the next stage; the others for the driver."""

    CELL = 0  # rows of a stream: of a source, of an exchange, or of one that stays on its shard
    WAKE = 1  # nothing: the shard runs even if nothing arrives
    ENTRIES = 2  # dictionary entries that the next stage may need
    LEFT = 3  # rows of a stream that the driver wants: of a view, or for a loop
    EDIT = 4  # a slice written to a segment, and the slices it replaces
    NEW = 5  # dictionary entries that a stage has added
    ERROR = 6  # a user's mistake, found by a task; its node is the number of the stage
    HELD = 7  # output rows of a node that belong to a later time of a recursion
    WOKEN = 8  # groups that a node must look at again at a later time
    WORK = 11  # steps, rows and seconds of the nodes of a stage, as JSON
    COUNT = 9  # how many rows (in place of columns) have arrived for a source
    SHARED = 12  # a reference to a shard's rows of a stream that every task needs
    PASSED = 13  # a reference to dictionary entries that a stage has added, those of one division of codes
    LARGE = 14  # how many rows (in place of columns) a view's change has that is to be read from the state
    BAD = 10  # rows of a source that cannot be taken, as JSON: pairs of a reason and a text


class Row(NamedTuple):
    """One row of the wire; the payload is anything that exports bytes."""

    kind: RowKind
    node: int
    shard: int
    columns: int = 0
    payload: Any = b""


def to_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """The rows as record batches of the wire schema."""
    waiting: list[Row] = []
    size = 0
    for row in rows:
        waiting.append(row)
        size += memoryview(row.payload).nbytes
        if size >= BATCH_BYTES:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def from_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of record batches; payloads are not copied."""
    for batch in batches:
        numbers = [batch.column(name).to_pylist() for name in NUMBERS]
        payloads = (payload.as_buffer() for payload in batch.column("payload"))
        for kind, node, shard, columns, payload in zip(*numbers, payloads, strict=True):
            yield Row(RowKind(kind), node, shard, columns, payload)


def packed(rows: Iterable[Row], partitions: int) -> list[bytes]:
    """The driver's rows for a job without an exchange: one block for each partition.

    However Spark divides the blocks, what one task must have together it cannot part.

    >>> blocks = packed([Row(RowKind.WAKE, -1, shard) for shard in (0, 1, 2, 4)], 2)
    >>> [[row.shard for row in unpacked(block)] for block in blocks]
    [[0, 2, 4], [1]]
    """
    parts: dict[int, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.shard % partitions, []).append(row)
    return [_stream(parts[part]) for part in sorted(parts)]


def unpacked(block: Any) -> Iterator[Row]:
    """The rows of a block."""
    return from_batches(pa.ipc.open_stream(block))


def blocks_table(blocks: Iterable[bytes]) -> pa.Table:
    """Blocks as a table of one record batch each, which Spark makes a task of."""
    batches = [pa.RecordBatch.from_arrays([pa.array([block])], schema=PACKED) for block in blocks]
    return pa.Table.from_batches(batches, PACKED)


def _stream(rows: list[Row]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ARROW) as writer:
        for batch in to_batches(rows):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _batch(rows: list[Row]) -> pa.RecordBatch:
    numbers = [pa.array([row[column] for row in rows], pa.int32()) for column in range(len(NUMBERS))]
    sizes = [memoryview(row.payload).nbytes for row in rows]
    offsets = np.array([0, *accumulate(sizes)], np.int32).tobytes()
    data = b"".join(row.payload for row in rows)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    payloads: Any = pa.Array.from_buffers(pa.binary(), len(rows), buffers)
    return pa.RecordBatch.from_arrays([*numbers, payloads], schema=ARROW)


# -- matrices


def matrix_rows(kind: RowKind, node: int, shard: int, matrix: Matrix) -> Iterator[Row]:
    """A matrix as rows, cut between its lines where it is long; an empty one is no row at all.

    >>> [row] = matrix_rows(RowKind.CELL, 3, 5, np.array([[7, 1], [8, -1]]))
    >>> row.node, row.shard, row.columns, matrix_of(row).tolist()
    (3, 5, 2, [[7, 1], [8, -1]])
    """
    lines, columns = matrix.shape
    step = max(1, ROW_BYTES // (8 * columns))
    for start in range(0, lines, step):
        part = np.ascontiguousarray(matrix[start : start + step])
        yield Row(kind, node, shard, columns, part.reshape(-1).view(np.uint8).data)


def matrix_of(row: Row) -> Matrix:
    """The matrix of a row, read-only; copied only if it does not lie on a word boundary, as kernels need."""
    matrix = np.frombuffer(row.payload, np.int64).reshape(-1, row.columns)
    return matrix if matrix.flags.aligned else matrix.copy()


# -- dictionary entries


def pack_entries(entries: Entries) -> Octets:
    """Dictionary entries as one block of bytes.

    >>> from everview.codes.dictionary import Dictionary
    >>> from everview.types import STRING
    >>> codes = (here := Dictionary()).intern(STRING, pa.array(["ada", "bob"]))
    >>> (there := Dictionary()).load(unpack_entries(pack_entries(here.export())))
    >>> there.lookup(STRING, codes).to_pylist()
    ['ada', 'bob']
    """
    size = np.array([len(entries)], np.int64)
    parts = (size, entries.codes, entries.kinds, entries.offsets, entries.exceptions, entries.data)
    return np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in parts])


def unpack_entries(block: Any) -> Entries:
    """The inverse of `pack_entries`."""
    octets = np.frombuffer(block, np.uint8)
    n, start = int(octets[:8].copy().view(np.int64)[0]), 8
    arrays: list[NDArray[Any]] = []
    for length, dtype in ((n, np.int64), (n, np.int64), (n + 1, np.int64), (n, np.uint8)):
        end = start + length * np.dtype(dtype).itemsize
        arrays.append(octets[start:end].copy().view(dtype))
        start = end
    codes, kinds, offsets, exceptions = arrays
    return Entries(codes, kinds, offsets, octets[start:].copy(), exceptions)


# -- what a task reports


def edit_row(shard: int, edit: Replace) -> Row:
    """A row that reports a written slice, with the ids of the slices replaced.

    >>> ref = SliceRef("edges", 5, "7-0-c0ffee.seg", 64, 10, 3, "<i8", 0)
    >>> edit_of(edit_row(5, Replace("edges", 5, (4, 9), ref))).new == ref
    True
    """
    assert not isinstance(edit.new, np.ndarray), "a task refers to what it wrote"
    return Row(RowKind.EDIT, -1, shard, 0, json.dumps([edit.name, edit.shard, edit.old, edit.new]).encode())


def edit_of(row: Row) -> Replace:
    name, shard, old, ref = json.loads(bytes(row.payload))
    return Replace(name, shard, tuple(old), None if ref is None else SliceRef(*ref))


def error_row(stage: int, shard: int, error: EverviewError) -> Row:
    """A user's mistake as data, so that Spark does not try again what cannot succeed.

    >>> error_of(error_row(1, 0, errors.WeightOverflow("too much", hint="less")))
    WeightOverflow('too much\\n  hint: less')
    """
    document = [type(error).__name__, error.message, error.hint, getattr(error, NODE, None)]
    return Row(RowKind.ERROR, stage, shard, 0, json.dumps(document).encode())


def error_of(row: Row) -> EverviewError:
    name, message, hint, node = json.loads(bytes(row.payload))
    kind: type[EverviewError] = getattr(errors, name, EverviewError)
    error = kind(message, hint=hint)
    if node is not None:
        setattr(error, NODE, node)
    return error
