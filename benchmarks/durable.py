"""Durable ticks of one row a second, beside how often the same disk can write and sync at all.

They take turns, so that all meet the disk in the same moods.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from exposure import circuit
from figures import AtLeast, Findings
from isolate import answer, measured
from scale import Scale
from stream import DATA

from everview.runtimes.embedded import Embedded
from everview.traces.store import Fingerprints, Store
from everview.traces.store.record import written_size

TURNS = 10
WARMUP = 10
ROOM = 4 << 20  # bytes
TRACES = ("orders", "entries", "view")  # what a tick of the benchmark's view appends to


def measure(ticks: int) -> dict[str, Any]:
    DATA.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=DATA))
    try:
        run = Embedded(circuit(), path=home / "run")
        with Store.create(home / "state", _plan()) as store:
            acts = {"tick": runtime_ticks(run), "commit": store_ticks(store)}
            record = {name: _growth(act, home) for name, act in acts.items()}
            acts["write"] = raw_writes(home / "raw", record["tick"])
            acts["overwrite"] = raw_overwrites(home / "over", record["tick"])
            return _in_turns(ticks, acts) | {"record": record}
    finally:
        shutil.rmtree(home)


def runtime_ticks(run: Embedded) -> Callable[[int], None]:
    """A durable tick of one order, through the whole view."""
    run.tick({"customers": [((id, id % 7), 1) for id in range(1_000)]})

    def tick(at: int) -> None:
        run.tick({"orders": [((at, at % 1_000, at), 1)]})

    return tick


def store_ticks(store: Store) -> Callable[[int], None]:
    """A durable tick of one row, as the store sees it."""

    def tick(at: int) -> None:
        row = np.array([[at, at % 200, 1]])
        store.commit(at + 1, [(name, 0, row) for name in TRACES], offsets={"stream": at})

    return tick


def raw_overwrites(path: Path, size: int) -> Callable[[int], None]:
    """The same without the metadata of a file that grows: put the bytes over others, and wait for the disk."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, bytes(ROOM))
    os.fsync(descriptor)
    data = bytes(size)

    def write(at: int) -> None:
        os.pwrite(descriptor, data, at * size % (ROOM - size))
        os.fdatasync(descriptor)

    return write


def raw_writes(path: Path, size: int) -> Callable[[int], None]:
    """The least that durability can cost: append that many bytes, and wait for the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    data = bytes(size)

    def write(at: int) -> None:
        del at
        os.write(descriptor, data)
        os.fdatasync(descriptor)

    return write


def _in_turns(ticks: int, acts: dict[str, Callable[[int], None]]) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in acts}
    share = ticks // TURNS
    for turn in range(TURNS):
        for name, act in acts.items():
            began = time.perf_counter()
            for at in range(share):
                act(WARMUP + turn * share + at)
            seconds[name].append((time.perf_counter() - began) / share)
    return {name: median(each) for name, each in seconds.items()} | {"turns": seconds}


def _growth(act: Callable[[int], None], home: Path) -> int:
    """Bytes that one more tick adds to the files, once it is warm."""
    for at in range(WARMUP - 1):
        act(at)
    before = _size(home)
    act(WARMUP - 1)
    return _size(home) - before


def _size(home: Path) -> int:
    return sum(_written(path) for path in home.rglob("*") if path.is_file())


def _written(path: Path) -> int:
    """The size of a file, without the room that a log has for later records."""
    return written_size(path.read_bytes()) if path.suffix == ".log" else path.stat().st_size


def _plan() -> Fingerprints:
    return Fingerprints("benchmark", {name: name for name in TRACES})


def findings(scale: Scale) -> Findings:
    found = Findings("Durability")
    run = measured("durable.py", ticks=scale.durable_ticks)
    found.add(f"write and fdatasync of {run['record']['tick']} bytes", 1 / run["write"], "a second")
    found.add("the same over what is there already", 1 / run["overwrite"], "a second")
    found.add("durable ticks of one order, through the view", 1 / run["tick"], "a second")
    found.add("durable commits of one row in three traces, by the store alone", 1 / run["commit"], "a second")
    found.add("durable ticks / writes", run["write"] / run["tick"], "times", AtLeast(0.6))
    found.raw = run
    return found


if __name__ == "__main__":
    answer(measure)
