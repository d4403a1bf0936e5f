"""Views as tables of databases: each epoch is one transaction, and counts once, whatever dies."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

from everview.errors import MissingRuntime, SinkError
from everview.spark import Pipeline, drivers, jdbc
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
        ({"jdbc": "jdbc:oracle:thin:@//h/d", "key": "id"}, "(?s)no sink writes to.*one of MySQL, MariaDB, SQLite, H2"),
        ({"jdbc": "jdbc:sqlserver://h;password=secret", "key": "id"}, "no sink writes to"),
        ({"jdbc": "jdbc:sqlite:d"}, "needs a key"),
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


# -- by their drivers

DRIVEN = f"{SCHEMA}, day DATE, wall TIMESTAMP_NTZ, yes BOOLEAN, small TINYINT, f FLOAT, clock TIME"
FULL = (*ONE, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 0, 0, 5), True, -3, 0.25, dt.time(9, 30, 0, 7))
EMPTY = (2, *[None] * 11)


@pytest.fixture(params=["sqlite", "h2", "mariadb", "mysql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database: in a file, which only its driver opens, or on MariaDB by either driver."""
    if request.param in ("sqlite", "h2"):
        return f"jdbc:{request.param}:{tmp_path / 'bank'}"
    server = request.getfixturevalue("mariadb").replace("/bank", f"/b{uuid4().hex[:8]}")
    plain = {"mariadb": "disable", "mysql": "DISABLED"}[request.param]
    return f"jdbc:{request.param}://{server}&createDatabaseIfNotExist=true&sslMode={plain}"


def asked(spark: SparkSession, address: str, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query; of SQLite without Spark, which takes text in columns of text for numbers."""
    if "sqlite" in address:
        with closing(sqlite3.connect(address.removeprefix("jdbc:sqlite:"))) as database:
            return database.execute(query).fetchall()
    dialect = drivers.dialect_of(address)
    assert dialect is not None
    query = query.replace('"', dialect.quote)
    address = drivers.address_for_spark(address)
    rows = spark.read.format("jdbc").options(url=address, driver=dialect.driver, query=query).load().collect()
    return [tuple(row) for row in rows]


def test_an_epoch_counts_once_by_a_driver(spark: SparkSession, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = sink_of("v", jdbc=address, key="id")

    def epoch(number: int, *rows: Any, state: str = "s") -> None:
        deliver(spark, spec, number, Batch.of(DRIVEN, list(rows)), lambda: pytest.fail("not asked"), state=state)

    def names() -> list[tuple[Any, ...]]:
        return asked(spark, address, 'SELECT "id", "name" FROM "v" ORDER BY 1')

    epoch(1, (FULL, 1), (EMPTY, 1))
    assert names() == [(1, ONE[1]), (2, None)]
    epoch(1, (FULL, 1), (EMPTY, 1))
    other = (2, "b", *EMPTY[2:])
    second = ((EMPTY, -1), (other, 1), (FULL, -1), ((3, "c", *EMPTY[2:]), 1))
    plain = drivers.DriverDelivery.take

    def dies(*given: Any) -> None:
        plain(*given)
        raise Crash

    monkeypatch.setattr(drivers.DriverDelivery, "take", dies)
    with pytest.raises(Crash):
        epoch(2, *second)
    monkeypatch.undo()
    assert names() == [(1, ONE[1]), (2, None)]
    epoch(2, *second)
    assert names() == [(2, "b"), (3, "c")]
    monkeypatch.setattr(drivers.DriverDelivery, "take", dies)
    epoch(2, *second)  # is known, and passed over
    monkeypatch.undo()
    with pytest.raises(SinkError, match="the state is at epoch 1"):
        epoch(1, (FULL, 1))
    epoch(1, (FULL, 1), state="another")
    assert len(names()) == 3


def test_values_by_a_driver(spark: SparkSession, address: str) -> None:
    spec = sink_of("v", jdbc=address, key="id")
    deliver(spark, spec, 1, Batch.of(DRIVEN, [(FULL, 1)]), lambda: pytest.fail("not asked"), state="s")
    text = "char" if "127.0.0.1" in address else "varchar"
    columns = ", ".join(f'CAST("{name}" AS {text}) AS "{name}"' for name in ("price", "at", "day", "wall", "clock"))
    (found,) = asked(spark, address, f'SELECT {columns}, "x", "raw", "yes", "small", "f" FROM "v"')
    day, wall = "2024-02-29", "2024-02-29 12:00:00.000005"
    assert found[0] == "1.50"
    assert found[1].removesuffix(":00").removesuffix("+00") == "2026-01-02 03:04:05.000006"
    assert found[2:5] == (day, wall, "09:30:00.000007")
    assert (found[5], bytes(found[6]), bool(found[7]), *found[8:]) == (0.5, b"\x00\xff", True, -3, 0.25)
    rows = Batch.of("k BIGINT, a ARRAY<INT>", [((1, [1]), 1)])
    with pytest.raises(SinkError, match=r"is ARRAY.*does not hold"):
        deliver(spark, sink_of("w", jdbc=address, key="k"), 1, rows, list, state="s")  # type: ignore[arg-type]


def test_keys_by_a_driver(spark: SparkSession, address: str) -> None:
    """Keys that a database might take for one another, of types that cross as text, and one that is too long."""
    at = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    schema = "s STRING, `d``x` DECIMAL(30,10), at TIMESTAMP, day DATE, n BIGINT"
    names = ["a", "A", "a ", "ä", "\N{GRINNING FACE}", "it's", "a\\"]
    rows = [(s, Decimal("12345678901234567890.0000000001"), at, at.date(), 1) for s in names]
    near = (*rows[0][:1], Decimal("12345678901234567890.0000000002"), *rows[0][2:])
    spec = sink_of("w", jdbc=address, key=["s", "d`x", "at", "day"])

    def epoch(number: int, *changed: Any) -> None:
        deliver(spark, spec, number, Batch.of(schema, list(changed)), lambda: pytest.fail("not asked"), state="s")

    epoch(1, *((row, 1) for row in [*rows, near]))
    assert len(asked(spark, address, 'SELECT "s" FROM "w"')) == 8
    epoch(2, (rows[1], -1), (rows[2], -1), (near, -1), (rows[0], -1), ((*rows[0][:-1], 2), 1))
    held = asked(spark, address, 'SELECT "s", "n" FROM "w"')
    assert sorted(held) == sorted([("a", 2), *((name, 1) for name in names[3:])])
    if "127.0.0.1" in address:
        with pytest.raises(Exception, match="Data too long for column 's'"):
            epoch(3, (("x" * 256, *rows[0][1:]), 1))
        assert len(asked(spark, address, 'SELECT "s" FROM "w"')) == 5


def test_a_missing_driver_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers.DIALECTS, "h2", replace(drivers.DIALECTS["h2"], driver="org.h2.Missing"))
    spec = sink_of("v", jdbc="jdbc:h2:mem:v", key="k")
    with pytest.raises(MissingRuntime, match="a sink in H2 needs its driver") as told:
        deliver(spark, spec, 1, Batch.of("k BIGINT", [((1,), 1)]), list, state="s")  # type: ignore[arg-type]
    assert "com.h2database:h2" in str(told.value)


def test_a_pipeline_keeps_a_table_by_a_driver(spark: SparkSession, address: str, tmp_path: Path) -> None:
    columns = "id BIGINT NOT NULL, owner STRING NOT NULL"
    with Pipeline(spark, tmp_path / "state", shards=2, place="driver") as p:
        p.source("account", spark.createDataFrame([(1, "a"), (2, "b")], columns), key="id", changes="upsert")
        p.sql("CREATE MATERIALIZED VIEW owners AS SELECT DISTINCT owner FROM account")  # all of a row is its key
        p.sink("owners", jdbc=address, key="owner")
        p.refresh()
        p.refresh(account=spark.createDataFrame([(2, "c"), (3, "a")], columns))
        assert asked(spark, address, 'SELECT "owner" FROM "owners" ORDER BY 1') == [("a",), ("c",)]
        assert asked(spark, address, 'SELECT "epoch" FROM "everview_epochs"') == [(2,)]
