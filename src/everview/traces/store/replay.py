"""From logs back to manifests: the newest epoch, an older one, or the list of those that can be opened.

Logs are ordered by generation. Each begins with the epoch at which the one before it ended, except after a
rewind, when it begins earlier; so the newest log that begins at or before an epoch is the one that has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from everview.errors import CorruptState, StoreError
from everview.traces.store.layout import StatePaths
from everview.traces.store.manifest import Manifest, StateChange
from everview.traces.store.record import SECTOR, LogRecord, RecordKind, first_epoch, scan, written_size
from everview.traces.store.slices import damaged

T = TypeVar("T")

LOOKS = 100  # a log that still seems damaged after so many is damaged
READ_ON = 1 << 16  # bytes of a log that are read at first when it is read on


@dataclass(frozen=True, slots=True)
class Replayed:
    """A manifest, and the part of its log that says so."""

    manifest: Manifest
    end: int
    snapshot: int


def records(path: Path, data: bytes) -> Iterator[LogRecord]:
    """The snapshot of a log and its commits, checked to be in order."""
    epoch = -1
    for record in scan(data, path):
        if (epoch < 0) != (record.kind is RecordKind.SNAPSHOT) or record.epoch <= epoch:
            raise damaged(path, f"the record of epoch {record.epoch} is out of place")
        epoch = record.epoch
        yield record
    if epoch < 0:
        raise damaged(path, "it has no snapshot")


def replay(path: Path, data: bytes, epoch: int | None = None) -> Replayed:
    """The manifest at the end of a log, or at an epoch in it; damage after that epoch is not looked at."""
    log = records(path, data)
    first = next(log)
    end, changes = first.end, list[StateChange]()
    for record in log if epoch != first.epoch else ():
        end = record.end
        changes.append(StateChange.from_record(record))
        if record.epoch == epoch:
            break
    manifest = Manifest.from_record(first).after(changes)
    if epoch is not None and manifest.epoch != epoch:
        raise no_such_epoch(path, epoch)
    return Replayed(manifest, end, first.end)


def resume(path: Path, descriptor: int, read: Replayed, epoch: int | None) -> Replayed | None:
    """The manifest at a later epoch of a log that was read before, by reading on from there.

    None if the log does not lead to the epoch; replaying all of it then says why.
    """
    changes, end = list[StateChange](), read.end
    for record in _tail(path, descriptor, end):
        if record.kind is not RecordKind.COMMIT or record.epoch <= (
            changes[-1].epoch if changes else read.manifest.epoch
        ):
            return None
        changes.append(StateChange.from_record(record))
        end = record.end
        if record.epoch == epoch:
            break
    if epoch is not None and (not changes or changes[-1].epoch != epoch):
        return None
    return Replayed(read.manifest.after(changes), end, read.snapshot) if changes else read


def _tail(path: Path, descriptor: int, start: int) -> Iterator[LogRecord]:
    """The complete records of a log from a byte on, read some at a time; the next epoch is usually all it takes."""
    size = READ_ON
    while True:
        base = start - start % SECTOR
        data = os.pread(descriptor, size, base)
        for record in scan(data, path, start - base):
            start = record.end + base
            yield replace(record, data_at=record.data_at + base, end=start)
        if len(data) < size or written_size(data) <= start - base:
            return
        size *= 2


def no_such_epoch(path: Path, epoch: int) -> StoreError:
    return StoreError(
        f"epoch {epoch} is not in {path.parent.parent}",
        hint="Store.history lists the epochs that can be opened; vacuum removes old ones",
    )


def read_open(descriptor: int) -> bytes:
    """A whole file by its descriptor, whether or not it still has a name."""
    parts: list[bytes] = []
    while part := os.pread(descriptor, 1 << 24, sum(map(len, parts))):
        parts.append(part)
    return b"".join(parts)


def undisturbed(descriptor: int, read: Callable[[bytes], T]) -> T:
    """What is made of a log. Looks again at what seems damaged: a writer may have been in the middle of a record."""
    data = read_open(descriptor)
    for _ in range(LOOKS):
        try:
            return read(data)
        except CorruptState:
            before, data = data, read_open(descriptor)
            if data == before:
                break
    return read(data)


def log_of(layout: StatePaths, epoch: int | None) -> Path:
    """The log that has this epoch, if any has; the newest by default."""
    logs = layout.generations()
    if not logs:
        raise damaged(layout.log, "it has no log")
    if epoch is None:
        return logs[-1]
    for path in reversed(logs):
        if first_epoch(path) <= epoch:
            return path
    raise no_such_epoch(logs[0], epoch)


def epochs(layout: StatePaths) -> tuple[int, ...]:
    """The epochs that can be opened, oldest first: all epochs in the logs, except the ones undone by a later rewind."""
    readable: list[int] = []
    limit: int | None = None
    for path in reversed(layout.generations()):
        had = [epoch for epoch in _readable(path) if limit is None or epoch < limit]
        readable[:0] = had
        limit = min(had, default=limit)
    return tuple(readable)


def times(layout: StatePaths) -> dict[int, int]:
    """When epochs that can be opened were committed, in microseconds since 1970; oldest first.

    Epochs of a state that was written before commits had times are missing.
    """
    readable, committed = set(epochs(layout)), dict[int, int]()
    for path in layout.generations():
        try:
            for record in records(path, path.read_bytes()):
                micros = record.document.get("at")
                if micros is not None and record.epoch in readable:
                    committed[record.epoch] = micros
        except (CorruptState, FileNotFoundError):
            continue
    return dict(sorted(committed.items()))


def _readable(path: Path) -> list[int]:
    """The epochs of a log, up to the first damage; none if a vacuum has just removed the log."""
    epochs: list[int] = []
    try:
        epochs.extend(record.epoch for record in records(path, path.read_bytes()))
    except (CorruptState, FileNotFoundError):
        return epochs
    return epochs
