"""The same stages on Spark: whatever the change stream, tasks over shards give what one process gives."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from everview.circuit import Circuit, incrementalize
from everview.circuit.incrementalize import lifted
from everview.circuit.nodes import Sink
from everview.circuit.program import Program
from everview.codes import Dictionary, Entries, encode_weighted, ingest_weighted
from everview.errors import EverviewError, FunctionError, WeightOverflow
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.durable import PARTS, fingerprints
from everview.runtimes.spark import (
    Job,
    Outcome,
    Row,
    arriving,
    chain,
    from_batches,
    gather,
    run,
    to_batches,
    wire,
)
from everview.runtimes.spark.worker import NAMES
from everview.traces.store import Store
from everview.zset import ZSet
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARDS, PARTITIONS = 8, 2

Weighted = list[tuple[tuple[Any, ...], int]]
Changes = Mapping[str, Weighted]
Runner = Callable[[Job, list[Row]], list[Row]]  # from the rows of the first stage to those after the last
Attempt = Callable[[Job, int, list[Row], str], list[Row]]


# -- circuits and changes


def by_country() -> Circuit:
    """orders ⋈ customers, added up by country."""
    circuit = Circuit()
    orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
    customers = circuit.source("customers", "name STRING, country STRING")
    joined = orders.join(customers, ("customer", "name"))
    joined.aggregate(["country"], total=("sum", "amount"), n="count").sink("totals")
    return circuit


def everything() -> Circuit:
    """Strings computed and compared in tasks, and a stream that stays on its shard for two exchanges."""

    def initials(names: pa.Array, _: pa.Array) -> pa.Array:
        return pa.array([None if name is None else f"initial {name[:1]}" for name in names.to_pylist()])

    circuit = Circuit()
    orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
    customers = circuit.source("customers", "name STRING, country STRING")
    totals = orders.join(customers, ("customer", "name")).aggregate(["country"], total=("sum", "amount"))
    customers.join(totals, "country").sink("customers of paying countries")
    named = customers.extend(initials, "initial STRING")
    named.aggregate(["country"], least=("min", "initial"), most=("max", "name")).sink("ends")
    orders.select("customer").distinct().top(2, ["customer desc"]).sink("last buyers")
    return circuit


def random_changes(seed: int, ticks: int) -> Iterator[Changes]:
    """Inserts, deletes of what is and is not there, weights that cancel, ticks and sources without change."""
    draw = random.Random(seed)
    names = [None, *(f"{letter}{number}" for letter in "abc" for number in range(4))]
    countries = [None, "Chile", "Peru", "Österreich", ""]
    for tick in range(ticks):
        size = draw.choice([2, 40]) if tick != 2 else 0
        orders = [((draw.choice(names), draw.randint(-3, 9)), draw.choice([1, 1, 2, -1])) for _ in range(size)]
        people = [((draw.choice(names), draw.choice(countries)), draw.choice([1, 1, -1])) for _ in range(size // 3)]
        yield {"orders": orders, "customers": people} if tick % 4 < 3 else {"orders": orders}


# -- the driver's side of a tick


class Driver:
    """Ticks over a state directory; `runner` says where the stages run."""

    def __init__(self, circuit: Circuit, path: Path, runner: Runner) -> None:
        self.program = Program(circuit, SHARDS)
        plan = fingerprints(self.program)
        self.store = Store.open(path, plan) if Store.exists(path) else Store.create(path, plan)
        self.dictionary = Dictionary()
        for chunk in zip(*(self.store.slices(name) for name in NAMES), strict=True):
            self.dictionary.load(Entries(*(part.array for part in chunk)))
        self.runner = runner

    def tick(self, changes: Changes) -> dict[str, Batch]:
        mark = self.dictionary.mark()
        built = self.program.circuit
        epoch = self.store.epoch
        job = Job(self.program, str(self.store.path), epoch, PARTITIONS)
        try:
            deltas = {built.sources[name]: self._encode(name, rows) for name, rows in changes.items()}
            rows = list(arriving(job, deltas, self.dictionary.export(mark)))
            found = gather(self.runner(job, rows) if rows else [])
            self._accept(found)
        except EverviewError:
            self.dictionary.rollback(mark)
            raise
        fresh = self.dictionary.export(mark)
        values = [(name, 0, getattr(fresh, part)) for name, part in zip(NAMES, PARTS, strict=True)]
        self.store.commit(epoch + 1, values if len(fresh) else [], replaces=found.edits)
        return {name: self._batch(name, found.changes.get(at, [])) for name, at in built.sinks.items()}

    def slices(self, name: str) -> list[np.ndarray]:
        at = self.program.contents(name)
        assert at is not None
        return [s.array for shard in range(SHARDS) for s in self.store.slices(self.program.names[at], shard)]

    def contents(self, name: str) -> Batch:
        return self._batch(name, self.slices(name))

    def _encode(self, source: str, rows: Weighted) -> np.ndarray:
        schema = self.program.circuit.layout(self.program.circuit.sources[source]).schema
        return encode_weighted(schema, *ingest_weighted(schema, rows), self.dictionary)

    def _accept(self, found: Outcome) -> None:
        for entries in found.entries:
            self.dictionary.load(entries)
        for at, rows in found.negative.items():
            raise FunctionError(f"{self._batch(self._name(at), rows).elements()}", hint="check the deletes")

    def _name(self, sink: int) -> str:
        node = self.program.circuit[sink]
        assert isinstance(node, Sink)
        return node.name

    def _batch(self, sink: str, parts: list[np.ndarray]) -> Batch:
        at = self.program.contents(sink)
        assert at is not None
        schema = self.program.circuit.layout(at).schema
        rows = np.concatenate([np.empty((0, schema.width + 1), np.int64), *parts])
        return Batch.consolidated(schema, rows, self.dictionary)


def frame_of(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches(to_batches(rows), wire.ARROW))


def collected(frame: DataFrame) -> list[Row]:
    return list(from_batches(frame.toArrow().to_batches()))


def on_spark(spark: SparkSession) -> Runner:
    """One action for all stages."""
    return lambda job, rows: collected(chain(frame_of(spark, rows), job))


def after_the_first(spark: SparkSession) -> Runner:
    """The driver runs the first stage itself, which saves an exchange."""
    return lambda job, rows: collected(chain(frame_of(spark, run(job, 0, rows, "driver")), job, first=1))


def once(job: Job, number: int, rows: list[Row], attempt: str) -> list[Row]:
    """A task: what it is given has been pickled, and what it gives has been rows of the wire."""
    job = cloudpickle.loads(cloudpickle.dumps(job))
    arrived = from_batches(to_batches(rows))
    return list(from_batches(to_batches(run(job, number, arrived, attempt))))


def in_process(attempt: Attempt = once) -> Runner:
    """What Spark does, without Spark: one stage after the other, one partition after the other."""

    def runner(job: Job, rows: list[Row]) -> list[Row]:
        for number in range(len(job.program.stages)):
            parts = [[row for row in rows if row.shard % PARTITIONS == p] for p in range(PARTITIONS)]
            rows = [row for p, part in enumerate(parts) for row in attempt(job, number, part, f"{number}.{p}.0")]
        return rows

    return runner


def compare(circuit: Circuit, driver: Driver, ticks: Iterable[Changes]) -> None:
    """Tick by tick the same changes as one process, and at the end the same contents."""
    expected = Embedded(circuit)
    for changes in ticks:
        assert driver.tick(changes) == expected.tick(changes)
    for name in driver.program.circuit.sinks:
        assert driver.contents(name) == expected.view(name).contents()
    driver.store.verify()


# -- on Spark


@pytest.mark.parametrize("seed", range(4))
def test_tasks_give_what_one_process_gives(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Against one process, and against plain Python that starts anew every tick."""
    circuit = incrementalize(by_country())
    runner = on_spark(spark) if seed else after_the_first(spark)
    driver, expected = Driver(circuit, tmp_path / "state", runner), Embedded(circuit)
    sources: dict[str, Counter[tuple[Any, ...]]] = {"orders": Counter(), "customers": Counter()}
    for changes in random_changes(seed, ticks=4):
        assert driver.tick(changes) == expected.tick(changes)
        for name, rows in changes.items():
            for row, weight in rows:
                sources[name][row] += weight
        assert driver.contents("totals").to_zset() == recomputed(**sources)
    assert driver.contents("totals") == expected.view("totals").contents()
    driver.store.verify()


def recomputed(orders: Counter[tuple[Any, ...]], customers: Counter[tuple[Any, ...]]) -> ZSet:
    totals: Counter[str | None] = Counter()
    counts: Counter[str | None] = Counter()
    for (customer, amount), v in orders.items():
        for (name, country), w in customers.items():
            if customer == name:
                totals[country] += amount * v * w
                counts[country] += v * w
    return ZSet.of([((country, totals[country], n), 1) for country, n in counts.items() if n > 0])


def test_strings_are_computed_and_compared_in_tasks(spark: SparkSession, tmp_path: Path) -> None:
    circuit = incrementalize(everything())
    compare(circuit, Driver(circuit, tmp_path / "state", on_spark(spark)), random_changes(7, ticks=4))


def test_large_slices_are_mapped(spark: SparkSession, tmp_path: Path) -> None:
    circuit = incrementalize(by_country())
    driver = Driver(circuit, tmp_path / "state", on_spark(spark))
    people = [((f"c{i}", f"country {i % 50}"), 1) for i in range(5_000)]
    orders = [((f"c{i % 5_000}", i), 1) for i in range(50_000)]
    compare(circuit, driver, [{"customers": people, "orders": orders}, {"orders": [(("c7", 7), -1)]}])


def test_what_puts_out_without_being_given_runs_too(spark: SparkSession, tmp_path: Path) -> None:
    """Integrals and delays: every shard runs every tick, and the stage that feeds a feedback closes it."""
    circuit = lifted(by_country())
    driver, expected = (
        Driver(circuit, tmp_path / "state", on_spark(spark)),
        Embedded(incrementalize(by_country())),
    )
    for changes in (
        {"customers": [(("a", "Peru"), 1)], "orders": [(("a", 3), 1)]},
        {},
        {"orders": [(("a", 4), 1)]},
    ):
        assert driver.tick(changes)["totals"] == expected.tick(changes)["totals"]


def test_a_mistake_comes_back_as_itself(spark: SparkSession, tmp_path: Path) -> None:
    circuit = incrementalize(by_country())
    driver = Driver(circuit, tmp_path / "state", on_spark(spark))
    with pytest.raises(WeightOverflow) as raised:
        driver.tick({"orders": [(("a", 1), 2**62), (("a", 1), 2**62)]})
    assert raised.value.hint == "the tick was not applied"
    assert (driver.store.epoch, len(driver.dictionary)) == (0, 0)
    compare(circuit, driver, random_changes(1, ticks=1))


def test_a_worker_finds_its_kernels_compiled(spark: SparkSession) -> None:
    """What this process has compiled, a worker takes from the cache on disk."""

    def misses() -> int:
        from everview.kernels import merge, probe, shard, sort, tally

        used: list[Any] = [merge.merge, probe.join, shard.split, sort.arrange, tally.tally]
        return sum(sum(kernel.dispatcher.stats.cache_misses.values()) for kernel in used)

    def in_a_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (pa.RecordBatch.from_pydict({"misses": [misses()]}) for _ in batches)

    misses()
    found = spark.range(2, numPartitions=2).mapInArrow(in_a_worker, "misses BIGINT").collect()
    assert [row.misses for row in found] == [0, 0]


# -- attempts


def test_an_attempt_that_is_made_again_doubles_nothing(tmp_path: Path) -> None:
    """The first attempt of every task writes its segment and is lost; the second one counts."""

    def twice(job: Job, number: int, rows: list[Row], attempt: str) -> list[Row]:
        once(job, number, rows, attempt)
        return once(job, number, rows, f"{attempt}.again")

    circuit = incrementalize(everything())
    driver = Driver(circuit, tmp_path / "state", in_process(twice))
    compare(circuit, driver, random_changes(5, ticks=6))
    assert any(attempt.endswith(".0") for attempt in attempts(tmp_path / "state"))
    driver.store.vacuum()
    assert not any(attempt.endswith(".0") for attempt in attempts(tmp_path / "state"))
    driver.store.verify()


def attempts(state: Path) -> list[str]:
    """Who wrote the segments that are there."""
    return [path.name.split("-")[1] for path in (state / "segments").iterdir()]


RETRYING = """
import os, sys
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession
from everview.runtimes.spark import SCHEMA, task
from test_stages import *

def failing(job, number):
    def flaky(batches):
        out = list(task(job, number)(batches))  # the segment is written
        context = TaskContext.get()
        if number == context.partitionId() == 1 and context.attemptNumber() == 0:
            raise RuntimeError("on purpose")
        yield from out
    return flaky

def runner(job, rows):
    frame = frame_of(spark, rows)
    for number in range(len(job.program.stages)):
        frame = frame.repartitionById(PARTITIONS, "shard").mapInArrow(failing(job, number), SCHEMA)
    return collected(frame)

local = {f"spark.driver.{name}": "127.0.0.1" for name in ("host", "bindAddress")}
local |= {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": sys.argv[1] + "/warehouse"}
spark = SparkSession.builder.master("local[2,4]").config(map=local).getOrCreate()
state = Path(sys.argv[1]) / "state"
circuit = incrementalize(by_country())
compare(circuit, Driver(circuit, state, runner), random_changes(3, ticks=1))
assert {"1.1.0", "1.1.1"} <= set(attempts(state)), attempts(state)
spark.stop()
print("nothing doubled")
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_task_that_spark_retries_doubles_nothing(tmp_path: Path) -> None:
    """The shared session gives up at the first failure, so this one has another that tries four times."""
    here = str(Path(__file__).parent)
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": here,
    }
    command = [sys.executable, "-c", RETRYING, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("nothing doubled\n"), done.stderr[-4000:]


# -- without Spark


@pytest.mark.parametrize("build", [by_country, everything])
@pytest.mark.parametrize("seed", range(10, 16))
def test_stages_by_themselves(tmp_path: Path, build: Callable[[], Circuit], seed: int) -> None:
    circuit = incrementalize(build())
    compare(circuit, Driver(circuit, tmp_path / "state", in_process()), random_changes(seed, ticks=8))


@pytest.mark.parametrize("build", [by_country, everything])
def test_both_runtimes_work_on_one_state(tmp_path: Path, build: Callable[[], Circuit]) -> None:
    """Ticks in turn by tasks and by one process, each going on from what the other left in the directory."""
    circuit, expected = incrementalize(build()), Embedded(incrementalize(build()))
    for number, changes in enumerate(random_changes(4, ticks=8)):
        if number % 2:
            with Embedded(circuit, tmp_path / "state", shards=SHARDS) as process:
                assert process.tick(changes) == expected.tick(changes)
        else:
            driver = Driver(circuit, tmp_path / "state", in_process())
            assert driver.tick(changes) == expected.tick(changes)
            driver.store.close()
    driver = Driver(circuit, tmp_path / "state", in_process())
    for name in driver.program.circuit.sinks:
        assert driver.contents(name) == expected.view(name).contents()


def test_a_long_matrix_is_cut_and_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "ROW_BYTES", 64)
    monkeypatch.setattr(wire, "BATCH_BYTES", 100)
    circuit = incrementalize(everything())
    compare(circuit, Driver(circuit, tmp_path / "state", in_process()), random_changes(2, ticks=3))


def test_slices_stay_few(tmp_path: Path) -> None:
    circuit = Circuit()
    circuit.source("numbers", "n BIGINT NOT NULL").sink("all")
    driver = Driver(circuit, tmp_path / "state", in_process())
    for tick in range(40):
        driver.tick({"numbers": [((n,), 1) for n in range(200 * tick, 200 * tick + 200)]})
    assert len(driver.contents("all")) == 8_000
    assert len(driver.slices("all")) <= 4 * SHARDS
    for tick in range(40):
        driver.tick({"numbers": [((n,), -1) for n in range(200 * tick, 200 * tick + 200)]})
    assert not len(driver.contents("all"))


def test_a_sink_refuses_negative_weights(tmp_path: Path) -> None:
    circuit = Circuit()
    circuit.source("numbers", "n BIGINT NOT NULL").sink("all", positive=True)
    driver = Driver(circuit, tmp_path / "state", in_process())
    driver.tick({"numbers": [((7,), 2)]})
    driver.tick({"numbers": [((7,), -2)]})
    with pytest.raises(FunctionError, match=r"\[\(7,\)\]"):
        driver.tick({"numbers": [((7,), -1), ((8,), 1)]})
    assert driver.store.epoch == 2


def test_a_job_is_small() -> None:
    program = Program(incrementalize(everything()), SHARDS)
    shipped = cloudpickle.dumps(program)
    assert len(shipped) < 20_000
    assert cloudpickle.loads(shipped).names == program.names
