"""Views as tables of PostgreSQL: each epoch is one transaction, and counts once, whatever dies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from everview.errors import SinkError
from everview.spark import Pipeline, jdbc
from everview.spark.sinks import deliver, sink_of
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id BIGINT NOT NULL, name STRING, price DECIMAL(8,2), at TIMESTAMP, x DOUBLE, raw BINARY"
ONE = (1, "it's\n\\N", Decimal("1.50"), dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC), 0.5, b"\x00\xff")
TWO = (2, None, None, None, None, None)


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def server(postgres: str) -> Iterator[Any]:
    with psycopg.connect(postgres, autocommit=True) as found:
        found.execute("SET timezone = 'UTC'; DROP SCHEMA IF EXISTS sunk CASCADE; CREATE SCHEMA sunk")
        yield found
        found.execute("DROP SCHEMA sunk CASCADE")


def url(postgres: str) -> str:
    host = dict(part.split("=") for part in postgres.split())["host"]
    return f"jdbc:postgresql:///postgres?host={host}&user=everview"


def rows_of(server: Any) -> list[Any]:
    return server.execute("SELECT * FROM sunk.v ORDER BY 1").fetchall()


def test_an_epoch_counts_once(server: Any, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = sink_of("v", jdbc=url(postgres), table="sunk.v", key="id")
    spark: Any = None

    def epoch(number: int, *rows: Any, state: str = "s") -> None:
        deliver(spark, spec, number, Batch.of(SCHEMA, list(rows)), lambda: pytest.fail("not asked"), state=state)

    epoch(1, (ONE, 1), (TWO, 1))
    assert rows_of(server) == [ONE, TWO]
    epoch(1, (ONE, 1), (TWO, 1))
    other = (2, "b", *TWO[2:])
    second = ((TWO, -1), (other, 1), (ONE, -1), ((3, "c", *TWO[2:]), 1))
    plain = jdbc._write

    def dies(*given: Any) -> None:
        plain(*given)
        raise Crash

    monkeypatch.setattr(jdbc, "_write", dies)
    with pytest.raises(Crash):
        epoch(2, *second)
    monkeypatch.undo()
    assert rows_of(server) == [ONE, TWO]
    epoch(2, *second)
    server.execute("UPDATE sunk.v SET name = 'by hand' WHERE id = 3")
    epoch(2, *second)  # is known, and passed over
    assert [row[:2] for row in rows_of(server)] == [(2, "b"), (3, "by hand")]
    with pytest.raises(SinkError, match="the state is at epoch 1"):
        epoch(1, (ONE, 1))
    epoch(1, (ONE, 1), state="another")
    assert len(rows_of(server)) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"jdbc": "jdbc:mysql://h/d", "key": "id"}, "no sink writes to"),
        ({"jdbc": "jdbc:postgresql://h/d"}, "needs a key"),
        ({"jdbc": "jdbc:postgresql://h/d", "key": "id", "mode": "snapshot"}, "no snapshots"),
        ({"jdbc": "jdbc:postgresql://h/d", "key": "id", "path": "p"}, "has path and table"),
    ],
)
def test_what_no_database_takes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SinkError, match=message):
        sink_of("v", **given)
    assert "secret" not in repr(sink_of("v", jdbc="jdbc:postgresql://h/d?password=secret", key="id"))


def test_rows_that_a_table_cannot_hold(server: Any, postgres: str) -> None:
    spark: Any = None
    spec = sink_of("v", jdbc=url(postgres), table="sunk.v", key="k")
    for schema, row, message in (
        ("k BIGINT", (None,), "k, of the key of its sink, is NULL"),
        ("k BIGINT, a ARRAY<INT>", (1, [1]), "is ARRAY"),
    ):
        with pytest.raises(SinkError, match=message):
            deliver(spark, spec, 1, Batch.of(schema, [(row, 1)]), lambda: pytest.fail("not asked"), state="s")


def test_a_pipeline_keeps_a_table(spark: SparkSession, server: Any, postgres: str, tmp_path: Path) -> None:
    columns = "id BIGINT NOT NULL, owner STRING NOT NULL, amount BIGINT"

    def build() -> Pipeline:
        p = Pipeline(spark, tmp_path / "state", shards=2, place="driver")
        p.source("account", spark.createDataFrame([(1, "a", 5), (2, "b", 7)], columns), key="id", changes="upsert")
        p.sql("CREATE MATERIALIZED VIEW v AS SELECT owner, SUM(amount) AS total FROM account GROUP BY owner")
        p.sink("v", jdbc=url(postgres), table="sunk.v", key="owner")
        return p

    with build() as p:
        p.refresh()
        assert rows_of(server) == [("a", 5), ("b", 7)]
        p.refresh(account=spark.createDataFrame([(2, "a", 8)], columns))
        assert rows_of(server) == [("a", 13)]
    with build() as p:
        p.refresh(account=spark.createDataFrame([(3, "c", 1)], columns))
        assert rows_of(server) == [("a", 13), ("c", 1)]
