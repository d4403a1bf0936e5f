"""Sinks: one copy of every epoch, whatever was delivered before, and every type as it was."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.errors import SinkError
from everview.spark import epoch_folders
from everview.spark.sinks import SinkSpec, deliver, quarantine, read_quarantine, sink_of
from everview.types import Schema
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]

SCHEMA = (
    "id BIGINT NOT NULL, amount DECIMAL(12,2), at TIMESTAMP, name STRING, place STRUCT<city: STRING, zip: INTEGER>, "
    "tags ARRAY<STRING>, on_day DATE"
)
FULL = (
    1,
    Decimal("12.50"),
    dt.datetime(2026, 3, 1, 12, 30, 5, 123456, dt.UTC),
    "Zoë",
    {"city": "Bern", "zip": 3000},
    ["a", "b"],
    dt.date(2026, 3, 1),
)
EMPTY = (2, None, None, None, None, None, None)
FIRST = [(FULL, 1), (EMPTY, 2)]
SECOND = [(EMPTY, -1), ((3, Decimal("-0.01"), None, "", None, [], None), 1)]


class Crash(BaseException):
    """The process ends here."""


def batch(*rows: tuple[Row, int]) -> Batch:
    return Batch.of(SCHEMA, list(rows))


def held(*rows: tuple[Row, int]) -> Callable[[], pa.Table]:
    return lambda: batch(*rows).to_arrow().drop_columns(["_weight"])


def plain(value: Any) -> Any:
    """A value of Spark, of Arrow or of ours, so that they compare and hash."""
    if isinstance(value, dict):
        return tuple(value.values())
    if isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return value


def rows_of(frame: DataFrame, *more: str) -> Counter[Row]:
    names = [*Schema.parse(SCHEMA).names, *more]
    found = frame.select(*names).toArrow().to_pylist()
    return Counter(tuple(plain(row[name]) for name in names) for row in found)


def expected(*deltas: tuple[int, list[tuple[Row, int]]]) -> Counter[Row]:
    return Counter((*map(plain, row), weight, epoch) for epoch, delta in deltas for row, weight in delta)


def refuse() -> pa.Table:
    raise AssertionError("changes need no contents")


TARGETS = {
    "local parquet": {"path": "out"},
    "a file URL": {"path": "file:out"},
    "parquet by Spark": {"path": "out", "options": {"maxRecordsPerFile": 1}},
    "json": {"path": "out", "format": "json"},
    "table": {"table": "sink_of_a_test"},
}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[dict[str, Any]]:
    given: dict[str, Any] = dict(TARGETS[request.param])
    if "path" in given:
        scheme, _, name = given["path"].rpartition(":")
        given["path"] = f"file://{tmp_path / name}" if scheme else tmp_path / name
    yield given
    if "table" in given:
        spark.sql(f"DROP TABLE IF EXISTS {given['table']}")


def read(spark: SparkSession, spec: SinkSpec) -> DataFrame:
    if spec.table is not None:
        return spark.table(spec.table)
    assert spec.path is not None
    if spec.format == "json":
        names = ", ".join(f"{f.name} {f.type.sql}" for f in Schema.parse(SCHEMA))
        return spark.read.schema(f"{names}, _weight BIGINT, epoch BIGINT").json(spec.path)
    return spark.read.parquet(spec.path)


def test_changes_of_every_type_and_of_every_epoch_once(spark: SparkSession, target: dict[str, Any]) -> None:
    spec = sink_of("v", **target)
    deliver(spark, spec, 9, batch(*FIRST), refuse)
    deliver(spark, spec, 10, batch(*SECOND), refuse)
    assert rows_of(read(spark, spec), "_weight", "epoch") == expected((9, FIRST), (10, SECOND))
    deliver(spark, spec, 9, batch(*FIRST), refuse)
    deliver(spark, spec, 10, batch(*SECOND), refuse)
    deliver(spark, spec, 11, batch(), refuse)
    assert rows_of(read(spark, spec), "_weight", "epoch") == expected((9, FIRST), (10, SECOND))


def test_a_snapshot_is_the_contents_of_one_epoch(spark: SparkSession, target: dict[str, Any]) -> None:
    spec = sink_of("v", mode="snapshot", **target)
    for _ in range(2):
        deliver(spark, spec, 1, batch(*FIRST), held(*FIRST))
        deliver(spark, spec, 2, batch(*SECOND), lambda: spark.createDataFrame(held(*FIRST, *SECOND)()))
        deliver(spark, spec, 3, batch(), refuse)
        found = read(spark, spec)
        assert rows_of(found) == Counter(row[:-2] for row in expected((0, FIRST), (0, SECOND)) if row[-2] > 0)
        assert spec.table or {row.epoch for row in found.select("epoch").distinct().collect()} == {2}


def test_the_session_keeps_its_overwrite_mode(spark: SparkSession, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.sources.partitionOverwriteMode")
    deliver(spark, sink_of("v", format="json", path=tmp_path / "out"), 1, batch(*FIRST), refuse)
    assert spark.conf.get("spark.sql.sources.partitionOverwriteMode") == before


def test_epochs_are_numbers_and_their_names_sort(spark: SparkSession, tmp_path: Path) -> None:
    spec = sink_of("v", path=tmp_path / "out")
    for epoch in (2, 10, 100):
        deliver(spark, spec, epoch, batch((FULL, 1)), refuse)
    assert dict(spark.read.parquet(str(tmp_path / "out")).dtypes)["epoch"] == "int"
    assert sorted(os.listdir(tmp_path / "out")) == ["epoch=0000000002", "epoch=0000000010", "epoch=0000000100"]


@pytest.mark.parametrize("mode", ["changes", "snapshot"])
@pytest.mark.parametrize("step", ["sync", "replace", "after"])
def test_a_crash_leaves_nothing_that_a_reader_sees_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, step: str
) -> None:
    spec = sink_of("v", path=tmp_path / "out", mode=mode)
    deliver(spark, spec, 1, batch(*FIRST), held(*FIRST))
    before = rows_of(spark.read.parquet(str(tmp_path / "out")), "epoch")

    with monkeypatch.context() as patch:
        crash(patch, step)
        with pytest.raises(Crash):
            deliver(spark, spec, 2, batch((FULL, 1)), held((FULL, 1)))
    seen = rows_of(spark.read.parquet(str(tmp_path / "out")), "epoch")
    new = Counter([(*map(plain, FULL), 2)])
    assert seen == (before + new if step == "after" else before)

    deliver(spark, spec, 2, batch((FULL, 1)), held((FULL, 1)))
    seen = rows_of(spark.read.parquet(str(tmp_path / "out")), "epoch")
    assert seen == (new if mode == "snapshot" else before + new)
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(("_", "."))]


def crash(patch: pytest.MonkeyPatch, step: str) -> None:
    """End at the sync of the written file, before it takes its name, or just after."""
    replace = os.replace

    def stop(*args: Any) -> None:
        if step == "after":
            replace(*args)
        raise Crash

    if step == "sync":
        patch.setattr(epoch_folders, "_sync", stop)
    else:
        patch.setattr(os, "replace", stop)


def test_an_attempt_of_another_writer_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    by_spark = sink_of("v", path=tmp_path / "out", options={"maxRecordsPerFile": 1})
    deliver(spark, by_spark, 1, batch(*FIRST), refuse)
    deliver(spark, sink_of("v", path=tmp_path / "out"), 1, batch(*FIRST), refuse)
    assert rows_of(spark.read.parquet(str(tmp_path / "out")), "_weight", "epoch") == expected((1, FIRST))


def test_an_empty_view_has_an_empty_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    spec = sink_of("v", path=tmp_path / "out", mode="snapshot")
    deliver(spark, spec, 1, batch(), held())
    assert spark.read.parquet(str(tmp_path / "out")).count() == 0
    deliver(spark, spec, 2, batch((FULL, 1)), held((FULL, 1)))
    deliver(spark, spec, 3, batch((FULL, -1)), held())
    assert spark.read.parquet(str(tmp_path / "out")).count() == 0


def test_a_callback_is_called_with_changes_and_epoch(spark: SparkSession) -> None:
    seen: list[tuple[int, int]] = []
    spec = sink_of("v", callback=lambda changes, epoch: seen.append((len(changes), epoch)))
    for epoch, delta in ((1, batch(*FIRST)), (2, batch()), (3, batch(*SECOND)), (3, batch(*SECOND))):
        deliver(spark, spec, epoch, delta, refuse)
    assert seen == [(2, 1), (2, 3), (2, 3)]


def test_a_failing_callback_names_sink_epoch_and_cause(spark: SparkSession) -> None:
    def post(changes: Batch, epoch: int) -> None:
        raise ConnectionError("no route")

    message = r'epoch 7 .*changes of view "v" to post\(\): ConnectionError: no route'
    with pytest.raises(SinkError, match=message) as caught:
        deliver(spark, sink_of("v", callback=post), 7, batch(*FIRST), refuse)
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_a_path_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(SinkError, match="epoch 1 was not delivered"):
        deliver(spark, sink_of("v", path=tmp_path / "out"), 1, batch(*FIRST), refuse)


def test_a_table_of_other_columns_is_left_alone(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE other_table (a BIGINT, epoch BIGINT) USING parquet PARTITIONED BY (epoch)")
    try:
        with pytest.raises(SinkError, match="has columns a"):
            deliver(spark, sink_of("v", table="other_table"), 1, batch(*FIRST), refuse)
    finally:
        spark.sql("DROP TABLE other_table")


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({}, "neither path, table, topic nor callback"),
    ({"path": "a", "table": "b"}, "path and table"),
    ({"path": "a", "mode": "all"}, 'no mode "all"'),
    ({"path": "a", "format": "xlsx"}, 'no sink writes "xlsx"'),
    ({"table": "a; DROP TABLE b"}, "is no name of a table"),
    ({"callback": print, "mode": "snapshot"}, "a callback is given changes"),
    ({"callback": "print"}, "a callback is a function"),
    ({"path": "a", "schema": Schema.parse("epoch BIGINT")}, 'has a column "epoch"'),
    ({"table": "a", "schema": Schema.parse("_weight BIGINT")}, 'has a column "_weight"'),
]


@pytest.mark.parametrize(("given", "message"), REFUSALS)
def test_what_no_sink_is(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SinkError, match=message):
        sink_of("v", **given)


def test_bad_rows_are_kept_once_per_epoch(spark: SparkSession, tmp_path: Path) -> None:
    path = f"file://{tmp_path / 'quarantine'}"
    assert read_quarantine(spark, path).columns == ["source", "reason", "raw", "epoch"]
    assert read_quarantine(spark, path).count() == 0
    bad = pa.table({"source": ["t"], "reason": ["amount is NULL"], "raw": ['{"id":1}']})
    for epoch in (4, 4, 5):
        quarantine(path, epoch, bad)
    quarantine(path, 6, bad.slice(0, 0))
    quarantine(path, 7, bad)
    quarantine(path, 7, bad.slice(0, 0))  # the attempt before was never committed
    found = read_quarantine(spark, path)
    assert dict(found.dtypes)["epoch"] == "bigint"
    assert {tuple(row) for row in found.collect()} == {("t", "amount is NULL", '{"id":1}', e) for e in (4, 5)}
    assert found.count() == 2
