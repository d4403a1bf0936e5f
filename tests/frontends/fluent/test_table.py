"""Queries beside what SQL says of the same data: DuckDB's and SQLite's answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

import everview as ev
from everview import agg, col

ARTISTS = [(1, "Ada", "UK"), (2, "Bob", None), (3, "Cleo", "DE"), (4, "Dora", "DE")]
ALBUMS = [(1, 1, "First", 1999), (2, 1, "Second", 2001), (3, 3, "Third", None), (4, None, "Lost", 2020)]
TRACKS = [
    (1, 1, 1, "a", 5),
    (2, 1, 1, "b", 3),
    (3, 2, 1, "c", None),
    (4, 3, 3, "ab", 4),
    (5, None, 2, None, 1),
    (6, 9, 9, "A%", 3),
    (7, 3, None, "é", 5),
]
ROWS = {"artist": ARTISTS, "album": ALBUMS, "track": TRACKS}
COLUMNS = {
    "artist": "id BIGINT PRIMARY KEY, name VARCHAR, country VARCHAR",
    "album": "id BIGINT PRIMARY KEY, artist_id BIGINT, title VARCHAR, year INTEGER",
    "track": "id BIGINT PRIMARY KEY, album_id BIGINT, artist_id BIGINT, name VARCHAR, rating BIGINT",
}

Ask = Callable[[Any], Any]
CASES: dict[str, tuple[Ask, str]] = {
    "all columns": (lambda db: db.query("artist"), "SELECT * FROM artist"),
    "equality": (
        lambda db: db.query("artist").where("country", "=", "DE"),
        "SELECT * FROM artist WHERE country = 'DE'",
    ),
    "equality is short": (lambda db: db.query("artist").where("id", 3), "SELECT * FROM artist WHERE id = 3"),
    "inequality leaves NULL out": (
        lambda db: db.query("artist").where("country", "!=", "DE"),
        "SELECT * FROM artist WHERE country <> 'DE'",
    ),
    "in": (lambda db: db.query("track").where("rating", "in", [3, 4]), "SELECT * FROM track WHERE rating IN (3, 4)"),
    "in with NULL": (
        lambda db: db.query("track").where("rating", "in", [3, None]),
        "SELECT * FROM track WHERE rating IN (3, NULL)",
    ),
    "not in": (
        lambda db: db.query("track").where("rating", "not in", [3]),
        "SELECT * FROM track WHERE rating NOT IN (3)",
    ),
    "not in with NULL": (
        lambda db: db.query("track").where("rating", "not in", [3, None]),
        "SELECT * FROM track WHERE rating NOT IN (3, NULL)",
    ),
    "in of nothing": (lambda db: db.query("track").where("rating", "in", []), "SELECT * FROM track WHERE FALSE"),
    "not in of nothing": (lambda db: db.query("track").where("rating", "not in", []), "SELECT * FROM track"),
    "is": (lambda db: db.query("track").where("rating", "is", None), "SELECT * FROM track WHERE rating IS NULL"),
    "is not": (
        lambda db: db.query("track").where(col("rating").is_not_null()),
        "SELECT * FROM track WHERE rating IS NOT NULL",
    ),
    "= None is never true": (
        lambda db: db.query("track").where("rating", "=", None),
        "SELECT * FROM track WHERE FALSE",
    ),
    "between": (
        lambda db: db.query("track").where("rating", "between", (3, 4)),
        "SELECT * FROM track WHERE rating BETWEEN 3 AND 4",
    ),
    "not between": (
        lambda db: db.query("track").where("rating", "not between", (3, 4)),
        "SELECT * FROM track WHERE rating NOT BETWEEN 3 AND 4",
    ),
    "a number between integers": (
        lambda db: db.query("track").where("rating", ">", 3.5),
        "SELECT * FROM track WHERE rating > 3.5",
    ),
    "like": (lambda db: db.query("track").where("name", "like", "a%"), "SELECT * FROM track WHERE name GLOB 'a*'"),
    "not like": (
        lambda db: db.query("track").where("name", "not like", "a%"),
        "SELECT * FROM track WHERE NOT name GLOB 'a*'",
    ),
    "ilike": (
        lambda db: db.query("track").where(col("name").ilike("A%")),
        "SELECT * FROM track WHERE lower(name) LIKE 'a%'",
    ),
    "and, or, not": (
        lambda db: db.query("track").where(ev.or_(("rating", ">", 4), ev.and_(("rating", "<", 2), ("id", ">", 1)))),
        "SELECT * FROM track WHERE rating > 4 OR (rating < 2 AND id > 1)",
    ),
    "not of unknown": (
        lambda db: db.query("track").where(ev.not_("rating", ">", 3)),
        "SELECT * FROM track WHERE NOT rating > 3",
    ),
    "operators": (
        lambda db: db.query("track").where(((col("rating") >= 4) | (col("rating") <= 1)) & ~(col("id") == 7)),
        "SELECT * FROM track WHERE (rating >= 4 OR rating <= 1) AND NOT id = 7",
    ),
    "columns of one row": (
        lambda db: db.query("track").where("album_id", "!=", col("artist_id")),
        "SELECT * FROM track WHERE album_id <> artist_id",
    ),
    "selected and renamed": (
        lambda db: db.query("track").select("name", stars="rating"),
        "SELECT name, rating AS stars FROM track",
    ),
    "distinct": (
        lambda db: db.query("track").select("rating").distinct(),
        "SELECT DISTINCT rating FROM track",
    ),
    "join": (
        lambda db: db.query("track").join(db.query("artist"), on=("artist_id", "id")).select("name", who="artist.name"),
        "SELECT t.name, a.name AS who FROM track t JOIN artist a ON t.artist_id = a.id",
    ),
    "left join": (
        lambda db: (
            db.query("track").left_join(db.query("artist"), on=("artist_id", "id")).select("id", who="artist.name")
        ),
        "SELECT t.id, a.name AS who FROM track t LEFT JOIN artist a ON t.artist_id = a.id",
    ),
    "left join and where on the partner": (
        lambda db: (
            db.query("track")
            .left_join(db.query("artist"), on=("artist_id", "id"))
            .where("artist.country", "is", None)
            .select("id")
        ),
        "SELECT t.id FROM track t LEFT JOIN artist a ON t.artist_id = a.id WHERE a.country IS NULL",
    ),
    "left join of a filtered query": (
        lambda db: (
            db.query("track")
            .left_join(db.query("artist").where("country", "DE"), "a", "track.artist_id", "id")
            .select("id", who="a.name")
        ),
        "SELECT t.id, a.name AS who FROM track t LEFT JOIN (SELECT * FROM artist WHERE country = 'DE') a "
        "ON t.artist_id = a.id",
    ),
    "two joins, the second by the first": (
        lambda db: (
            db.query("track")
            .join(db.query("album"), on=("album_id", "id"))
            .join(db.query("artist"), on=("album.artist_id", "id"))
            .select("id", title="album.title", who="artist.name")
        ),
        "SELECT t.id, al.title, a.name AS who FROM track t JOIN album al ON t.album_id = al.id "
        "JOIN artist a ON al.artist_id = a.id",
    ),
    "self join": (
        lambda db: (
            db.query("track", "t").join(db.query("track"), on=("rating", "rating"), as_="u").select("id", u="u.id")
        ),
        "SELECT t.id, u.id AS u FROM track t JOIN track u ON t.rating = u.rating",
    ),
    "join on two columns": (
        lambda db: (
            db.query("track")
            .join(db.query("album"), on=[("album_id", "id"), ("artist_id", "artist_id")])
            .select("id", "album.title")
        ),
        "SELECT t.id, a.title FROM track t JOIN album a ON t.album_id = a.id AND t.artist_id = a.artist_id",
    ),
    "exists": (
        lambda db: db.query("artist").exists(db.query("track").where("rating", ">", 3), on=("id", "artist_id")),
        "SELECT * FROM artist a WHERE EXISTS (SELECT 1 FROM track t WHERE t.rating > 3 AND t.artist_id = a.id)",
    ),
    "not exists": (
        lambda db: db.query("track").not_exists(db.query("artist"), on=("artist_id", "id")),
        "SELECT * FROM track t WHERE NOT EXISTS (SELECT 1 FROM artist a WHERE t.artist_id = a.id)",
    ),
    "group by": (
        lambda db: db.query("track").group_by("artist_id").select("artist_id", n=agg.count(), best=agg.max("rating")),
        "SELECT artist_id, count(*) AS n, max(rating) AS best FROM track GROUP BY artist_id",
    ),
    "group by, selected first": (
        lambda db: db.query("track").select("rating", agg.count("*", "n")).group_by("rating"),
        "SELECT rating, count(*) AS n FROM track GROUP BY rating",
    ),
    "aggregates of all rows": (
        lambda db: db.query("track").select(
            agg.count("rating", "n"), agg.sum("rating", "s"), agg.avg("rating", "m"), agg.min("name", "low")
        ),
        "SELECT count(rating) AS n, sum(rating) AS s, avg(rating) AS m, min(name) AS low FROM track",
    ),
    "count of different values": (
        lambda db: db.query("track").select(agg.count("rating", "n", distinct=True), agg.count("*", "m")),
        "SELECT count(DISTINCT rating) AS n, count(*) AS m FROM track",
    ),
    "aggregates of no rows": (
        lambda db: db.query("track").where("id", 99).select(agg.count("*", "n"), agg.sum("rating", "s")),
        "SELECT count(*) AS n, sum(rating) AS s FROM track WHERE id = 99",
    ),
    "having": (
        lambda db: db.query("track").group_by("artist_id").select("artist_id", n=agg.count()).having("n", ">", 1),
        "SELECT artist_id, count(*) AS n FROM track GROUP BY artist_id HAVING count(*) > 1",
    ),
    "groups of a join": (
        lambda db: (
            db.query("track")
            .join(db.query("artist"), on=("artist_id", "id"))
            .group_by("artist.country")
            .select(country="artist.country", n=agg.count())
        ),
        "SELECT a.country, count(*) AS n FROM track t JOIN artist a ON t.artist_id = a.id GROUP BY a.country",
    ),
    "what follows from the key of the group": (
        lambda db: (
            db.query("artist")
            .left_join(db.query("track"), on=("id", "artist_id"))
            .group_by("id")
            .select("id", "name", n=agg.count("track.id"))
        ),
        "SELECT a.id, a.name, count(t.id) AS n FROM artist a LEFT JOIN track t ON t.artist_id = a.id "
        "GROUP BY a.id, a.name",
    ),
    "a join with groups": (
        lambda db: (
            db.query("artist")
            .join(db.query("track").group_by("artist_id").select("artist_id", n=agg.count()), "t", "id", "artist_id")
            .select("name", n="t.n")
        ),
        "SELECT a.name, t.n FROM artist a JOIN (SELECT artist_id, count(*) AS n FROM track GROUP BY artist_id) t "
        "ON a.id = t.artist_id",
    ),
    "a join with the first rows": (
        lambda db: (
            db.query("artist")
            .join(db.query("track").order_by("rating", "desc").limit(3), "t", "id", "artist_id")
            .select("name", track="t.id")
        ),
        "SELECT a.name, t.id AS track FROM artist a JOIN (SELECT * FROM track WHERE rating IS NOT NULL "
        "ORDER BY rating DESC, id LIMIT 3) t ON a.id = t.artist_id",
    ),
}
ORDERED: dict[str, tuple[Ask, str]] = {
    "ascending": (lambda db: db.query("track").order_by("rating"), "ORDER BY rating NULLS FIRST, id"),
    "descending": (lambda db: db.query("track").order_by("rating", "desc"), "ORDER BY rating DESC NULLS LAST, id"),
    "two columns": (
        lambda db: db.query("track").order_by("rating", "desc", "name", "desc"),
        "ORDER BY rating DESC NULLS LAST, name DESC NULLS LAST, id",
    ),
    "in words": (
        lambda db: db.query("track").order_by("rating desc", "name asc"),
        "ORDER BY rating DESC NULLS LAST, name NULLS FIRST, id",
    ),
    "limit": (lambda db: db.query("track").order_by("name").limit(3), "ORDER BY name NULLS FIRST, id LIMIT 3"),
    "limit alone": (lambda db: db.query("track").limit(2), "ORDER BY id LIMIT 2"),
    "limit of none": (lambda db: db.query("track").limit(0), "ORDER BY id LIMIT 0"),
    "start after": (
        lambda db: db.query("track").order_by("rating", "desc").start_after({"rating": 3, "id": 2}).limit(2),
        "WHERE rating < 3 OR rating IS NULL OR (rating = 3 AND id > 2) ORDER BY rating DESC NULLS LAST, id LIMIT 2",
    ),
    "start after NULL, ascending": (
        lambda db: db.query("track").order_by("rating").start_after({"rating": None, "id": 3}),
        "WHERE rating IS NOT NULL OR (rating IS NULL AND id > 3) ORDER BY rating NULLS FIRST, id",
    ),
    "start after NULL, descending": (
        lambda db: db.query("track").order_by("rating", "desc").start_after({"rating": None, "id": 2}),
        "WHERE rating IS NULL AND id > 2 ORDER BY id",
    ),
}


@pytest.fixture(scope="module")
def db() -> Any:
    found = ev.connect()
    for table, columns in COLUMNS.items():
        found.sql(f"CREATE TABLE {table} ({columns.replace('VARCHAR', 'STRING')})")
        with found.transaction() as tx:
            tx.insert(table, ROWS[table])
    return found


@pytest.fixture(scope="module")
def others() -> list[Any]:
    found: list[Any] = [duckdb.connect(), sqlite3.connect(":memory:")]
    for other in found:
        for table, columns in COLUMNS.items():
            other.execute(f"CREATE TABLE {table} ({columns})")
            for row in ROWS[table]:
                other.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return found


def as_rows(found: Any) -> list[tuple[Any, ...]]:
    """Dicts as tuples; a value as a row of one."""
    if not isinstance(found, list):
        return [(found,)]
    return [tuple(value for row in [tree] for value in _values(row)) for tree in found]


def _values(tree: dict[str, Any]) -> list[Any]:
    return [v for value in tree.values() for v in (_values(value) if isinstance(value, dict) else [value])]


def by_text(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=repr)


@pytest.mark.parametrize("case", CASES)
def test_queries_are_what_sql_says(case: str, db: Any, others: list[Any]) -> None:
    ask, sql = CASES[case]
    found = by_text(as_rows(ask(db).run()))
    for other in others:
        assert found == by_text(other.execute(sql).fetchall())


@pytest.mark.parametrize("case", ORDERED)
def test_orders_are_what_sql_says(case: str, db: Any, others: list[Any]) -> None:
    ask, sql = ORDERED[case]
    found = as_rows(ask(db).run())
    for other in others:
        assert found == [tuple(row) for row in other.execute(f"SELECT * FROM track {sql}").fetchall()]


@pytest.mark.parametrize("case", CASES)
def test_views_hold_what_queries_give(case: str, db: Any) -> None:
    query = CASES[case][0](db)
    view = query.materialize("kept")
    try:
        found = view.value if hasattr(view, "value") else view.to_list() if hasattr(view, "to_list") else view.rows()
        wanted = query.run()
        assert by_text(as_rows(list(found) if isinstance(wanted, list) else found)) == by_text(as_rows(wanted))
        assert db.verify()
    finally:
        db.drop("kept")
