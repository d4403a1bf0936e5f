"""Tables that follow sources: copied once, then every change exactly once, whatever happens in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import everview as ev
from everview.errors import BadRows, DefinitionError, LostPosition, SchemaDrift, SourceError
from everview.sources.memory import Memory
from everview.sources.postgres import Postgres
from everview.sources.protocol import Update
from everview.sources.sqlite import SQLite

TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT name, SUM(n) AS total FROM item GROUP BY name"


@pytest.fixture(params=["sqlite", "postgres"])
def items(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A table to follow: how it is opened, and someone who writes to it."""
    made: list[Any] = []

    def kept(source: Any) -> Any:
        made.append(source)
        return source

    create = "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, n INTEGER)"
    if request.param == "sqlite":
        writer: Any = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
        writer.execute(create)
        yield lambda: kept(SQLite(tmp_path / "shop.db", "item")), writer
    else:
        dsn = request.getfixturevalue("postgres")
        writer = psycopg.connect(dsn, autocommit=True)
        writer.execute("DROP TABLE IF EXISTS item")
        writer.execute(create)
        yield lambda: kept(Postgres(dsn, "item")), writer
    writer.close()
    for source in made:
        source.link.session.connection.close()


def contents(db: Any) -> list[Any]:
    return sorted(db.table("item").rows())


def test_a_source_is_copied_and_followed(items: Any) -> None:
    make, writer = items
    writer.execute("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 2)")
    with ev.connect() as db:
        db.attach("item", make())
        db.sql(TOTALS)
        assert sorted(db.view("totals").rows()) == [("a", 1), ("b", 2)]
        assert db.poll() == {}
        writer.execute("UPDATE item SET n = 5 WHERE id = 1")
        writer.execute("DELETE FROM item WHERE id = 2")
        found = db.poll()
        assert sorted(found["totals"]) == [(("a", 1), -1), (("a", 5), 1), (("b", 2), -1)]
        assert contents(db) == [(1, "a", 5)]
        epoch = db.epoch
        assert db.poll() == {}
        assert db.epoch == epoch


def test_only_its_source_changes_a_table(items: Any) -> None:
    make, _ = items
    with ev.connect() as db:
        db.attach("item", make())
        with pytest.raises(DefinitionError, match="follows a source"):
            db.sql("INSERT INTO item VALUES (1, 'a', 1)")
        with pytest.raises(DefinitionError, match="follows a source"):
            db.apply({"item": [((1, "a", 1), 1)]})


def test_it_goes_on_after_a_restart(items: Any, tmp_path: Path) -> None:
    make, writer = items
    writer.execute("INSERT INTO item VALUES (1, 'a', 1)")
    with ev.connect(tmp_path / "state") as db:
        db.attach("item", make())
        db.sql(TOTALS)
    writer.execute("INSERT INTO item VALUES (2, 'b', 2)")
    with ev.connect(tmp_path / "state") as db:
        assert contents(db) == [(1, "a", 1)]
        with pytest.raises(SourceError, match="not attached"):
            db.poll("item")
        source = make()
        db.attach("item", source)
        assert source.rows_read == 0, "it is not copied again"
        assert sorted(db.poll()["totals"]) == [(("b", 2), 1)]
        assert db.poll() == {}
        assert db.verify()


def test_a_source_that_lost_its_position_is_compared(items: Any, tmp_path: Path) -> None:
    make, writer = items
    writer.execute("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 2)")
    with ev.connect(tmp_path / "state") as db:
        db.attach("item", make())
    source = make()
    source.uninstall()
    source.close()
    writer.execute("UPDATE item SET n = 7 WHERE id = 1")
    with ev.connect(tmp_path / "state") as db:
        source = make()
        with pytest.raises(LostPosition, match="resync=True"):
            db.attach("item", source)
        told: list[Any] = []
        db.sql(TOTALS)
        db.view("totals").subscribe(lambda changes, _: told.extend(changes))
        db.attach("item", source, resync=True)
        assert sorted(told) == [(("a", 1), -1), (("a", 7), 1)]
        assert contents(db) == [(1, "a", 7), (2, "b", 2)]


class Crash(BaseException):
    """What nobody handles."""


STEPS = ["begin", "changes", "position", "commit", "settle"]


@pytest.mark.parametrize("at", [*STEPS, "store", "stored"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_between_two_steps_loses_and_doubles_nothing(
    items: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, when: str
) -> None:
    make, writer = items
    writer.execute("INSERT INTO item VALUES (1, 'a', 1)")
    db = ev.connect(tmp_path / "state")
    source = make()
    db.attach("item", source)
    db.sql(TOTALS)
    writer.execute("INSERT INTO item VALUES (2, 'a', 2)")
    writer.execute("UPDATE item SET n = 10 WHERE id = 1")
    target, name = (source, at) if at in STEPS else (db._core.run.durable.store, "commit")
    if at == "stored":
        target, name = db._core.run.durable, "settle"

    def crashing(*given: Any, **more: Any) -> Any:
        if when == "before":
            raise Crash
        done(*given, **more)
        raise Crash

    done = getattr(target, name)
    monkeypatch.setattr(target, name, crashing)
    with pytest.raises(Crash):
        db.poll()
    monkeypatch.undo()
    _abandon(db, source)
    with ev.connect(tmp_path / "state") as db:
        db.attach("item", make())
        db.poll()
        assert contents(db) == [(1, "a", 10), (2, "a", 2)]
        assert db.view("totals").rows() == [("a", 12)]
        writer.execute("INSERT INTO item VALUES (3, 'b', 3)")
        db.poll()
        assert db.poll() == {}
        assert len(contents(db)) == 3


def _abandon(db: Any, source: Any) -> None:
    """As if the process had ended: nothing is written any more, and what is open is closed by the system."""
    db._core.run.durable.store._release()
    source.link.session.connection.close()
    source.link._known.clear()


@pytest.mark.parametrize("at", ["pull", "position", "commit", "load"])
def test_a_crash_of_the_first_load(items: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    make, writer = items
    writer.execute("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 2)")
    db = ev.connect(tmp_path / "state")
    source = make()

    def crash(*_: Any, **__: Any) -> Any:
        raise Crash

    target, name = (source, at) if at != "load" else (db._core.transactions, "tick")
    monkeypatch.setattr(target, name, crash)
    monkeypatch.setattr(db._core.definitions, "drop", crash)  # a process that ends does not tidy up
    with pytest.raises(Crash):
        db.attach("item", source)
    monkeypatch.undo()
    _abandon(db, source)
    with ev.connect(tmp_path / "state") as db:
        db.attach("item", make())
        db.poll()
        assert contents(db) == [(1, "a", 1), (2, "b", 2)]


def test_a_load_that_fails_leaves_no_table(tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    writer.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, n INTEGER)")
    writer.execute("INSERT INTO item VALUES (1, 'what')")
    with ev.connect() as db:
        with pytest.raises(BadRows, match="'what' is no BIGINT"):
            db.attach("item", SQLite(tmp_path / "shop.db", "item"))
        assert db.tables() == []
        writer.execute("UPDATE item SET n = 1")
        db.attach("item", SQLite(tmp_path / "shop.db", "item"))
        writer.execute("INSERT INTO item VALUES (2, 'what')")
        with pytest.raises(BadRows, match="'what' is no BIGINT"):
            db.poll()
        assert contents(db) == [(1, 1)]
        writer.execute("UPDATE item SET n = 2 WHERE id = 2")
        db.poll()
        assert contents(db) == [(1, 1), (2, 2)]
    writer.close()


def test_sources_are_polled_together(items: Any) -> None:
    make, writer = items
    with ev.connect() as db:
        memory = Memory("id BIGINT, n BIGINT", "id", [(1, 1)])
        db.attach("item", make())
        db.attach("other", memory)
        db.sql("CREATE MATERIALIZED VIEW both AS SELECT i.name, o.n FROM item i JOIN other o ON o.id = i.id")
        ticks: list[Any] = []
        db.view("both").subscribe(lambda changes, epoch: ticks.append((sorted(changes), epoch)))
        writer.execute("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 2)")
        memory.write(Update({(1, 1): -1, (2, 9): 1}))
        db.poll()
        assert [changes for changes, _ in ticks] == [[(("b", 9), 1)]]
        writer.execute("DELETE FROM item")
        db.poll("other")
        assert len(ticks) == 1
        db.poll("item")
        assert ticks[-1][0] == [(("b", 9), -1)]


def test_a_listener_that_raises_undoes_nothing(items: Any) -> None:
    make, writer = items
    with ev.connect() as db:
        db.attach("item", make())
        db.sql(TOTALS)

        def listener(*_: Any) -> None:
            raise RuntimeError("no")

        listening = db.view("totals").subscribe(listener)
        writer.execute("INSERT INTO item VALUES (1, 'a', 1)")
        with pytest.raises(Exception, match="no"):
            db.poll()
        listening.close()
        assert contents(db) == [(1, "a", 1)]
        assert db.poll() == {}


def test_a_table_of_other_columns_is_refused(items: Any, tmp_path: Path) -> None:
    make, writer = items
    with ev.connect(tmp_path / "state") as db:
        db.attach("item", make())
    writer.execute("ALTER TABLE item ADD COLUMN more TEXT")
    with ev.connect(tmp_path / "state") as db, pytest.raises(SchemaDrift, match="more STRING"):
        db.attach("item", make())


def test_names_are_given_once(items: Any) -> None:
    make, _ = items
    with ev.connect() as db:
        db.create_table("plain", "id BIGINT")
        with pytest.raises(DefinitionError, match="follows no source"):
            db.attach("plain", make())
        db.attach("item", make())
        with pytest.raises(DefinitionError, match="attached"):
            db.attach("item", make())
        with pytest.raises(DefinitionError, match="already"):
            db.attach("item", make(), keep=False)
        db.attach("read", make(), keep=False)
        assert list(db.sources) == ["read"]
        with pytest.raises(SourceError, match="is no source"):
            db.attach("what", object())


def test_a_log_is_kept_until_the_tick_is_on_disk(items: Any, tmp_path: Path) -> None:
    make, writer = items
    db = ev.connect(tmp_path / "state", durability="none")
    source = make()
    db.attach("item", source)
    db.checkpoint()
    for i in range(5):
        writer.execute(f"INSERT INTO item VALUES ({i}, 'a', {i})")
        db.poll()
    _abandon(db, source)  # the ticks are lost, so the source must still know
    with ev.connect(tmp_path / "state") as db:
        db.attach("item", make())
        assert contents(db) == []
        db.poll()
        assert len(contents(db)) == 5


def test_a_table_that_is_dropped_is_followed_no_more(items: Any) -> None:
    make, writer = items
    with ev.connect() as db:
        db.attach("item", make())
        db.drop("item")
        writer.execute("INSERT INTO item VALUES (1, 'a', 1)")
        assert db.poll() == {}
        db.attach("item", make())
        assert contents(db) == [(1, "a", 1)]
        db.detach("item")
        assert contents(db) == [(1, "a", 1)]
        with pytest.raises(SourceError, match="not attached"):
            db.poll("item")


def test_two_tables_of_one_connection_are_followed_together(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    for table in "ab":
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)")
    with ev.connect(tmp_path / "state") as db:
        for table in "ab":
            db.attach(table, SQLite(connection, table, trim_every=1))
        for i in range(5):
            connection.execute("INSERT INTO a VALUES (?)", (i,))
            connection.execute("INSERT INTO b VALUES (?)", (-i,))
            epoch = db.epoch
            db.poll()
            assert db.epoch == epoch + 1
        assert sorted(db.table("a").rows()) == [(i,) for i in range(5)]
        assert len(db.table("b")) == 5
        (left,) = connection.execute('SELECT count(*) FROM "everview_changes:a"').fetchone()
        assert left == 0, "what has been taken in is forgotten"
    connection.close()


def test_a_source_that_cannot_commit_is_told_where_to_go_on(items: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make, writer = items
    with ev.connect() as db:
        source = make()
        db.attach("item", source)
        writer.execute("INSERT INTO item VALUES (1, 'a', 1)")

        def refused() -> None:
            source.link.session.abandon()
            raise SourceError("the server is gone", hint="wait")

        monkeypatch.setattr(source.link.session, "finish", refused)
        with pytest.raises(SourceError, match="gone"):
            db.poll()
        monkeypatch.undo()
        assert contents(db) == [(1, "a", 1)], "the tick counts"
        assert db.poll() == {}
        writer.execute("INSERT INTO item VALUES (2, 'b', 2)")
        db.poll()
        assert len(contents(db)) == 2
