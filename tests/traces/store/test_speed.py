"""Opening a state reads its manifest and nothing else, at a bounded cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from everview.traces.store import NEVER, Fingerprints, Policy, SegmentWriter, Store
from traces.store.scenario import batch

PLAN = Fingerprints("plan", {"edges": "e"})


def shortest(act: Callable[[], object]) -> float:
    """Seconds of CPU, at best of a few times: others may be busy on the same machine."""
    times: list[float] = []
    for _ in range(4):
        started = time.process_time()
        act()
        times.append(time.process_time() - started)
    return min(times)


def test_opening_ten_thousand_slices(tmp_path: Path) -> None:
    row = np.zeros((1, 4), np.int64)
    with Store.create(tmp_path / "s", PLAN) as store:
        with SegmentWriter(store.path, 1, 0) as writer:
            for shard in range(10_000):
                writer.add("0123456789abcdef0123456789abcdef", shard, row)
            refs = writer.finish()
        store.commit(1, segments=refs)
        store.checkpoint()
    with Store.attach(tmp_path / "s") as state:
        assert len(state.manifest.slices) == 10_000
    for opened in (Store.open, Store.attach):
        assert shortest(lambda opened=opened: opened(tmp_path / "s").close()) < 0.3


def test_opening_does_not_read_slices(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN) as store:
        store.commit(1, [("edges", 0, batch(1, 10_000))])
        store.checkpoint()
    for segment in (tmp_path / "s" / "segments").iterdir():
        segment.write_bytes(b"")
    Store.open(tmp_path / "s").close()


def test_replay_of_a_long_log_takes_time_in_proportion(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s", PLAN, Policy(sync=NEVER)) as store:
        for epoch in range(1, 5001):
            store.commit(epoch, [("edges", 0, batch(epoch, 1))])
        assert len(list(store.path.glob("log/*"))) == 1
    assert shortest(lambda: Store.attach(tmp_path / "s").close()) < 1
