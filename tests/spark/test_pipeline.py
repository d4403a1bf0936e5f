"""Pipelines end to end: every style of source, every placement, streams and batches, sinks, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from documented import undocumented
from everview.circuit import Circuit
from everview.errors import (
    BadRows,
    DefinitionError,
    EverviewError,
    PipelineError,
    SchemaDrift,
    SourceError,
    UnknownName,
)
from everview.spark import Pipeline
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRANSFERS = "id BIGINT, src BIGINT, dst BIGINT, amount DECIMAL(12,2), at TIMESTAMP"
ACCOUNTS = "id BIGINT, country STRING"
PLACES: tuple[Any, ...] = ("driver", "cluster", "auto")


class Files:
    """A directory that grows by one file of JSON lines at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self._written = 0

    def add(self, *rows: dict[str, Any]) -> None:
        text = "\n".join(json.dumps(row, default=str) for row in rows)
        path = self.path / f"{self._written:05}.json"
        path.write_text(text + "\n")
        os.utime(path, (10**9 + self._written,) * 2)  # Spark reads files in the order of their times
        self._written += 1

    def stream(self, spark: SparkSession, schema: str, files: int = 1) -> DataFrame:
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).json(str(self.path))


def transfer(id_: int, src: int, dst: int, amount: str, at: int = 0, **more: Any) -> dict[str, Any]:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=at)
    return {"id": id_, "src": src, "dst": dst, "amount": amount, "at": moment.isoformat(), **more}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def run(pipeline: Pipeline) -> None:
    pipeline.start(trigger={"availableNow": True}).awaitTermination()


@pytest.fixture
def opened() -> Iterator[Callable[..., Pipeline]]:
    """Makes pipelines, and closes them."""
    made: list[Pipeline] = []

    def make(*arguments: Any, **options: Any) -> Pipeline:
        made.append(Pipeline(*arguments, **options))
        return made[-1]

    yield make
    for pipeline in made:
        pipeline.close()


def exposure(p: Pipeline, transfers: DataFrame, accounts: DataFrame, **options: Any) -> None:
    """What each country's accounts have sent, and who can be reached from account 1."""
    moved = p.source("transfer", transfers, **options)
    account = p.source("account", accounts, key="id", changes="upsert")
    by_country = moved.join(account, ("src", "id")).aggregate(["country"], total=("sum", "amount"), n="count")
    by_country.sink("exposure")
    moved.top(2, ["amount desc"]).select("id", "amount").sink("largest")
    loop = p.circuit.child("reach")
    edges = loop.enter(moved.select("src", "dst").distinct())
    reached, again = loop.feedback("a BIGINT, b BIGINT")
    paths = edges.select(a="src", b="dst") + reached.join(edges, ("b", "src"), select=["a", "dst"]).select(
        a="a", b="dst"
    )
    again(found := paths.distinct())
    loop.leave(found).sink("reachable")


# -- streams


@pytest.mark.parametrize("place", PLACES)
def test_a_stream_of_upserts_beside_a_batch(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline], place: Any
) -> None:
    files = Files(tmp_path / "transfers")
    accounts = spark.createDataFrame([(1, "UK"), (2, "DE"), (3, None)], ACCOUNTS)
    given: list[tuple[int, Batch]] = []

    def build() -> Pipeline:
        p = opened(spark, tmp_path / "state", place=place, shards=4)
        exposure(p, files.stream(spark, TRANSFERS), accounts, key="id", changes="upsert", order="at")
        p.sink("exposure", path=tmp_path / "out")
        p.sink("exposure", callback=lambda changes, epoch: given.append((epoch, changes)))
        return p

    p = build()
    files.add(transfer(1, 1, 2, "5.00", 1), transfer(2, 2, 3, "7.50", 1))
    files.add(transfer(1, 1, 3, "6.00", 2), transfer(3, 3, 1, "1.25", 1))
    run(p)
    assert [done.epoch for done in p.progress] == [1, 2, 3]  # the accounts, then a file each
    assert rows(p.view("exposure")) == [("DE", _d("7.50"), 1), ("UK", _d("6.00"), 1), (None, _d("1.25"), 1)]
    assert rows(p.view("largest")) == [(1, _d("6.00")), (2, _d("7.50"))]
    assert len(rows(p.view("reachable"))) == 6
    assert p.verify()
    # Later: a change that comes too late, one that changes nothing, and a transfer that is gone by key alone.
    files.add(transfer(1, 1, 2, "99.00", 0), transfer(2, 2, 3, "7.50", 5))
    run(p)
    assert rows(p.view("exposure"))[0] == ("DE", _d("7.50"), 1)
    assert p.epoch == 4
    assert rows(p.changes("exposure")) == []
    assert rows(p.changes("exposure", since=2, until=3)) == rows(p.changes("exposure", since=2))
    p.close()
    p = build()
    assert p.epoch == 4
    files.add(transfer(4, 1, 1, "4.00", 9))
    run(p)
    assert p.epoch == 5
    assert rows(p.view("exposure"))[1] == ("UK", _d("10.00"), 2)
    assert p.verify()
    sums: dict[tuple[Any, ...], int] = {}
    for *row, weight, _epoch in spark.read.parquet(str(tmp_path / "out")).collect():
        sums[tuple(row)] = sums.get(tuple(row), 0) + weight
    assert sorted((row for row, w in sums.items() if w), key=repr) == rows(p.view("exposure"))
    assert [epoch for epoch, _ in given] == [2, 3, 5]
    expected = {"driver": {"driver"}, "cluster": {"cluster"}, "auto": {"driver"}}[place]
    assert {done.placement for done in p.progress} == expected
    assert "reachable" in p.explain()


def _d(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def test_sources_of_different_speeds_are_of_one_moment(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    fast, slow = Files(tmp_path / "fast"), Files(tmp_path / "slow")
    p = opened(spark, tmp_path / "state", shards=2)
    a = p.source("a", fast.stream(spark, "k BIGINT, v BIGINT", files=2))
    b = p.source("b", slow.stream(spark, "k BIGINT, w BIGINT"))
    a.join(b, "k").aggregate(["k"], n="count").sink("pairs")
    a.aggregate([], n="count").sink("many")
    for i in range(6):
        fast.add({"k": i % 2, "v": i})
    slow.add({"k": 0, "w": 1})
    run(p)
    slow.add({"k": 1, "w": 2})
    run(p)
    assert rows(p.view("pairs")) == [(0, 3), (1, 3)]
    assert rows(p.view("many")) == [(6,)]
    assert [done.rows_in for done in p.progress] == [
        {"a": 2, "b": 1},
        {"a": 2, "b": 0},
        {"a": 2, "b": 0},
        {"a": 0, "b": 1},
    ]
    assert p.verify()


# -- batches


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_every_style_by_refresh(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline], place: Any
) -> None:
    p = opened(spark, tmp_path / "state", place=place, shards=4)
    frame = spark.createDataFrame
    styles = {
        "append": (frame([(1, "a"), (1, "a")], "k BIGINT, v STRING"), {}),
        "weights": (frame([(1, "a", 2), (2, "b", -1)], "k BIGINT, v STRING, _weight BIGINT"), {"changes": "weights"}),
        "upsert": (frame([(1, "a"), (2, "b")], "k BIGINT, v STRING"), {"key": "k", "changes": "upsert"}),
        "snapshot": (frame([(1, "a"), (2, "b")], "k BIGINT, v STRING"), {"key": "k", "changes": "snapshot"}),
        "cdc": (
            frame(
                [("c", 1, "a", 1), ("c", 2, "b", 1), ("u", 1, "z", 2), ("d", 2, None, 2)],
                "op STRING, k BIGINT, v STRING, n INT",
            ),
            {"key": "k", "changes": "cdc", "order": "n"},
        ),
    }
    for name, (found, options) in styles.items():
        p.source(name, found, **options).select("k", "v").sink(f"all {name}")
    p.refresh()
    assert rows(p.view("all append")) == [(1, "a"), (1, "a")]
    assert rows(p.view("all weights")) == [(1, "a"), (1, "a")]
    assert rows(p.view("all upsert")) == rows(p.view("all snapshot")) == [(1, "a"), (2, "b")]
    assert rows(p.view("all cdc")) == [(1, "z")]
    p.refresh(
        append=frame([(3, None)], "k BIGINT, v STRING"),
        weights=frame([(2, "b", 2)], "k BIGINT, v STRING, _weight BIGINT"),
        upsert=frame([(2, "c"), (3, "d")], "k BIGINT, v STRING"),
        snapshot=frame([(2, "c")], "k BIGINT, v STRING"),
        cdc=frame([("d", 1, None, 3), ("c", 5, "e", 3)], "op STRING, k BIGINT, v STRING, n INT"),
    )
    assert rows(p.view("all append")) == [(1, "a"), (1, "a"), (3, None)]
    assert rows(p.view("all weights")) == [(1, "a"), (1, "a"), (2, "b")]
    assert rows(p.view("all upsert")) == [(1, "a"), (2, "c"), (3, "d")]
    assert rows(p.view("all snapshot")) == [(2, "c")]
    assert rows(p.view("all cdc")) == [(5, "e")]
    assert p.verify()
    p.refresh()  # all frames have been read or overtaken
    assert rows(p.view("all snapshot")) == [(2, "c")]
    assert rows(p.view("all append")) == [(1, "a"), (1, "a"), (3, None)]
    assert p.epoch == 2


def test_a_frame_that_was_overtaken_is_not_read_again(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", spark.createDataFrame([(1, "old")], "k BIGINT, v STRING"), key="k", changes="upsert").sink("all")
    p.refresh()
    p.refresh(t=spark.createDataFrame([(1, "new")], "k BIGINT, v STRING"))
    p.refresh()
    assert rows(p.view("all")) == [(1, "new")]


def test_of_several_files_the_later_one_counts(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    """Spark reads the largest file of a batch first."""
    files = Files(tmp_path / "t")
    files.add({"k": 1, "v": "early"})
    files.add({"k": 1, "v": "late"}, *({"k": k, "v": "more"} for k in range(2, 400)))
    files.add({"k": 1, "v": "last"}, {"k": 2, "v": "last"})
    for place in ("driver", "cluster"):
        p = opened(spark, tmp_path / place, place=place, shards=2)
        p.source("t", files.stream(spark, "k BIGINT, v STRING", files=3), key="k", changes="upsert").sink("all")
        run(p)
        assert rows(p.view("all").filter("k < 3")) == [(1, "last"), (2, "last")]
        assert p.epoch == 1


def test_a_directory_that_was_made_anew(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    """Workers that have seen the old state do not take the new one for it."""
    for number in (1, 2):
        p = opened(spark, tmp_path / "state", place="cluster", shards=2)
        t = p.source("t", spark.createDataFrame([(number, "a")], "k BIGINT, v STRING"), key="k", changes="upsert")
        t.aggregate([], n="count", total=("sum", "k")).sink("sums")
        p.refresh()
        p.refresh(t=spark.createDataFrame([(10, "b")], "k BIGINT, v STRING"))
        assert rows(p.view("sums")) == [(2, 10 + number)]
        p.close()
        shutil.rmtree(tmp_path / "state")


def test_a_state_without_an_epoch_may_become_another(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    frame = spark.createDataFrame([(None,)], "k BIGINT")
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", frame, key="k", changes="upsert").sink("all")
    with pytest.raises(BadRows):
        p.refresh()
    p.close()
    p = opened(spark, tmp_path / "state", shards=3)
    p.source("t", frame).distinct().sink("all")
    p.refresh()
    assert rows(p.view("all")) == [(None,)]


def test_a_refresh_under_the_same_token_is_a_repetition(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    def build() -> Pipeline:
        p = opened(spark, tmp_path / "state", shards=2)
        p.source("t", spark.createDataFrame([(1,)], "k BIGINT")).sink("all")
        return p

    p = build()
    more = spark.createDataFrame([(2,)], "k BIGINT")
    p.refresh(token="monday", t=more)
    p.refresh(token="monday", t=more)
    p.close()
    p = build()
    p.refresh(token="monday", t=more)
    assert rows(p.view("all")) == [(2,)]
    p.refresh(token="tuesday", t=more)
    assert rows(p.view("all")) == [(2,), (2,)]
    p.refresh()
    assert rows(p.view("all")) == [(1,), (2,), (2,)]


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_columns_that_are_never_null(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline], place: Any
) -> None:
    """Beside the rows of one source, those of the others are NULL, all columns of them."""
    p = opened(spark, tmp_path / "state", place=place, shards=2)
    a = p.source("a", spark.range(3).selectExpr("id", "struct(id AS x, array(id) AS y) AS deep"))
    b = p.source(
        "b",
        spark.range(2).selectExpr("id", "concat('n', id) AS name"),
        schema="id BIGINT NOT NULL, name STRING NOT NULL",
    )
    a.join(b, "id").sink("both")
    p.refresh()
    assert rows(p.view("both").select("id", "deep.x", "name")) == [(0, 0, "n0"), (1, 1, "n1")]
    assert p.verify()


def test_debezium(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    files = Files(tmp_path / "events")
    row = "STRUCT<id: BIGINT, name: STRING>"
    p = opened(spark, tmp_path / "state", shards=2)
    people = p.source(
        "people", files.stream(spark, f"before {row}, after {row}, op STRING, ts_ms BIGINT"), key="id", changes="cdc"
    )
    people.sink("now")
    files.add(
        {"before": None, "after": {"id": 1, "name": "Ada"}, "op": "c", "ts_ms": 1},
        {"before": None, "after": {"id": 2, "name": "Bob"}, "op": "r", "ts_ms": 1},
        {"before": {"id": 1, "name": "Ada"}, "after": {"id": 1, "name": "Ada L."}, "op": "u", "ts_ms": 2},
    )
    run(p)
    assert rows(p.view("now")) == [(1, "Ada L."), (2, "Bob")]
    files.add(
        {"before": {"id": 2, "name": "Bob"}, "after": {"id": 3, "name": "Bob"}, "op": "u", "ts_ms": 3},
        {"before": {"id": 1, "name": "Ada L."}, "after": None, "op": "d", "ts_ms": 4},
    )
    run(p)
    assert rows(p.view("now")) == [(3, "Bob")]
    assert p.verify()


# -- bad rows


@pytest.mark.parametrize("place", ["driver", "cluster"])
def test_bad_rows_fail_the_batch_or_are_set_aside(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline], place: Any
) -> None:
    frame = spark.createDataFrame([(1, "a"), (None, "b"), (2, "c")], "k BIGINT, v STRING")

    def build(policy: str) -> Pipeline:
        p = opened(spark, tmp_path / "state", place=place, bad_rows=policy, shards=2)
        p.source("t", frame, key="k", changes="upsert").sink("all")
        return p

    p = build("fail")
    with pytest.raises(BadRows, match="source t has 1 bad row"):
        p.refresh()
    assert p.epoch == 0
    p.close()
    p = build("quarantine")
    p.refresh()
    assert rows(p.view("all")) == [(1, "a"), (2, "c")]
    ((source, reason, raw, epoch),) = rows(p.quarantined())
    assert (source, epoch) == ("t", 1)
    assert "k" in reason
    assert json.loads(raw) == {"v": "b"}
    assert p.progress[-1].bad_rows == 1
    p._epochs._set_aside(1, [])  # the same epoch again, now without bad rows: what was set aside is gone
    assert rows(p.quarantined()) == []


def test_a_frame_that_gives_other_rows_each_time(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    """A source is read once, so the text of a row and its code are of one reading."""

    def chance(batches: Iterator[Any]) -> Iterator[Any]:
        import uuid

        import pyarrow as pa

        yield from (pa.RecordBatch.from_pydict({"s": [str(uuid.uuid4())] * batch.num_rows}) for batch in batches)

    p = opened(spark, tmp_path / "state", place="cluster", shards=2)
    p.source("t", spark.range(3).mapInArrow(chance, "s STRING")).sink("all")
    p.refresh()
    assert {len(row["s"]) for row in p.view("all").collect()} == {36}


def test_drift_is_refused(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", spark.createDataFrame([(1, "a")], "k BIGINT, v STRING")).sink("all")
    p.refresh()
    with pytest.raises(SchemaDrift, match="v"):
        p.refresh(t=spark.createDataFrame([(1,)], "k BIGINT"))
    with pytest.raises(SchemaDrift, match="STRING"):
        p.refresh(t=spark.createDataFrame([("1", "a")], "k STRING, v STRING"))
    p.refresh(t=spark.createDataFrame([(1, 2, "a")], "k INT, extra INT, v STRING"))
    assert rows(p.view("all")) == [(1, "a"), (1, "a")]


# -- definitions


def test_what_cannot_be_defined(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    frame = spark.createDataFrame([(1,)], "k BIGINT")
    with pytest.raises(EverviewError, match="knows no store ftp://"):
        opened(spark, "ftp://bucket/state")
    with pytest.raises(PipelineError, match="place"):
        opened(spark, tmp_path / "x", place="moon")
    for wrong in ({"shards": 0}, {"partitions": -1}, {"keep_epochs": 0}):
        with pytest.raises(PipelineError, match="give a whole number, 1 or more"):
            opened(spark, tmp_path / "x", **wrong)
    p = opened(spark, tmp_path / "state", shards=2)
    with pytest.raises(PipelineError, match="no view"):
        p.refresh()
    stream = p.source("t", frame)
    with pytest.raises(PipelineError, match="already"):
        p.source("t", frame)
    with pytest.raises(SourceError):
        p.source("u", frame, changes="upsert")
    stream_of = spark.readStream.format("rate").load()
    with pytest.raises(SourceError, match="snapshots of a stream"):
        p.source("u", stream_of, key="value", changes="snapshot")
    with pytest.raises(SourceError, match="cannot order by"):
        p.source("u", frame.selectExpr("CAST(k AS INT)"), key="k", changes="upsert", order="k", schema="k DOUBLE")
    stream.sink("all")
    p.sink("al", path=tmp_path / "out")
    with pytest.raises(UnknownName, match="al"):
        p.refresh()


def test_what_a_pipeline_at_work_refuses(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    frame = spark.createDataFrame([(1,)], "k BIGINT")
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", frame, keep=False).sink("all")
    p.refresh()
    with pytest.raises(PipelineError, match="source t already"):
        p.source("t", frame)
    with pytest.raises(PipelineError, match="stream"):
        p.start()
    with pytest.raises(PipelineError, match="keep=True"):
        p.verify()
    with pytest.raises(UnknownName):
        p.view("none")
    with pytest.raises(UnknownName):
        p.changes("none")


def test_a_circuit_that_exists(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    circuit = Circuit()
    circuit.source("t", "k BIGINT NOT NULL").sink("all")
    p = opened(spark, tmp_path / "state", circuit=circuit, shards=2)
    with pytest.raises(PipelineError, match="nowhere"):
        p.refresh()
    with pytest.raises(UnknownName):
        p.source("u", spark.createDataFrame([(1,)], "k BIGINT"))
    p.source("t", spark.createDataFrame([(1,)], "k INT"))
    p.refresh()
    assert rows(p.view("all")) == [(1,)]


def test_a_late_change_does_not_bring_a_deleted_key_back(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    def changes(*rows: tuple[str, int, int]) -> DataFrame:
        return spark.createDataFrame(list(rows), "op STRING, k BIGINT, at BIGINT")

    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", changes(("c", 1, 1), ("c", 2, 1)), key="k", changes="cdc", order="at").sink("all")
    p.refresh()
    p.refresh(t=changes(("d", 1, 5), ("d", 3, 5)))
    p.refresh(t=changes(("u", 1, 4), ("c", 3, 4), ("u", 2, 4)))  # of 1 and 3, late
    assert rows(p.view("all")) == [(2, 4)]
    p.refresh(t=changes(("c", 1, 6)))
    assert rows(p.view("all")) == [(1, 6), (2, 4)]
    assert rows(p.table("t")) == [(1, 6), (2, 4)]
    assert p.verify()


def test_another_view_of_a_source_that_is_not_kept(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]
) -> None:
    frame = spark.createDataFrame([(1,)], "k BIGINT")
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", frame, keep=False).sink("all")
    p.refresh()
    p.close()
    q = opened(spark, tmp_path / "state", shards=2)
    q.source("t", frame, keep=False).aggregate([], n="count").sink("count")
    with pytest.raises(DefinitionError, match=r"view count cannot be computed: node .* source t, whose contents"):
        q.refresh()


def test_a_view_too_large_for_the_driver_is_read_by_tasks(
    spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    from everview.spark import delivery

    monkeypatch.setattr(delivery, "FEW", 10)
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", spark.range(100).selectExpr("id", "concat('n', id) AS name")).sink("all")
    p.sink("all", path=tmp_path / "out", mode="snapshot")
    p.refresh()
    assert rows(p.view("all")) == sorted(((i, f"n{i}") for i in range(100)), key=repr)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 100


def test_stopping_lets_the_epoch_end(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    files = Files(tmp_path / "t")
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", files.stream(spark, "k BIGINT")).sink("all")
    files.add({"k": 1})
    p.start(trigger={"processingTime": "0 seconds"})
    files.add({"k": 2})
    p.stop(drain=True)
    assert rows(p.view("all")) == [(1,), (2,)]
    files.add({"k": 3})
    run(p)
    assert rows(p.view("all")) == [(1,), (2,), (3,)]


def test_only_what_is_documented_is_shown(spark: SparkSession, tmp_path: Path) -> None:
    p = Pipeline(spark, tmp_path / "state")
    assert undocumented(p, "pipeline.md") == []
    assert [name for name in vars(p) if not name.startswith("_")] == ["spark", "path", "circuit"]


def test_a_view_as_it_was(spark: SparkSession, tmp_path: Path, opened: Callable[..., Pipeline]) -> None:
    """At an epoch, or at a moment, of which the state is kept; what is neither is refused."""
    p = opened(spark, tmp_path / "state", shards=2)
    p.source("t", spark.range(2).toDF("id")).sink("held")
    then = list[dt.datetime]()
    for last in (2, 5):
        p.refresh() if last == 2 else p.refresh(t=spark.range(2, last).toDF("id"))
        then.append(dt.datetime.now(dt.UTC))
    for at in ({"version": 1}, {"timestamp": then[0]}, {"timestamp": then[0].replace(tzinfo=None)}):
        assert rows(p.view("held", **at)) == [(0,), (1,)]
    assert p.view("held", version=2).count() == p.view("held", timestamp=then[1]).count() == p.view("held").count() == 5
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"version": "1"}, "'1' is no epoch"), ({"version": 9}, "epoch 9 has not come yet"),
        ({"timestamp": "2026-01-01"}, "'2026-01-01' is no time"), ({"version": 1, "timestamp": then[0]}, "two moments"),
        ({"timestamp": dt.datetime(2020, 1, 1)}, "no epoch is kept"),
    ]  # fmt: skip
    for at, said in wrong:
        with pytest.raises(EverviewError, match=said):
            p.view("held", **at)
    for act in (lambda: p.vacuum("x"), lambda: p.vacuum(0), lambda: p.reshard(2.0)):  # pyright: ignore[reportArgumentType]
        with pytest.raises(PipelineError, match="cannot be"):
            act()
