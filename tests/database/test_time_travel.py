"""Relations as they were: VERSION AS OF an epoch, TIMESTAMP AS OF a moment, over the epochs that a directory keeps."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import DefinitionError, EverviewError, SqlError, StoreError, UnknownName


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.connect(tmp_path / "s")
    db.sql("CREATE TABLE t (name STRING, id BIGINT PRIMARY KEY)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n FROM t GROUP BY name")
    return db


def moment() -> dt.datetime:
    """A moment between two commits: no two of them are of the same microsecond."""
    before = dt.datetime.now(dt.UTC)
    while (now := dt.datetime.now(dt.UTC)) <= before + dt.timedelta(microseconds=10):
        pass
    return now


@settings(max_examples=8)
@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=3), max_size=5))
def test_every_epoch_is_read_as_it_was(tmp_path_factory: pytest.TempPathFactory, changes: list[Any]) -> None:
    path = tmp_path_factory.mktemp("states") / "s"
    db = ev.connect(path)
    db.sql("CREATE TABLE t (name STRING, id BIGINT PRIMARY KEY)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n FROM t GROUP BY name")
    seen: list[tuple[int, dt.datetime, list[Any], list[Any]]] = []
    for rows in changes:
        with db.transaction() as tx:
            tx.upsert("t", rows)
        seen.append((db.epoch, moment(), sorted(db.table("t").rows()), sorted(db.view("v").rows())))
    db.close()
    db = ev.connect(path)
    for epoch, at, table, view in seen:
        assert sorted(db.sql(f"SELECT * FROM t VERSION AS OF {epoch}").rows()) == table
        assert sorted(db.sql("SELECT * FROM v TIMESTAMP AS OF :at", {"at": at}).rows()) == view
        both = f"SELECT count(*) FROM t VERSION AS OF {epoch} a JOIN v TIMESTAMP AS OF '{at:%Y-%m-%d %H:%M:%S.%f}' b "
        assert db.sql(both + "ON a.name = b.name").rows() == [(len(table),)]


def test_what_was_dropped_can_still_be_read(db: ev.Database) -> None:
    db.sql("INSERT INTO t VALUES ('x', 1)")
    epoch = db.epoch
    db.sql("DROP VIEW v")
    db.sql("ALTER TABLE t ADD COLUMN more BIGINT")
    db.sql("UPDATE t SET name = 'other'")
    assert db.sql(f"SELECT * FROM v VERSION AS OF {epoch}").rows() == [("x", 1)]
    assert db.sql(f"SELECT * FROM t FOR VERSION AS OF {epoch}").rows() == [("x", 1)]
    db.sql(f"CREATE TABLE old AS SELECT * FROM t VERSION AS OF {epoch}")
    assert sorted(db.sql("SELECT name FROM old UNION SELECT name FROM t").rows()) == [("other",), ("x",)]
    assert db.sql(f"SELECT * FROM t VERSION AS OF {db.epoch}").rows() == db.table("t").rows()
    assert db.sql("SELECT count(*) FROM t TIMESTAMP AS OF current_timestamp()").rows() == [(1,)]


def test_epochs_that_are_not_kept_are_refused_and_the_others_named(db: ev.Database) -> None:
    for n in range(4):
        db.sql(f"INSERT INTO t VALUES ('x', {n})")
    db.vacuum()
    with pytest.raises(StoreError, match=r"epoch 2 is not kept(.|\n)*can be read"):
        db.sql("SELECT * FROM t VERSION AS OF 2")
    with pytest.raises(StoreError, match="epoch 99 has not come yet"):
        db.sql("SELECT * FROM t VERSION AS OF 99")
    with pytest.raises(StoreError, match=r"no epoch is kept(.|\n)*the first is of"):
        db.sql("SELECT * FROM t TIMESTAMP AS OF '2020-01-01'")
    assert db.sql("SELECT count(*) FROM t").rows() == [(4,)]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE MATERIALIZED VIEW w AS SELECT * FROM v VERSION AS OF 2", SqlError, "AS OF in a view"),
        ("SELECT * FROM v VERSION AS OF 1", UnknownName, "at epoch 1"),
        ("SELECT * FROM v VERSION AS OF -1", SqlError, "no such version"),
        ("SELECT * FROM v VERSION AS OF NULL", SqlError, "no such version"),
        ("SELECT * FROM v TIMESTAMP AS OF NULL", SqlError, "no such moment"),
        ("SELECT * FROM v VERSION AS OF n", EverviewError, "n"),
    ],
)
def test_refused(db: ev.Database, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        db.sql(text)


def test_a_database_in_memory_keeps_the_present_only() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (1)")
    assert db.sql(f"SELECT * FROM t VERSION AS OF {db.epoch}").rows() == [(1,)]
    with pytest.raises(DefinitionError, match="in memory"):
        db.sql("SELECT * FROM t VERSION AS OF 1")
