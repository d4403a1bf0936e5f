"""Whatever fails between two steps, going on loses nothing and doubles nothing, or is refused with the reason."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.errors import ForeignState, SinkError
from everview.runtimes.spark.engine import Engine
from everview.spark import Pipeline, arrivals, delivery, sinks
from everview.spark.stream_loop import FollowedFiles, StreamLoop
from everview.spark.streaming import Streaming
from everview.traces.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "op STRING, k BIGINT, v BIGINT"


class Crash(Exception):
    """The process is gone at this point."""


# -- a pipeline that is killed and goes on


def feed(directory: Path, number: int) -> None:
    """Files of changes by key: some keys are put, some put again, some deleted."""
    directory.mkdir(exist_ok=True)
    lines = [{"op": "c", "k": (number * 7 + i) % 11, "v": number * 10 + i} for i in range(5)]
    lines.append({"op": "d", "k": (number * 5) % 11, "v": None})
    path = directory / f"{number:03}.json"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    os.utime(path, (10**9 + number, 10**9 + number))  # Spark reads files in the order of their times


def recomputed(directory: Path) -> list[tuple[int, int]]:
    """What the view must hold: each parity's sum, from the files alone."""
    held: dict[int, int] = {}
    for path in sorted(directory.iterdir()):
        for line in map(json.loads, path.read_text().splitlines()):
            held.pop(line["k"], None)
            if line["op"] == "c":
                held[line["k"]] = line["v"]
    sums: Counter[int] = Counter()
    for k, v in held.items():
        sums[k % 3] += v
    return sorted((group, sums[group]) for group in {k % 3 for k in held})


def build(
    spark: SparkSession,
    root: Path,
    place: Any = "driver",
    called: list[Any] | None = None,
    positions: str = "spark",
) -> Pipeline:
    p = Pipeline(spark, root / "state", place=place, shards=2, positions=positions)
    style: dict[str, Any] = {"key": "k", "changes": "cdc", "op": "op"}
    if positions == "spark":
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(root / "in"))
        changes = p.source("t", stream, **style)
    else:
        one = {"maxFilesPerTrigger": 1}
        changes = p.source(
            "t", path=root / "in", format="json", schema=SCHEMA, options=one, columns=["k", "v"], **style
        )
    changes.map(third, "g BIGINT, v BIGINT").aggregate(["g"], total=("sum", "v")).sink("sums")
    p.sink("sums", path=root / "changes")
    p.sink("sums", path=root / "snapshot", mode="snapshot")
    if called is not None:
        p.sink("sums", callback=lambda changes, epoch: called.append((epoch, list(changes))))
    return p


def third(k: Any, v: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.array([None if k is None else k % 3 for k in k.to_pylist()], pa.int64()), pc.add(v, 0)


def check(spark: SparkSession, root: Path, positions: str = "spark") -> None:
    """The view, the sum of the delivered changes, and the delivered snapshot are what recomputing gives."""
    expected = recomputed(root / "in")
    with build(spark, root, positions=positions) as p:
        assert sorted(tuple(row) for row in p.view("sums").collect()) == expected
        assert p.verify()
    sums: Counter[tuple[Any, ...]] = Counter()
    for g, total, weight, _ in spark.read.parquet(str(root / "changes")).collect():
        sums[g, total] += weight
    assert sorted(row for row, weight in sums.items() if weight) == expected
    assert set(sums.values()) <= {0, 1}
    snapshot = spark.read.parquet(str(root / "snapshot")).collect()
    assert sorted((row.g, row.total) for row in snapshot) == expected


def run(p: Pipeline) -> None:
    p.start(trigger={"availableNow": True}).awaitTermination()


def die(p: Pipeline) -> None:
    """What the end of a process does: locks are released, nothing else is done."""
    if p._streaming.query is not None:
        p._streaming.query.stop()
    if p._state.current is not None:
        p._state.current.store._release()


Wrap = Callable[[pytest.MonkeyPatch], None]


def before(where: Any, name: str) -> Wrap:
    """Crash instead of this step, the second time it comes."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain, calls = getattr(where, name), Counter[str]()

        def crashing(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            if calls[name] == 2:
                raise Crash(f"before {name}")
            return plain(*arguments, **options)

        monkeypatch.setattr(where, name, crashing)

    return patch


def after(where: Any, name: str) -> Wrap:
    """Crash when this step is done, the second time it comes."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain, calls = getattr(where, name), Counter[str]()

        def crashing(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            found = plain(*arguments, **options)
            if calls[name] == 2:
                raise Crash(f"after {name}")
            return found

        monkeypatch.setattr(where, name, crashing)

    return patch


STEPS: dict[str, Wrap] = {
    "before it reads": before(arrivals.Arrival, "fetch"),
    "after it has read": after(arrivals.Arrival, "fetch"),
    "before the commit": before(Store, "commit"),
    "after the commit": after(Store, "commit"),
    "before a sink": before(delivery, "deliver"),
    "in a sink, with the file written": before(sinks.os, "replace"),
    "after a sink": after(delivery, "deliver"),
    "before it notes the delivery": before(delivery.Delivery, "mark"),
    "after it has noted it": after(delivery.Delivery, "mark"),
    "when the batch is over": after(Streaming, "batch"),
}
LOOP_STEPS: dict[str, Wrap] = {
    "when files are planned": after(FollowedFiles, "frame"),
    "when an epoch of the loop is over": after(StreamLoop, "_epoch"),
}


@pytest.mark.parametrize(
    ("step", "positions"),
    [*((step, "spark") for step in STEPS), *((step, "state") for step in (*STEPS, *LOOP_STEPS) if "batch" not in step)],
)
def test_a_crash_at_every_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, positions: str
) -> None:
    for number in range(3):
        feed(tmp_path / "in", number)
    called: list[Any] = []
    p = build(spark, tmp_path, called=called, positions=positions)
    with monkeypatch.context() as patched:
        (STEPS | LOOP_STEPS)[step](patched)
        with pytest.raises(Exception, match=r"Crash|crash|before|after"):
            run(p)
    die(p)
    p = build(spark, tmp_path, called=called, positions=positions)
    run(p)
    assert p.epoch == 3
    p.close()
    check(spark, tmp_path, positions)
    assert sorted({epoch for epoch, _ in called}) == [1, 2, 3]
    assert all(given == dict(called)[epoch] for epoch, given in called)  # again, perhaps, but never otherwise


def test_a_sink_that_fails_is_given_the_epoch_again(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", 0)
    given: list[int] = []

    def fussy(changes: Any, epoch: int) -> None:
        given.append(epoch)
        if len(given) == 1:
            raise ValueError("not now")

    p = build(spark, tmp_path)
    p.sink("sums", callback=fussy)
    with pytest.raises(Exception, match="not now"):
        run(p)
    feed(tmp_path / "in", 1)
    run(p)  # the same process goes on: the batch is recognised, and its epoch delivered
    assert given == [1, 1, 2]
    p.close()
    check(spark, tmp_path)


def test_a_refresh_whose_sink_fails_is_delivered_by_the_next(spark: SparkSession, tmp_path: Path) -> None:
    given: list[tuple[int, list[Any]]] = []

    def fussy(changes: Any, epoch: int) -> None:
        given.append((epoch, list(changes)))
        if len(given) == 1:
            raise ValueError("not now")

    with Pipeline(spark, tmp_path / "state", shards=2) as p:
        p.source("t", spark.createDataFrame([(1,)], "k BIGINT")).sink("all")
        p.sink("all", callback=fussy)
        with pytest.raises(SinkError, match="not now"):
            p.refresh()
        p.refresh()  # there is nothing new, but something to deliver
        assert given == [(1, [((1,), 1)])] * 2
        p.refresh(t=spark.createDataFrame([(2,)], "k BIGINT"))
    assert given[2:] == [(2, [((2,), 1)])]


def test_a_sink_that_was_away_gets_nothing_under_a_wrong_number(spark: SparkSession, tmp_path: Path) -> None:
    given: list[tuple[int, list[Any]]] = []

    def build(*, sink: bool) -> Pipeline:
        p = Pipeline(spark, tmp_path / "state", shards=2)
        p.source("t", spark.createDataFrame([(1,)], "k BIGINT")).sink("all")
        if sink:
            p.sink("all", callback=lambda changes, epoch: given.append((epoch, list(changes))))
        return p

    for number, sink in enumerate((True, False, True)):
        with build(sink=sink) as p:
            p.refresh(**({"t": spark.createDataFrame([(number,)], "k BIGINT")} if number else {}))
    assert given == [(1, [((1,), 1)]), (3, [((2,), 1)])]


def test_what_fails_after_the_commit_is_read_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch is there; this process has not taken it in."""
    for number in range(2):
        feed(tmp_path / "in", number)
    p = build(spark, tmp_path, "cluster")
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "_reload", lambda *_: (_ for _ in ()).throw(OSError("no memory")))
        with pytest.raises(Exception, match="no memory"):
            run(p)
    run(p)
    assert p.epoch == 2
    p.close()
    check(spark, tmp_path)


# -- directories that do not belong together


@pytest.fixture
def fed(spark: SparkSession, tmp_path: Path) -> Path:
    """A pipeline that has taken in two batches, closed; a copy of what Spark had after the first."""
    feed(tmp_path / "in", 0)
    p = build(spark, tmp_path)
    run(p)
    shutil.copytree(tmp_path / "state" / "spark", tmp_path / "older")
    p.close()
    shutil.copytree(tmp_path / "state", tmp_path / "older state")
    feed(tmp_path / "in", 1)
    p = build(spark, tmp_path)
    run(p)
    p.close()
    return tmp_path


def replace(root: Path, by: Path | None) -> None:
    shutil.rmtree(root / "state" / "spark")
    if by is not None:
        shutil.copytree(by, root / "state" / "spark")


def refused(spark: SparkSession, root: Path, match: str) -> None:
    feed(root / "in", 2)
    with build(spark, root) as p, pytest.raises(Exception, match=match):
        run(p)
    with build(spark, root) as p:
        assert p.epoch == 2


def test_the_checkpoint_of_spark_is_lost(spark: SparkSession, fed: Path) -> None:
    replace(fed, None)
    with build(spark, fed) as p, pytest.raises(ForeignState, match="lost or is another's"):
        run(p)
    assert not (fed / "state" / "spark").exists()  # nothing was begun


def test_the_checkpoint_of_spark_is_another_query_s(spark: SparkSession, fed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    feed(other / "in", 0)
    with build(spark, other) as p:
        run(p)
    replace(fed, other / "state" / "spark")
    with build(spark, fed) as p, pytest.raises(ForeignState, match="lost or is another's"):
        run(p)


def test_the_checkpoint_of_spark_is_older(spark: SparkSession, fed: Path) -> None:
    """Its next batch has the number of one that the state has, and other files."""
    replace(fed, fed / "older")
    feed(fed / "in", 3)
    refused(spark, fed, "older than the state")


def test_the_state_is_older(spark: SparkSession, fed: Path) -> None:
    shutil.copytree(fed / "state" / "spark", fed / "newer")
    shutil.rmtree(fed / "state")
    shutil.copytree(fed / "older state", fed / "state")
    replace(fed, fed / "newer")
    feed(fed / "in", 2)
    with build(spark, fed) as p, pytest.raises(SinkError, match="holds epoch 2, and the state is at epoch 1"):
        run(p)
    for sink in ("changes", "snapshot"):
        shutil.rmtree(fed / sink)
    with build(spark, fed) as p, pytest.raises(ForeignState, match="ahead of the state"):
        run(p)


def test_other_streams_than_before(spark: SparkSession, tmp_path: Path) -> None:
    """Spark knows the streams of a query by their places, so the order of definition must not matter."""
    for name in ("a", "b", "c"):
        feed(tmp_path / name, 0)

    def two(*names: str) -> Pipeline:
        p = Pipeline(spark, tmp_path / "state", shards=2)
        streams = {n: spark.readStream.schema(SCHEMA).json(str(tmp_path / n)) for n in names}
        sources = {n: p.source(n, streams[n]).select("k") for n in names}
        (sources[min(names)] + sources[max(names)]).sink("all")
        return p

    with two("a", "b") as p:
        run(p)
    with two("b", "a") as p:
        run(p)
        assert (p.epoch, p.view("all").count()) == (1, 12)
    shutil.copytree(tmp_path / "state" / "spark", tmp_path / "kept")
    with two("a", "b") as p:
        feed(tmp_path / "a", 1)
        p._state.require_own_checkpoint(p._state.engine(), ("a", "b"))
        with pytest.raises(ForeignState, match="fed by the streams a, b"):
            p._state.require_own_checkpoint(p._state.engine(), ("a",))


def test_the_state_is_lost(spark: SparkSession, fed: Path) -> None:
    shutil.copytree(fed / "state" / "spark", fed / "kept")
    shutil.rmtree(fed / "state")
    shutil.copytree(fed / "kept", fed / "state" / "spark")
    feed(fed / "in", 2)
    with build(spark, fed) as p, pytest.raises(Exception, match="the state has none"):
        run(p)


# -- processes that are really killed

KILLED = """
import os, signal, sys
from pathlib import Path

from everview.spark import delivery, session
from spark.test_exactly_once import build, run
from everview.spark import Pipeline, arrivals
from everview.traces.store import Store

root, step, place, positions = Path(sys.argv[1]), *sys.argv[2:5]
where, name = {"read": (arrivals.Arrival, "fetch"), "commit": (Store, "commit"), "deliver": (delivery, "deliver"),
               "": (None, "")}[step]
if where is not None:
    plain, calls = getattr(where, name), []
    def killing(*arguments, **options):
        calls.append(1)
        found = plain(*arguments, **options)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    setattr(where, name, killing)
spark = session("local[2,4]")
with build(spark, root, place, positions=positions) as p:
    run(p)
    print("epoch", p.epoch)
spark.stop()
"""


def in_a_process(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": tests}, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_driver_that_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        feed(tmp_path / "in", number)
    for step in ("read", "commit", "deliver"):
        killed = in_a_process(KILLED, str(tmp_path), step, "driver", "spark")
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-4000:]
        feed(tmp_path / "in", len(list((tmp_path / "in").iterdir())))
    done = in_a_process(KILLED, str(tmp_path), "", "driver", "spark")
    assert "epoch 6" in done.stdout, done.stderr[-4000:]
    check(spark, tmp_path)


@pytest.mark.slow
def test_a_loop_that_is_killed_between_plan_and_commit(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        feed(tmp_path / "in", number)
    killed = in_a_process(KILLED, str(tmp_path), "read", "driver", "state")
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-4000:]
    feed(tmp_path / "in", 3)
    with build(spark, tmp_path, positions="state") as p:
        assert p.epoch == 1
        run(p)
        assert p.epoch == 4
    check(spark, tmp_path, "state")


DYING = """
import os, signal, sys
from pathlib import Path

from everview.runtimes.spark import stages
from everview.spark import session
from spark.test_exactly_once import build, run

root, plain = Path(sys.argv[1]), stages.task

def dying(job, number):
    from pyspark import TaskContext

    def task(batches):
        out = list(plain(job, number)(batches))  # the segment is written
        context = TaskContext.get()
        mark = root / f"died-{job.epoch}-{number}"
        if context.partitionId() == 1 and job.epoch < 2 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from out
    return task

stages.task = dying
spark = session("local[2,4]")
with build(spark, root, "cluster") as p:
    run(p)
    print("epoch", p.epoch, "deaths", len(list(root.glob("died-*"))))
spark.stop()
"""


@pytest.mark.slow
def test_workers_that_are_killed_in_a_task(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        feed(tmp_path / "in", number)
    done = in_a_process(DYING, str(tmp_path))
    assert "epoch 3" in done.stdout, done.stderr[-4000:]
    assert "deaths 0" not in done.stdout
    check(spark, tmp_path)
