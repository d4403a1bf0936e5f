"""Cells on their way between the driver and tasks, and from stage to stage: small ones as bytes in a row, large ones
as files.

Every process of a cluster sees the state directory, so a large matrix is written there once, to a segment that no
commit refers to, and a reference travels in its place: what goes through Spark's exchange is copied four times, and
compressed. When the epoch is over, the driver removes the files; what a crash leaves, the next `vacuum` removes.

A state in an object store has its files elsewhere: there, what moves from stage to stage moves through the exchange.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everview.runtimes.pending import At
from everview.runtimes.spark.wire import Row, RowKind, matrix_of, matrix_rows
from everview.traces.store import ManifestEntry, SegmentWriter, SliceRef
from everview.traces.store.arrays import Arrays
from everview.traces.store.files import File, FileSystem
from everview.traces.store.layout import layout_of
from everview.traces.store.objects import scheme_of
from everview.types.words import Matrix

INLINE_BYTES = 256 << 10  # a larger matrix goes through a file


class _Passing(FileSystem):
    """Files that need not outlive a power failure: an epoch that is not committed by then is computed again."""

    def sync(self, file: File) -> None:
        pass

    def sync_dir(self, path: Path) -> None:
        pass


PASSING = _Passing()
PASSED = ".passed"  # what the attempt ends in that names a segment of this kind


def discard_passed(path: str, epoch: int) -> None:
    """Remove the files through which an epoch has passed cells, if they are at hand; what is mapped stays mapped."""
    if scheme_of(path) is not None:
        return
    layout = layout_of(path)
    passed = re.compile(rf"{epoch:012}-.*{re.escape(PASSED)}-[0-9a-f]+\.seg")
    for name in filter(passed.fullmatch, layout.segment_names()):
        layout.discard(name, PASSING)


class InlinePasser:
    """Passes everything on as bytes in rows, where there is no state directory."""

    def moved(self, node: int, shard: int, matrix: Matrix) -> Iterator[Row]:
        """A shard's rows of a stream for the next stage."""
        return matrix_rows(RowKind.CELL, node, shard, matrix)

    def finish(self) -> Iterator[Row]:
        return iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Passer(InlinePasser):
    """Writes what one task, or the driver for one job, passes on."""

    def __init__(self, path: str, epoch: int, attempt: str) -> None:
        self._writer = SegmentWriter(path, epoch, f"{attempt}{PASSED}", PASSING)
        self._at_hand = scheme_of(path) is None
        self._waiting: list[Row] = []

    def rows(self, kind: RowKind, node: int, shard: int, matrix: Matrix) -> Iterator[Row]:
        """A matrix as rows; those of a large one come from `finish`, when its file is complete."""
        if not is_large(matrix):
            yield from matrix_rows(kind, node, shard, matrix)
        else:
            self.refer(kind, node, shard, matrix)

    def refer(self, kind: RowKind, node: int, shard: int, matrix: Matrix, at: At = ()) -> None:
        """A matrix as a file, however small; its row, which may say a time, comes from `finish`."""
        if matrix.shape[0]:
            self._waiting.append(reference(kind, node, shard, self.written(shard, matrix), at))

    def written(self, shard: int, matrix: Matrix) -> SliceRef:
        """Write a matrix to the file, which is complete after `finish`."""
        return self._writer.add("passing", shard, np.ascontiguousarray(matrix))

    def moved(self, node: int, shard: int, matrix: Matrix) -> Iterator[Row]:
        return self.rows(RowKind.CELL, node, shard, matrix) if self._at_hand else super().moved(node, shard, matrix)

    def share(self, node: int, shard: int, matrix: Matrix, partitions: int) -> None:
        """A shard's rows of a stream for every task; the rows come from `finish`."""
        if matrix.shape[0]:
            self._waiting += shared_rows(node, self.written(shard, matrix), partitions)

    def finish(self) -> Iterator[Row]:
        self._writer.finish()
        yield from self._waiting

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)


def is_large(matrix: Matrix) -> bool:
    """Whether a matrix goes through a file."""
    return matrix.nbytes > INLINE_BYTES


def reference(kind: RowKind, node: int, shard: int, ref: SliceRef, at: At = ()) -> Row:
    """A reference, as a row, to a file with rows of a stream, and the time of these rows."""
    return Row(kind, node, shard, 0, json.dumps([ref, at]).encode())


def referred(row: Row) -> tuple[SliceRef, At] | None:
    """The slice that a row refers to; None if the row has a matrix itself."""
    if row.columns:
        return None
    ref, at = json.loads(bytes(row.payload))
    return SliceRef(*ref), tuple(at)


def shared_rows(node: int, ref: SliceRef, partitions: int) -> list[Row]:
    """Rows that refer every task to a shard's rows of a stream."""
    return [reference(RowKind.SHARED, node, partition, ref) for partition in range(partitions)]


Shared = dict[int, dict[int, list[Matrix]]]  # by stream, what each shard has of it


class Received:
    """Reads what was passed; mapped files stay mapped as long as their matrices are used."""

    def __init__(self, path: str) -> None:
        self._files = Arrays(layout_of(path), Path(path), -1)

    def matrix(self, row: Row) -> Matrix:
        """The matrix of a row, wherever its bytes are."""
        reference = referred(row)
        return matrix_of(row) if reference is None else self.slice(reference[0])

    def shared(self, rows: Iterable[Row]) -> Shared:
        """The cells that every task was given of all shards."""
        matrices: Shared = {}
        for row in rows:
            reference = referred(row)
            assert reference is not None, "what is shared is in files"
            ref, _ = reference
            matrices.setdefault(row.node, {}).setdefault(ref.shard, []).append(self.slice(ref))
        return matrices

    def slice(self, ref: SliceRef) -> Matrix:
        """Rows that another process has written in the open epoch."""
        return self.array(ref)

    def array(self, ref: SliceRef) -> NDArray[Any]:
        """What another process has written in the open epoch."""
        return self._files.peek(ManifestEntry(-1, ref))
