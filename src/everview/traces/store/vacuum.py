"""What may be removed: logs of epochs no longer wanted, and segments that no remaining log refers to.

Logs go first, oldest first, and durably; then segments. So at no moment does a log refer to a segment that is
gone. Kept are also logs that a reader holds, and segments for epochs not committed yet: a task may be writing
them.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from everview.traces.store.files import FileSystem
from everview.traces.store.layout import StatePaths
from everview.traces.store.lock import unpinned
from everview.traces.store.manifest import Manifest, refs_of
from everview.traces.store.record import first_epoch
from everview.traces.store.replay import epochs, records
from everview.traces.store.segment import segment_epoch

SPARSE = 4  # a segment of which less than a quarter lives is not worth keeping
FOOTPRINT = 192  # what a slice takes besides its bytes: alignment, and its line in the index


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What a vacuum removed."""

    logs: int
    segments: int
    bytes: int


def sparse_segments(layout: StatePaths, manifest: Manifest) -> frozenset[str]:
    """The segments whose few living slices should be written anew."""
    living: Counter[str] = Counter()
    for entry in manifest.entries():
        if not entry.ref.inline:
            living[entry.ref.file] += entry.ref.stored + FOOTPRINT
    return frozenset(name for name, size in living.items() if size * SPARSE < (layout.segment_size(name) or 0))


def sweep(layout: StatePaths, files: FileSystem, keep_epochs: int, held: frozenset[str]) -> Vacuumed:
    """Remove all that the last `keep_epochs` epochs do not need; segments in `held` wait for a commit.

    The segments are listed before this writer proves to be the only one, so none of them is a later writer's.
    """
    listed = layout.segment_names()
    files.prove()
    logs = [size for path in _obsolete(layout, keep_epochs) if (size := _remove_log(path, files))]
    for leftover in layout.log.glob("*.new"):
        files.unlink(leftover)
    files.sync_dir(layout.log)
    segments = [_remove_segment(layout, name, files) for name in _rubbish(layout, listed, held)]
    files.sync_dir(layout.segments)
    return Vacuumed(len(logs), len(segments), sum(logs) + sum(segments))


def _obsolete(layout: StatePaths, keep_epochs: int) -> list[Path]:
    """The logs older than the one that has the oldest epoch to be kept."""
    oldest = epochs(layout)[-keep_epochs:][0]
    logs = layout.generations()
    needed = max(number for number, path in enumerate(logs) if first_epoch(path) <= oldest)
    return logs[:needed]


def _rubbish(layout: StatePaths, listed: list[str], held: frozenset[str]) -> list[str]:
    """The segments that no log refers to, and no commit to come can."""
    logs = layout.generations()
    referred = {ref.file for path in logs for record in records(path, path.read_bytes()) for ref in refs_of(record)}
    committed = epochs(layout)[-1]
    return [name for name in listed if name not in referred | held and _epoch(name) <= committed]


def _epoch(name: str) -> float:
    epoch = segment_epoch(name)
    return math.inf if epoch is None else epoch


def _remove_log(path: Path, files: FileSystem) -> int:
    """Remove a log unless a reader holds it; the bytes that freed."""
    descriptor = unpinned(path)
    if descriptor is None:
        return 0
    try:
        return _remove(path, files)
    finally:
        os.close(descriptor)


def _remove_segment(layout: StatePaths, name: str, files: FileSystem) -> int:
    size = layout.segment_size(name) or 0
    files.unlink(layout.segments / name)
    return size


def _remove(path: Path, files: FileSystem) -> int:
    size = path.stat().st_size
    files.unlink(path)
    return size
