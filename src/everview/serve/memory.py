"""How much memory a process may take before the system ends it: what is free, of the machine or of its container.

Linux ends the process that holds most when memory runs out, without a word. So the server asks for less than there is,
and a statement that would need more is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path("/")


def memory_to_take(root: Path = ROOT) -> int:
    """Three quarters of the free memory, or of the container's limit where this is less."""
    return min(_free(root), *_allowed(root)) // 4 * 3


def _free(root: Path) -> int:
    """The bytes of free memory, caches included; all of the machine's where the system does not tell."""
    try:
        told = re.search(r"^MemAvailable:\s+(\d+) kB$", (root / "proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        told = None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if told is None else int(told[1]) * 1024


def _allowed(root: Path) -> Iterator[int]:
    """The limits of the process's control groups, from its own to the outermost, in either version."""
    yield 1 << 62  # if there is none
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        base, name = root / "sys/fs/cgroup", "memory.max"
        if kinds:
            if "memory" not in kinds.split(","):
                continue
            base, name = base / "memory", "memory.limit_in_bytes"
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(base) and (limit := _number(folder / name)) is not None:
                yield limit


def _number(file: Path) -> int | None:
    """The number in a file; None if it is not there, or says ``max``."""
    try:
        said = file.read_text().strip()
    except OSError:
        return None
    return int(said) if said.isdecimal() else None
