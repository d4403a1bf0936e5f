"""How many rows are read: a handful of a million by key, about ten of a million by an order; and lazily."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everview.sources import Memory, Postgres, SQLite
from everview.sources.protocol import All, Any_, Compare, Request, Update

MILLION = 1_000_000


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SQLite]:
    connection = sqlite3.connect(tmp_path_factory.mktemp("million") / "db", isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE track (id INTEGER PRIMARY KEY, artist INT NOT NULL, played INT)")
    connection.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
        " INSERT INTO track SELECT i, i % 1000, i * 7919 % 1000003 FROM n"
    )
    connection.execute("CREATE INDEX by_played ON track (played)")
    connection.execute("CREATE INDEX by_artist ON track (artist)")
    yield SQLite(connection, "track")
    connection.close()


@pytest.fixture(scope="module")
def postgres_table(postgres: str) -> Iterator[Postgres]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE track AS SELECT i AS id, i % 1000 AS artist, (i::bigint * 7919 % 1000003)::int AS played"
            " FROM generate_series(1, 1000000) AS i"
        )
        connection.execute("ALTER TABLE track ADD PRIMARY KEY (id)")
        connection.execute("CREATE INDEX ON track (played NULLS FIRST)")
        connection.execute("CREATE INDEX ON track (artist)")
        connection.execute("ANALYZE track")
        source = Postgres(connection, "track")
        yield source
        source.close()


def read(source: Any, request: Request, most: int | None = None) -> tuple[list[Any], int]:
    before = source.rows_read
    reply = source.pull(request)
    found = list(islice(reply, most)) if most is not None else list(reply)
    return found, source.rows_read - before


def check_few(source: Any, steps: int) -> None:
    """A million rows, and few of them read; ``steps`` is how many rows come with one that is read."""
    found, count = read(source, Request(Compare("id", "=", 7)))
    assert (len(found), count) == (1, 1)
    found, count = read(source, Request(Compare("id", "in", (7, 8, -1))))
    assert (len(found), count) == (2, 2)
    found, count = read(source, Request(order=(("played", "desc"),), limit=10))
    assert (len(found), count) == (10, 10)
    after, count = read(source, Request(order=(("played", "desc"),), after=found[-1], limit=1))
    assert count == 1
    assert after[0][2] <= found[-1][2]
    found, count = read(source, Request(Compare("artist", "=", 5), (("id", "asc"),)), 3)
    assert len(found) == 3
    assert count <= 3 + steps
    found, count = read(source, Request(), 10)
    assert len(found) == 10
    assert count <= 10 + steps
    where = All((Compare("artist", "=", 5), Any_((Compare("id", "<", 10), Compare("id", ">", 999_000)))))
    found, count = read(source, Request(where))
    assert [row[0] for row in found] == [5, 999_005]
    assert count == 2


def plans(source: SQLite, request: Request) -> list[str]:
    """How SQLite goes about what a request makes it do."""
    asked: list[str] = []
    connection = source.link.session.connection
    connection.set_trace_callback(asked.append)
    list(source.pull(request))
    connection.set_trace_callback(None)
    queries = [text for text in asked if text.startswith("SELECT") and 'FROM "track"' in text]
    return ["\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")) for text in queries]


def test_few_of_a_million_rows_are_read_from_sqlite(sqlite: SQLite) -> None:
    check_few(sqlite, 0)
    assert "USING INTEGER PRIMARY KEY" in plans(sqlite, Request(Compare("id", "=", 7)))[0]
    for way in ("asc", "desc"):
        order = (("played", way),)
        assert "USING INDEX by_played" in plans(sqlite, Request(order=order, limit=10))[0]
        same, further, *_ = plans(sqlite, Request(order=order, after=(4, 4, 31676), limit=10))
        assert "SEARCH track USING INDEX by_played (played=? AND rowid>?)" in same
        assert f"SEARCH track USING INDEX by_played (played{'>' if way == 'asc' else '<'}?)" in further


@pytest.mark.slow
def test_few_of_a_million_rows_are_read_from_postgres(postgres_table: Postgres) -> None:
    check_few(postgres_table, 16)


def test_few_rows_are_read_from_memory() -> None:
    source = Memory("id BIGINT, artist BIGINT NOT NULL, played BIGINT", "id")
    rows = [(i, i % 1000, i * 7919 % 1000003) for i in (*range(1, 20_000), 999_005)]
    source.begin()
    source.write(Update.of((row, 1) for row in rows))
    source.commit()
    found, count = read(source, Request(Compare("id", "=", 7)))
    assert (len(found), count) == (1, 1)
    found, count = read(source, Request(order=(("played", "desc"),), limit=10))
    assert (len(found), count) == (10, 10)
    found, count = read(source, Request(order=(("played", "desc"),), after=found[-1], limit=1))
    assert count == 1
    for way, operator in (("asc", ">"), ("asc", "<="), ("desc", "<"), ("desc", ">=")):
        request = Request(Compare("played", operator, 500_000), (("played", way),))
        wanted = [row for row in rows if (row[2] > 500_000) is (operator[0] == ">")]
        found, count = read(source, request)
        assert sorted(found) == sorted(wanted)
        assert count <= len(found) + 1, "a range of the order is read, and one row after it"
    found, count = read(source, Request(Compare("artist", "=", 5), (("played", "asc"),)), 3)
    assert (len(found), count) == (3, 3)
    found, count = read(source, Request(Compare("artist", "in", (5, 6)), (("played", "asc"),), limit=3))
    assert [row[2] for row in found] == sorted(row[2] for row in found)
    assert count <= 5, "one of each group waits to be merged"


def test_two_tables_of_one_connection_are_one_transaction(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "db", isolation_level=None)
    connection.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE b (id INTEGER PRIMARY KEY)")
    a, b = SQLite(connection, "a"), SQLite(connection, "b")
    for end, there in (("rollback", []), ("commit", [(1,)])):
        a.begin()
        b.begin()
        a.write(Update({(1,): 1}))
        b.write(Update({(1,): 1}))
        a.commit()
        getattr(b, end)()
        assert list(a.pull(Request())) == list(b.pull(Request())) == there
    a.close()
    b.close()
    connection.close()
