"""Ticks as tasks over shards: whatever the changes, they give what one process gives, and what recomputing gives."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from pyspark import cloudpickle

from everview.circuit import Circuit, incrementalize
from everview.circuit.bounds import LoopBounds
from everview.circuit.incrementalize import lifted
from everview.circuit.program import Program
from everview.errors import EndlessLoop, FunctionError, NegativeWeight, WeightOverflow
from everview.operators.explode import Explode
from everview.oracle import evaluate
from everview.runtimes import loops
from everview.runtimes.embedded import Embedded
from everview.runtimes.spark import adaptive, cluster, passing, rounds, wire
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.passing import PASSED
from everview.zset import ZSet
from oracle.cases import Case
from recursion.programs import PROGRAMS
from recursion.programs import Program as Recursive
from recursion.test_programs import changes as recursive_changes
from spark.in_process import Session, Task, engine, once, tick
from strategies import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Weighted = list[tuple[tuple[Any, ...], int]]
Changes = Mapping[str, Weighted]


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
    for number in range(ticks):
        size = draw.choice([2, 40]) if number != 2 else 0
        orders = [((draw.choice(names), draw.randint(-3, 9)), draw.choice([1, 1, 2, -1])) for _ in range(size)]
        people = [((draw.choice(names), draw.choice(countries)), draw.choice([1, 1, -1])) for _ in range(size // 3)]
        yield {"orders": orders, "customers": people} if number % 4 < 3 else {"orders": orders}


def compare(circuit: Circuit, run: Engine, ticks: Iterable[Changes]) -> None:
    """Tick by tick the same changes as one process, and at the end the same contents."""
    expected = Embedded(circuit)
    for changes in ticks:
        assert tick(run, changes) == expected.tick(changes)
    for name in run.run.views:
        assert run.run.view(name).contents() == expected.view(name).contents()
    run.store.verify()


def slices(run: Engine, view: str) -> list[np.ndarray]:
    at = run.program.contents(view)
    assert at is not None
    return [s.array for shard in range(run.program.shards) for s in run.store.slices(run.program.names[at], shard)]


# -- on Spark


@pytest.mark.parametrize("seed", range(2))
def test_tasks_give_what_one_process_gives(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Against one process, and against plain Python that starts anew every tick."""
    circuit = incrementalize(by_country())
    sources: dict[str, Counter[tuple[Any, ...]]] = {"orders": Counter(), "customers": Counter()}
    with engine(circuit, tmp_path / "state", session=spark) as run:
        expected = Embedded(circuit)
        for changes in random_changes(seed, ticks=4):
            assert tick(run, changes) == expected.tick(changes)
            for name, rows in changes.items():
                for row, weight in rows:
                    sources[name][row] += weight
            assert run.run.view("totals").contents().to_zset() == recomputed(**sources)
        run.store.verify()


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
    with engine(circuit, tmp_path / "state", session=spark) as run:
        compare(circuit, run, random_changes(7, ticks=3))


def test_large_slices_are_mapped(spark: SparkSession, tmp_path: Path) -> None:
    circuit = incrementalize(by_country())
    people = [((f"c{i}", f"country {i % 50}"), 1) for i in range(5_000)]
    orders = [((f"c{i % 5_000}", i), 1) for i in range(50_000)]
    with engine(circuit, tmp_path / "state", session=spark) as run:
        compare(circuit, run, [{"customers": people, "orders": orders}, {"orders": [(("c7", 7), -1)]}])


CHOSEN = {"closure": 2, "strong components": 1}  # and how many ticks of each


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name in CHOSEN], ids=lambda p: p.name)
def test_rounds_on_spark(program: Recursive, spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(program.name)
    with engine(program.build(), tmp_path / "state", session=spark, shards=3) as run:
        for facts, delta in recursive_changes(program, rng, ticks=CHOSEN[program.name], n=4):
            tick(run, delta)
            agree(run, program, facts)


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


RETRYING = """
import sys
from pathlib import Path

from everview.runtimes.spark import cluster, stages
from everview.spark import session
from runtimes.spark.test_stages import *
from pyspark import TaskContext

plain = stages.task

def failing(job, number):
    def flaky(batches):
        out = list(plain(job, number)(batches))  # the segment is written
        context = TaskContext.get()
        if number == context.partitionId() == 1 and context.attemptNumber() == 0:
            raise RuntimeError("on purpose")
        yield from out
    return flaky

stages.task = failing
spark = session("local[2,4]")
circuit = incrementalize(by_country())
with engine(circuit, Path(sys.argv[1]) / "state", session=spark) as run:
    compare(circuit, run, random_changes(3, ticks=1))
assert {"1.1.0", "1.1.1"} <= set(attempts(Path(sys.argv[1]) / "state")), attempts(Path(sys.argv[1]) / "state")
spark.stop()
print("nothing doubled")
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_task_that_spark_retries_doubles_nothing(tmp_path: Path) -> None:
    """The shared session gives up at the first failure, so this one has another that tries four times."""
    tests = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", RETRYING, str(tmp_path)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": tests}, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("nothing doubled\n"), done.stderr[-4000:]


# -- the same tasks in this process


@settings(max_examples=30)
@given(case=cases(max_ticks=5))
def test_any_query_by_tasks(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The property suite on the cluster's code: after every tick the views are what the oracle says."""
    query = case.build()
    with engine(query, tmp_path_factory.mktemp("tasks") / "state") as run:
        for changes, held in zip(case.ticks, case.sums(), strict=True):
            tick(run, changes)
            found = {name: view.contents().to_zset() for name, view in run.run.views.items()}
            assert found == evaluate(query, held)


@settings(max_examples=20)
@given(case=cases(max_ticks=6))
def test_any_query_in_turn_by_tasks_and_by_the_driver(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    query = case.build()
    with engine(query, tmp_path_factory.mktemp("turns") / "state") as run:
        for number, (changes, held) in enumerate(zip(case.ticks, case.sums(), strict=True)):
            run.placement.place = "driver" if number % 2 else "cluster"
            tick(run, changes)
            found = {name: view.contents().to_zset() for name, view in run.run.views.items()}
            assert found == evaluate(query, held)


def agree(run: Engine, program: Recursive, facts: Any) -> None:
    for view, rows in program.meaning(facts).items():
        assert run.run.view(view).contents().to_zset() == ZSet.of([(row, 1) for row in rows])


@pytest.mark.parametrize("how", ["tasks", "by file", "in turn", "in turn by file", "tail on the driver"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_recursion_wherever_it_runs(
    program: Recursive, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds by tasks, rounds by whoever's turn it is, and by tasks until few rows are left; with cells by file."""
    if how.endswith("by file"):
        monkeypatch.setattr(passing, "INLINE_BYTES", 64)
        monkeypatch.setattr(loops, "ASIDE", 40)
        monkeypatch.setattr(adaptive, "MADE_HERE", 200)
    elif how == "in turn":
        monkeypatch.setattr(rounds, "WITH_FUNCTION", -1)  # as if there were many bytes to send
    rng = random.Random(program.name)
    with engine(program.build(), tmp_path / "state", shards=3) as run:
        if how not in ("tasks", "by file"):
            turns = iter(range(10**9))
            smaller = lambda rows: rows < 6 if how == "tail on the driver" else next(turns) % 3 == 1  # noqa: E731
            decide = run.placement.iteration
            run.placement.iteration = lambda rows: _where(smaller(rows), decide(rows))  # type: ignore[method-assign]
        for facts, delta in recursive_changes(program, rng, ticks=3, n=4):
            tick(run, delta)
            agree(run, program, facts)


def _first(a: Any, b: Any) -> Any:
    return a, b, pc.multiply(a, 0)


def _longer(a: Any, b: Any, d: Any) -> Any:
    return a, b, pc.add(d, 1)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [(LoopBounds(rounds=9), "after 9 iterations"), (LoopBounds(rows=60), "traces have grown by [67]. rows")],
)
def test_rounds_of_tasks_are_bounded(bounds: LoopBounds, message: str, tmp_path: Path) -> None:
    """Lengths of paths, which have no end on a cycle; what the rounds have written does not count."""
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    loop = circuit.child("lengths")
    step = loop.enter(edge)
    path, again = loop.feedback("a BIGINT NOT NULL, b BIGINT NOT NULL, d BIGINT NOT NULL")
    longer = path.join(step, ("b", "a"), select=["left.a", "right.b", "left.d"])
    start = step.map(_first, path.schema)
    lengths = (start + longer.map(_longer, path.schema)).distinct()
    again(lengths)
    loop.leave(lengths).sink("length")
    with engine(circuit, tmp_path / "state", shards=3, loops=bounds) as run:
        tick(run, {"edge": [((1, 2), 1)]})
        with pytest.raises(EndlessLoop, match=r"loop lengths has not ended [\s\S]*\n  in view length\n") as found:
            tick(run, {"edge": [((2, 1), 1)]})
        assert re.search(message, str(found.value))
        assert run.epoch == 1
        tick(run, {"edge": [((2, 3), 1)]})
        assert sorted(run.run.view("length").rows()) == [(1, 2, 0), (1, 3, 1), (2, 3, 0)]


def _where(driver: bool, decision: Any) -> Any:
    return type(decision)("driver" if driver else "cluster", "test")


@pytest.mark.parametrize("build", [by_country, everything])
@pytest.mark.parametrize("seed", range(10, 13))
def test_stages_by_themselves(tmp_path: Path, build: Callable[[], Circuit], seed: int) -> None:
    circuit = incrementalize(build())
    with engine(circuit, tmp_path / "state") as run:
        compare(circuit, run, random_changes(seed, ticks=8))


def test_arrays_are_looked_up_in_tasks(tmp_path: Path) -> None:
    circuit = Circuit()
    posts = circuit.source("posts", "id BIGINT NOT NULL, tags ARRAY<STRING>")
    circuit.add(Explode(posts.layout, 1, (0,), "tag"), [posts]).sink("tagged")
    changed = incrementalize(circuit)
    with engine(changed, tmp_path / "state") as run:
        compare(changed, run, [{"posts": [((n, ("a", f"t{n}")), 1) for n in range(9)]}, {"posts": [((3, ("b",)), 1)]}])


def test_what_puts_out_without_being_given_runs_too(tmp_path: Path) -> None:
    """Integrals and delays: every shard runs every tick, and the stage that feeds a feedback closes it."""
    expected = Embedded(incrementalize(by_country()))
    circuit = lifted(by_country())
    circuit.incremental = True  # it takes changes, as it stands
    with engine(circuit, tmp_path / "state") as run:
        for changes in (
            {"customers": [(("a", "Peru"), 1)], "orders": [(("a", 3), 1)]},
            {},
            {"orders": [(("a", 4), 1)]},
        ):
            assert tick(run, changes)["totals"] == expected.tick(changes)["totals"]


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_a_mistake_comes_back_as_itself(tmp_path: Path, place: Any) -> None:
    circuit = incrementalize(by_country())
    with engine(circuit, tmp_path / "state", place=place) as run:
        with pytest.raises(WeightOverflow) as raised:
            tick(run, {"orders": [(("a", 1), 2**62), (("a", 1), 2**62)]})
        assert raised.value.hint == "the tick was not applied"
        assert (run.epoch, len(run.run.dictionary)) == (0, 0)
        compare(circuit, run, random_changes(1, ticks=1))


def test_a_function_that_fails_inside_a_loop_fails_the_tick(tmp_path: Path) -> None:
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    loop = circuit.child("closure")
    inner = loop.enter(edge)
    path, again = loop.feedback(edge.schema)
    longer = path.join(inner, ("b", "a"), select=["left.a", "right.b"])
    paths = (inner + longer.filter(refused, by_row=True)).distinct()
    again(paths)
    loop.leave(paths).sink("path")
    with engine(circuit, tmp_path / "state") as run:
        tick(run, {"edge": [((1, 2), 1)]})
        with pytest.raises(FunctionError, match="refused"):
            tick(run, {"edge": [((2, 3), 1)]})
        assert run.epoch == 1
        tick(run, {"edge": [((7, 8), 1)]})
        assert sorted(run.run.view("path").rows()) == [(1, 2), (7, 8)]


def refused(a: int, b: int) -> bool:
    raise ValueError("refused")


def test_an_attempt_that_is_made_again_doubles_nothing(tmp_path: Path) -> None:
    """The first attempt of every task writes its segment and is lost; the second one counts."""

    def twice(task: Task, batches: list[pa.RecordBatch], partition: int) -> list[pa.RecordBatch]:
        once(task, batches, partition)
        return once(task, batches, partition, attempt=1)

    circuit = incrementalize(everything())
    with engine(circuit, tmp_path / "state", session=Session(twice)) as run:
        compare(circuit, run, random_changes(5, ticks=6))
        assert any(attempt.endswith(".0") for attempt in attempts(tmp_path / "state"))
        run.store.vacuum()
        assert not any(attempt.endswith(".0") for attempt in attempts(tmp_path / "state"))
        run.store.verify()


def attempts(state: Path) -> list[str]:
    """Who wrote the segments that are there."""
    return [path.name.split("-")[1] for path in (state / "segments").iterdir()]


def test_a_task_that_fails_for_good_leaves_everything(tmp_path: Path) -> None:
    """Whichever task it is; what the others wrote is rubbish, and the next tick goes on."""
    circuit = incrementalize(everything())
    ran = 0

    def broken(task: Task, batches: list[pa.RecordBatch], partition: int) -> list[pa.RecordBatch]:
        nonlocal ran
        ran += 1
        if ran == fails:
            raise OSError("the machine is gone")
        return once(task, batches, partition)

    session = Session(once)
    with engine(circuit, tmp_path / "state", session=session) as run:
        expected = Embedded(circuit)
        some = [changes for changes in random_changes(11, ticks=6) if changes["orders"]]
        for number, changes in enumerate(some):
            ran, fails, session.runner = 0, number + 1, broken
            with pytest.raises(OSError, match="gone"):
                tick(run, changes)
            session.runner = once
            assert run.epoch == number
            assert tick(run, changes) == expected.tick(changes)


@pytest.mark.parametrize("build", [by_country, everything])
def test_both_runtimes_work_on_one_state(tmp_path: Path, build: Callable[[], Circuit]) -> None:
    """Ticks in turn by tasks and by one process, each going on from what the other left in the directory."""
    circuit, expected = incrementalize(build()), Embedded(incrementalize(build()))
    for number, changes in enumerate(random_changes(4, ticks=8)):
        if number % 2:
            with Embedded(circuit, tmp_path / "state", shards=4) as process:
                assert process.tick(changes) == expected.tick(changes)
        else:
            with engine(circuit, tmp_path / "state") as run:
                assert tick(run, changes) == expected.tick(changes)


@pytest.mark.parametrize("build", [by_country, everything])
def test_a_long_matrix_is_cut_and_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Callable[[], Circuit]
) -> None:
    monkeypatch.setattr(wire, "ROW_BYTES", 64)
    monkeypatch.setattr(wire, "BATCH_BYTES", 100)
    circuit = incrementalize(build())
    with engine(circuit, tmp_path / "state") as run:
        compare(circuit, run, random_changes(2, ticks=3))


@pytest.mark.parametrize("program", PROGRAMS[:3], ids=lambda p: p.name)
def test_what_is_large_passes_through_files(
    program: Recursive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the files are gone when the epoch is over."""
    monkeypatch.setattr(passing, "INLINE_BYTES", 8)
    passed: list[str] = []

    def discard_passed(path: str, epoch: int) -> None:
        passed.extend(attempt for attempt in attempts(Path(path)) if attempt.endswith(PASSED))
        passing.discard_passed(path, epoch)

    monkeypatch.setattr(cluster, "discard_passed", discard_passed)
    rng = random.Random(program.name)
    with engine(program.build(), tmp_path / "state", shards=3) as run:
        for facts, delta in recursive_changes(program, rng, ticks=2, n=4):
            tick(run, delta)
            agree(run, program, facts)
            assert not any(attempt.endswith(PASSED) for attempt in attempts(tmp_path / "state"))
        assert passed


def test_large_cells_move_from_stage_to_stage_through_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "INLINE_BYTES", 8)
    circuit = incrementalize(everything())
    with engine(circuit, tmp_path / "state") as run:
        compare(circuit, run, random_changes(3, ticks=3))
        assert not any(attempt.endswith(PASSED) for attempt in attempts(tmp_path / "state"))


def test_slices_stay_few(tmp_path: Path) -> None:
    circuit = Circuit()
    circuit.source("numbers", "n BIGINT NOT NULL").sink("all")
    with engine(circuit, tmp_path / "state") as run:
        for number in range(40):
            tick(run, {"numbers": [((n,), 1) for n in range(200 * number, 200 * number + 200)]})
        assert len(run.run.view("all")) == 8_000
        assert len(slices(run, "all")) <= 4 * run.program.shards
        for number in range(40):
            tick(run, {"numbers": [((n,), -1) for n in range(200 * number, 200 * number + 200)]})
        assert not len(run.run.view("all"))


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_a_sink_refuses_negative_weights(tmp_path: Path, place: Any) -> None:
    circuit = Circuit()
    circuit.source("numbers", "n BIGINT NOT NULL").sink("all", positive=True)
    with engine(circuit, tmp_path / "state", place=place) as run:
        tick(run, {"numbers": [((7,), 2)]})
        tick(run, {"numbers": [((7,), -2)]})
        with pytest.raises(NegativeWeight, match=r"\(7,\)"):
            tick(run, {"numbers": [((7,), -1), ((8,), 1)]})
        assert run.epoch == 2


def test_a_job_is_small() -> None:
    program = Program(incrementalize(everything()), 8)
    shipped = cloudpickle.dumps(program)
    assert len(shipped) < 20_000
    assert cloudpickle.loads(shipped).names == program.names
