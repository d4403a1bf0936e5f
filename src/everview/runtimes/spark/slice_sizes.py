"""Sizes of a state's slices, added up anew only where a commit has changed them.

Every epoch tells how large its state is. A state of 12 traces on 16 shards has a thousand slices, of which a small
epoch touches few; the manifest keeps the list of a trace and shard as it is until a commit edits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from everview.traces.store.manifest import ManifestEntry
from everview.traces.store.slices import Key

Entries = tuple[ManifestEntry, ...]


class Size(NamedTuple):
    """The rows and the stored bytes of the slices of one trace and shard."""

    entries: Entries  # whose size it is
    rows: int
    bytes: int


class SliceSizes:
    """The sizes of slices by trace and shard, as of the manifest that was last looked at.

    Another thread may read them meanwhile: a dictionary of sizes never changes, the next one takes its place.
    """

    def __init__(self) -> None:
        self._sizes: dict[Key, Size] = {}

    def of(self, slices: Mapping[Key, Entries]) -> SliceSizes:
        """The sizes as of these slices of a manifest."""
        known = self._sizes
        self._sizes = {key: _sized(entries, known.get(key)) for key, entries in slices.items()}
        return self

    @property
    def bytes(self) -> int:
        """The stored bytes of all slices."""
        return sum(size.bytes for size in self._sizes.values())

    def rows(self, name: str, shard: int) -> int:
        """The rows of a trace on a shard, weights not counted."""
        size = self._sizes.get((name, shard))
        return 0 if size is None else size.rows


def _sized(entries: Entries, known: Size | None) -> Size:
    """The size of the slices of one trace and shard: the known one, if it is theirs."""
    if known is not None and known.entries is entries:
        return known
    return Size(entries, sum(e.ref.rows for e in entries), sum(e.ref.stored for e in entries))
