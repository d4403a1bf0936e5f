"""The dictionary in the store: chunks of entries, each a slice of every part, by shard.

Many new entries at once, as a first load brings them, are divided among the shards by their codes, so that they can be
read in parts; the few of a tick stay together on shard 0. All shards are loaded at once, because the entry that
holds the hash of an exception may be in any of them.

The entries of a chunk are in the order of kinds and codes, each once, so that a chunk can be searched where it lies
(`everview.runtimes.embedded.stored_entries`). Such a chunk has no exceptions, and says so by having no flags for them.
One that has exceptions, or was written by an earlier version, has a flag for each entry, and no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everview.codes.dictionary import Entries
from everview.kernels.dictionary import gather
from everview.traces.spine import RATIO
from everview.traces.store.draft import Replace
from everview.traces.store.manifest import Manifest, ManifestEntry
from everview.traces.store.reader import State as Stored

PARTS = ("codes", "kinds", "offsets", "data", "exceptions")  # of dictionary entries, as slices of these names
NAMES = tuple(f"dictionary {part}" for part in PARTS)
DIVIDED = "divided"  # under which a state says by how many codes are divided, if not by its shards
SPREAD = 10_000  # entries: so many at once are divided among the shards
MERGED = 1 << 20  # entries: chunks that have more together are not merged here, since that takes memory for all of them

Chunk = tuple[ManifestEntry, ...]
NO_FLAGS = np.empty(0, np.uint8)


def appended(entries: Entries, shards: int) -> Iterator[tuple[str, int, NDArray[Any]]]:
    """New entries as slices to append: (name, shard, array)."""
    for shard, part in _placed(entries, shards):
        yield from as_slices(shard, ordered(part))


def as_slices(shard: int, entries: Entries) -> Iterator[tuple[str, int, NDArray[Any]]]:
    """A chunk as its slices: (name, shard, array)."""
    return ((name, shard, getattr(entries, part)) for name, part in zip(NAMES, PARTS, strict=True))


def stored(state: Stored) -> Entries | None:
    """All entries that a state holds, of all shards; None if it has none."""
    chunks = chunks_of(state.manifest).values()
    entries = [_loaded(state, chunk) for shard_chunks in chunks for chunk in shard_chunks]
    return joined(entries) if entries else None


def coalesced(state: Stored) -> Iterator[Replace]:
    """Edits that merge the last chunks of every shard into one, so that sizes stay geometric; put others in order."""
    for shard, chunks in chunks_of(state.manifest).items():
        start, rows = len(chunks), 0
        while start > 0 and _fits(chunks[start - 1][0].ref.rows, rows):
            start -= 1
            rows += chunks[start][0].ref.rows
        last = chunks[start:]
        if len(last) > 1:
            yield from _instead(shard, last, joined([_loaded(state, chunk) for chunk in last]))
        for chunk in chunks[:start] if len(last) > 1 else chunks:
            if not is_ordered(chunk) and not state.array(chunk[-1]).any():
                yield from _instead(shard, [chunk], _loaded(state, chunk))


def _fits(rows: int, more: int) -> bool:
    """Whether a chunk is merged with the later chunks, which have ``more`` entries."""
    return rows < RATIO * max(more, 1) and rows + more <= MERGED


def renewed(state: Stored, entries: Entries, shards: int) -> Iterator[Replace]:
    """Edits that put these entries in place of all stored ones."""
    placed = dict(_placed(entries, shards))
    for shard, chunks in chunks_of(state.manifest).items():
        yield from _instead(shard, chunks, placed.pop(shard, None))
    for shard, part in placed.items():
        yield from _instead(shard, [], part)


def joined(chunks: Sequence[Entries]) -> Entries:
    """Chunks of dictionary entries as one."""
    if len(chunks) == 1:
        return chunks[0]
    starts = np.cumsum([0, *(len(c.data) for c in chunks)])
    offsets = [c.offsets[:-1] + start for c, start in zip(chunks, starts[:-1], strict=True)]
    parts = {part: np.concatenate([getattr(c, part) for c in chunks]) for part in PARTS if part != "offsets"}
    return Entries(**parts, offsets=np.concatenate([*offsets, starts[-1:]]))


def ordered(entries: Entries) -> Entries:
    """Entries as a chunk has them: in order, each once, and without flags; as they are, if there are exceptions."""
    if entries.exceptions.any():
        return entries
    rows = np.lexsort((entries.codes, entries.kinds))
    codes, kinds = entries.codes[rows], entries.kinds[rows]
    if len(rows):
        first = np.concatenate([[True], (codes[1:] != codes[:-1]) | (kinds[1:] != kinds[:-1])])
        rows, codes, kinds = rows[first], codes[first], kinds[first]
    offsets, data = gather(rows, entries.offsets, entries.data)
    return Entries(codes, kinds, offsets, data, NO_FLAGS)


def unflagged(entries: Entries) -> Entries:
    """The entries of a chunk with a flag for each."""
    if len(entries.exceptions) == len(entries.codes):
        return entries
    flags = np.zeros(len(entries.codes), np.uint8)
    return Entries(entries.codes, entries.kinds, entries.offsets, entries.data, flags)


def is_ordered(chunk: Chunk) -> bool:
    """Whether the entries of a chunk are in order, and have no exceptions among them."""
    return chunk[-1].ref.rows < chunk[0].ref.rows


def chunks_of(manifest: Manifest) -> dict[int, list[Chunk]]:
    """By shard, the chunks that a state lists: slices of all parts, which belong together."""
    slices = manifest.slices
    shards = sorted(shard for name, shard in slices if name == NAMES[0])
    return {shard: list(zip(*(slices.get((name, shard), ()) for name in NAMES), strict=True)) for shard in shards}


def _loaded(state: Stored, chunk: Chunk) -> Entries:
    return unflagged(Entries(*(state.array(entry) for entry in chunk)))


def _placed(entries: Entries, shards: int) -> list[tuple[int, Entries]]:
    if len(entries) < SPREAD:
        return [(0, entries)] if len(entries) else []
    return divided(entries, shards)


def divided(entries: Entries, divisions: int) -> list[tuple[int, Entries]]:
    """The entries of each division of the codes, without divisions that have none."""
    if divisions == 1:
        return [(0, entries)]
    division = entries.codes % divisions
    parts = ((each, np.flatnonzero(division == each)) for each in range(divisions))
    return [(each, picked(entries, rows)) for each, rows in parts if len(rows)]


def picked(entries: Entries, rows: NDArray[np.int64]) -> Entries:
    """Some of the entries."""
    offsets, data = gather(rows, entries.offsets, entries.data)
    return Entries(entries.codes[rows], entries.kinds[rows], offsets, data, entries.exceptions[rows])


def _instead(shard: int, chunks: Sequence[Chunk], entries: Entries | None) -> Iterator[Replace]:
    chunk = None if entries is None or not len(entries) else ordered(entries)
    for i, (name, part) in enumerate(zip(NAMES, PARTS, strict=True)):
        old = tuple(each[i].id for each in chunks)
        new = None if chunk is None else getattr(chunk, part)
        if old or new is not None:
            yield Replace(name, shard, old, new)
