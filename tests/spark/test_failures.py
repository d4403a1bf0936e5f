"""What fails on Spark is told in a sentence with a hint, leaves the state as it was, and can be gone on from."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.circuit import Circuit
from everview.errors import (
    ArithmeticFailure,
    BadRows,
    CorruptState,
    EverviewError,
    PipelineError,
    SourceError,
    StoreError,
)
from everview.runtimes.spark.engine import Engine
from everview.runtimes.spark.wire import error_of, error_row
from everview.spark import Pipeline
from everview.spark.failures import in_our_words, of_spark
from everview.traces.store.files import FileSystem
from spark.in_process import engine, tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACES: Any = ("driver", "cluster")


def feed(root: Path, number: int, *rows: tuple[int, int]) -> Path:
    (root / "in").mkdir(exist_ok=True)
    path = root / "in" / f"{number:03}.json"
    path.write_text("".join(json.dumps({"id": k, "v": v}) + "\n" for k, v in rows))
    return path


def build(spark: SparkSession, root: Path, place: Any = "driver", *, stream: bool = True) -> Pipeline:
    p = Pipeline(spark, root / "state", place=place, shards=2)
    reader: Any = spark.readStream if stream else spark.read
    p.source("t", reader.schema("id BIGINT, v BIGINT").json(str(root / "in")))
    p.sql("CREATE MATERIALIZED VIEW parts AS SELECT id, 12 DIV v AS part FROM t")
    return p


def refused(p: Pipeline, kind: type[EverviewError], match: str) -> EverviewError:
    """A refresh that fails as it should; the state stays as it was."""
    with pytest.raises(kind, match=match) as raised:
        p.refresh()
    error = raised.value
    assert error.hint, "it says what to do"
    assert str(error).count("\n") <= 4, "and in a few lines"
    assert "\tat " not in str(error)
    return error


def held(p: Pipeline) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in p.view("parts").collect())


# -- a row on which a view fails


def test_an_error_of_a_task_remembers_its_node() -> None:
    error = ArithmeticFailure("division by zero", hint="h")
    assert not hasattr(error_of(error_row(0, 0, error)), "node")
    error.node = 7
    assert error_of(error_row(0, 0, error)).node == 7


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_tick_that_fails_in_a_view(spark: SparkSession, tmp_path: Path, place: Any, stream: bool) -> None:
    wrong = feed(tmp_path, 0, (1, 4), (2, 0))
    with build(spark, tmp_path, place, stream=stream) as p:
        error = refused(p, ArithmeticFailure, "division by zero in 12L? DIV v")
        assert stream == (type(error.__cause__).__name__ == "StreamingQueryException"), "Spark's words are its cause"
        assert p.epoch == 0
        if stream:
            with pytest.raises(ArithmeticFailure, match="division by zero"):
                p.start(trigger={"availableNow": True}).awaitTermination()
            with pytest.raises(ArithmeticFailure, match="division by zero"):
                p.start(trigger={"availableNow": True}).processAllAvailable()
        wrong.write_text('{"id": 1, "v": 4}\n')
        p.refresh()
        assert held(p) == [(1, 3)]


# -- what is taken away from a pipeline


def test_a_batch_file_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    path = feed(tmp_path, 0, (1, 4))
    text = path.read_text()
    with build(spark, tmp_path, stream=False) as p:
        path.unlink()
        error = refused(p, SourceError, r"file file:\S*/in/000.json is gone")
        assert error.__cause__ is not None
        path.write_text(text)
        p.refresh()
        assert held(p) == [(1, 3)]


@pytest.mark.parametrize("place", PLACES)
def test_a_state_that_is_deleted_and_put_back(spark: SparkSession, tmp_path: Path, place: Any) -> None:
    feed(tmp_path, 0, (1, 4))
    with build(spark, tmp_path, place) as p:
        p.refresh()
        shutil.copytree(tmp_path / "state", tmp_path / "copy")
        shutil.rmtree(tmp_path / "state")
        feed(tmp_path, 1, (2, 3))
        refused(p, StoreError, "the state at .* is gone: it was deleted while the pipeline had it open")
        refused(p, StoreError, "is gone")  # and does not begin anew by itself
        shutil.copytree(tmp_path / "copy", tmp_path / "state")
        p.refresh()
        assert (p.epoch, held(p)) == (2, [(1, 3), (2, 4)])


@pytest.mark.parametrize("place", PLACES)
def test_a_state_that_is_deleted_in_an_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any
) -> None:
    feed(tmp_path, 0, (1, 4))
    with build(spark, tmp_path, place) as p:
        p.refresh()
        shutil.copytree(tmp_path / "state", tmp_path / "copy")
        feed(tmp_path, 1, (2, 3))
        plain = Engine._epoch

        def deleting(self: Engine, *arguments: Any) -> Any:
            shutil.rmtree(tmp_path / "state")
            return plain(self, *arguments)

        with monkeypatch.context() as patched:
            patched.setattr(Engine, "_epoch", deleting)
            refused(p, StoreError, "state")
        refused(p, StoreError, "is gone")
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
        shutil.copytree(tmp_path / "copy", tmp_path / "state")
        p.refresh()
        assert (p.epoch, held(p)) == (2, [(1, 3), (2, 4)])


@contextmanager
def limited(spark: SparkSession, size: str) -> Generator[None]:
    """Results of tasks may be only so large; a session is given that when it is made, so it is set from inside."""
    conf = spark._jsc.sc().conf()
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", size)
    try:
        yield
    finally:
        conf.set("spark.driver.maxResultSize", before)


@pytest.mark.parametrize("place", PLACES)
def test_results_that_are_too_large(spark: SparkSession, tmp_path: Path, place: Any) -> None:
    feed(tmp_path, 0, *((k, 4) for k in range(500)))
    with build(spark, tmp_path, place) as p:
        with limited(spark, "1k"):
            refused(p, PipelineError, r"more than spark.driver.maxResultSize \(1024.0 B\)")
            assert p.epoch == 0
        p.refresh()
        assert len(held(p)) == 500


# -- disks


def full(
    code: int, operations: tuple[str, ...] = ("create", "append", "sync")
) -> Callable[[FileSystem, str, Path], None]:
    def announce(self: FileSystem, operation: str, path: Path) -> None:
        if operation in operations and path.suffix == ".seg":
            raise OSError(code, os.strerror(code), str(path))

    return announce


@pytest.mark.parametrize("operation", ["create", "append", "sync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_disk_that_is_full_in_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, operation: str
) -> None:
    c = Circuit()
    c.source("t", "k BIGINT, v BIGINT").aggregate(["k"], total=("sum", "v")).sink("sums")
    with engine(c, tmp_path / "state") as run:
        tick(run, {"t": [((1, 10), 1)]})
        with monkeypatch.context() as patched:
            plain = FileSystem.__init__

            def failing(self: FileSystem, *arguments: Any) -> None:
                plain(self, *arguments)
                self.announce = lambda what, path: full(code, (operation,))(self, what, path)

            patched.setattr(FileSystem, "__init__", failing)
            with pytest.raises(StoreError, match=r"a task cannot w.* the state") as raised:
                tick(run, {"t": [((2, 20), 1)]})
            assert "nothing was applied" in str(raised.value)
        assert run.epoch == 1
        assert list(tick(run, {"t": [((1, 5), 1)]})["sums"]) == [((1, 10), -1), ((1, 15), 1)]
        run.store.verify()


FULL = """
import errno, os
from everview.traces.store.files import FileSystem
plain = FileSystem.__init__

def failing(self, *arguments):
    plain(self, *arguments)
    def announce(what, path):
        if what == "append" and os.path.exists({flag!r}):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    self.announce = announce

FileSystem.__init__ = failing
"""


def test_a_disk_that_is_full_in_a_task_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker's own disk refuses, in its own process, while a file stands there."""
    from everview.runtimes.spark import stages

    flag, plain = tmp_path / "full", stages.task

    def failing(job: Any, number: int) -> Any:
        run, code = plain(job, number), FULL.format(flag=str(flag))

        def task(batches: Any) -> Any:
            exec(code, {})
            yield from run(batches)

        return task

    monkeypatch.setattr(stages, "task", failing)
    feed(tmp_path, 0, (1, 4))
    with build(spark, tmp_path, "cluster") as p:
        flag.touch()
        refused(p, StoreError, "a task cannot write to the state: .*No space left on device")
        assert p.epoch == 0
        flag.unlink()
        p.refresh()
        assert held(p) == [(1, 3)]


@pytest.mark.parametrize("place", PLACES)
def test_a_disk_that_is_full_at_the_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any
) -> None:
    feed(tmp_path, 0, (1, 4))
    with build(spark, tmp_path, place) as p:
        p.refresh()
        feed(tmp_path, 1, (2, 3))

        def announce(operation: str, path: Path) -> None:
            if operation == "append" and path.suffix == ".log":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(p._state.engine().store._files, "announce", announce)
            refused(p, StoreError, "commit of epoch 2 failed")
        assert p.epoch == 1
        p.refresh()
        assert held(p) == [(1, 3), (2, 4)]


def test_a_worker_that_always_dies(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everview.runtimes.spark import stages

    flag, plain = tmp_path / "dying", stages.task

    def dying(job: Any, number: int) -> Any:
        run, there = plain(job, number), str(flag)

        def task(batches: Any) -> Any:
            if os.path.exists(there):
                os._exit(9)
            yield from run(batches)

        return task

    monkeypatch.setattr(stages, "task", dying)
    feed(tmp_path, 0, (1, 4))
    with build(spark, tmp_path, "cluster") as p:
        flag.touch()
        refused(p, PipelineError, "Spark lost a worker more often than it tries again")
        assert p.epoch == 0
        flag.unlink()
        p.refresh()
        assert held(p) == [(1, 3)]


# -- nothing is logged by what goes right


def test_a_source_is_defined_without_a_word_from_spark(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import pyspark.sql.functions as F

    feed(tmp_path, 0, (1, 4))
    rows = spark.createDataFrame([(1, 4)], "id BIGINT, v BIGINT")
    files = spark.read.schema("id BIGINT, v BIGINT").json(str(tmp_path / "in"))
    stream = spark.readStream.schema("id BIGINT, v BIGINT").json(str(tmp_path / "in"))
    joined = files.join(files.selectExpr("id AS other"), F.col("id") == F.col("other")).select("id", "v")
    said: list[logging.LogRecord] = []
    logger, handler = logging.getLogger("DataFrameQueryContextLogger"), logging.Handler()
    handler.emit = said.append
    logger.addHandler(handler)
    capfd.readouterr()
    try:
        p = Pipeline(spark, tmp_path / "state")
        frames = {"a": rows, "b": files, "c": stream, "d": joined, "e": files.filter("v > 0").select("id", "v")}
        frames |= {"f": files.union(files), "g": files.groupBy("id").agg({"v": "max"}).toDF("id", "v")}
        for name, frame in frames.items():
            p.source(name, frame, key="id", changes="upsert")
    finally:
        logger.removeHandler(handler)
    assert not said
    assert "Exception" not in capfd.readouterr().err


# -- texts of Spark's

AT = "\n\tat org.apache.spark.X.y(X.scala:1)\n\t... 3 more"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            f"[STREAM_FAILED] x{AT}\neverview.errors.BadRows: 1 bad row\n  hint: h\n SQLSTATE: 39000{AT}",
            BadRows,
            "1 bad",
        ),
        (f"x{AT}\nCaused by: java.lang.OutOfMemoryError: Java heap space{AT}", PipelineError, "out of memory (Java h"),
        (
            "An error occurred while calling o1.collect. Answer from Java side is empty",
            PipelineError,
            "Spark has ended",
        ),
        (f"Failed to read log file file:/s/offsets/0. Incomplete{AT}", CorruptState, "file:/s/offsets/0, a file"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x/y. SQLSTATE: 42K03", SourceError, "nothing at file:/x/y"),
        (f"[DIVIDE_BY_ZERO] Division by zero.{AT}", PipelineError, "[DIVIDE_BY_ZERO] Division by zero."),
        (
            f": org.a.SparkException: Job aborted due to it{AT}\nCaused by: a.b.SomeError: deep{AT}",
            PipelineError,
            "deep",
        ),
        ("[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: this\n=== Q ===", PipelineError, "this"),
        ("something else\nat all", PipelineError, "something else"),
        ("", PipelineError, ""),
    ],
)
def test_what_spark_says(text: str, kind: type[EverviewError], message: str) -> None:
    error = of_spark(ValueError(text))
    assert type(error) is kind
    assert message in error.message
    assert "\tat" not in str(error)
    assert "STREAM_FAILED" not in str(error)
    assert error.hint


def test_only_what_spark_raises_is_said_otherwise() -> None:
    from py4j.protocol import Py4JNetworkError

    with pytest.raises(PipelineError, match="Spark has ended") as raised, in_our_words():
        raise Py4JNetworkError("Answer from Java side is empty")
    assert isinstance(raised.value.__cause__, Py4JNetworkError)
    with pytest.raises(ZeroDivisionError), in_our_words():
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), in_our_words():
        raise KeyboardInterrupt
