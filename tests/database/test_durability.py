"""When a tick is on disk, what a crash loses, and that a directory opens as it was, definitions included."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from database.defined import ACCOUNT, TRANSFER, VIEWS, exposure
from everview import Circuit, Database, Embedded, connect
from everview.errors import DefinitionError, EverviewError, ForeignState, LockedState, StoreError
from everview.traces.store import FileSystem, Store

NEVER = 3600.0


def define(db: Database) -> None:
    db.create_table("account", ACCOUNT, key="id", defaults={"country": "UK"})
    db.create_table("transfer", TRANSFER)
    db.create_view("exposure", exposure)


def tick(db: Database, n: int) -> None:
    with db.transaction() as tx:
        tx.upsert("account", [(n % 7, f"owner {n}", "UK" if n % 2 else "DE")])
        tx.insert("transfer", [(n % 7, (n + 1) % 7, n)])


def crashed(path: Path, to: Path) -> Database:
    """The database as another process finds it when this one has just died."""
    shutil.copytree(path, to)
    return connect(to, views=VIEWS)


def contents(db: Database) -> Any:
    return {name: dict(db._core.holdings.contents_of(name)) for name in (*db.tables(), *db.views())}


def test_every_tick_survives(tmp_path: Path) -> None:
    with connect(tmp_path / "s") as db:
        define(db)
        for n in range(12):
            tick(db, n)
            with crashed(tmp_path / "s", tmp_path / str(n)) as other:
                assert (other.epoch, contents(other)) == (db.epoch, contents(db))
                tick(other, 99)
                assert other.verify()


@pytest.mark.parametrize("durability", ["periodic", "none"])
def test_a_crash_loses_the_last_ticks_only(durability: str, tmp_path: Path) -> None:
    db = connect(tmp_path / "s", durability=durability, period=NEVER)
    define(db)
    history = {db.epoch: contents(db)}
    for n in range(30):
        tick(db, n)
        history[db.epoch] = contents(db)
        if n % 10 == 4:
            db.checkpoint()
        if n % 7 == 0:
            with crashed(tmp_path / "s", tmp_path / str(n)) as other:
                saved = db._core.run.durable.epoch
                assert other.epoch == saved <= db.epoch
                assert contents(other) == history[saved]
                assert other.verify()
    assert db._core.run.durable.epoch < db.epoch
    assert db.verify()
    db.close()
    with connect(tmp_path / "s", views=VIEWS) as other:
        assert contents(other) == history[max(history)]
        assert other.epoch == max(history)


def test_periodic_saves_by_itself(tmp_path: Path) -> None:
    with connect(tmp_path / "s", durability="periodic", period=0.02) as db:
        define(db)
        tick(db, 1)
        for _ in range(500):
            if db._core.run.durable.epoch == db.epoch:
                break
            import time

            time.sleep(0.01)
        assert db._core.run.durable.epoch == db.epoch


def test_definitions_are_durable_at_once(tmp_path: Path) -> None:
    with connect(tmp_path / "s", durability="none") as db:
        define(db)
        tick(db, 1)
        db.create_view("pairs", VIEWS["pairs"])
        with crashed(tmp_path / "s", tmp_path / "other") as other:
            assert contents(other) == contents(db)


def test_a_save_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = connect(tmp_path / "s", durability="periodic", period=NEVER)
    define(db)
    tick(db, 1)

    def refuse(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(FileSystem, "append", refuse)
        with pytest.raises(StoreError):
            db.checkpoint()
        tick(db, 2)
    db.checkpoint()
    with crashed(tmp_path / "s", tmp_path / "other") as other:
        assert contents(other) == contents(db)
    tick(db, 3)
    db.close()
    with connect(tmp_path / "s", views=VIEWS) as other:
        assert len(other.table("transfer")) == 3


def test_a_failed_tick_among_unsaved_ones(tmp_path: Path) -> None:
    db = connect(tmp_path / "s", durability="none")
    define(db)
    tick(db, 1)
    with pytest.raises(KeyError), db.transaction() as tx:  # noqa: PT012
        tx.insert("account", [(9, "never", "FR")])
        raise KeyError
    tick(db, 2)
    expected = contents(db)
    db.vacuum()
    assert contents(db) == expected
    tick(db, 3)
    db.close()
    with connect(tmp_path / "s", views=VIEWS) as other:
        assert other.verify()
        assert len(other.table("transfer")) == 3


def test_reopening_brings_everything_back(tmp_path: Path) -> None:
    with connect(tmp_path / "s", shards=2) as db:
        define(db)
        db.create_view("plain", lambda of: of["account"].select("country"), materialized=False)
        db.create_view("by", lambda of: of["plain"].distinct())
        tick(db, 1)
        expected = db.tables(), db.views(), db.epoch, contents_of_all(db)
    views = {**VIEWS, "plain": lambda of: of["account"].select("country"), "by": lambda of: of["plain"].distinct()}
    with connect(tmp_path / "s", views=views) as db:
        assert (db.tables(), sorted(db.views()), db.epoch, contents_of_all(db)) == (
            expected[0],
            sorted(expected[1]),
            *expected[2:],
        )
        assert db._core.run.shards == 2
        assert db.table("account").key == ("id",)
        with db.transaction() as tx:
            tx.insert("account", [{"id": 77}])
        assert (77, None, "UK") in db.table("account").rows()


def contents_of_all(db: Database) -> Any:
    return {name: dict(db._core.holdings.contents_of(name)) for name in (*db.tables(), *db._core.run.views)}


def test_an_empty_directory(tmp_path: Path) -> None:
    connect(tmp_path / "s").close()
    with connect(tmp_path / "s") as db:
        assert (db.tables(), db.views(), db.epoch) == ([], [], 0)
        define(db)
    with connect(tmp_path / "s", views=VIEWS) as db:
        assert db.views() == ["exposure"]


def test_a_function_that_is_missing(tmp_path: Path) -> None:
    with connect(tmp_path / "s") as db:
        define(db)
    with pytest.raises(DefinitionError, match=r"connect\(path, views="):
        connect(tmp_path / "s")
    connect(tmp_path / "s", views=VIEWS).close()


def test_another_definition_is_loaded_anew(tmp_path: Path) -> None:
    """A state goes on under definitions that compute the same views in another way."""
    with connect(tmp_path / "s") as db:
        define(db)
        db.create_view("pairs", VIEWS["pairs"])
        for n in range(5):
            tick(db, n)
    with connect(tmp_path / "s", views={"exposure": VIEWS["by_country"], "pairs": VIEWS["pairs"]}) as db:
        assert db.verify()
        tick(db, 7)
        assert db.verify()
    with connect(tmp_path / "s", views={"exposure": VIEWS["by_country"], "pairs": VIEWS["pairs"]}) as db:
        assert db.verify()


def test_one_writer(tmp_path: Path) -> None:
    with connect(tmp_path / "s") as db:
        define(db)
        with pytest.raises(LockedState):
            connect(tmp_path / "s", views=VIEWS)
        tick(db, 1)
    with pytest.raises(StoreError, match="closed"):
        tick(db, 2)
    with pytest.raises(StoreError, match="closed"):
        db.create_table("x", "a BIGINT")
    db.close()


def test_foreign_states(tmp_path: Path) -> None:
    circuit = Circuit()
    circuit.source("t", "a BIGINT").sink("v")
    with Embedded(circuit, tmp_path / "circuit") as run:
        run.tick({"t": [((1,), 1)]})
    with pytest.raises(ForeignState, match="not of a database"):
        connect(tmp_path / "circuit")
    connect(tmp_path / "s", shards=2).close()
    with connect(tmp_path / "s", shards=2) as db:
        define(db)
    with pytest.raises(ForeignState, match="2 shards"):
        connect(tmp_path / "s", shards=3, views=VIEWS)


@pytest.mark.parametrize("wrong", [{"durability": "never"}, {"period": 0}, {"shards": 0}])
def test_wrong_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(EverviewError):
        connect(**wrong)


def test_old_epochs_and_vacuum(tmp_path: Path) -> None:
    with connect(tmp_path / "s") as db:
        define(db)
        for n in range(5):
            tick(db, n)
        db.create_view("pairs", VIEWS["pairs"])
        db.drop("exposure")
        tick(db, 6)
        db.vacuum()
        assert db.verify()
    assert Store.history(tmp_path / "s")[-1] == 11
    with connect(tmp_path / "s", views=VIEWS) as db:
        assert db.verify()


def test_values_of_rows_that_have_cancelled_are_let_go_of_on_disk_too(tmp_path: Path) -> None:
    """Small levels whose rows cancel are empty, but the slices of these rows were stored."""
    with connect(tmp_path / "state") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v STRING)")
        db.sql("CREATE MATERIALIZED VIEW first AS SELECT v FROM t ORDER BY v LIMIT 3")
        db.sql("INSERT INTO t VALUES (1, 'stays'), (2, 'too')")
        for n in range(6):
            if n == 3:
                db.vacuum()
            for weight in (1, -1):
                db.apply({"t": [((10 + n, f"goes {n}"), weight), ((20 + n, f"goes, too {n}"), weight)]})
        db.vacuum()
        with crashed(tmp_path / "state", tmp_path / "copy") as other:
            assert other.view("first").rows() == [("stays",), ("too",)]
            other.verify().raise_if_different()


def test_what_tables_hold_is_never_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a table come to be stored in another way, opening refuses, and the old way still opens."""
    from everview.operators.arrange import Arrange

    with connect(tmp_path / "s") as db:
        define(db)
        tick(db, 1)
        expected = contents(db)
    with monkeypatch.context() as patch:
        patch.setattr(Arrange, "__repr__", lambda self: "Arranged otherwise")
        with pytest.raises(ForeignState, match="table account"):
            connect(tmp_path / "s", views=VIEWS)
    with connect(tmp_path / "s", views=VIEWS) as db:
        assert contents(db) == expected
