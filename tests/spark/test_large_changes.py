"""Changes that are kept in the state, in sinks that take rows by key: tasks make of them what the driver makes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from everview.circuit import Circuit
from everview.errors import SinkError
from everview.runtimes.embedded import Embedded
from everview.runtimes.spark.stored_change import StoredChange
from everview.spark import chunks, topics
from everview.spark.keyed import keyed_change
from everview.spark.sinks import deliver, sink_of
from everview.zset.batch import Batch
from spark.test_jdbc import DRIVEN, address, asked, rows_of, server, url
from spark.test_jdbc import EMPTY as EMPTY_ROW
from spark.test_jdbc import FULL as FULL_ROW
from spark.test_topics import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["address", "server"]  # fixtures
Row = tuple[tuple[Any, ...], int]
COLUMNS = DRIVEN.removesuffix(", clock TIME")
FULL, EMPTY = (row[:-1] for row in (FULL_ROW, EMPTY_ROW))
FIRST = [(FULL, 1), *(((i, f"old {i}", *FULL[2:]), 1) for i in range(10, 40))]
THEN = [
    (FULL, -1),
    (EMPTY, 1),
    *(((i, f"old {i}", *FULL[2:]), -1) for i in range(10, 30)),
    *(((i, f"new {i}", *FULL[2:]), 1) for i in range(20, 60, 3) if i < 30 or i >= 40),
]


def stored(path: Path, *ticks: list[Row], schema: str = COLUMNS) -> StoredChange:
    """The change of the last of some ticks, as a state keeps it; fetching it is left to the tests."""
    circuit = Circuit()
    circuit.source("t", schema).sink("v")
    with Embedded(circuit, str(path), shards=2) as run:
        for rows in ticks:
            run.tick({"t": rows})
        epoch, schema_ = run.epoch, run.view("v").schema
    return StoredChange(str(path), "v", schema_, epoch - 1, epoch, len(ticks[-1]))


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[StoredChange]:
    """The changes of two epochs, in chunks of a few rows, which nobody may fetch."""
    monkeypatch.setattr(chunks, "AT_ONCE", 5)
    found = [stored(tmp_path / "one", FIRST), stored(tmp_path / "two", FIRST, THEN)]
    monkeypatch.setattr(StoredChange, "batch", lambda _: pytest.fail("the driver has fetched a whole change"))
    return found


@pytest.mark.parametrize("key", [("k",), ("k", "s"), ("s", "k", "p")])
@pytest.mark.parametrize("seed", [1, 2])
def test_changes_by_key(spark: SparkSession, tmp_path: Path, key: tuple[str, ...], seed: int) -> None:
    draw = random.Random(seed)
    keys = [(k, s, (k,)) for k in (None, *range(9)) for s in ((None,) if key == ("k",) else (None, "", "ä"))]

    def bag() -> list[Row]:
        return [((*row[:2], {"a": row[0]}, draw.randrange(3)), 1) for row in keys if draw.random() < 0.6]

    first, then = bag(), bag()
    change = [*then, *((row, -weight) for row, weight in first)]
    large = stored(tmp_path / "s", first, change, schema="k BIGINT, s STRING, p STRUCT<a BIGINT>, v INTEGER")
    by_tasks, here = (keyed_change(spark, "v", each, key) for each in (large, large.batch()))
    assert Counter(map(str, by_tasks.frame(spark).toArrow().to_pylist())) == Counter(map(str, here.rows.to_pylist()))
    assert (by_tasks.counts, by_tasks.nulls, by_tasks.schema) == (here.counts, here.nulls, here.schema)


def test_keys_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Names that the counting of rows might have for itself."""
    schema = "row BIGINT, come BIGINT, gone BIGINT, doubled BIGINT, `a``b.c` STRING"
    large = stored(
        tmp_path / "s", [((1, 2, 3, 4, "x"), 1)], [((1, 2, 3, 4, "x"), -1), ((1, 2, 3, 4, "y"), 1)], schema=schema
    )
    for key in (("row", "come", "gone"), ("doubled",), ("a`b.c",)):
        by_tasks, here = (keyed_change(spark, "v", each, key) for each in (large, large.batch()))
        assert Counter(map(str, by_tasks.frame(spark).toArrow().to_pylist())) == Counter(
            map(str, here.rows.to_pylist())
        )
        assert by_tasks.counts == here.counts


@pytest.mark.parametrize("rows", [[(1, "a", 1), (1, "b", 1)], [(1, "a", 2)], [(1, "b", -1), (1, "c", -1)]])
def test_a_key_of_two_rows_is_refused(spark: SparkSession, tmp_path: Path, rows: list[Any]) -> None:
    first = [((0, "z"), 1), ((1, "b"), 1), ((1, "c"), 1)]
    change = stored(tmp_path / "s", first, [((k, s), weight) for k, s, weight in rows], schema="k BIGINT, s STRING")
    with pytest.raises(SinkError, match="several rows with k = 1, the key of its sink"):
        keyed_change(spark, "v", change, ("k",))


@pytest.mark.parametrize(("schema", "row"), [("k MAP<STRING, BIGINT>", ({"a": 1},)), ("k INT, t TIME", (1, None))])
def test_what_spark_cannot_group(spark: SparkSession, tmp_path: Path, schema: str, row: Any) -> None:
    change = stored(tmp_path / "s", [(row, 1)], schema=schema)
    assert keyed_change(spark, "v", change, ("k",)).counts == {"insert": 1, "update": 0, "delete": 0}


def test_rows_in_postgres(spark: SparkSession, server: Any, postgres: str, two: list[StoredChange]) -> None:
    for table, large in (("large", True), ("v", False)):
        spec = sink_of("v", jdbc=url(postgres), table=f"sunk.{table}", key="id")
        for epoch, (change, rows) in enumerate(zip(two, (FIRST, THEN), strict=True), 1):
            given = change if large else _batch(rows)
            deliver(spark, spec, epoch, given, lambda: pytest.fail("not asked"), state="s")
    rows = server.execute("SELECT * FROM sunk.large ORDER BY 1").fetchall()
    assert rows == rows_of(server)
    assert {row[0] for row in rows} == {2, 20, 23, 26, 29, *range(30, 40), 41, 44, 47, 50, 53, 56, 59}


@pytest.mark.parametrize("address", ["sqlite", "h2"], indirect=True)
def test_rows_by_a_driver(spark: SparkSession, address: str, two: list[StoredChange]) -> None:
    for table, large in (("large", True), ("small", False)):
        spec = sink_of("v", jdbc=address, table=table, key="id")
        for epoch, (change, rows) in enumerate(zip(two, (FIRST, THEN), strict=True), 1):
            given = change if large else _batch(rows)
            deliver(spark, spec, epoch, given, lambda: pytest.fail("not asked"), state="s")
    rows = asked(spark, address, 'SELECT * FROM "large" ORDER BY 1')
    assert rows == asked(spark, address, 'SELECT * FROM "small" ORDER BY 1')
    assert len(rows) == 22


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize("mode", ["upsert", "changes"])
def test_records_of_a_topic(
    spark: SparkSession, kafka: str, two: list[StoredChange], mode: str, exactly_once: bool
) -> None:
    """The same records as of a small change, under the same numbers where one task sends them."""
    found = []
    for large in (True, False):
        topic, state = f"t-{uuid4().hex}", uuid4().hex
        how: dict[str, Any] = {"mode": mode, "key": "id" if mode == "upsert" else None, "exactly_once": exactly_once}
        spec = sink_of("v", topic=topic, **how, options={"kafka.bootstrap.servers": kafka})
        for epoch, (change, rows) in enumerate(zip(two, (FIRST, THEN), strict=True), 1):
            given = change if large else _batch(rows)
            deliver(spark, spec, epoch, given, lambda: pytest.fail("not asked"), state=state)
        topics.TopicWriter.close_all(state)
        found.append(read(kafka, topic))
        assert Counter(record[:2] for record in found[-1]).most_common(1)[0][1] == 1
    by_tasks, here = found
    if exactly_once:  # chunks are divided by hash
        by_tasks, here = (sorted((epoch, str(rest)) for epoch, _, *rest in records) for records in found)
    assert by_tasks == here


def test_records_whose_tasks_fail_are_not_sent(
    spark: SparkSession, kafka: str, two: list[StoredChange], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, plain = f"t-{uuid4().hex}", topics.chunks
    spec = sink_of("v", topic=topic, mode="upsert", key="id", options={"kafka.bootstrap.servers": kafka})

    def failing(frame: Any) -> Any:
        for place, table in enumerate(plain(frame)):
            assert place < 2, "a task failed"
            yield table

    monkeypatch.setattr(topics, "chunks", failing)
    with pytest.raises(SinkError, match="a task failed"):
        deliver(spark, spec, 1, two[0], lambda: pytest.fail("not asked"), state=topic)
    monkeypatch.setattr(topics, "chunks", plain)
    deliver(spark, spec, 1, two[0], lambda: pytest.fail("not asked"), state=topic)
    topics.TopicWriter.close_all(topic)
    assert len(read(kafka, topic)) == len(FIRST)


def _batch(rows: list[Row]) -> Batch:
    return Batch.of(COLUMNS, rows)
