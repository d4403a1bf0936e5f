"""Narrow slices in words again, as files that all processes of a machine map: each slice is widened once, by the first.

The files lie in the folder of local copies. A process has a shared lock on each file that it maps, which ends with the
map, so with the process at the latest. What nobody holds is removed by the next process that widens something. They
are copies: nothing but time is lost with them. After a start of the machine, files of before are not trusted, since
nothing made them durable.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from everview.traces.store.objects import scratch
from everview.traces.store.slices import octets
from everview.types.words import Matrix

FOLDER: Final = "wide-"
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")  # where there is none, a process has its files to itself


def wide_map(name: str, size: int, blocks: Iterable[Matrix]) -> mmap.mmap:
    """A memory map of a named file of so many bytes; the file is written from the blocks if it is missing."""
    folder = _folder()
    there = _mapped(folder / name, size)
    if there is not None:
        return there
    _sweep_once(folder, os.getpid())
    part = folder / f".{name}.{secrets.token_hex(4)}"
    with part.open("xb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
            for block in blocks:
                file.write(octets(block))
            file.flush()
            with suppress(FileNotFoundError):  # it was taken for a dead process's before it was locked
                part.rename(folder / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def sweep_wide(folder: Path) -> None:
    """Remove the files that no process maps, and folders from before the machine was started."""
    for other in folder.parent.glob(f"{FOLDER}*"):
        if other != folder and BOOT.exists():
            shutil.rmtree(other, ignore_errors=True)
    for path in folder.iterdir():
        with suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _folder() -> Path:
    boot = BOOT.read_text().strip() if BOOT.exists() else f"process-{os.getpid()}"
    folder = scratch() / f"{FOLDER}{boot}"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def _mapped(path: Path, size: int) -> mmap.mmap | None:
    """A map of a file that is whole, and not about to be removed; None if there is none."""
    with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        status = os.fstat(file.fileno())
        if status.st_nlink and status.st_size == size:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # has the lock as long as it lasts
    return None


@cache
def _sweep_once(folder: Path, process: int) -> None:
    del process
    sweep_wide(folder)
