"""What a worker process keeps between tasks: the manifest it read last, mapped slices, and interned values.

All of it is a cache of what the state directory says at one epoch. A task that asks for another epoch moves
the cache there; nothing that a task computes stays in it.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from everview.codes.dictionary import Dictionary, Entries
from everview.runtimes.embedded.durable import PARTS
from everview.traces.store import Entry, Reader, Slice, SliceRef, Store
from everview.traces.store.arrays import Arrays
from everview.traces.store.layout import Layout

Matrix = NDArray[np.int64]

NAMES = tuple(f"dictionary {part}" for part in PARTS)  # under which a state has the dictionary's chunks


class Replica:
    """A state directory as one worker process sees it, at the epoch asked for last."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._reader: Reader | None = None
        self._segments = Arrays(Layout(Path(path)), Path(path), -1)
        self._mapped: dict[SliceRef, NDArray[np.int64]] = {}
        self._dictionary = Dictionary()
        self._interned: list[tuple[int, ...]] = []  # the checksums of the chunks in the dictionary

    def at(self, epoch: int) -> Replica:
        """Move to an epoch; what was mapped stays mapped as long as the manifest lists it."""
        if self._reader is not None and self._reader.epoch == epoch:
            return self
        reader = Store.attach(self.path, epoch)
        if self._reader is not None:
            self._reader.close()
        self._reader = reader
        live = {entry.ref for entry in reader.manifest.entries()}
        self._mapped = {ref: array for ref, array in self._mapped.items() if ref in live}
        return self

    def slices(self, name: str, shard: int) -> Sequence[Slice]:
        """The slices of a trace on a shard, largest and oldest first."""
        assert self._reader is not None
        entries = self._reader.manifest.slices.get((name, shard), ())
        if any(entry.ref.inline for entry in entries):
            return self._reader.slices(name, shard)
        return [Slice(entry.id, self._array(entry)) for entry in entries]

    def dictionary(self) -> Dictionary:
        """The interned values of the epoch; whoever adds to it rolls back when done."""
        assert self._reader is not None
        found = [self._reader.manifest.slices.get((name, 0), ()) for name in NAMES]
        chunks = [tuple(entry.ref.checksum for entry in chunk) for chunk in zip(*found, strict=True)]
        known = len(self._interned)
        if self._interned != chunks[:known]:
            self._dictionary, known = Dictionary(), 0
        if known < len(chunks):
            slices = zip(*(self._reader.slices(name)[known:] for name in NAMES), strict=True)
            for chunk in slices:
                self._dictionary.load(Entries(*(part.array for part in chunk)))
        self._interned = chunks
        return self._dictionary

    def uncommitted(self, ref: SliceRef) -> Matrix:
        """A slice that an earlier task of the open epoch has written."""
        return self._array(Entry(-1, ref))

    def _array(self, entry: Entry) -> Matrix:
        if entry.ref not in self._mapped:
            self._mapped[entry.ref] = self._segments.peek(entry)
        return self._mapped[entry.ref]


MANY = 10_000  # objects: the garbage collector goes through fewer in a few milliseconds


def settle() -> None:
    """Hide from the garbage collector what this process has loaded for good.

    PySpark collects garbage after every task, before the worker takes the next one. Going through imported
    modules and loaded kernels would take 60 ms each time, which is longer than most tasks.
    """
    if len(gc.get_objects()) > MANY:
        gc.collect()
        gc.freeze()


_replicas: dict[str, Replica] = {}


def replica(path: str, epoch: int) -> Replica:
    """This process's view of a state directory at an epoch."""
    if path not in _replicas:
        _replicas[path] = Replica(path)
    return _replicas[path].at(epoch)
