"""A segment: a file of slices, written once by one task or one driver tick, then only read.

It begins with a magic word, holds each slice at a multiple of 64 bytes (so a mapped matrix lies as well as
a fresh one), and ends with an index of its slices and a tail that finds the index. Whoever has a reference
needs none of this; the index makes a segment readable alone, and lets `check_segment` account for every
byte.

A segment's name has the epoch it is for, the attempt that wrote it, and a token, so no attempt overwrites
another's, not even after a restart that counts attempts from zero again.
"""

from __future__ import annotations

import json
import mmap
import re
import secrets
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from everview.errors import StoreError
from everview.later import Later
from everview.traces.store.files import File, FileSystem
from everview.traces.store.layout import StatePaths, layout_of
from everview.traces.store.slices import (
    NARROW_FROM,
    Array,
    SliceRef,
    array_in,
    checked,
    checksum,
    damaged,
    octets,
    refer,
    refer_narrow,
)
from everview.types.words import Matrix

if TYPE_CHECKING:
    from everview.traces.store.narrow import narrowed
else:
    narrowed = Later("everview.traces.store.narrow", "narrowed")

ALIGNMENT = 64
MAGIC = b"everview segment 1".ljust(ALIGNMENT, b"\0")
TAIL = struct.Struct("<QI4s")  # where the index begins, its checksum, the end mark
END = b"END\n"
SHARED = "a state directory has to be on a filesystem that every machine of the cluster shares"


def segment_epoch(name: str) -> int | None:
    """The epoch a segment was written for; None if the name is not a segment's.

    >>> segment_epoch("000000000007-3.0-c0ffee00.seg"), segment_epoch("notes.txt")
    (7, None)
    """
    match = re.fullmatch(r"(\d+)-.+\.seg", name)
    return int(match[1]) if match else None


class SegmentWriter:
    """Writes one segment of a state directory; needs no open store, so a task on another machine can use it.

    `epoch` is the one whose commit will refer to the segment: once a later epoch is committed, a segment
    that nothing refers to is rubbish, and `vacuum` may remove it. There is no file before the first slice
    is added, and none after leaving the block without `finish`.

    ```python
    with SegmentWriter(path, epoch=8, attempt=f"{partition}.{attempt}") as writer:
        writer.add("edges", shard, matrix)
        refs = writer.finish()  # durable; hand them to `commit(8, segments=refs)`
    ```
    """

    def __init__(
        self, path: str | Path | StatePaths, epoch: int, attempt: str | int, files: FileSystem | None = None
    ) -> None:
        assert re.fullmatch(r"[\w.-]+", str(attempt)), f"an attempt names part of a file, not {attempt!r}"
        self.name = f"{epoch:012}-{attempt}-{secrets.token_hex(4)}.seg"
        self._layout = path if isinstance(path, StatePaths) else layout_of(path)
        self._directory = self._layout.segments
        self._files = files or FileSystem()
        self._file: File | None = None
        self._size = 0
        self._refs: list[SliceRef] = []

    def add(self, name: str, shard: int, array: Array) -> SliceRef:
        """Append one slice; its reference is good once `finish` has returned."""
        return self._put(array, lambda offset: refer(name, shard, array, self.name, offset))

    def add_trace(self, name: str, shard: int, matrix: Matrix) -> SliceRef:
        """Append one slice of a trace; a large one in narrow form, if that saves a quarter."""
        if matrix.nbytes < NARROW_FROM or (narrow := narrowed(matrix)).nbytes * 4 > matrix.nbytes * 3:
            return self.add(name, shard, np.ascontiguousarray(matrix))
        return self._put(narrow, lambda offset: refer_narrow(name, shard, matrix.shape, narrow, self.name, offset))

    def finish(self) -> tuple[SliceRef, ...]:
        """Write the index and make everything durable, the name included."""
        if self._file is not None:
            self._write(self._file, _footer(self._size, self._refs))
            self._files.sync(self._file)
            self._close()
            self._files.sync_dir(self._directory)
            self._layout.share(self.name)
        return tuple(self._refs)

    def abandon(self) -> None:
        """Remove what was written; the same as never having begun."""
        if self._refs or self._file is not None:
            self._close()
            self._layout.discard(self.name, self._files)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or self._file is not None:
            self.abandon()

    def _put(self, data: Array, refer_to: Callable[[int], SliceRef]) -> SliceRef:
        file = self._begun()
        start = self._size
        ref = refer_to(start + -start % ALIGNMENT)
        self._write(file, bytes(ref.offset - start))
        self._write(file, octets(data))
        self._refs.append(ref)
        return ref

    def _begun(self) -> File:
        if self._file is None:
            assert not self._refs, "a finished segment takes no more slices"
            try:
                self._file = self._files.create(self._directory / self.name)
            except FileNotFoundError as error:
                raise StoreError(f"{self._directory} does not exist on this machine", hint=SHARED) from error
            self._write(self._file, MAGIC)
        return self._file

    def _write(self, file: File, data: bytes | memoryview) -> None:
        if data:
            self._files.append(file, data, self._size)
            self._size += len(data)

    def _close(self) -> None:
        if self._file is not None:
            self._files.close(self._file)
            self._file = None


def _footer(offset: int, refs: list[SliceRef]) -> bytes:
    index = json.dumps(refs).encode()
    return index + TAIL.pack(offset, checksum(index), END)


def map_file(path: Path) -> mmap.mmap:
    """The file as read-only memory, which stays valid when its name is removed."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def check_segment(path: Path) -> frozenset[SliceRef]:
    """The slices of a segment, every byte of the file accounted for; damage raises."""
    if not path.exists():
        raise damaged(path, "it is missing")
    if path.stat().st_size < len(MAGIC) + TAIL.size:
        raise damaged(path, "it is cut short")
    data = map_file(path)
    refs, index_at = _read_index(path, data)
    reached = len(MAGIC)
    for ref in refs:
        if any(data[reached : ref.offset]):
            raise damaged(path, f"the padding at byte {reached} is not empty")
        checked(path, ref, array_in(data, ref.offset, ref))
        reached = ref.end
    if reached != index_at or data[: len(MAGIC)] != MAGIC:
        raise damaged(path, "it is not a segment")
    return frozenset(refs)


def _read_index(path: Path, data: mmap.mmap) -> tuple[list[SliceRef], int]:
    start, expected, end = TAIL.unpack(data[-TAIL.size :])
    index = data[start : -TAIL.size]
    if end != END or start > len(data) or checksum(index) != expected:
        raise damaged(path, "its index is unreadable")
    return [SliceRef(*row) for row in json.loads(index)], start


def require_segments(layout: StatePaths, refs: Iterable[SliceRef]) -> None:
    """Refuse references to segments that are not there, or not finished."""
    ends: dict[str, int] = {}
    for ref in refs:
        ends[ref.file] = max(ref.end, ends.get(ref.file, 0))
    for name, end in ends.items():
        size = layout.segment_size(name)
        if size is None or size <= end:
            raise StoreError(f"{layout.place}/segments/{name} is not a finished segment", hint=SHARED)
