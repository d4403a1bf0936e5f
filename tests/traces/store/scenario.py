"""A scripted life of a state, and what it must contain after each epoch.

Every epoch does something else, by its number alone: small and large appends, blocks, a segment written as
a task would, merges in the commit and merges that wait, checkpoints, vacuums, reopening, another plan. So
any run can be stopped anywhere, continued by `live`, and compared with `expected`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from everview.traces.store import FileSystem, Fingerprints, Policy, Replace, SegmentWriter, State, Store

LAST = 17
ADOPTS = 13  # from this epoch on, there is another plan, in which "paths" means something else
OLD = Fingerprints("plan-a", {"edges": "e1", "paths": "p1"})
NEW = Fingerprints("plan-b", {"edges": "e1", "paths": "p2", "pairs": "q1"})
POLICY = Policy(inline_bytes=400, checkpoint_bytes=4000)

Content = dict[str, Any]


def batch(epoch: int, rows: int) -> np.ndarray:
    """A matrix of distinct rows (epoch, i) with weight epoch."""
    matrix = np.full((rows, 3), epoch, np.int64)
    matrix[:, 1] = np.arange(rows)
    return matrix


def appends(epoch: int) -> list[tuple[str, int, np.ndarray]]:
    """What an epoch adds; every third one is too large to travel inline."""
    rows = 40 if epoch % 3 == 0 else 1
    added = [("edges", epoch % 2, batch(epoch, rows)), ("paths", 0, batch(epoch, 2))]
    if epoch % 2:
        added.append(("words", 0, np.frombuffer(b"word%d;" % epoch, np.uint8)))
    return added


def expected(epoch: int) -> Content:
    """The contents at an epoch, by adding up everything from scratch."""
    content: Content = {"offsets": {}, "meta": {}, "plan": (NEW if epoch >= ADOPTS else OLD).plan}
    for past in range(1, epoch + 1):
        content["offsets"] = {"source": past}
        content["meta"][f"every {past % 4}"] = past
        for name, shard, array in appends(past):
            if name != "paths" or epoch < ADOPTS or past >= ADOPTS:
                _add(content, name, shard, array)
    return content


def contents(state: State) -> Content:
    """The contents of a state, whatever slices they are in."""
    manifest = state.manifest
    content: Content = {
        "offsets": dict(manifest.offsets),
        "meta": dict(manifest.meta),
        "plan": manifest.plan.plan,
    }
    for name, shard in manifest.slices:
        for part in state.slices(name, shard):
            _add(content, name, shard, part.array)
    return content


def _add(content: Content, name: str, shard: int, array: np.ndarray) -> None:
    key = f"{name}/{shard}"
    if array.ndim == 1:
        content[key] = content.get(key, b"") + array.tobytes()
        return
    counter = content.setdefault(key, Counter())
    for *row, weight in array.tolist():
        counter[tuple(row)] += weight


def live(path: Path, files: FileSystem, acknowledge: Callable[[int], None], last: int = LAST) -> None:
    """Open or create the state and go on to the last epoch; report every epoch known to be there."""
    store = _open(path, files)
    try:
        acknowledge(store.epoch)
        while store.epoch < last:
            epoch = store.epoch + 1
            if epoch == ADOPTS and store.manifest.plan.plan == OLD.plan:
                store.close()
                store = Store.open(path, NEW, POLICY, files, adopt=True)
            _advance(store, epoch, files)
            acknowledge(epoch)
            _tend(store, epoch)
            if epoch % 4 == 0:
                store.close()
                store = _open(path, files)
    finally:
        store.close()


def _tend(store: Store, epoch: int) -> None:
    if epoch % 5 == 0:
        _queue_merge(store)
        store.checkpoint()
    if epoch % 7 == 0:
        store.vacuum(keep_epochs=2)


def _open(path: Path, files: FileSystem) -> Store:
    if not Store.exists(path):
        return Store.create(path, OLD, POLICY, files)
    return Store.open(path, None, POLICY, files)


def _advance(store: Store, epoch: int, files: FileSystem) -> None:
    added = appends(epoch)
    refs = ()
    if epoch % 3 == 1:
        with SegmentWriter(store.path, epoch, "3.0", files) as writer:
            for name, shard, array in added:
                writer.add(name, shard, array)
            refs = writer.finish()
        added = []
    merges = [_merge(store, "edges", 0)] if epoch % 4 == 3 else []
    offsets, meta = {"source": epoch}, {f"every {epoch % 4}": epoch}
    store.commit(epoch, added, segments=refs, replaces=merges, offsets=offsets, meta=meta)


def _merge(store: Store, name: str, shard: int) -> Replace:
    """The first two slices as one."""
    parts = store.slices(name, shard)[:2]
    merged = np.concatenate([part.array for part in parts])
    return Replace(name, shard, tuple(part.id for part in parts), merged)


def _queue_merge(store: Store) -> None:
    merge = _merge(store, "edges", 1)
    store.replace(merge.name, merge.shard, merge.old, merge.new)


def check(path: Path) -> None:
    """Every byte is as it was written, and every epoch that can be opened has the right contents."""
    for epoch in Store.history(path):
        with Store.attach(path, epoch) as state:
            assert contents(state) == expected(epoch), epoch
    with Store.attach(path) as state:
        state.verify()
