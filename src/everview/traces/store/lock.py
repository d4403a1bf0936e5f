"""One writer at a time, and readers that hold on to what they read.

The writer holds LOCK exclusively. A reader shares the lock of the log file it was built from, and `vacuum`
removes only logs that it can lock, and only segments that no remaining log refers to. The operating system
drops the locks of a process that dies.
"""

from __future__ import annotations

import fcntl
import os
from io import FileIO
from pathlib import Path

from everview.errors import LockedState
from everview.traces.store.files import FileSystem


class WriterLock(FileIO):
    """The held LOCK of a state. It is given up when this is closed, or collected after opening a state failed."""

    def __del__(self) -> None:
        self.close()


def lock_for_writing(path: Path, files: FileSystem, place: Path | str) -> WriterLock:
    """Lock the file LOCK of the state at a place; raises an error with the id of the process that holds the lock."""
    files.announce("lock", path)
    lock = WriterLock(path, "r+", opener=lambda name, _: os.open(name, os.O_RDWR | os.O_CREAT, 0o666))
    descriptor = lock.fileno()
    if not _try_lock(descriptor, fcntl.LOCK_EX):
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        lock.close()
        raise LockedState(
            f"another writer has {place} open (process {owner})",
            hint="close that one first; any number may attach to read",
        )
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return lock


def unlock(lock: WriterLock) -> None:
    """Give the lock up, even where a forked child still has the descriptor; once more is no mistake."""
    if not lock.closed:
        fcntl.flock(lock.fileno(), fcntl.LOCK_UN)
        lock.close()


def pin(path: Path) -> int | None:
    """A descriptor that keeps `vacuum` from removing this log, or None if it is gone already."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if os.fstat(descriptor).st_nlink:
        return descriptor
    os.close(descriptor)
    return None


def unpinned(path: Path) -> int | None:
    """A descriptor with an exclusive lock, so no reader can open the log during removal; None if one has it."""
    descriptor = os.open(path, os.O_RDONLY)
    if _try_lock(descriptor, fcntl.LOCK_EX):
        return descriptor
    os.close(descriptor)
    return None


def _try_lock(descriptor: int, mode: int) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
