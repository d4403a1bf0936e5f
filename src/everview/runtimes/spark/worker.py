"""What a worker process keeps between tasks: the manifest it read last, mapped slices, and interned values.

All of it is a cache of what the state directory says at one epoch. A task that asks for another epoch moves
the cache there; nothing that a task computes stays in it.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from everview.codes.backed import BackedDictionary
from everview.codes.dictionary import Dictionary
from everview.runtimes.embedded.stored_entries import StoredEntries
from everview.traces.store import Manifest, ManifestEntry, Reader, Slice, SliceRef, Store
from everview.traces.store.arrays import Arrays
from everview.traces.store.layout import layout_of
from everview.traces.store.slices import Key

CACHED = 64 << 20  # bytes of values, after which a process forgets them all, and reads again what it needs


@dataclass(slots=True)
class LoadedTrace:
    """The loaded slices of one trace on one shard."""

    entries: tuple[ManifestEntry, ...]  # as the manifest lists them
    arrays: dict[SliceRef, NDArray[Any]]  # of these, and of what the open epoch has written
    slices: list[Slice] | None = None  # of these, once they were asked for


class Replica:
    """A state directory as one worker process sees it, at the epoch asked for last."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._reader: Reader | None = None
        self._segments = Arrays(layout_of(path), Path(path), -1)
        self._held: dict[Key, LoadedTrace] = {}
        self.entries = StoredEntries(self._at)
        self._dictionary = BackedDictionary(self.entries)

    def at(self, epoch: int) -> Replica:
        """Move to an epoch; of its log, only what was not read yet is read."""
        before = self._reader
        if before is None:
            self._reader = Store.attach(self.path, epoch)
        elif before.epoch != epoch:
            self._go_on(before, before.at(epoch))
        return self

    def _go_on(self, before: Reader, reader: Reader) -> None:
        self._reader = reader
        before.close()
        if before.log != reader.log:
            self._held = {key: self._listed(key) for key in self._held if key in reader.manifest.slices}

    def slices(self, name: str, shard: int) -> Sequence[Slice]:
        """The slices of a trace on a shard, largest and oldest first."""
        held = self._listed((name, shard))
        if held.slices is None:
            held.slices = [Slice(entry.id, self._array(entry, held)) for entry in held.entries]
        return held.slices

    def dictionary(self) -> Dictionary:
        """The interned values of the epoch; whoever adds to it rolls back when done."""
        reader = self._at()
        if reader.is_superseded:  # a vacuum may have let go of values: what comes back is new to the store
            self._go_on(reader, Store.attach(self.path, reader.epoch))
        if self.entries.is_behind or self._dictionary.nbytes > CACHED:
            self.forget_values()
        self.entries.load_small(self._dictionary)
        return self._dictionary

    @property
    def manifest(self) -> Manifest:
        return self._at().manifest

    def array(self, entry: ManifestEntry) -> NDArray[Any]:
        """The array of one slice, checked, and not kept for the next time."""
        return self._load(entry)

    def forget_values(self) -> None:
        """Let go of all interned values; those that are asked for are read again."""
        self.entries.forget()
        self._dictionary.forget()

    def _at(self) -> Reader:
        assert self._reader is not None, "a replica is at an epoch"
        return self._reader

    def _listed(self, key: Key) -> LoadedTrace:
        """The loaded slices of a trace; arrays that the present manifest no longer lists are dropped."""
        entries = self._at().manifest.slices.get(key, ())
        held = self._held.get(key)
        if held is None or held.entries is not entries:
            loaded = held.arrays if held else {}
            kept = {entry.ref: loaded[entry.ref] for entry in entries if entry.ref in loaded}
            held = self._held[key] = LoadedTrace(entries, kept)
        return held

    def _array(self, entry: ManifestEntry, held: LoadedTrace) -> NDArray[Any]:
        array = held.arrays.get(entry.ref)
        if array is None:
            array = held.arrays[entry.ref] = self._load(entry)
        return array

    def _load(self, entry: ManifestEntry) -> NDArray[Any]:
        return self._at().array(entry) if entry.ref.inline else self._segments.peek(entry)


MANY = 10_000  # objects: the garbage collector goes through fewer in a few milliseconds


def settle() -> None:
    """Hide from the garbage collector what this process has loaded for good.

    PySpark collects garbage after every task, before the worker takes the next one. Going through imported
    modules and loaded kernels would take 60 ms each time, which is longer than most tasks.
    """
    if len(gc.get_objects()) > MANY:
        gc.collect()
        gc.freeze()


def made_at(path: str) -> tuple[int, ...]:
    """The identity of a state directory, which tells it from another at the same path."""
    return layout_of(path).identity()


_replicas: dict[str, tuple[tuple[int, ...], Replica]] = {}


def replica(path: str, epoch: int) -> Replica:
    """This process's view of a state directory at an epoch; one that was made anew at the same path is another."""
    identity = made_at(path)
    if path not in _replicas or _replicas[path][0] != identity:
        _replicas[path] = identity, Replica(path)
    return _replicas[path][1].at(epoch)
