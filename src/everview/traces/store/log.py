"""The log: a snapshot of the manifest, then one record per commit, each durable before it is acknowledged.

A log file appears whole, by rename, with its snapshot in it; the next one takes over with a newer snapshot.
Appending either succeeds or leaves the file as it was. If even that cannot be told, `Uncertain` says so.

A file that grows has to have its new length and place written with every sync, which costs more than the record
itself. So where every commit is synced, a record that reaches the end of the file brings room for later ones, full of
`BLANK`, and those are written over it: one write, and one sync of nothing but their sectors. Room is cut off when the
log is closed, and when one is opened that a crash has left.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from pathlib import Path

from everview.traces.store.files import File, FileSystem, publish
from everview.traces.store.record import BLANK

EVERY_TICK = 0.0
NEVER = math.inf
LEAST_ROOM, MOST_ROOM = 4 << 10, 256 << 10  # bytes; in between, as much as was appended already


class Uncertain(Exception):
    """What is on disk is not known: only reading it again, by reopening, can tell."""


class Log:
    """A log open for appending; `sync` is the least time between two syncs, in seconds."""

    def __init__(self, file: File, size: int, snapshot: int, files: FileSystem, sync: float) -> None:
        self.file = file
        self.size = size  # up to the end of the last commit
        self.snapshot = snapshot  # of which this much is the snapshot
        self._length = size  # of the file, with the room for records to come
        self._files = files
        self._every = sync
        self._opened = size
        self._synced = size
        self._closed = False
        self._last_sync = time.monotonic()

    @classmethod
    def begin(cls, path: Path, snapshot: bytes, files: FileSystem, sync: float) -> Log:
        """A new log; durable on return. An `OSError` means there is none."""
        file = publish(files, path, snapshot)
        try:
            files.sync_dir(path.parent)
        except OSError as error:
            files.close(file)
            raise Uncertain(f"{path.name} may or may not be there") from error
        return cls(file, len(snapshot), len(snapshot), files, sync)

    @property
    def tail(self) -> int:
        """The bytes that replay has to read beyond the snapshot."""
        return self.size - self.snapshot

    def trim(self) -> None:
        """Cut off what a crash left after the last complete record, and make the rest durable."""
        if self.file.path.stat().st_size > self.size:
            self._files.truncate(self.file, self.size)
        self._files.sync(self.file)

    def append(self, record: bytes) -> int:
        """Where the record begins. An `OSError` means it is not there."""
        start, end = self.size, self.size + len(record)
        data = record if end <= self._length or self._every else record + self._room(end)
        try:
            self._files.append(self.file, data, start)
        except OSError:
            self._retreat(start)
            raise
        self.size, self._length = end, max(self._length, start + len(data))
        if not self._every or time.monotonic() - self._last_sync >= self._every:
            self._sync_from(start)
        return start

    def flush(self) -> None:
        """Return when every acknowledged commit is durable."""
        if self._synced == self.size:
            return
        try:
            self._sync()
        except OSError as error:
            raise Uncertain("commits were waiting for a sync that failed") from error

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True  # first: closed twice, the descriptor might be another file's by then
        if self._length > self.size:
            with suppress(OSError):  # room does no harm
                self._files.truncate(self.file, self.size)
        self._files.close(self.file)

    def cut(self, size: int) -> None:
        """Cut the log back to an earlier length, whatever an exception has left of an append."""
        self.size, self._synced = size, min(self._synced, size)
        if self.file.path.stat().st_size > size:
            self._retreat(size)

    def _room(self, end: int) -> bytes:
        """Room for the records that come after byte `end`."""
        return BLANK * min(max(end - self._opened, LEAST_ROOM), MOST_ROOM)

    def _sync(self) -> None:
        self._files.sync(self.file)
        self._synced, self._last_sync = self.size, time.monotonic()

    def _sync_from(self, start: int) -> None:
        if self._synced < start:
            self.flush()
            return
        try:
            self._sync()
        except OSError:
            self._retreat(start)
            raise

    def _retreat(self, size: int) -> None:
        """Cut off what a failed append left, durably: else it could come back after a power failure."""
        self.size = self._length = size
        try:
            self._files.truncate(self.file, size)
            self._files.sync(self.file)
        except OSError as error:
            raise Uncertain("a failed commit could not be undone") from error
