"""Slices as arrays: read or mapped when first asked for, and checked then.

A narrow slice is widened then, unless another process of this machine has done so, into a file that is mapped in its
place: what is not looked at need not stay in memory, as with a slice that lies in its segment as it is.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from everview.later import Later
from everview.traces.store.layout import StatePaths
from everview.traces.store.manifest import ManifestEntry
from everview.traces.store.objects import short_of
from everview.traces.store.segment import map_file
from everview.traces.store.slices import Array, SliceRef, array_in, checked, damaged

if TYPE_CHECKING:
    from everview.traces.store.narrow import widened_blocks
    from everview.traces.store.wide_files import wide_map
else:
    widened_blocks = Later("everview.traces.store.narrow", "widened_blocks")
    wide_map = Later("everview.traces.store.wide_files", "wide_map")

# A map costs its segment an open file for as long as it lasts, which small slices are not worth.
MAP_FROM = 64 << 10
DROP: int | None = getattr(mmap, "MADV_DONTNEED", None)  # where there is no such advice, nothing is dropped


class Arrays:
    """The arrays of a manifest's slices, each loaded once.

    `log` is the open log of the manifest: inline slices are read from it, never mapped, because a log can
    still be cut back and a map of what is no longer there would end the process.
    """

    def __init__(self, layout: StatePaths, log_path: Path, log: int) -> None:
        self._segment = layout.segment
        self._place = short_of(str(layout.place))
        self._log_path = log_path
        self._log = log
        self._loaded: dict[int, Array] = {}
        self._maps: WeakValueDictionary[str, mmap.mmap] = WeakValueDictionary()

    def of(self, entry: ManifestEntry) -> Array:
        if entry.id not in self._loaded:
            self._loaded[entry.id] = self._load(entry.ref)
        return self._loaded[entry.id]

    def peek(self, entry: ManifestEntry) -> Array:
        """The array, not kept for the next time."""
        loaded = self._loaded.get(entry.id)
        return self._load(entry.ref) if loaded is None else loaded

    def let_go(self, above: int) -> None:
        """Let the system have back the memory of mapped segments, if they are larger: what is read again comes back."""
        maps = [*self._maps.values()]
        if DROP is not None and sum(map(len, maps)) > above:
            for mapped in maps:
                mapped.madvise(DROP)

    def forget(self, ids: Iterable[int]) -> None:
        for number in ids:
            self._loaded.pop(number, None)

    def turn_to(self, log_path: Path, log: int) -> None:
        """Read inline slices from another log from now on."""
        self._log_path, self._log = log_path, log

    def leave_log(self) -> None:
        """Read no more inline slices: the descriptor may soon be another file's."""
        self._log = -1

    def _load(self, ref: SliceRef) -> Array:
        path = self._log_path if ref.inline else self._segment(ref.file)
        if not ref.rows:
            return array_in(b"", 0, ref)
        try:
            array = self._mapped(path, ref) if ref.stored >= MAP_FROM and ref.file else self._read(path, ref)
        except FileNotFoundError as error:
            raise damaged(path, f'it is missing, and "{ref.name}", shard {ref.shard}, needs it') from error
        if array is None:
            raise damaged(path, f'it ends inside the slice of "{ref.name}", shard {ref.shard}')
        array = checked(path, ref, array)
        return self._widened(ref, array) if ref.is_narrow else array

    def _read(self, path: Path, ref: SliceRef) -> Array | None:
        if ref.inline:
            data = os.pread(self._log, ref.stored, ref.offset)
        else:
            with path.open("rb") as file:
                data = os.pread(file.fileno(), ref.stored, ref.offset)
        return array_in(data, 0, ref) if len(data) == ref.stored else None

    def _mapped(self, path: Path, ref: SliceRef) -> Array | None:
        mapped = self._maps.get(ref.file)
        if mapped is None:
            mapped = self._maps[ref.file] = map_file(path)
        return array_in(mapped, ref.offset, ref) if ref.end <= len(mapped) else None

    def _widened(self, ref: SliceRef, narrow: Array) -> Array:
        name = f"{self._place}-{ref.file}-{ref.offset}-{ref.checksum:08x}"
        mapped = wide_map(name, ref.nbytes, widened_blocks(narrow, ref.rows, ref.columns))
        self._maps[f"{ref.file}, {ref.offset}"] = mapped
        return np.frombuffer(mapped, np.int64).reshape(ref.rows, ref.columns)
