"""The file operations a store is made of, each announced before it happens.

A state directory changes only through `FileSystem`. A test can therefore stop the process before any one
operation, refuse one with an error, or record them all and play a power failure. Reading is not announced:
it changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Hook = Callable[[str, Path], None]

# Enough of fsync for us: the size of a file is part of what it takes to read the data back.
_sync_data = getattr(os, "fdatasync", os.fsync)


def _unobserved(operation: str, path: Path) -> None:
    del operation, path


@dataclass(frozen=True, slots=True)
class File:
    """A file open for writing, under the name it was opened by."""

    path: Path
    descriptor: int


class FileSystem:
    """The file operations of a store; `before(operation, path)` is called before each and may raise."""

    def __init__(self, before: Hook = _unobserved) -> None:
        self.announce = before

    def take_over(self) -> None:
        """Keep earlier writers from changing the state; on a local disk their lock has done that."""

    def prove(self) -> None:
        """Raise if another writer has taken over, which cannot be where there is a lock."""

    def create(self, path: Path) -> File:
        """A new, empty file; an existing one is never overwritten."""
        self.announce("create", path)
        return File(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))

    def reopen(self, path: Path) -> File:
        """An existing file, to read and to append to."""
        return File(path, os.open(path, os.O_RDWR))

    def append(self, file: File, data: bytes | memoryview, at: int) -> None:
        """Put `data` at byte `at`, where the part of the file that counts ends; on an error, perhaps some of it."""
        self.announce("append", file.path)
        written = os.pwrite(file.descriptor, data, at)
        while written < len(data):
            written += os.pwrite(file.descriptor, memoryview(data)[written:], at + written)

    def sync(self, file: File) -> None:
        """Return when all that was appended would survive a power failure."""
        self.announce("sync", file.path)
        _sync_data(file.descriptor)

    def truncate(self, file: File, size: int) -> None:
        self.announce("truncate", file.path)
        os.ftruncate(file.descriptor, size)

    def close(self, file: File) -> None:
        with suppress(OSError):  # what mattered was synced
            os.close(file.descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self.announce("rename", target)
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        self.announce("unlink", path)
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        self.announce("mkdir", path)
        os.mkdir(path)

    def sync_dir(self, path: Path) -> None:
        """Return when the names in the directory would survive a power failure."""
        self.announce("sync_dir", path)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def discard(files: FileSystem, path: Path) -> None:
    """Try to remove a file without references; if this fails, `vacuum` removes the file later."""
    with suppress(OSError):
        files.unlink(path)


def publish(files: FileSystem, target: Path, data: bytes) -> File:
    """A file that appears whole under its name, and stays open; durable once its directory is synced."""
    temporary = target.with_name(target.name + ".new")
    if temporary.exists():
        files.unlink(temporary)
    file = files.create(temporary)
    try:
        files.append(file, data, 0)
        files.sync(file)
        files.rename(temporary, target)
    except OSError:
        files.close(file)
        discard(files, temporary)
        raise
    return File(target, file.descriptor)
