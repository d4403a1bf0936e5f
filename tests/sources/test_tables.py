"""Columns, keys and values of tables as they are declared elsewhere, and what is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import sqlite3
from collections import Counter
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import BadRows, DuplicateKey, EverviewError, NegativeWeight, SourceError, UnknownName, WrongType
from everview.sources import Memory, Postgres, SQLite
from everview.sources.protocol import Compare, Request, Source, Update
from everview.types import Schema


def told(source: Source) -> Counter[Any]:
    source.begin()
    found = Counter(dict(source.changes()))
    source.commit()
    return found


# -- SQLite


def sqlite(*statements: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for each in statements:
        connection.execute(each)
    return connection


def test_declared_types_of_sqlite() -> None:
    connection = sqlite(
        "CREATE TABLE t (a INTEGER, b VARCHAR(20) NOT NULL, c DOUBLE PRECISION, d NUMERIC, e DECIMAL(10, 2), f BOOLEAN,"
        " g DATE, h DATETIME, i BLOB, j UNSIGNED BIG INT, PRIMARY KEY (b, a))"
    )
    source = SQLite(connection, "T")
    assert source.key == ("b", "a")
    assert str(source.schema) == (
        "a BIGINT NOT NULL, b STRING NOT NULL, c DOUBLE, d DOUBLE, e DECIMAL(10,2), f BOOLEAN, g DATE, h TIMESTAMP,"
        " i BINARY, j BIGINT"
    )
    at = dt.datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=dt.UTC)
    row = (1, "x", 0.5, 2.0, decimal.Decimal("9.50"), True, dt.date(2026, 1, 31), at, b"\x00", 7)
    source.begin()
    source.write(Update({row: 1}))
    assert list(source.pull(Request())) == [row]
    source.commit()
    shown = connection.execute("SELECT f, g, h FROM t").fetchone()
    assert shown == (1, "2026-01-31", "2026-01-31 12:00:00.250000")
    connection.execute("UPDATE t SET h = CURRENT_TIMESTAMP")
    assert len(told(source)) == 2
    connection.close()


@pytest.mark.parametrize(
    ("declared", "value", "said"),
    [
        ("INT", "'what'", "'what' is no BIGINT"),
        ("INT", "1.5", "1.5 is not a whole number"),
        ("TEXT", "x'00'", r"b'\\x00' is no STRING"),
        ("DATE", "'31.1.2026'", "'31.1.2026' is no DATE"),
        ("DATE", "20260131", "20260131 is no DATE"),
        ("TIMESTAMP", "'2026-01-31T12:00:00'", "is no TIMESTAMP"),
        ("TIMESTAMP", "'2026-01-31 12:00:00+01:00'", "is no TIMESTAMP"),
        ("BOOLEAN", "2", "2 is no BOOLEAN"),
        ("DECIMAL(8,2)", "0.125", "more than 2 digits"),
        ("REAL", "'x'", "'x' is no DOUBLE"),
    ],
)
def test_values_that_sqlite_should_not_hold(declared: str, value: str, said: str) -> None:
    connection = sqlite(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {declared})", f"INSERT INTO t VALUES (1, {value})")
    with pytest.raises(BadRows, match=f'table "t": column "v".*{said}'):
        list(SQLite(connection, "t").pull(Request()))
    connection.close()


@pytest.mark.parametrize(
    ("declared", "schema", "said"),
    [
        ("v", None, "without a type"),
        ("v GEOMETRY", None, "GEOMETRY"),
        ("v DECIMAL(20, 2)", None, "does not keep DECIMAL"),
        ("v TEXT", "id BIGINT, v BIGINT", "keeps numbers as text"),
        ("v TEXT", "id BIGINT, w STRING", 'no column "w"'),
        ("v TEXT", "id BIGINT, v ARRAY<STRING>", "cannot be ARRAY"),
    ],
)
def test_columns_that_sqlite_cannot_give(declared: str, schema: str | None, said: str) -> None:
    connection = sqlite(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {declared})")
    with pytest.raises(SourceError, match=said):
        SQLite(connection, "t", schema=schema)
    connection.close()


def test_some_of_the_columns_only() -> None:
    connection = sqlite("CREATE TABLE t (id INTEGER PRIMARY KEY, odd, n INT)")
    source = SQLite(connection, "t", schema="n BIGINT, id BIGINT")
    connection.execute("INSERT INTO t VALUES (1, x'00', 5)")
    assert told(source) == {(5, 1): 1}
    connection.execute("UPDATE t SET odd = 'other'")
    assert not told(source)
    connection.close()


def test_a_table_that_is_not_watched_is_only_read() -> None:
    connection = sqlite("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    source = SQLite(connection, "t", watch=False)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]
    assert list(source.pull(Request())) == [(1,)]
    source.begin()
    assert not source.changes()
    with pytest.raises(SourceError, match="not watched"):
        source.write(Update({(2,): 1}))
    source.rollback()
    with ev.connect() as db, pytest.raises(SourceError, match="not watched"):
        db.attach("t", source)
    connection.close()


def test_databases_and_tables_that_are_not_there(tmp_path: Any) -> None:
    with pytest.raises(SourceError, match="no SQLite database"):
        SQLite(tmp_path / "none.db", "t")
    with pytest.raises(SourceError, match=r"no table \"u\"(.|\n)*it has t"):
        SQLite(sqlite("CREATE TABLE t (id INT)"), "u")
    unique = "CREATE UNIQUE INDEX odd ON t (lower(v))"
    with pytest.raises(SourceError, match="over an expression"):
        SQLite(sqlite("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", unique), "t")


# -- PostgreSQL


@pytest.fixture
def connection(postgres: str) -> Any:
    with psycopg.connect(postgres, autocommit=True) as found:
        found.execute("DROP TABLE IF EXISTS typed")
        yield found


def test_declared_types_of_postgres(connection: Any) -> None:
    connection.execute(
        "CREATE TABLE typed (a smallint, b int, c bigint, d numeric(12, 2), e text, f varchar(10), g boolean, h date,"
        " i timestamp, j timestamptz, k double precision, l real, m bytea, n int GENERATED ALWAYS AS IDENTITY,"
        " o int GENERATED ALWAYS AS (b + 1) STORED, PRIMARY KEY (c, a))"
    )
    source = Postgres(connection, "typed")
    assert source.key == ("c", "a")
    assert str(source.schema) == (
        "a SMALLINT NOT NULL, b INTEGER, c BIGINT NOT NULL, d DECIMAL(12,2), e STRING, f STRING, g BOOLEAN, h DATE,"
        " i TIMESTAMP, j TIMESTAMP, k DOUBLE, l FLOAT, m BINARY, n INTEGER NOT NULL, o INTEGER"
    )
    at, single = dt.datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=dt.UTC), 0.10000000149011612
    row = (1, 2, 3, decimal.Decimal("9.50"), "é\n", "x", True, dt.date(2026, 1, 31), at, at, 0.1, single, b"\0a", 5, 3)
    other = (*row[:10], math.nan, math.inf, *row[12:])
    source.begin()
    source.write(Update({row: 1}))
    assert dict(source.changes()) == {row: 1}
    source.write(Update({row: -1, other: 1}))
    assert dict(source.changes()) == {other: 1}
    source.commit()
    connection.execute("SET timezone = 'Asia/Tokyo'")
    connection.execute("UPDATE typed SET b = 8")
    changed = (*other[:1], 8, *other[2:14], 9)
    assert told(source) == {other: -1, changed: 1}
    for column, value in zip(source.schema.names, changed, strict=True):
        for operator in ("=", "is", "<=", ">="):
            assert list(source.pull(Request(Compare(column, operator, value)))) == [changed], (column, operator)
        assert list(source.pull(Request(Compare(column, "in", (value,))))) == [changed]
        assert not list(source.pull(Request(Compare(column, "!=", value))))
    source.close()


@pytest.mark.parametrize(
    ("declared", "said"), [("v uuid", "type uuid"), ("v numeric", "any number of digits"), ("v int[]", "type _int4")]
)
def test_columns_that_postgres_cannot_give(connection: Any, declared: str, said: str) -> None:
    connection.execute(f"CREATE TABLE typed (id int PRIMARY KEY, {declared})")
    with pytest.raises(SourceError, match=said):
        Postgres(connection, "typed")
    source = Postgres(connection, "typed", columns=["id"])
    assert source.schema.names == ("id",)
    source.close()


def test_digits_may_be_said(connection: Any) -> None:
    connection.execute("CREATE TABLE typed (id int PRIMARY KEY, v numeric)")
    source = Postgres(connection, "typed", columns="id INTEGER, v DECIMAL(10,3)")
    connection.execute("INSERT INTO typed VALUES (1, 1.5)")
    assert told(source) == {(1, decimal.Decimal("1.500")): 1}
    connection.execute("INSERT INTO typed VALUES (2, 0.0001)")
    source.begin()
    with pytest.raises(BadRows, match="more than 3 digits"):
        source.changes()
    source.rollback()
    source.close()


def test_what_postgres_refuses(connection: Any, postgres: str) -> None:
    connection.execute("CREATE TABLE typed (id int PRIMARY KEY, n int)")
    with pytest.raises(SourceError, match="no table"):
        Postgres(connection, "none")
    with psycopg.connect(postgres) as other, pytest.raises(SourceError, match="autocommit"):
        Postgres(other, "typed")
    with pytest.raises(SourceError, match="PostgreSQL"):
        Postgres("host=/nowhere", "typed")
    source = Postgres(postgres, "typed")
    connection.execute("INSERT INTO typed VALUES (1, 1)")
    source.begin()
    assert list(source.pull(Request())) == [(1, 1)]
    connection.execute("UPDATE typed SET n = 2")
    with pytest.raises(SourceError, match="try again"):
        source.write(Update({(1, 1): -1, (1, 3): 1}))
    source.rollback()
    assert told(source) == {(1, 2): 1}
    source.close()


# -- all


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def bag(request: pytest.FixtureRequest) -> Any:
    """A source without a key, in which a row may be several times."""
    if request.param == "memory":
        yield Memory("n BIGINT, s STRING")
    elif request.param == "sqlite":
        connection = sqlite("CREATE TABLE t (n BIGINT, s TEXT)")
        yield SQLite(connection, "t")
        connection.close()
    else:
        connection = request.getfixturevalue("connection")
        connection.execute("CREATE TABLE typed (n bigint, s text)")
        source = Postgres(connection, "typed")
        yield source
        source.close()


def test_a_row_may_be_there_several_times(bag: Any) -> None:
    assert bag.key == ("n", "s")
    bag.begin()
    bag.write(Update({(1, "a"): 3, (2, None): 1, (None, "a"): 2}))
    bag.commit()
    assert list(bag.pull(Request())) == [(None, "a"), (None, "a"), (1, "a"), (1, "a"), (1, "a"), (2, None)]
    assert list(bag.pull(Request(after=(1, "a")))) == [(2, None)]
    assert list(bag.pull(Request(order=(("n", "desc"),), limit=2))) == [(2, None), (1, "a")]
    bag.begin()
    bag.write(Update({(1, "a"): -2, (None, "a"): -1}))
    assert dict(bag.changes()) == {(1, "a"): -2, (None, "a"): -1}
    bag.commit()
    assert list(bag.pull(Request())) == [(None, "a"), (1, "a"), (2, None)]
    bag.begin()
    with pytest.raises(NegativeWeight):
        bag.write(Update({(1, "a"): -2}))
    bag.rollback()


def test_requests_that_make_no_sense(bag: Any) -> None:
    with pytest.raises(UnknownName):
        bag.pull(Request(Compare("x", "=", 1)))
    with pytest.raises(UnknownName):
        bag.pull(Request(order=(("x", "asc"),)))
    with pytest.raises(WrongType, match="compared"):
        bag.pull(Request(Compare("n", "=", "one")))
    with pytest.raises(WrongType, match="like is for text"):
        bag.pull(Request(Compare("n", "like", "a%")))
    with pytest.raises(EverviewError, match="no pattern"):
        bag.pull(Request(Compare("s", "like", "a\\b")))


def test_nan_is_greater_than_all_numbers(connection: Any) -> None:
    rows = [(1, math.nan), (2, math.inf), (3, 1.0), (4, None)]
    connection.execute("CREATE TABLE typed (id bigint PRIMARY KEY, x double precision)")
    table, memory = Postgres(connection, "typed"), Memory("id BIGINT, x DOUBLE", "id", rows)
    table.begin()
    table.write(Update.of((row, 1) for row in rows))
    table.commit()
    for way in ("asc", "desc"):
        for after in (None, *rows):
            request = Request(order=(("x", way),), after=after)  # type: ignore[arg-type]
            assert list(table.pull(request)) == list(memory.pull(request))
    for operator in ("=", "!=", "<", "<=", ">", ">=", "is", "is not"):
        for value in (math.nan, math.inf, 1.0):
            request = Request(Compare("x", operator, value))  # type: ignore[arg-type]
            assert list(table.pull(request)) == list(memory.pull(request))
    table.close()
    one = SQLite(sqlite("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL)"), "t")
    one.begin()
    with pytest.raises(BadRows, match="cannot keep NaN"):
        one.write(Update({(1, math.nan): 1}))
    one.rollback()


# -- memory


def test_what_is_written_outside_of_a_turn_is_told_by_the_next() -> None:
    source = Memory("id BIGINT, n BIGINT", "id", [(1, 1)])
    source.write(Update({(2, 2): 1}))
    source.write(Update({(2, 2): -1, (2, 3): 1, (1, 1): -1}))
    with pytest.raises(DuplicateKey):
        source.write(Update({(2, 9): 1}))
    assert list(source.pull(Request())) == [(1, 1)]
    source.begin()
    assert dict(source.changes()) == {(1, 1): -1, (2, 3): 1}
    source.rollback()
    assert list(source.pull(Request())) == [(1, 1)]
    assert told(source) == {(1, 1): -1, (2, 3): 1}
    assert not told(source)
    assert list(source.pull(Request())) == [(2, 3)]


numbers = st.integers(0, 5)
turns = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(numbers, numbers, numbers), max_size=6)), min_size=1, max_size=6
)


@given(turns=turns)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_indexes_follow_the_rows(turns: Any) -> None:
    source = Memory(Schema.parse("id BIGINT, a BIGINT, b BIGINT"), "id")
    requests = [
        Request(order=(("a", "desc"), ("b", "asc"))),
        Request(Compare("a", "=", 1), (("b", "asc"),)),
        Request(Compare("a", "in", (1, 2, 3)), (("b", "desc"),)),
        Request(order=(("b", "asc"),), after=(3, 3, 3)),
    ]
    for request in requests:
        list(source.pull(request))
    state: dict[int, Any] = {}
    for keep, puts in turns:
        source.begin()
        after = dict(state)
        for row in puts:
            changes = [(after[row[0]], -1)] if row[0] in after else []
            if row[1]:
                changes.append((row, 1))
                after[row[0]] = row
            else:
                after.pop(row[0], None)
            source.write(Update.of(changes))
        assert Counter(state.values()) + Counter() == Counter(after.values()) - Counter(
            {row: weight for row, weight in source.changes() if weight > 0}
        ) + Counter({row: -weight for row, weight in source.changes() if weight < 0})
        if keep:
            source.commit()
            state = after
        else:
            source.rollback()
        fresh = Memory(source.schema, "id", state.values())
        for request in requests:
            assert list(source.pull(request)) == list(fresh.pull(request))


def test_writers_need_no_rights_on_the_log(connection: Any) -> None:
    connection.execute("CREATE TABLE typed (id int PRIMARY KEY)")
    connection.execute("DROP ROLE IF EXISTS clerk")
    connection.execute("CREATE ROLE clerk")
    connection.execute("GRANT SELECT, INSERT ON typed TO clerk")
    source = Postgres(connection, "typed")
    connection.execute("SET ROLE clerk")
    connection.execute("INSERT INTO typed VALUES (1)")
    connection.execute("RESET ROLE")
    assert told(source) == {(1,): 1}
    source.close()
    connection.execute("DROP OWNED BY clerk")
    connection.execute("DROP ROLE clerk")
