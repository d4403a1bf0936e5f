"""A slice: one immutable array of a (name, shard), and the reference that says where its bytes lie.

A slice is a batch matrix (int64, two dimensions) or a block of plain data (int64 or uint8, one dimension). A matrix may
lie in its file in narrow form (`everview.traces.store.narrow`), which its reference says in place of the type of words.
A reference is plain data: scalars that JSON and Spark rows carry. Nothing about a slice is ever executed.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everview.errors import CorruptState

Array = NDArray[Any]
Key = tuple[str, int]  # name and shard

MATRIX_OR_BLOCK = {("<i8", 2), ("<i8", 1), ("|u1", 1)}
NARROW = "narrow "  # what the type of a narrow matrix begins with; the number of its bytes follows
NARROW_FROM = 1 << 20  # bytes: smaller matrices are mapped as they are


class SliceRef(NamedTuple):
    """Where a slice lies, and the checksum of its bytes.

    `file` is a segment's name; empty, it is the log that the manifest itself was read from. A block of one
    dimension has no columns.

    >>> SliceRef("edges", 3, "7-0-c0ffee.seg", 64, rows=10, columns=3, dtype="<i8", checksum=0).nbytes
    240
    """

    name: str
    shard: int
    file: str
    offset: int
    rows: int
    columns: int
    dtype: str
    checksum: int

    @property
    def key(self) -> Key:
        return self.name, self.shard

    @property
    def inline(self) -> bool:
        return not self.file

    @property
    def is_narrow(self) -> bool:
        return self.dtype.startswith(NARROW)

    @property
    def nbytes(self) -> int:
        """The bytes of the array."""
        return self.rows * max(self.columns, 1) * (8 if self.is_narrow else np.dtype(self.dtype).itemsize)

    @property
    def stored(self) -> int:
        """The bytes in the file, which a narrow slice has fewer of."""
        return int(self.dtype.removeprefix(NARROW)) if self.is_narrow else self.nbytes

    @property
    def end(self) -> int:
        return self.offset + self.stored


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A committed slice: its read-only array, and the id by which merges name the slices to replace."""

    id: int
    array: Array


def refer(name: str, shard: int, array: Array, file: str, offset: int) -> SliceRef:
    """The reference to an array whose bytes are put at `offset` of `file`."""
    dtype, shape = array.dtype.str, array.shape
    assert (dtype, len(shape)) in MATRIX_OR_BLOCK, f"{name}: no slice is {len(shape)}-dimensional {dtype}"
    assert array.flags.c_contiguous, f"{name}: a slice is contiguous"
    columns = shape[1] if len(shape) == 2 else 0
    assert len(shape) == 1 or columns > 0, f"{name}: a batch has its weight column at least"
    return SliceRef(name, shard, file, offset, shape[0], columns, dtype, zlib.crc32(array.data))


def refer_narrow(name: str, shard: int, shape: tuple[int, ...], narrow: Array, file: str, offset: int) -> SliceRef:
    """The reference to a matrix whose narrow form is put at `offset` of `file`."""
    rows, columns = shape
    return SliceRef(name, shard, file, offset, rows, columns, f"{NARROW}{narrow.nbytes}", zlib.crc32(narrow.data))


def octets(array: Array) -> memoryview:
    """The bytes of a contiguous array, not copied."""
    return array.reshape(-1).view(np.uint8).data


def checksum(data: bytes | memoryview | Array) -> int:
    return zlib.crc32(data.data if isinstance(data, np.ndarray) else data)


def array_in(buffer: Any, offset: int, ref: SliceRef) -> Array:
    """The read-only array of `ref` whose bytes begin at `offset` of `buffer`; the bytes alone, if it is narrow."""
    if ref.is_narrow:
        return np.frombuffer(buffer, np.uint8, ref.stored, offset)
    count = ref.rows * max(ref.columns, 1)
    # An empty slice may lie at the very end of its file, where there is no buffer to be had.
    flat = np.frombuffer(buffer, ref.dtype, count, offset) if count else np.frombuffer(b"", ref.dtype)
    return flat.reshape(ref.rows, ref.columns) if ref.columns else flat


def damaged(path: object, what: str, *, hint: str | None = None) -> CorruptState:
    """The error that names a file whose bytes are not what was written."""
    restore = "restore the file from a copy, or the state from its sources"
    return CorruptState(f"{path} is damaged: {what}", hint=hint or restore)


def checked(path: object, ref: SliceRef, array: Array) -> Array:
    """The array, or the error that names the slice in the file."""
    if checksum(array) == ref.checksum:
        return array
    raise damaged(path, f'slice of "{ref.name}", shard {ref.shard}, at byte {ref.offset} has a wrong checksum')
