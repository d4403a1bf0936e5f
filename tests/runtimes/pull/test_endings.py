"""How views over sources end: with their holder, inside of transactions, with the database; and who is told so."""

from __future__ import annotations

import gc
import sqlite3
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import everview as ev
from everview.errors import ListenerError, PipelineError, SourceError, UnknownName
from everview.plan.nodes import Distinct, Project, Scan
from everview.pull import Pipeline
from everview.runtimes.pull.node import every_node
from everview.sources import Memory, SQLite
from everview.sources.protocol import Request


def bad() -> None:
    raise ValueError("bad")


def attached() -> ev.Database:
    db = ev.connect()
    db.attach("m", Memory("id BIGINT, name STRING", "id", [(1, "a")]), keep=False)
    return db


@pytest.mark.parametrize("close", [True, False])
def test_a_view_may_go_inside_of_a_transaction(close: bool) -> None:
    with attached() as db:
        view = db.query("m").order_by("name").limit(2).materialize("v")
        other = db.query("m").materialize("w")
        with db.transaction() as tx:
            tx.insert("m", [(2, "b")])
            if close:
                view.close()
            del view
            gc.collect()
        assert len(db._core.attached.pipeline.feeds) == 1
        assert len(other) == 2
        again = db.query("m").order_by("name").limit(2).materialize("v")
        assert [row["id"] for row in again] == [1, 2]


def test_who_lets_a_view_go_waits_for_nobody() -> None:
    """Views are closed by the collector of garbage, too, in a thread that may hold what others wait for."""
    with attached() as db:
        views = [db.query("m").materialize("v")]
        with db.transaction() as tx:
            tx.insert("m", [(2, "b")])
            other = Thread(target=views.clear)
            other.start()
            other.join(5)
            assert not other.is_alive()
        db.poll()
        assert db._core.attached.pipeline.feeds == ()


def test_a_view_that_goes_while_another_comes_leaves_no_node() -> None:
    """Nodes without a view hear of no changes, so nobody may find them later."""
    rows = Memory("id BIGINT", "id", [(1,)])
    pipeline = Pipeline({"m": rows})
    scan = Scan("m", rows.schema)
    first = pipeline.attach(Distinct(Project(scan, (scan.columns[0],), ("n",))))
    pulled = rows.pull

    def pull(request: Request) -> Any:
        if first in pipeline.feeds:
            first.close()
        return pulled(request)

    rows.pull = pull  # pyright: ignore[reportAttributeAccessIssue]
    second = pipeline.attach(scan)
    needed = {id(node) for node in every_node(second.root)}
    assert {id(node) for node in pipeline._nodes.values()} <= needed  # pyright: ignore[reportPrivateUsage]


def test_the_database_ends_views_over_sources() -> None:
    db = attached()
    view = db.query("m").materialize("v")
    over: list[int] = []
    view.subscribe(lambda changes, epoch: None, ended=lambda: over.append(1))
    changes = view.changes()
    query = db.query("m")
    db.close()
    assert over == [1]
    assert view.closed
    assert list(changes) == []
    assert view.rows() == [{"id": 1, "name": "a"}]
    for ask in (query.run, query.materialize):
        with pytest.raises(PipelineError, match="closed"):
            ask()


def test_who_raises_at_the_end_keeps_it_from_nobody(tmp_path: Path) -> None:
    db = ev.connect(tmp_path / "state")
    db.create_table("t", "id BIGINT", key="id")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t; CREATE MATERIALIZED VIEW w AS SELECT id FROM t")
    db.attach("m", Memory("id BIGINT", "id"), keep=False)
    over: list[str] = []
    for name in ("v", "w"):
        db.view(name).subscribe(lambda changes, epoch: None, ended=bad)
        db.view(name).subscribe(lambda changes, epoch: None, ended=lambda name=name: over.append(name))
    pulled = db.query("m").materialize("p")
    pulled.subscribe(lambda changes, epoch: None, ended=bad)
    pulled.subscribe(lambda changes, epoch: None, ended=lambda: over.append("p"))
    with pytest.raises(ListenerError, match="ValueError when view v ended"):
        db.drop("v")
    assert db.views() == ["w"]
    with pytest.raises(ListenerError, match="ended"):
        db.close()
    assert over == ["v", "w", "p"]
    ev.connect(tmp_path / "state").close()


def test_listeners_hear_of_a_tick_though_a_source_refuses_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    shop = sqlite3.connect(path, isolation_level=None)
    shop.execute("CREATE TABLE s (id INTEGER PRIMARY KEY)")
    with ev.connect() as db:
        db.create_table("t", "id BIGINT", key="id")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
        source = SQLite(path, "s")
        source.link.session.connection.execute("PRAGMA busy_timeout = 10")
        db.attach("s", source, keep=False)
        living = db.view("v").ordered("id")
        shop.execute("BEGIN")
        shop.execute("SELECT * FROM s").fetchall()  # who reads keeps others from committing
        with pytest.raises(SourceError, match="locked"), db.transaction() as tx:
            tx.apply({"s": [((1,), 1)], "t": [((1,), 1)]})
        assert db.table("t").rows() == living.rows() == [(1,)]
        shop.execute("COMMIT")
        assert list(source.pull(Request())) == []
    shop.close()


def test_a_listener_that_raises_is_named_once() -> None:
    with attached() as db:
        view = db.query("m").materialize("v")
        view.subscribe(lambda changes, epoch: bad())
        with pytest.raises(ListenerError) as raised, db.transaction() as tx:
            tx.insert("m", [(2, "b")])
        assert isinstance(raised.value.__cause__, ValueError)
        assert "ListenerError" not in str(raised.value)


def test_rows_of_sources_are_set_in_part() -> None:
    with attached() as db:
        with db.transaction() as tx:
            assert tx.update("m", [{"id": 1, "name": "b"}, {"id": 99, "name": "nobody"}]) == 1
        assert [row["name"] for row in db.query("m").where("id", "=", 1).run()] == ["b"]
        with pytest.raises(UnknownName, match="nmae"), db.transaction() as tx:
            tx.update("m", [{"id": 1, "nmae": "c"}])


def test_a_key_of_all_columns_is_a_key() -> None:
    with ev.connect() as db:
        source = Memory("a BIGINT, b BIGINT", ("a", "b"), [(1, 1)])
        db.attach("kept", source)
        assert db._core.catalog.tables["kept"].key == ("a", "b")
        db.detach("kept")
        db.attach("m", source, keep=False)
        with db.transaction() as tx:
            assert tx.upsert("m", [(1, 1), (1, 2)]) == 2
        assert sorted(source.pull(Request())) == [(1, 1), (1, 2)]
