"""Queries as views of a database: the shapes they have, what they are told, and that they last."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import everview as ev
from everview import agg
from everview.errors import DefinitionError, QueryError, UnknownName
from everview.frontends.fluent import from_text, to_text
from everview.types import Id, Symbol
from everview.views import OrderedView, ScalarView, TableView, TreeView
from frontends.fluent.drawn import Recipe, build, recipes
from frontends.fluent.music import Music, Tick, apply, create, filled
from frontends.fluent.test_drawn import held


@pytest.fixture
def db() -> Any:
    return filled_database()


def filled_database(path: Path | None = None) -> Any:
    found = ev.connect(path)
    create(found)
    with found.transaction() as tx:
        tx.insert("artist", [(1, "Ada", "UK"), (2, "Bob", None)])
        tx.insert("album", [(1, 1, "First", 1999), (2, 1, "Second", 2001), (3, 2, "Third", None)])
        tx.insert("track", [(1, 1, 1, "a", 5), (2, 1, 1, "b", 3), (3, 3, 2, "c", 4), (4, None, None, "d", None)])
        tx.insert("play", [(1, 1, 9.0), (2, 1, 3.5), (3, 3, None)])
    return found


def test_the_query_of_the_pipeline_example(db: Any) -> None:
    prepared = (
        db.query("track")
        .left_join(db.query("artist"), "artists", "track.artist_id", "id")
        .group_by("track.id")
        .select("track.*", "artist.*", agg.array("artists.*", "artists"))
        .order_by("track.rating", "desc")
        .limit(10_000)
        .prepare()
    )
    ada, bob = {"id": 1, "name": "Ada", "country": "UK"}, {"id": 2, "name": "Bob", "country": None}
    best = {"id": 1, "album_id": 1, "artist_id": 1, "name": "a", "rating": 5, "artist": ada, "artists": [ada]}
    found = prepared.run()
    assert found[0] == best
    assert [(row["id"], row["artist"], row["artists"]) for row in found] == [
        (1, ada, [ada]),
        (3, bob, [bob]),
        (2, ada, [ada]),
        (4, None, []),
    ]
    view = prepared.materialize("best")
    assert view.to_list() == found
    with db.transaction() as tx:
        tx.delete("artist", [(2,)])
        tx.upsert("track", [(2, 1, 1, "b", 9)])
    assert [(row["id"], row["artist"]) for row in view.to_list()] == [(2, ada), (1, ada), (3, None), (4, None)]
    assert "Scan track" in prepared.explain()
    assert db.verify()


def test_the_query_of_the_first_page(db: Any) -> None:
    recent = (
        db.query("track")
        .left_join(db.query("artist"), on=("artist_id", "id"), as_="artist")
        .where("rating", ">", 3)
        .order_by("name")
        .limit(10)
        .materialize("recent")
    )
    assert [(row["name"], row["artist"]["name"]) for row in recent.to_list()] == [("a", "Ada"), ("c", "Bob")]


def test_shapes(db: Any) -> None:
    tracks = db.query("track")
    assert isinstance(tracks.materialize(), TableView)
    assert isinstance(tracks.order_by("name").materialize(), OrderedView)
    assert isinstance(tracks.limit(2).materialize(), OrderedView)
    assert isinstance(tracks.select(agg.count()).materialize(), ScalarView)
    assert isinstance(tracks.join(db.query("artist"), on=("artist_id", "id")).materialize(), TreeView)
    assert isinstance(tracks.related_many("plays", db.query("play"), on=("id", "track_id")).materialize(), TreeView)
    assert db.query("track").where("id", 3).one().materialize().to_list()["name"] == "c"
    assert db.query("track").where("id", 9).one().materialize().data is None
    assert db.views()[:2] == ["track query 1", "track query 2"]


def test_trees_to_any_depth_with_limits_of_their_own(db: Any) -> None:
    plays = db.query("play").order_by("seconds", "desc").limit(1).select("seconds")
    tracks = db.query("track").order_by("rating", "desc").limit(1).related_many("plays", plays, on=("id", "track_id"))
    albums = db.query("album").select("title").related_many("tracks", tracks, on=("id", "album_id"))
    artists = db.query("artist").select("name").related_many("albums", albums, on=("id", "artist_id"))
    view = artists.related_one("first", db.query("album").order_by("year").select("title"), on=("id", "artist_id"))
    kept = view.materialize("artists")
    track = {"id": 1, "album_id": 1, "artist_id": 1, "name": "a", "rating": 5, "plays": [{"seconds": 9.0}]}
    assert kept.to_list()[0] == {
        "name": "Ada",
        "albums": [{"title": "First", "tracks": [track]}, {"title": "Second", "tracks": []}],
        "first": {"title": "First"},
    }
    before = kept.data
    told: list[Any] = []
    kept.subscribe(lambda changes, epoch: told.append(list(changes)))
    with db.transaction() as tx:
        tx.delete("play", [(1,)])
        tx.insert("track", [(9, 2, 1, "z", None)])
    assert kept.to_list() == view.run()
    assert len(told) == 1
    assert before[1] is kept.data[1]
    assert db.verify()


def test_parts_come_and_go_together(db: Any) -> None:
    query = db.query("artist").related_many("albums", db.query("album"), on=("id", "artist_id"))
    epoch = db.epoch
    view = query.materialize("artists")
    assert db.epoch <= epoch + 1
    assert db.views() == ["artists", "artists.albums"]
    with pytest.raises(DefinitionError, match="part of artists"):
        db.drop("artists.albums")
    with pytest.raises(DefinitionError, match="cannot be dropped: artists, artists"):
        db.drop("album")
    db.sql("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM `artists.albums`")
    with pytest.raises(DefinitionError, match="n reads it"):
        db.drop("artists")
    db.drop("artists", cascade=True)
    assert db.views() == []
    assert view.closed
    query.materialize("artists")
    db.drop("album", cascade=True)
    assert db.views() == []


def test_a_name_that_is_taken_leaves_everything_as_it_was(db: Any) -> None:
    db.sql("CREATE TABLE `artists.albums` (id BIGINT)")
    with pytest.raises(DefinitionError, match="already"):
        db.query("artist").related_many("albums", db.query("album"), on=("id", "artist_id")).materialize("artists")
    assert db.views() == []


def test_views_over_views_and_rules_of_names(db: Any) -> None:
    db.query("track").join(db.query("artist"), on=("artist_id", "id")).materialize("both")
    found = db.query("both").where("artist.name", "=", "Ada").select("id", who="artist.name").run()
    assert found == [{"id": 1, "who": "Ada"}, {"id": 2, "who": "Ada"}]
    db.sql("CREATE VIEW good AS SELECT id, name FROM track WHERE rating > 3")
    assert db.query("good").order_by("name", "desc").run() == [{"id": 3, "name": "c"}, {"id": 1, "name": "a"}]
    assert db.query("Good").select(agg.count()).run() == 2


def test_inside_a_transaction_a_query_sees_its_changes(db: Any) -> None:
    with db.transaction() as tx:
        tx.insert("track", [(9, None, None, "z", 9)])
        assert db.query("track").order_by("rating", "desc").one().run()["name"] == "z"


def test_pages_follow_each_other(db: Any) -> None:
    query = db.query("track").left_join(db.query("artist"), on=("artist_id", "id")).order_by("artist.name", "desc")
    whole, pages = query.run(), []
    page = query.limit(1).run()
    while page:
        pages += page
        page = query.limit(1).start_after(page[-1]).run()
    assert pages == whole
    assert len(whole) == 4


def test_queries_last(tmp_path: Path) -> None:
    db = filled_database(tmp_path / "state")
    query = (
        db.query("artist")
        .where("name", "in", ["Ada", "Bob"])
        .related_many("albums", db.query("album").order_by("year", "desc").limit(1), on=("id", "artist_id"))
    )
    query.materialize("artists")
    db.query("track").where("rating", ">", 3).order_by("name").materialize("best")
    before = query.run()
    db.close()
    db = ev.connect(tmp_path / "state")
    assert db.views() == ["artists", "artists.albums", "best"]
    view = db.view("artists").live()
    assert view.to_list() == before
    assert db.view("best").rows() == [(1, 1, 1, "a", 5), (3, 3, 2, "c", 4)]
    with db.transaction() as tx:
        tx.insert("album", [(9, 1, "Last", 2026)])
    assert view.to_list()[0]["albums"] == [{"id": 9, "artist_id": 1, "title": "Last", "year": 2026}]
    assert db.verify()
    db.drop("artists")
    db.close()
    with ev.connect(tmp_path / "state") as again:
        assert again.views() == ["best"]


@given(recipes(), filled())
@settings(max_examples=15)
def test_any_query_is_read_again_as_it_was(recipe: Recipe, first: Tick) -> None:
    db, music = ev.connect(), Music()
    create(db)
    apply(db, music, first)
    query = build(db, recipe)
    query.materialize("kept")
    text = to_text(query.said)
    assert to_text(from_text(text)) == text
    again = from_text(text)
    assert type(query)(query.home, again).run() == query.run() == held(db, "kept")


def test_values_of_all_types_are_stored() -> None:
    db = ev.connect()
    columns = "b BOOLEAN, i INTEGER, f DOUBLE, d DATE, t TIMESTAMP, m DECIMAL(12,2), s STRING, x BINARY, y SYMBOL, u ID"
    db.create_table("all", columns)
    row = (True, 3, float("nan"), dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3), decimal.Decimal("9.50"), "é", b"\0")
    row = (*row, Symbol("a"), Id("n1"))
    db.apply({"all": [(row, 1)]})
    query = db.query("all")
    for name, value in zip(columns.replace(",2", "").split(", "), row, strict=True):
        query = query.where(name.split()[0], "=", value)
    query = query.where("d", "=", "2026-01-02").where("t", ">", "2026-01-01").where("m", "=", "9.5")
    query = query.where("m", "<", 9.75).where("i", "=", decimal.Decimal(3)).where("b", "is", True)
    again = type(query)(query.home, from_text(to_text(query.said)))
    assert len(query.run()) == len(again.run()) == 1
    assert db.query("all").where("b", "is not", True).run() == []


def test_a_prepared_query_is_of_the_tables_as_they_are() -> None:
    db = ev.connect()
    db.create_table("t", "id BIGINT", key="id")
    prepared = db.query("t").prepare()
    assert prepared.run() == []
    db.drop("t")
    with pytest.raises(UnknownName):
        prepared.run()
    db.create_table("t", "name STRING, id BIGINT")
    db.apply({"t": [(("a", 1), 1)]})
    assert prepared.run() == [{"name": "a", "id": 1}]


def test_a_view_beneath_may_be_replaced(db: Any) -> None:
    db.sql("CREATE MATERIALIZED VIEW liked AS SELECT id, artist_id, name FROM track WHERE rating > 4")
    view = db.query("artist").related_many("liked", db.query("liked"), on=("id", "artist_id")).materialize("artists")
    assert [len(row["liked"]) for row in view.to_list()] == [1, 0]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW liked AS SELECT id, artist_id, name FROM track WHERE rating > 3")
    assert [len(row["liked"]) for row in view.to_list()] == [1, 1]
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW liked AS SELECT artist_id, id, rating FROM track WHERE rating > 3")
    assert db.view("artists").live().to_list()[0]["liked"] == [{"artist_id": 1, "id": 1, "rating": 5}]
    assert db.verify()


def test_a_bag_shows_its_rows_as_often_as_they_are_there() -> None:
    db = ev.connect()
    db.create_table("word", "text STRING, n BIGINT")
    db.create_table("seen", "text STRING")
    db.apply({"word": [(("a", 1), 2), (("b", None), 1)], "seen": [(("a",), 3)]})
    query = db.query("word").related_many("seen", db.query("seen"), on="text")
    view = query.materialize("words")
    a = {"text": "a", "n": 1, "seen": [{"text": "a"}] * 3}
    assert query.run() == view.to_list() == [a, a, {"text": "b", "n": None, "seen": []}]
    db.apply({"word": [(("a", 1), -1)], "seen": [(("a",), -2), (("b",), 1)]})
    a, b = {"text": "a", "n": 1, "seen": [{"text": "a"}]}, {"text": "b", "n": None, "seen": [{"text": "b"}]}
    assert query.run() == view.to_list() == [a, b]
    assert db.query("word").left_join(db.query("seen"), on="text").limit(1).run()[0]["seen"] == {"text": "a"}


def test_partners_of_which_nothing_is_known_to_be_there() -> None:
    """All columns of the partner may be NULL, and yet it is told apart from none."""
    db = ev.connect()
    db.create_table("left", "id BIGINT", key="id")
    db.create_table("right", "id BIGINT, note STRING")
    db.apply({"left": [((1,), 1), ((2,), 1)], "right": [((1, None), 1), ((None, "x"), 1)]})
    query = db.query("left").left_join(db.query("right").select("note"), "right", "id", "id")
    assert query.run() == [{"id": 1, "right": {"note": None}}, {"id": 2, "right": None}]
    view = query.materialize("both")
    db.apply({"right": [((1, None), -1), ((2, None), 1)]})
    assert view.to_list() == [{"id": 1, "right": None}, {"id": 2, "right": {"note": None}}]
    grouped = (
        db.query("left").left_join(db.query("right"), on="id").group_by("right.note").select("right.note", agg.count())
    )
    assert sorted(map(repr, grouped.run())) == ["{'right': {'note': None}, 'count': 2}"]


def test_a_query_of_a_part(db: Any) -> None:
    albums = db.query("album").select("title")
    db.query("artist").select("name").related_many("albums", albums, on=("id", "artist_id")).materialize("tree")
    part = db.query("tree.albums")
    titles = [{"title": "First"}, {"title": "Second"}, {"title": "Third"}]
    assert part.select("title").order_by("tree.albums.title").run() == titles
    assert part.where("tree.albums.title", "First").select("tree.albums.title").run() == titles[:1]
    pairs = db.query("album").left_join(part, on="title").select("id", "tree.albums.title").where("id", 1)
    assert pairs.run() == [{"id": 1, "tree.albums": {"title": "First"}}]
    assert pairs.materialize("pairs").to_list() == pairs.run()


def test_names_with_dots(db: Any) -> None:
    query = (
        db.query("track", "a").left_join(db.query("artist"), "a.b", on=("artist_id", "id")).order_by("a.b.name", "desc")
    )
    page = query.select("a.id", "a.b.name").limit(2)
    assert page.run() == [{"id": 3, "a.b": {"name": "Bob"}}, {"id": 1, "a.b": {"name": "Ada"}}]
    assert page.start_after(page.run()[-1]).run() == [{"id": 2, "a.b": {"name": "Ada"}}, {"id": 4, "a.b": None}]


def test_columns_are_ordered_by_as_they_are_compared(db: Any) -> None:
    found = db.query("track").order_by(ev.col("rating"), "desc", ev.col("id")).select("id").limit(2).run()
    assert found == [{"id": 1}, {"id": 3}]


def test_a_view_with_parts_is_not_replaced(db: Any) -> None:
    query = db.query("artist").related_many("albums", db.query("album"), on=("id", "artist_id"))
    view = query.materialize("tree")
    before = db._core.catalog
    for name in ("tree", "tree.albums"):
        with pytest.raises(DefinitionError, match="part") as error:
            db.sql(f'CREATE OR REPLACE MATERIALIZED VIEW "{name}" AS SELECT 1 AS one')
        assert error.value.hint is not None
    assert db._core.catalog is before
    db.sql("INSERT INTO album VALUES (4, 2, 'Fourth', 2002)")
    assert view.to_list() == query.run()
    db.query("artist").materialize("flat")
    db.sql("CREATE OR REPLACE MATERIALIZED VIEW flat AS SELECT 1 AS one")
    assert db.view("flat").rows() == [(1,)]


def test_pages_of_rows_with_records() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (a ARRAY<STRUCT<x: INT, y: ARRAY<FLOAT>>>, b STRUCT<x: INT, y: STRING>)")
    rows = [([{"x": 1, "y": [0.5, None]}], {"x": 1, "y": "q"}), (None, {"x": 2, "y": None}), ([None], None)]
    db.apply({"t": [(row, 1) for row in rows]})
    query = db.query("t").order_by("b", "desc", "a")
    found = query.run()
    assert [query.start_after(row).run() for row in found] == [found[1:], found[2:], []]
    assert db.query("t").where("b", "=", (1, "q")).run() == [dict(zip("ab", rows[0], strict=True))]


def test_distinct_is_of_what_is_shown(db: Any) -> None:
    db.sql("INSERT INTO artist VALUES (3, 'Ada', 'DE')")
    db.sql("INSERT INTO track VALUES (5, NULL, 3, 'a', 5), (6, NULL, 9, 'd', 1)")
    names = db.query("track").left_join(db.query("artist"), on=("artist_id", "id")).select("name", "artist.name")
    query = names.distinct().order_by("name")
    wanted = [("a", {"name": "Ada"}), ("b", {"name": "Ada"}), ("c", {"name": "Bob"}), ("d", None)]
    view = query.materialize("names")
    assert [(row["name"], row["artist"]) for row in query.run()] == wanted
    assert view.to_list() == query.run()
    db.sql("DELETE FROM artist WHERE id = 3")
    assert query.run() == [
        {"name": "a", "artist": None},
        *(dict(zip(("name", "artist"), w, strict=True)) for w in wanted),
    ]
    assert view.to_list() == query.run()
    assert db.verify()
    with pytest.raises(QueryError, match="not among the columns that are distinct"):
        names.distinct().order_by("artist.id")


def test_pages_of_rows_without_partners(db: Any) -> None:
    db.sql("CREATE TABLE note (k BIGINT, v STRING)")
    db.sql("INSERT INTO note VALUES (1, 'a'), (NULL, 'a'), (NULL, NULL), (2, NULL)")
    notes, artists = db.query("note"), db.query("artist")
    queries = [
        notes.left_join(notes, "other", on="v").order_by("other.k", "desc"),
        notes.left_join(artists, on=("k", "id")).select("v", "artist.country").distinct(),
    ]
    for query in queries:
        found = query.run()
        assert len(found) > 2
        assert [query.start_after(row).run() for row in found] == [found[at + 1 :] for at in range(len(found))]
