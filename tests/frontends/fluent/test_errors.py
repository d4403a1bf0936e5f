"""What a query refuses: the error, when the method is called, and a hint that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import everview as ev
from everview import agg, col
from everview.errors import (
    BadPattern,
    DefinitionError,
    EverviewError,
    QueryError,
    StoreError,
    TypeMismatch,
    UnknownName,
    WrongArity,
    WrongType,
)
from frontends.fluent.music import create

Asks = Callable[[Any], Any]
# What is asked, the error, what its message says, and what its hint says.
CASES: list[tuple[Asks, type[EverviewError], str, str]] = [
    (lambda db: db.query("trakc"), UnknownName, 'relation "trakc" does not exist', 'did you mean "track"'),
    (lambda db: db.query("track").where("ratign", ">", 3), UnknownName, 'column "ratign"', 'did you mean "rating"'),
    (lambda db: db.query("track").select("ratign"), UnknownName, 'column "ratign"', 'did you mean "rating"'),
    (lambda db: db.query("track").select("artist.*"), UnknownName, 'relation "artist"', "available: track"),
    (lambda db: db.query("track").group_by("x"), UnknownName, 'column "x"', "available"),
    (lambda db: db.query("track").order_by("x"), UnknownName, 'column "x"', "available"),
    (lambda db: db.query("track").order_by(), QueryError, "order_by of nothing", "name columns"),
    (lambda db: db.query("track").order_by(3), QueryError, "3 names no column", "write its name"),
    (lambda db: db.query("track").group_by(), QueryError, "group_by of nothing", "name columns"),
    (lambda db: db.query("track").where("rating", "=>", 3), UnknownName, 'operator "=>"', "available"),
    (lambda db: db.query("track").where("rating", 3, 4), QueryError, "3 is no operator", "one of"),
    (lambda db: db.query("track").where("rating"), QueryError, "is no condition", "write"),
    (
        lambda db: db.query("track").where("rating", ">", "three"),
        TypeMismatch,
        "which is a str",
        "BIGINT",
    ),
    (lambda db: db.query("track").where("rating", ">", True), TypeMismatch, "which is a bool", "BIGINT"),
    (lambda db: db.query("track").where("name", "=", 3), TypeMismatch, "name = 3", "STRING"),
    (lambda db: db.query("track").where("name", "in", [1]), TypeMismatch, "name in 1", "STRING"),
    (lambda db: db.query("track").where("rating", "in", 3), QueryError, "single value", "write [3]"),
    (lambda db: db.query("track").where("name", "in", "abc"), QueryError, "single value", "write ['abc']"),
    (lambda db: db.query("track").where("rating", "between", (1, 2, 3)), QueryError, "between 3 values", "give a pair"),
    (lambda db: db.query("track").where("rating", "like", "3%"), TypeMismatch, "of type BIGINT", "STRING"),
    (lambda db: db.query("track").where("name", "like", 3), TypeMismatch, "name like 3", "a pattern is text"),
    (lambda db: db.query("track").where("rating", "is", 3), QueryError, "rating is 3", "takes None"),
    (lambda db: db.query("track").where("rating", "=", col("name")), TypeMismatch, "BIGINT and STRING", "like types"),
    (lambda db: db.query("track").where((col("rating") > 1) and (col("rating") < 3)), QueryError, "condition", "& | ~"),
    (lambda db: db.query("track").limit(-1), QueryError, "limit(-1)", "0 or more"),
    (lambda db: db.query("track").limit("3"), QueryError, "limit('3')", "whole number"),
    (lambda db: db.query("track").limit(True), QueryError, "limit(True)", "whole number"),
    (lambda db: db.query("track").having("rating", ">", 3), QueryError, "having without group_by", "where"),
    (
        lambda db: db.query("track").group_by("artist_id").having("rating", ">", 3).run(),
        QueryError,
        '"rating" has many values in a group',
        "group by it, too",
    ),
    (lambda db: db.query("track").select("name", agg.count()).run(), QueryError, '"name" has many values', "agg.min"),
    (lambda db: db.query("track").group_by("name").select("id").materialize(), QueryError, '"id" has many', "group by"),
    (lambda db: db.query("track").select(agg.sum("name")), TypeMismatch, "sum of name, of type STRING", "numbers"),
    (lambda db: db.query("track").select(agg.sum("track.*")), QueryError, "sum of track.*", "name a column"),
    (lambda db: db.query("track").select(agg.max("x")), UnknownName, 'column "x"', "available"),
    (
        lambda db: db.query("track").select("name", name="rating"),
        QueryError,
        "two columns are called",
        "name one",
    ),
    (lambda db: db.query("track").select(n="track.*"), QueryError, "track.* cannot be named n", "one by one"),
    (
        lambda db: db.query("track").join(db.query("artist"), on=("artist_id", "name")),
        TypeMismatch,
        "artist_id of type BIGINT is compared with name of type STRING",
        "one type",
    ),
    (lambda db: db.query("track").join(db.query("artist"), on=("x", "id")), UnknownName, 'column "x"', "available"),
    (lambda db: db.query("track").join(db.query("artist"), on=("id", "x")), UnknownName, 'column "x"', "available"),
    (lambda db: db.query("track").join(db.query("artist")), QueryError, "which columns are to be equal", "on="),
    (lambda db: db.query("track").join(db.query("artist"), on=3), QueryError, "on=3", "write on="),
    (lambda db: db.query("track").join(db.query("artist"), on=[("a",)]), QueryError, "no pair", "write"),
    (lambda db: db.query("track").join("artist", on="id"), QueryError, "'artist' is no query", "db.query"),
    (lambda db: db.query("track").join(db.query("track"), on="id"), QueryError, 'called "track"', "as_"),
    (
        lambda db: db.query("track").join(db.query("artist"), on="id", as_="name"),
        QueryError,
        '"name" is a column',
        "as_",
    ),
    (
        lambda db: db.query("track").join(db.query("artist"), on="id").join(db.query("artist"), on="id"),
        QueryError,
        'called "artist"',
        "as_",
    ),
    (
        lambda db: db.query("track").join(db.query("artist"), on="id").where("artist", "=", 3),
        QueryError,
        '"artist" is a joined relation',
        "artist.id, artist.name",
    ),
    (
        lambda db: db.query("track").join(db.query("artist"), on="id").where("country", "=", "UK"),
        UnknownName,
        'column "country"',
        "did you mean 'artist.country'?",
    ),
    (
        lambda db: db.query("track").join(db.query("artist"), on="id").where("artist.countri", "=", "UK"),
        UnknownName,
        'column "artist.countri"',
        'did you mean "country"',
    ),
    (
        lambda db: db.query("track").join(
            db.query("artist").related_many("albums", db.query("album"), on=("id", "artist_id")), on=("artist_id", "id")
        ),
        QueryError,
        "cannot be joined",
        "relate them to the outer query",
    ),
    (lambda db: db.query("track").join(ev.connect().query("track"), on="id"), UnknownName, "track", "available"),
    (
        lambda db: db.query("track").join(other().query("artist"), on="id"),
        QueryError,
        "different places",
        "one database",
    ),
    (
        lambda db: db.query("artist").related_many("name", db.query("album"), on=("id", "artist_id")),
        QueryError,
        'there is a field "name" already',
        "another name",
    ),
    (
        lambda db: db.query("artist").related_many("a", db.query("album").one(), on=("id", "artist_id")),
        QueryError,
        "to be many",
        "related_one",
    ),
    (
        lambda db: (
            db.query("artist").related_many("albums", db.query("album"), on=("id", "artist_id")).order_by("albums.year")
        ),
        QueryError,
        "lies beneath",
        "order it inside",
    ),
    (
        lambda db: (
            db.query("artist")
            .left_join(db.query("album"), on=("id", "artist_id"))
            .group_by("id")
            .select("id", agg.array("album.*"))
            .order_by("album")
        ),
        QueryError,
        '"album" is an array of records',
        "name a column",
    ),
    (
        lambda db: db.query("track").select("name").distinct().order_by("rating"),
        QueryError,
        "not among the columns that are distinct",
        "select it",
    ),
    (
        lambda db: db.query("track").order_by("rating").start_after({"id": 3}),
        WrongArity,
        "does not say its rating",
        "rating, id",
    ),
    (lambda db: db.query("track").start_after({"id": "x"}), TypeMismatch, "which is a str", "BIGINT"),
    (lambda db: db.query("track").start_after(3), QueryError, "is no row", "a dict"),
    (lambda db: db.query("track").where("rating", "=", object()), TypeMismatch, "which is a object", "BIGINT"),
    (lambda db: db.query("track").materialize("track"), DefinitionError, 'there is a table "track" already', "another"),
    (lambda db: db.query("track").materialize(""), DefinitionError, "a view has a name", "give one"),
    (lambda db: db.query("track").where((col("rating") > 1) & "x"), QueryError, "is no condition", "write"),
    (lambda db: db.query("track").where("x" | (col("rating") > 1)), QueryError, "is no condition", "write"),
    (lambda db: db.query("track").where("rating", "=", 10**50), TypeMismatch, "beyond all values", "BIGINT"),
    (lambda db: db.query("play").where("seconds", "<", 10**400), TypeMismatch, "beyond all values", "DOUBLE"),
    (lambda db: db.query("play").where("seconds", "<", Decimal("sNaN")), TypeMismatch, "beyond all values", "DOUBLE"),
    (lambda db: db.query("track").where("name", "like", "a\\"), BadPattern, "no pattern of LIKE", "may stand before"),
    (lambda db: db.query("track").limit(1 << 63), QueryError, "limit(", "less than 2^63"),
    (lambda db: db.query("track").select(agg.count("*", 3)), QueryError, "name is 3, not text", "count("),
    (lambda db: db.query("track").select(agg.count("*", "\ud800")), QueryError, "no valid text", "half of a character"),
    (lambda db: db.query("track").select(**{"\ud800": "id"}), QueryError, "no valid text", "half of a character"),
    (lambda db: db.query("track").select(agg.count(distinct=True)), QueryError, "distinct rows", "name a column"),
    (lambda db: db.query("track", 3), WrongType, "alias is 3, not text", "query(relation, alias=None)"),
    (lambda db: db.query("track", ""), QueryError, "'' is no name", "give a text"),
    (lambda db: db.query("track").exists(db.query("album")), QueryError, "which columns are to be equal", "on="),
    (lambda db: db.query("track").related_one("a", db.query("album")), QueryError, "which columns", "on="),
    (
        lambda db: db.query("artist").related_many("a.b", db.query("album"), on=("id", "artist_id")),
        QueryError,
        '"a.b" has a dot',
        "without one",
    ),
    (
        lambda db: db.query("artist").group_by("id").select("id", agg.array("artist.*", "a.b")),
        QueryError,
        '"a.b" has a dot',
        "without one",
    ),
    (  # an artist may have no partner, so the count is not the same for all of a country
        lambda db: (
            db.query("artist")
            .left_join(db.query("track").select(n=agg.count()), "all", on=("id", "n"))
            .group_by("country")
            .select("country", "all.n")
            .run()
        ),
        QueryError,
        '"all.n" has many values in a group',
        "group by it, too",
    ),
    (  # NULL is the artist of some tracks, and of artists that no group was found for
        lambda db: (
            db.query("artist")
            .left_join(db.query("track").group_by("artist_id").select("artist_id", n=agg.count()), "t", on=("id", "n"))
            .group_by("t.artist_id")
            .select("t.n")
            .run()
        ),
        QueryError,
        '"t.n" has many values in a group',
        "group by it, too",
    ),
]


def other() -> Any:
    found = ev.connect()
    create(found)
    return found


@pytest.fixture(scope="module")
def db() -> Any:
    return other()


@pytest.mark.parametrize("case", range(len(CASES)))
def test_what_cannot_be_is_refused_with_a_hint(case: int, db: Any) -> None:
    ask, kind, message, hint = CASES[case]
    before = db._core.catalog
    with pytest.raises(kind) as error:
        ask(db)
    assert message in error.value.message
    assert error.value.hint is not None
    assert hint in error.value.hint
    assert db._core.catalog is before


def test_a_query_never_changes(db: Any) -> None:
    tracks = db.query("track")
    best = tracks.where("rating", ">", 3)
    assert not tracks.said.where
    assert best.said.where
    with pytest.raises(UnknownName):
        best.where("x", 1)
    assert len(best.said.where) == 1


def test_a_list_that_changes_changes_no_query() -> None:
    found = ev.connect()
    found.sql("CREATE TABLE t (xs ARRAY<BIGINT>)")
    found.sql("INSERT INTO t VALUES (array(1, 2))")
    given = [1, 2]
    query = found.query("t").where("xs", "=", given)
    given.append(3)
    assert query.run() == [{"xs": [1, 2]}]
    for wrong in (["a"], [[1]], {"x": 1}):
        with pytest.raises(TypeMismatch):
            found.query("t").where("xs", "=", wrong)
    with pytest.raises(TypeMismatch, match="beyond all values"):
        found.query("t").where("xs", "=", [10**50])


def test_moments_beyond_all_dates() -> None:
    found = ev.connect()
    found.sql("CREATE TABLE t (at TIMESTAMP)")
    with pytest.raises(TypeMismatch, match="beyond all values"):
        found.query("t").where("at", ">", "0001-01-01T00:00:00+05:00")


def test_a_closed_database_answers_nothing() -> None:
    found = other()
    query = found.query("track")
    found.close()
    with pytest.raises(StoreError, match="closed"):
        query.run()
