"""A model of pipelines past one machine: 10 to 1,000 executors, 1 to 100 TB of state. docs/design/scale.md tells of it.

What an epoch costs is put together from constants that were measured here, on two cores (`Measured`), and from what is
assumed of a cluster and an object store (`Assumed`). How many slices a state has, and how much merging writes, is not a
formula but a simulation of one shard's spine, epoch by epoch. ``--check`` holds the model against runs that fit here:
the Spark benchmark's stored results, and a store that is written, merged and opened on the spot.

    python benchmarks/simulate.py            the tables of docs/design/scale.md
    python benchmarks/simulate.py --check    the model beside measurements
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

GB, TB = 1e9, 1e12
RATIO = 4  # of the sizes of two slices next to each other, as in `everview.traces.spine`
RESULTS = Path(__file__).with_name("results") / "results.json"


@dataclass(frozen=True, slots=True)
class Measured:
    """Constants measured here. The Spark benchmark's run over 1,000,000 rows gives most of them."""

    bookkeeping: float = 0.1  # seconds that Spark takes around a micro-batch: finding what is new, planning, two logs
    fetch: tuple[float, float] = (0.046, 1.08e-6)  # seconds an epoch and a change, to the driver
    tick: tuple[float, float] = (0.0043, 0.61e-6)  # on the driver
    commit: tuple[float, float] = (0.0026, 1.5e-6)  # on the driver
    sinks: tuple[float, float] = (0.003, 0.0)
    job: float = 0.25  # seconds of a Spark job with one exchange and a Python stage before it does anything
    exchange: float = 0.1  # seconds of each further exchange
    change: float = 0.87e-6  # core seconds of a change in a tick by tasks: 2,300,000 a second on two cores
    load: float = 1.93e-6  # core seconds of a row in a first load of three views: 38.6 for 20 million
    row: float = 122.0  # bytes of state in words for each row of the sources, three views; a third of that is stored
    word_rows: float = 16e6  # rows a second and core that a merge reads and writes
    entry: float = 85.0  # bytes of a slice in a manifest and in a log; see `measured_store`
    entry_commit: float = 14e-6  # seconds to commit a slice's entry
    entry_open: float = 7e-6  # and to read it when the state is opened


@dataclass(frozen=True, slots=True)
class Assumed:
    """What cannot be measured here. Latencies and prices are those that clouds publish, rounded up."""

    get: float = 0.03  # seconds to the first byte of a fetch
    put: float = 0.06
    stream: float = 80e6  # bytes a second of one connection
    parallel: int = 16  # connections of an executor
    price_get: float = 0.4e-6  # dollars a request
    price_put: float = 5e-6
    price_core: float = 0.05 / 3600  # dollars a core second
    task: float = 1.5e-3  # seconds of the driver to start a task and hear of its end
    cached: float = 0.9  # share of the slices that a task needs and its machine has at hand


@dataclass(frozen=True, slots=True)
class Setting:
    """A pipeline: its size, and what it runs on."""

    state: float  # bytes
    changes: int  # in an epoch
    executors: int
    cores: int = 8  # of an executor
    traces: int = 12  # of the circuit: three views over two sources have about so many
    exchanges: int = 2
    shards_a_core: float = 2.0
    tasks: int | None = None  # of a stage; as many as there are cores if None
    object_store: bool = True
    read: float = 20.0  # slices of a trace and shard that a tick looks into: one a level

    @property
    def shards(self) -> int:
        return max(2, int(self.executors * self.cores * self.shards_a_core))


# -- the spine of one shard, epoch by epoch


def spine(rows: float, added: float, epochs: int) -> Iterator[tuple[int, float]]:
    """The slices of one trace and shard after each epoch, and the rows that its merges wrote in it.

    Two slices next to each other are merged once the newer one has more than a quarter of the older one's rows, as in
    `everview.traces.spine`, but at once. A slice of an epoch has ``added`` rows.
    """
    slices = [rows] if rows else []
    for _ in range(epochs):
        written = 0.0
        slices.append(added)
        while len(slices) > 1 and slices[-2] < RATIO * slices[-1]:
            newest = slices.pop()
            slices[-1] += newest
            written += slices[-1]
        yield len(slices), written


@dataclass(frozen=True, slots=True)
class Spine:
    """Averages over many epochs."""

    slices: float
    written: float  # rows that merges write, for each row that is added

    @classmethod
    @cache
    def of(cls, rows: float, added: float, epochs: int = 4096) -> Spine:
        """The averages of a long life; levels that so many epochs do not reach are like those that they do."""
        counts, written = zip(*spine(rows, added, epochs), strict=True)
        longer = max(math.log(max(rows / added, 1.0)) / math.log(epochs), 1.0)
        return cls(longer * sum(counts) / epochs, longer * sum(written) / (added * epochs))


# -- one epoch


@dataclass(frozen=True, slots=True)
class Epoch:
    """What an epoch takes: seconds by part, and what the driver, the store and the bill see of it."""

    place: str
    seconds: dict[str, float]
    driver_bytes: float  # that the driver holds: the manifest
    log_bytes: float  # that one commit writes
    files: float  # segments and entries that one commit adds
    slices: float  # in the whole state
    requests: float  # to the object store, a minute if epochs follow each other
    dollars: float  # an epoch

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def epoch(s: Setting, m: Measured | None = None, a: Assumed | None = None) -> Epoch:
    """The cheaper of an epoch on the driver and one by tasks."""
    m, a = m or Measured(), a or Assumed()
    return min((_on_driver(s, m, a), _by_tasks(s, m, a)), key=lambda each: each.total)


def _shape(s: Setting, m: Measured, touched: int) -> tuple[Spine, float]:
    """The spine of a trace and shard, and the slices of the whole state; ``touched`` shards get a slice an epoch."""
    rows = s.state / m.row / s.shards
    spine_ = Spine.of(rows, max(s.changes / touched, 1.0))
    return spine_, spine_.slices * s.traces * s.shards


def _on_driver(s: Setting, m: Measured, a: Assumed) -> Epoch:
    """All work on the driver, which reads the slices that it needs, and writes one segment with a slice a shard."""
    touched = min(s.shards, s.changes)
    spine_, slices = _shape(s, m, touched)
    entries = touched * s.traces
    seconds = {"spark": m.bookkeeping} | {
        part: fixed + s.changes * each
        for part, (fixed, each) in (("fetch", m.fetch), ("tick", m.tick), ("commit", m.commit), ("sinks", m.sinks))
    }
    seconds["commit"] += entries * m.entry_commit
    requests = 0.0
    if s.object_store:
        fetched = entries * min(spine_.slices, s.read) * (1 - a.cached)
        requests = fetched + 3
        seconds["store"] = 2 * a.put + fetched / a.parallel * a.get
    total = sum(seconds.values())
    dollars = total * s.executors * s.cores * a.price_core + requests * a.price_get + 3 * a.price_put
    return Epoch("driver", seconds, slices * m.entry, entries * m.entry, 1, slices, requests * 60 / total, dollars)


def _by_tasks(s: Setting, m: Measured, a: Assumed) -> Epoch:
    """Stages by tasks over all shards: each task maps its slices, works, and writes one segment."""
    cores = s.executors * s.cores
    each = min(cores, s.tasks or cores)
    tasks = each * (1 + s.exchanges)
    spine_, slices = _shape(s, m, s.shards)
    entries = s.shards * s.traces
    work = s.changes * (m.change + spine_.written * s.traces / m.word_rows) / each
    seconds = {
        "spark": m.bookkeeping,
        "jobs": m.job + m.exchange * max(s.exchanges - 1, 0),
        "tasks": tasks * a.task,
        "work": work,
        "commit": m.commit[0] + entries * m.entry_commit,
        "sinks": m.sinks[0],
    }
    requests, puts = 0.0, 0.0
    if s.object_store:
        fetched = entries * min(spine_.slices, s.read) * (1 - a.cached)
        moved = s.changes * m.row * (1 + spine_.written) / s.executors / (a.stream * a.parallel)
        puts = each
        requests = fetched + puts
        seconds["store"] = a.put + fetched / min(each, s.executors) / a.parallel * a.get + moved
    total = sum(seconds.values())
    dollars = total * cores * a.price_core + requests * a.price_get + puts * a.price_put
    return Epoch("tasks", seconds, slices * m.entry, entries * m.entry, each, slices, requests * 60 / total, dollars)


def fitted(s: Setting) -> tuple[int, Epoch]:
    """The number of tasks a stage with which an epoch is fastest, and that epoch."""
    most = s.executors * s.cores
    choices = sorted({min(most, 2**power) for power in range(1, most.bit_length() + 1)})
    return min(((count, epoch(replace(s, tasks=count))) for count in choices), key=lambda each: each[1].total)


def first_load(s: Setting, m: Measured | None = None) -> float:
    """Seconds of a first load, by all cores at once."""
    m = m or Measured()
    return s.state / m.row * m.load / (s.executors * s.cores)


# -- beside measurements


def stored_runs() -> Iterator[tuple[str, float, float]]:
    """Epochs of the Spark benchmark over 10,000,000 rows: what it was, seconds in the model, and measured.

    The constants are from its run over 1,000,000 rows, so this shows whether they hold at ten times the size.
    """
    sizes = json.loads(RESULTS.read_text())["spark_pipeline"]["raw"]["sizes"]
    for rows, changes in ((10_000_000, 1_000), (10_000_000, 100_000)):
        ran = sizes[str(rows)]["ticks"][str(changes)]
        here = Setting(rows * Measured().row, changes, executors=1, cores=2, shards_a_core=1, object_store=False)
        model = _on_driver(here, Measured(), Assumed()).total
        yield f"{changes:,} changes at {rows:,} rows, by the driver", model, ran["total"]
        yield f"{changes:,} changes: the tick alone", Measured().tick[0] + changes * Measured().tick[1], ran["tick"]


@dataclass(frozen=True, slots=True)
class StoreRun:
    """What a store of many slices takes, measured on the spot."""

    entry: float  # bytes of an entry
    commit_cpu: float  # seconds of an entry in a commit
    open_cpu: float  # and when the store is opened


def measured_store(shards: int = 512, traces: int = 12) -> StoreRun:
    """Commit a slice for each trace and shard, open the store again, and see what an entry takes."""
    from everview.traces.store import Fingerprints, Policy, Store

    row = np.ones((1, 2), dtype=np.int64)
    appends = [(f"trace{trace}", shard, row) for trace in range(traces) for shard in range(shards)]
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "state"
        plan = Fingerprints("model", {f"trace{trace}": "model" for trace in range(traces)})
        with Store.create(path, plan, Policy(inline_bytes=1)) as store:
            began = time.process_time()
            store.commit(1, appends)
            commit = time.process_time() - began
        log = sum(file.stat().st_size for file in (path / "log").iterdir())
        began = time.process_time()
        with Store.attach(path):
            opened = time.process_time() - began
    return StoreRun(log / len(appends), commit / len(appends), opened / len(appends))


def measured_spine(epochs: int = 400, rows: int = 600) -> tuple[float, float]:
    """The slices of a trace, averaged over epochs: in the model, and in a real one."""
    from everview.traces.spine import Spine as RealSpine

    real, found = RealSpine(3), 0
    for number in range(epochs):
        batch = np.ones((rows, 3), dtype=np.int64)
        batch[:, 0] = number + epochs * np.arange(rows)
        real.append(batch)
        found += len(real.batches)
    model = sum(count for count, _ in spine(0, rows, epochs))
    return model / epochs, found / epochs


# -- tables


def table(states: tuple[float, ...], executors: tuple[int, ...], changes: tuple[int, ...]) -> Iterator[str]:
    head = ("state", "executors", "changes", "epoch", "Spark in it", "fitted", "store in that", "slices", "manifest")
    yield f"| {' | '.join((*head, 'opens in', '$ an hour'))} |"
    yield f"|{'---:|' * (len(head) + 2)}"
    for state in states:
        for count in executors:
            for size in changes:
                setting = Setting(state, size, count)
                if state / count > 2 * TB:
                    continue  # an executor's disk does not cache so much
                e = epoch(setting)
                spark = sum(e.seconds.get(part, 0.0) for part in ("spark", "jobs", "tasks"))
                tasks, best = fitted(setting)
                by = f"{best.total:.1f} s, {f'{tasks:,} tasks' if best.place == 'tasks' else 'driver'}"
                yield (
                    f"| {state / TB:g} TB | {count:,} | {size:,} | {e.total:.1f} s, {e.place} | {spark:.1f} s | {by} "
                    f"| {best.seconds.get('store', 0.0):.1f} s | {e.slices:,.0f} | {e.driver_bytes / 1e6:,.0f} MB "
                    f"| {e.slices * Measured().entry_open:.1f} s | {best.dollars * 3600 / best.total:.0f} |"
                )


def merging() -> Iterator[str]:
    """How many slices a shard's trace has, and what merging writes, by how much larger it is than an epoch's part."""
    yield "| rows of a shard / rows an epoch adds to it | slices, on average | rows written for a row added |"
    yield "|---:|---:|---:|"
    for ratio in (1e2, 1e4, 1e6):
        found = Spine.of(ratio * 1000, 1000)
        yield f"| {ratio:,.0f} | {found.slices:.1f} | {found.written:.1f} |"


def check() -> Iterator[str]:
    yield "| what | model | measured | ratio |"
    yield "|---|---:|---:|---:|"
    for what, model, ran in stored_runs():
        yield f"| {what} | {model:.3f} s | {ran:.3f} s | {model / ran:.2f} |"
    slices, real = measured_spine()
    yield f"| slices of a trace, on average over 400 epochs | {slices:.1f} | {real:.1f} | {slices / real:.2f} |"
    run, m = measured_store(), Measured()
    yield f"| an entry of a manifest | {m.entry:.0f} B | {run.entry:.0f} B | {m.entry / run.entry:.2f} |"
    for what, said, found in (("commit", m.entry_commit, run.commit_cpu), ("open", m.entry_open, run.open_cpu)):
        yield f"| an entry, to {what} | {said * 1e6:.1f} µs | {found * 1e6:.1f} µs | {said / found:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="hold the model against measurements")
    if parser.parse_args().check:
        print("\n".join(check()))
        return
    print("\n".join(table((TB, 10 * TB, 100 * TB), (10, 100, 1000), (1_000, 1_000_000, 100_000_000))))
    print("\nMerging\n\n" + "\n".join(merging()))
    print("\nFirst loads\n")
    for state, count in ((TB, 10), (10 * TB, 100), (100 * TB, 1000)):
        print(f"- {state / TB:g} TB by {count:,} executors: {first_load(Setting(state, 0, count)) / 60:.0f} minutes")
    print("\nMore shards than are needed, 10 TB, 100 executors, 1,000,000 changes\n")
    for each in (0.5, 2.0, 8.0, 32.0):
        e = epoch(replace(Setting(10 * TB, 1_000_000, 100), shards_a_core=each))
        print(f"- {each:g} shards a core: {e.total:.2f} s by {e.place}, {e.driver_bytes / GB:.2f} GB of manifest")


if __name__ == "__main__":
    main()
