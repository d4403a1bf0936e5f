"""Queries of a database over sources that are attached and not kept: the same answers, and living views."""

from __future__ import annotations

from typing import Any

import pytest

import everview as ev
from everview import agg
from everview.errors import DefinitionError, QueryError, UnknownName
from everview.sources.memory import Memory
from everview.views import OrderedView, ScalarView, TableView, TreeView
from frontends.fluent.music import TABLES


@pytest.fixture
def db() -> Any:
    found = ev.connect()
    tracks = [(n, n % 10 or None, n % 3 or None, f"t{n}", n % 7) for n in range(1, 201)]
    found.attach("artist", Memory(TABLES["artist"], "id", [(1, "Ada", "UK"), (2, "Bob", None)]), keep=False)
    found.attach("track", Memory(TABLES["track"], "id", tracks), keep=False)
    found.create_table("kept", "id BIGINT", key="id")
    return found


def test_answers_are_pulled(db: Any) -> None:
    best = db.query("track").order_by("rating", "desc").limit(2)
    source = db.sources["track"]
    before = source.rows_read
    assert [row["id"] for row in best.run()] == [6, 13]
    assert source.rows_read - before < 20
    assert db.query("track").where("id", 7).one().run()["name"] == "t7"
    assert db.query("track").select(agg.count()).run() == 200
    found = db.query("artist").related_many("best", best, on=("id", "artist_id")).run()
    assert [[row["id"] for row in artist["best"]] for artist in found] == [[13, 34], [20, 41]]


def test_views_follow_their_sources(db: Any) -> None:
    best = db.query("track").order_by("rating", "desc").limit(2)
    shapes: list[Any] = [
        best.materialize("best"),
        db.query("artist").materialize(),
        db.query("track").select(agg.count()).materialize(),
        db.query("artist").related_many("best", best, on=("id", "artist_id")).materialize("tree"),
    ]
    assert [type(shape) for shape in shapes] == [OrderedView, TableView, ScalarView, TreeView]
    ordered, table, count, tree = shapes
    with db._core.attached.pipeline.transaction() as tx:
        tx.delete("track", [6])
        tx.insert("track", [(900, None, 1, "new", 99)])
        tx.insert("artist", [(3, "Cleo", "DE")])
    assert [row["id"] for row in ordered.rows()] == [900, 13]
    assert len(table) == 3
    assert count.value == 200
    assert tree.to_list() == db.query("artist").related_many("best", best, on=("id", "artist_id")).run()
    assert db.views() == []  # they are not stored
    for shape in shapes:
        shape.close()
    assert db._core.attached.pipeline.feeds == ()


def test_what_is_kept_and_what_is_not_do_not_mix(db: Any) -> None:
    with pytest.raises(QueryError, match="different places") as error:
        db.query("track").join(db.query("kept"), on="id")
    assert "not kept" in str(error.value.hint)
    with pytest.raises(UnknownName):
        db.query("trakc")


@pytest.mark.parametrize("name", ["artist", "Artist"])
def test_a_source_shares_its_name_with_no_relation(db: Any, name: str) -> None:
    before = db._core.catalog
    with pytest.raises(DefinitionError, match='a source is attached as "artist" already'):
        db.sql(f"CREATE TABLE {name} (id BIGINT)")
    with pytest.raises(DefinitionError, match='a source is attached as "artist" already'):
        db.query("kept").materialize(name)
    assert db._core.catalog is before
    assert db.query(name).select("id").run() == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("name", ["", 3])
def test_a_view_over_sources_has_a_name(db: Any, name: Any) -> None:
    with pytest.raises(QueryError, match="is no name") as error:
        db.query("track").materialize(name)
    assert error.value.hint is not None
    assert db._core.attached.pipeline.feeds == ()
