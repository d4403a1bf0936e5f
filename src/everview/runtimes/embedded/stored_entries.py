"""Dictionary entries in a store, looked for by their codes; see `everview.runtimes.embedded.interned` for chunks.

A chunk is searched where it lies: its entries are in the order of kinds and codes, so few of its pages are read. Chunks
that an earlier version wrote have no order; one of these is gone through as a whole, until a merge puts it in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everview.codes.backed import BackedDictionary
from everview.codes.dictionary import Entries
from everview.kernels.dictionary import gather
from everview.runtimes.embedded.interned import DIVIDED, Chunk, chunks_of, is_ordered, joined, unflagged
from everview.traces.store.manifest import Manifest
from everview.traces.store.reader import State as Stored
from everview.types.words import Words

SMALL = 1024  # entries; smaller chunks are loaded rather than searched

Mark = tuple[int, ...]  # the checksums of a chunk's parts: unlike their places and ids, these stay
_NO_WORDS, _NO_OCTETS = np.empty(0, np.int64), np.empty(0, np.uint8)
NONE = Entries(_NO_WORDS, _NO_WORDS, np.zeros(1, np.int64), _NO_OCTETS, _NO_OCTETS)


class MappedChunk(NamedTuple):
    """A chunk that has been looked into: its entries, mapped, and the span of each kind if they are in order."""

    entries: Entries
    spans: dict[int, tuple[int, int]] | None

    @classmethod
    def of(cls, entries: Entries, *, ordered: bool) -> MappedChunk:
        if not ordered:
            return cls(entries, None)
        spans: dict[int, tuple[int, int]] = {}
        start, total = 0, len(entries)
        while start < total:  # one search for each kind, of which there are few
            kind = int(entries.kinds[start])
            spans[kind] = start, (start := int(np.searchsorted(entries.kinds, kind, side="right")))
        return cls(entries, spans)

    def find(self, kind: int, codes: Words) -> Entries | None:
        """The entries of codes, which are sorted; None if there are none."""
        rows = self._rows(kind, codes)
        if not len(rows):
            return None
        own = self.entries
        offsets, data = gather(rows, own.offsets, own.data)
        flags = own.exceptions[rows] if len(own.exceptions) else np.zeros(len(rows), np.uint8)
        return Entries(own.codes[rows], own.kinds[rows], offsets, data, flags)

    def _rows(self, kind: int, codes: Words) -> NDArray[np.int64]:
        own = self.entries
        if self.spans is None:
            near = np.minimum(np.searchsorted(codes, own.codes), len(codes) - 1)
            return np.flatnonzero((codes[near] == own.codes) & (own.kinds == kind))
        start, end = self.spans.get(kind, (0, 0))
        if start == end:
            return np.empty(0, np.int64)
        near = start + np.minimum(np.searchsorted(own.codes[start:end], codes), end - start - 1)
        return near[own.codes[near] == codes]


class StoredEntries:
    """The entries of a state as it stands, for a `BackedDictionary`.

    Chunks of which a dictionary has everything are `resident`, and not looked into. ``also`` are chunks of the open
    epoch that tasks have written.
    """

    def __init__(self, state: Callable[[], Stored]) -> None:
        self._state = state
        self._manifest: Manifest | None = None
        self._chunks: dict[int, list[Chunk]] = {}
        self._mapped: dict[Mark, MappedChunk] = {}
        self._resident: frozenset[Mark] = frozenset()
        self.also: tuple[MappedChunk, ...] = ()

    def find(self, kind: int, codes: Words) -> Entries:
        """The entries of these codes, as far as the state or the open epoch has any."""
        if not self.also:
            return self.find_committed(kind, codes)
        return joined([self.find_also(kind, codes), self.find_committed(kind, codes)])

    @property
    def is_open(self) -> bool:
        """Whether the open epoch has written chunks."""
        return bool(self.also)

    def find_committed(self, kind: int, codes: Words) -> Entries:
        """The entries of these codes, as far as the state has any."""
        self._follow()
        parts: list[Entries] = []
        for shard, chunk in self._searched():
            wanted = codes[codes % self._divided == shard] if shard and chunk.spans is not None else codes
            if len(wanted) and (entries := chunk.find(kind, wanted)) is not None:
                parts.append(entries)
        return joined(parts) if parts else NONE

    def find_also(self, kind: int, codes: Words) -> Entries:
        """The entries of these codes in chunks of the open epoch."""
        chunks = [entries for chunk in self.also if (entries := chunk.find(kind, codes)) is not None]
        return joined(chunks) if chunks else NONE

    def load_small(self, dictionary: BackedDictionary) -> None:
        """Let a dictionary have the small chunks, and of the others the exceptions, as far as they are new to it."""
        self._follow()
        new = [
            (chunk, mark)
            for chunks in self._chunks.values()
            for chunk in chunks
            if (mark := mark_of(chunk)) not in self._resident and (_rows(chunk) < SMALL or not is_ordered(chunk))
        ]
        picked = [entries for chunk, _ in new if len(entries := self._kept(chunk))]
        if picked:
            dictionary.fetch_all(joined(picked))
        self._resident |= {mark for chunk, mark in new if _rows(chunk) < SMALL}

    @property
    def marks(self) -> frozenset[Mark]:
        """The identities of all chunks that the state lists now."""
        self._follow()
        return frozenset(mark_of(chunk) for chunks in self._chunks.values() for chunk in chunks)

    def all_here(self, since: frozenset[Mark]) -> None:
        """Note that the dictionary has every entry of the chunks that were not there at an earlier time."""
        self._resident |= self.marks - since

    def forget(self) -> None:
        """Note that the dictionary has nothing."""
        self._resident = frozenset()

    @property
    def is_behind(self) -> bool:
        """Whether a chunk that the dictionary has is no longer listed: merged, or of an epoch that was undone."""
        return not self._resident <= self.marks

    def _follow(self) -> None:
        manifest = self._state().manifest
        if manifest is self._manifest:
            return
        self._chunks, self._manifest = chunks_of(manifest), manifest
        listed = {mark_of(chunk) for chunks in self._chunks.values() for chunk in chunks}
        self._mapped = {mark: chunk for mark, chunk in self._mapped.items() if mark in listed}

    @property
    def _divided(self) -> int:
        assert self._manifest is not None, "chunks are listed"
        return divisions(self._manifest)

    def _searched(self) -> Iterator[tuple[int, MappedChunk]]:
        for shard, chunks in self._chunks.items():
            for chunk in chunks:
                mark = mark_of(chunk)
                if mark not in self._resident:
                    yield shard, self._look_into(chunk, mark)

    def _look_into(self, chunk: Chunk, mark: Mark) -> MappedChunk:
        mapped = self._mapped.get(mark)
        if mapped is None:
            state = self._state()
            entries = Entries(*(state.array(entry) for entry in chunk))
            mapped = self._mapped[mark] = MappedChunk.of(entries, ordered=is_ordered(chunk))
        return mapped

    def _kept(self, chunk: Chunk) -> Entries:
        """All entries of a small chunk; the exceptions of another."""
        entries = self._look_into(chunk, mark_of(chunk)).entries
        if _rows(chunk) < SMALL:
            return unflagged(entries)
        rows = np.flatnonzero(entries.exceptions)
        offsets, data = gather(rows, entries.offsets, entries.data)
        return Entries(entries.codes[rows], entries.kinds[rows], offsets, data, entries.exceptions[rows])


def divisions(manifest: Manifest) -> int:
    """By how many the codes of chunks in order are divided; those of shard 0 have codes of any."""
    meta = manifest.meta
    return int(meta.get(DIVIDED) or meta.get("shards") or 1)


def mark_of(chunk: Chunk) -> Mark:
    """The identity of a chunk: the checksums of its parts."""
    return tuple(part.ref.checksum for part in chunk)


def _rows(chunk: Chunk) -> int:
    return chunk[0].ref.rows
