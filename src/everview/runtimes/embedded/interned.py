"""The dictionary in the store: chunks of entries, each a slice of every part, by shard.

Many new entries at once, as a first load brings them, are divided among the shards by their codes, so that they can be
read in parts; the few of a tick stay together on shard 0. All shards are loaded at once, because the entry that
holds the hash of an exception may be in any of them.
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
from everview.traces.store.manifest import ManifestEntry
from everview.traces.store.reader import State as Stored

PARTS = ("codes", "kinds", "offsets", "data", "exceptions")  # of dictionary entries, as slices of these names
NAMES = tuple(f"dictionary {part}" for part in PARTS)
SPREAD = 10_000  # entries: so many at once are divided among the shards

Chunk = tuple[ManifestEntry, ...]


def appended(entries: Entries, shards: int) -> Iterator[tuple[str, int, NDArray[Any]]]:
    """New entries as slices to append: (name, shard, array)."""
    for shard, part in _placed(entries, shards):
        yield from ((name, shard, getattr(part, part_name)) for name, part_name in zip(NAMES, PARTS, strict=True))


def stored(state: Stored) -> Entries | None:
    """All entries that a state holds, of all shards; None if it has none."""
    entries = [_loaded(state, chunk) for shard_chunks in _chunks(state).values() for chunk in shard_chunks]
    return joined(entries) if entries else None


def coalesced(state: Stored) -> Iterator[Replace]:
    """Edits that merge the last chunks of every shard into one, so that sizes stay geometric."""
    for shard, chunks in _chunks(state).items():
        start, rows = len(chunks), 0
        while start > 0 and chunks[start - 1][0].ref.rows < RATIO * max(rows, 1):
            start -= 1
            rows += chunks[start][0].ref.rows
        last = chunks[start:]
        if len(last) > 1:
            yield from _instead(shard, last, joined([_loaded(state, chunk) for chunk in last]))


def renewed(state: Stored, entries: Entries, shards: int) -> Iterator[Replace]:
    """Edits that put these entries in place of all stored ones."""
    placed = dict(_placed(entries, shards))
    for shard, chunks in _chunks(state).items():
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


def _chunks(state: Stored) -> dict[int, list[Chunk]]:
    slices = state.manifest.slices
    shards = sorted(shard for name, shard in slices if name == NAMES[0])
    return {shard: list(zip(*(slices.get((name, shard), ()) for name in NAMES), strict=True)) for shard in shards}


def _loaded(state: Stored, chunk: Chunk) -> Entries:
    return Entries(*(state.array(entry) for entry in chunk))


def _placed(entries: Entries, shards: int) -> list[tuple[int, Entries]]:
    if len(entries) < SPREAD or shards == 1:
        return [(0, entries)] if len(entries) else []
    shard_of = entries.codes % shards
    return [(shard, _picked(entries, np.flatnonzero(shard_of == shard))) for shard in range(shards)]


def _picked(entries: Entries, rows: NDArray[np.int64]) -> Entries:
    offsets, data = gather(rows, entries.offsets, entries.data)
    return Entries(entries.codes[rows], entries.kinds[rows], offsets, data, entries.exceptions[rows])


def _instead(shard: int, chunks: Sequence[Chunk], entries: Entries | None) -> Iterator[Replace]:
    for i, (name, part) in enumerate(zip(NAMES, PARTS, strict=True)):
        old = tuple(chunk[i].id for chunk in chunks)
        new = None if entries is None or not len(entries) else getattr(entries, part)
        if old or new is not None:
            yield Replace(name, shard, old, new)
