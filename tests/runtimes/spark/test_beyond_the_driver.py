"""State beyond the driver: read when it is needed, values written by tasks, and memory that does not grow with it."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everview.circuit import Circuit
from everview.codes.dictionary import Entries
from everview.errors import CodeCollision, CorruptState, PipelineError
from everview.runtimes.embedded import interned, stored_entries
from everview.runtimes.spark import engine as engine_module
from everview.runtimes.spark import evolving, passing, upkeep, values, worker
from everview.runtimes.spark.cluster import Cluster
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.placement import Decision
from everview.runtimes.spark.stored import changes
from everview.runtimes.spark.stored_change import StoredChange
from everview.runtimes.tables import Table
from everview.spark.queries import Queries
from everview.traces.store import Store
from everview.verify import verify
from spark.in_process import engine, tick

SCHEMA = "id BIGINT NOT NULL, g STRING NOT NULL, s STRING, v BIGINT NOT NULL"
VIEWS = {
    "sums": "SELECT g, sum(v) AS n, max(s) AS m FROM t GROUP BY g",
    "plain": "SELECT g, sum(v) AS n FROM t GROUP BY g",
    "made": "SELECT s || '!' AS x, v FROM t WHERE v > 2",
    "top": "SELECT id, s FROM t ORDER BY s DESC, id LIMIT 3",
}
EVERY = [*VIEWS, "joined", "reached", "apart"]
VIEWS_BESIDE = {
    "joined": "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.s = b.s AND a.v < b.v",
    "apart": "SELECT DISTINCT g, v FROM t",
    "reached": "WITH RECURSIVE r AS (SELECT id AS a, v AS b FROM t UNION SELECT r.a, t.v FROM r JOIN t ON r.b = t.id) "
    "SELECT a, b FROM r",
}
Row = tuple[int, str, str | None, int]


def circuit_of(views: Any = VIEWS) -> Circuit:
    circuit = Circuit()
    circuit.source("t", SCHEMA)
    queries = Queries(circuit)
    for name in views:
        queries.define_sql(f"CREATE MATERIALIZED VIEW {name} AS {(VIEWS | VIEWS_BESIDE)[name]}", "spark")
    return circuit


def opened(path: Path, place: Any = "driver", views: Any = VIEWS, **how: Any) -> Engine:
    return engine(circuit_of(views), path, place=place, tables={"t": Table(("id",))}, **how)


def check(run: Engine, held: dict[int, Row], views: Any = VIEWS) -> None:
    assert dict(run.contents("t")) == dict.fromkeys(held.values(), 1)
    shown = {name: run.run.view(name).contents() for name in run.run.views}
    verdict = verify(circuit_of(views), {"t": run.contents("t")}, shown)
    assert verdict, str(verdict)


def upserts(draw: random.Random, held: dict[int, Row], rows: int) -> list[Any]:
    change: list[Any] = []
    for key in draw.sample(range(60), rows):
        if key in held:
            change.append((held.pop(key), -1))
        if draw.random() < 0.8:
            text = None if draw.random() < 0.1 else f"text {draw.randrange(30)}"
            held[key] = key, f"g{draw.randrange(4)}", text, draw.randrange(6)
            change.append((held[key], 1))
    return change


@pytest.mark.parametrize("seed", range(2))
def test_a_life_with_hardly_any_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Values are forgotten before every tick, gathered by tasks however few, swept, and found again after opening."""
    monkeypatch.setattr(evolving, "CACHED", 0)
    monkeypatch.setattr(worker, "CACHED", 0)
    monkeypatch.setattr(values, "MANY_BYTES", 0)
    monkeypatch.setattr(stored_entries, "SMALL", 2)
    monkeypatch.setattr(interned, "SPREAD", 4)
    monkeypatch.setattr(interned, "MERGED", 3)
    monkeypatch.setattr(evolving, "MERGED_HERE", 4)
    monkeypatch.setattr(upkeep, "MERGED_HERE", 4)
    monkeypatch.setattr(upkeep, "MADE", 2000)
    draw, held = random.Random(seed), dict[int, Row]()
    run = opened(tmp_path / "s")
    for number in range(14):
        run.placement.place = draw.choice(["driver", "cluster"])
        tick(run, {"t": upserts(draw, held, 12)})
        check(run, held)
        if number % 5 == 2:
            run.upkeep.alone = draw.choice([0, 1 << 30])
            run.upkeep.vacuum(1)
            check(run, held)
        if number % 4 == 3:
            run.close()
            run = opened(tmp_path / "s")
            check(run, held)
    run.store.verify()
    run.close()


# -- opening


def loaded(run: Engine) -> int:
    return sum(trace.is_loaded for trace, _, _ in run.run.state)


def large(path: Path, rows: int, **how: Any) -> None:
    """A state of so many rows, with as many different texts, written by tasks."""
    with opened(path, "cluster", views=["plain", "made"], **how) as run:
        tick(run, {"t": [((i, f"g{i % 10}", f"text number {i}", i % 7), 1) for i in range(rows)]})


def test_opening_reads_the_manifest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large(tmp_path / "s", 30_000)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "array", None)  # whoever asks for a slice fails
        with opened(tmp_path / "s", views=["plain", "made"]) as run:
            assert loaded(run) == 0
            assert run.trace_rows > 30_000
            assert run.rows_of("plain") == 10
    with opened(tmp_path / "s", views=["plain", "made"]) as run:
        tick(run, {"t": [((1, "g1", "text number 1", 1), -1)]})
        assert 0 < loaded(run) < len([*run.run.state])


def test_damage_is_found_by_who_reads_it(tmp_path: Path) -> None:
    large(tmp_path / "s", 30_000)
    with Store.attach(tmp_path / "s") as state:
        entries = [*state.manifest.entries()]
        largest = max((e.ref for e in entries if "dictionary" not in e.ref.name), key=lambda ref: ref.nbytes)
    with (tmp_path / "s" / "segments" / largest.file).open("r+b") as file:
        file.seek(largest.offset + largest.nbytes // 2)
        file.write(b"damage")
    with opened(tmp_path / "s", views=["plain", "made"]) as run:
        rows = [((i, f"g{i % 10}", f"text number {i}", i % 7), -1) for i in range(100)]
        with pytest.raises(CorruptState, match="wrong checksum"):
            tick(run, {"t": rows})
        assert run.epoch == 1


def test_memory_does_not_grow_with_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening, a tick on the driver, a tick by tasks and a view take as much with four times the rows and texts."""
    peaks: list[int] = []
    for rows in (40_000, 160_000):
        path = tmp_path / str(rows)
        large(path, rows)
        tracemalloc.start()
        with opened(path, views=["plain", "made"]) as run:
            for place in ("driver", "cluster"):
                run.placement.place = place  # type: ignore[assignment]
                gone = range(place == "driver", 40, 2)
                tick(run, {"t": [((i, f"g{i % 10}", f"text number {i}", i % 7), -1) for i in gone]})
                tick(run, {"t": [((-i, f"g{i % 10}", f"new in the {place} {i}", 1), 1) for i in range(40)]})
            assert len(run.run.view("plain").rows()) == 10
            held = run.run.dictionary.nbytes
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert held < 1 << 20
    assert peaks[1] < 1.2 * peaks[0]


def few_here(rows: int) -> Decision:
    return Decision("driver" if rows < 32 else "cluster", "test")


@pytest.mark.parametrize("how", ["tasks", "and the driver"])
def test_what_a_recursion_carries_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Chains of eight, some or four times as many: tasks pass rows to each other, and the driver passes places.

    Later, chains are cut and put together again, so that rows belong to later iterations.
    """
    for module in (passing, engine_module):
        monkeypatch.setattr(module, "INLINE_BYTES", 512)
    carried: list[int] = []
    plain = Cluster.close

    def close(self: Cluster) -> None:
        carried[-1] += self.carried
        plain(self)

    monkeypatch.setattr(Cluster, "close", close)
    for chains in (150, 600):
        carried.append(0)
        ids = np.arange(8 * chains)
        held = {int(i): (int(i), "g", "s", int(i + 1 if i % 8 < 7 else -1)) for i in ids}
        cut = [key for key in held if key % 8 == 3]
        views = ["reached"]
        with opened(tmp_path / str(chains), "cluster", views=views, shards=2) as run:
            if how != "tasks":
                run.placement.iteration = few_here  # type: ignore[method-assign]
            tick(run, {"t": [(row, 1) for row in held.values()]})
            tick(run, {"t": [(held[key], -1) for key in cut]})
            tick(run, {"t": [(held[key], 1) for key in cut]})
            assert len(run.run.view("reached").contents()) == chains * (7 * 8 // 2 + 8)
            check(run, held, views)
    assert carried[1] < 1.2 * carried[0]


# -- values


def test_values_of_an_epoch_that_failed_are_not_taken_for_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "MANY_BYTES", 0)
    rows = [((i, "g", f"text {i}", 5), 1) for i in range(20)]
    with opened(tmp_path / "s", "cluster", views=["made"]) as run:

        def cut_short(*given: Any) -> None:
            assert len(given[3]["made"].to_arrow()) == 20  # which looks the values up
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Engine, "_commit", cut_short)
            with pytest.raises(KeyboardInterrupt):
                tick(run, {"t": rows})
        assert not run.run.entries.also
        assert not len(run.run.dictionary)
        run.placement.place = "driver"
        tick(run, {"t": rows})
    with opened(tmp_path / "s", views=["made"]) as run:
        assert sorted(run.run.view("made").rows()) == sorted((f"text {i}!", 5) for i in range(20))


def test_two_values_of_one_code_are_noticed_where_they_meet(tmp_path: Path) -> None:
    """The task that gathers a division refuses another value under a code, be that stored or of the same epoch."""
    with opened(tmp_path / "s") as run:
        tick(run, {"t": [((1, "g", "text", 1), 1)]})
        entries = run.run.dictionary.export()
        other = Entries(entries.codes, entries.kinds, entries.offsets, entries.data + 1, entries.exceptions)
        told = values.Gathering(run.path, run.epoch)
        [*same] = told.run([values.Row(values.RowKind.NEW, -1, 0, 0, values.pack_entries(entries).data)], "a")
        assert same == []
        with pytest.raises(CodeCollision):
            [*told.run([values.Row(values.RowKind.NEW, -1, 0, 0, values.pack_entries(other).data)], "b")]


def test_chunks_of_an_earlier_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without order, and with a flag for each entry: they are searched as they are, and put in order later."""
    with monkeypatch.context() as patched:
        patched.setattr(interned, "ordered", lambda entries: entries)
        with opened(tmp_path / "s", views=["made"]) as run:
            tick(run, {"t": [((i, "g", f"text {i}", 5), 1) for i in range(4000)]})
    with opened(tmp_path / "s", views=["made"]) as run:
        [[chunk]] = interned.chunks_of(run.store.manifest).values()
        assert not interned.is_ordered(chunk)
        tick(run, {"t": [((i, "g", f"text {i}", 5), -1) for i in range(3990)]})
        assert sorted(run.run.view("made").rows()) == sorted((f"text {i}!", 5) for i in range(3990, 4000))
        run.durable.tidy(run.run.state)
        [[chunk]] = interned.chunks_of(run.store.manifest).values()
        assert interned.is_ordered(chunk)
        kinds, codes = run.store.array(chunk[1]), run.store.array(chunk[0])
        assert np.array_equal(np.lexsort((codes, kinds)), np.arange(len(codes)))
        assert sorted(run.run.view("made").rows()) == sorted((f"text {i}!", 5) for i in range(3990, 4000))


# -- large changes


@pytest.mark.parametrize("crash", [False, True])
def test_changes_that_are_read_from_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: bool) -> None:
    """Sinks are given by reference what the driver does not fetch, also after a restart; their sum is the view."""
    monkeypatch.setattr(engine_module, "MOST_BYTES", 100)
    draw, held = random.Random(5), dict[int, Row]()
    sums: dict[str, Counter[Any]] = {name: Counter() for name in VIEWS}
    run, stored = opened(tmp_path / "s", "cluster", delivered=VIEWS), 0
    for rows in (30, 4, 40, 1):
        tick(run, {"t": upserts(draw, held, rows)})
        if crash:
            run.close()
            run = opened(tmp_path / "s", "cluster", delivered=VIEWS)
        for name, change in run.last_changes().items():
            stored += isinstance(change, StoredChange)
            batch = change.batch() if isinstance(change, StoredChange) else change
            assert len(batch) <= len(change)
            for row, weight in batch:
                sums[name][row] += weight
    for name, total in sums.items():
        assert {row: n for row, n in total.items() if n} == dict(run.run.view(name).contents())
    assert 4 <= stored < 16  # both ways were taken
    run.close()


# -- merges


def test_large_slices_are_merged_by_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver leaves them as they are, and lets go of what it has made; sizes are geometric all the same."""
    monkeypatch.setattr(evolving, "MERGED_HERE", 600)
    monkeypatch.setattr(upkeep, "MERGED_HERE", 600)
    monkeypatch.setattr(upkeep, "MADE", 1 << 16)
    with opened(tmp_path / "s", views=["plain"], shards=2) as run:
        for start in range(0, 24_000, 1200):
            rows = [((i, f"g{i % 10}", f"text {i}", 1), 1) for i in range(start, start + 1200)]
            tick(run, {"t": rows})
            slices = [len(trace.past.batches) for trace, _, _ in run.run.state if trace.is_loaded]
            assert max(slices, default=0) < 12
        assert sorted(run.run.view("plain").rows()) == [(f"g{g}", 2400) for g in range(10)]
        run.upkeep.compact()
        assert loaded(run) == 0
        sizes = [[entry.ref.rows for entry in entries] for entries in run.store.manifest.slices.values()]
        assert max(map(len, sizes)) < 8
        run.store.verify()
        assert len(run.contents("t")) == 24_000


# -- more shards


@pytest.mark.parametrize("when", ["never", "before", "after"])
@pytest.mark.parametrize("alone", [0, 1 << 30])
def test_shards_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, alone: int) -> None:
    """Views and tables are what they were, and go on, by tasks and on the driver; a crash leaves all or nothing."""
    draw, held = random.Random(7), dict[int, Row]()
    run = opened(tmp_path / "s", views=EVERY, shards=2)
    for rows in (30, 30, 30):
        tick(run, {"t": upserts(draw, held, rows)})
    plain = Store._publish

    def crashing(self: Any, draft: Any, *given: Any, **how: Any) -> None:
        if draft.epoch == 4 and when != "never":
            if when == "after":
                plain(self, draft, *given, **how)
            raise KeyboardInterrupt
        plain(self, draft, *given, **how)

    run.upkeep.alone = alone
    with monkeypatch.context() as patched:
        patched.setattr(Store, "_publish", crashing)
        if when == "never":
            run.upkeep.reshard(circuit_of(EVERY), 6)
        else:
            with pytest.raises(KeyboardInterrupt):
                run.upkeep.reshard(circuit_of(EVERY), 6)
    assert run.uncertain
    run.close()
    if when == "before":
        with opened(tmp_path / "s", views=EVERY, shards=2) as run:
            assert run.epoch == 3
            check(run, held, EVERY)
            run.upkeep.reshard(circuit_of(EVERY), 6)
    with Store.attach(tmp_path / "s", 3) as then, Store.attach(tmp_path / "s") as now:
        for name in EVERY:
            assert sum(len(changes(then, now, name, shard)) for shard in range(6)) == 0
    run = opened(tmp_path / "s", views=EVERY, shards=6)
    assert run.epoch == 4
    check(run, held, EVERY)
    for number, rows in enumerate((30, 50, 10)):
        run.placement.place = "cluster" if number % 2 else "driver"
        tick(run, {"t": upserts(draw, held, rows)})
        check(run, held, EVERY)
    run.store.verify()
    run.close()


def test_shards_that_cannot_be_split(tmp_path: Path) -> None:
    with opened(tmp_path / "s", shards=4) as run:
        tick(run, {"t": [((1, "g", "text", 1), 1)]})
        for shards in (1, 4, 6):
            with pytest.raises(PipelineError, match=f"4 shards cannot become {shards}"):
                run.upkeep.reshard(circuit_of(), shards)
        assert not run.uncertain
