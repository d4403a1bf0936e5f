"""The log: a snapshot of the manifest, then one record per commit, each durable before it is acknowledged.

A log file appears whole, by rename, with its snapshot in it; the next one takes over with a newer snapshot.
Appending either succeeds or leaves the file as it was. If even that cannot be told, `Uncertain` says so.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from everview.traces.store.files import File, FileSystem, publish

EVERY_TICK = 0.0
NEVER = math.inf


class Uncertain(Exception):
    """What is on disk is not known: only reading it again, by reopening, can tell."""


class Log:
    """A log open for appending; `sync` is the least time between two syncs, in seconds."""

    def __init__(self, file: File, size: int, snapshot: int, files: FileSystem, sync: float) -> None:
        self.file = file
        self.size = size  # up to the end of the last commit
        self.snapshot = snapshot  # of which this much is the snapshot
        self._files = files
        self._every = sync
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
        start = self.size
        try:
            self._files.append(self.file, record)
        except OSError:
            self._retreat(start)
            raise
        self.size += len(record)
        if time.monotonic() - self._last_sync >= self._every:
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
        if not self._closed:
            self._closed = True  # first: closed twice, the descriptor might be another file's by then
            self._files.close(self.file)

    def cut(self, size: int) -> None:
        """Cut the log back to an earlier length, whatever an exception has left of an append."""
        self.size, self._synced = size, min(self._synced, size)
        if self.file.path.stat().st_size > size:
            self._retreat(size)

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
        try:
            self._files.truncate(self.file, size)
            self._files.sync(self.file)
        except OSError as error:
            raise Uncertain("a failed commit could not be undone") from error
        self.size = size
