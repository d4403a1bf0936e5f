"""Prints how fast a store commits and opens, beside what its disk allows.

`python tests/traces/store/measure.py [directory]`. The raw rate is that of appending as many bytes to a file and
syncing it, which is all that a small durable commit does to the disk. The two take turns; medians count.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from everview.traces.store import NEVER, Fingerprints, Policy, SegmentWriter, Store

PLAN = Fingerprints("plan", {"edges": "e"})
ROW = np.array([[1, 2, 1]])


def rate(count: int, act: Callable[[int], object]) -> float:
    started = time.perf_counter()
    for number in range(1, count + 1):
        act(number)
    return count / (time.perf_counter() - started)


def durable_commits(root: Path, rounds: int = 15, each: int = 200) -> tuple[float, float]:
    """Durable one-row commits a second, and raw appends of as many bytes."""
    file, data = os.open(root / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND), b"x" * 155

    def append(_: int) -> None:
        os.write(file, data)
        os.fdatasync(file)

    ours: list[float] = []
    raw: list[float] = []
    with Store.create(root / "durable", PLAN) as store:
        for _ in range(rounds):
            ours.append(rate(each, lambda _: commit_one_row(store)))
            raw.append(rate(each, append))
    os.close(file)
    return median(ours), median(raw)


def commits(path: Path, sync: float, count: int = 5000) -> float:
    with Store.create(path, PLAN, Policy(sync=sync)) as store:
        return rate(count, lambda _: commit_one_row(store))


def commit_one_row(store: Store) -> None:
    epoch = store.epoch + 1
    store.commit(epoch, [("edges", epoch % 100, ROW)], offsets={"source": epoch})


def opening(path: Path, slices: int) -> float:
    """Seconds to open a state of that many slices."""
    with Store.create(path, PLAN) as store:
        with SegmentWriter(store.path, 1, 0) as writer:
            for shard in range(slices):
                writer.add("0123456789abcdef0123456789abcdef", shard, ROW)
            refs = writer.finish()
        store.commit(1, segments=refs)
        store.checkpoint()
    started = time.perf_counter()
    Store.open(path).close()
    return time.perf_counter() - started


def large_commit(path: Path, rows: int) -> tuple[float, float]:
    """Bytes a second into a durable segment, and out of it at the first, checked, use."""
    matrix = np.ones((rows, 4), np.int64)
    with Store.create(path, PLAN) as store:
        written = rate(1, lambda epoch: store.commit(epoch, [("edges", 0, matrix)]))
        read = rate(1, lambda _: store.slices("edges"))
        return written * matrix.nbytes, read * matrix.nbytes


def main(directory: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=directory) as name:
        root = Path(name)
        durable, raw = durable_commits(root)
        print(f"append + fdatasync of 155 bytes    {raw:8,.0f}/s")
        print(f"durable commits of one row         {durable:8,.0f}/s")
        print(f"commits of one row, sync each 10 ms{commits(root / 'periodic', 0.01):8,.0f}/s")
        print(f"commits of one row, never synced   {commits(root / 'never', NEVER):8,.0f}/s")
        print(f"opening 10,000 slices              {opening(root / 'many', 10_000) * 1e3:8,.0f} ms")
        written, read = large_commit(root / "large", 8_000_000)
        print(f"a durable commit of 256 MB         {written / 1e6:8,.0f} MB/s, first use {read / 1e6:,.0f} MB/s")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
