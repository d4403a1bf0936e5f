"""Queries that are planned once answer as queries that are bound each time, with any values and after any change."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.database.planned import MOST_PLANS, PlannedQuery
from everview.database.snapshots import core_of

ROWS = st.lists(
    st.tuples(st.integers(-3, 9), st.sampled_from([*"abc", None]), st.none() | st.integers(-5, 5)), max_size=30
)
COMPARED = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
QUERIES = (
    "SELECT k, s, n FROM t WHERE n {} ?",
    "SELECT count(*), sum(n), min(s) FROM t WHERE k {} ?",
    "SELECT s, count(n) FROM t WHERE k {} ? GROUP BY s ORDER BY s",
    "SELECT a.k, b.n FROM t a JOIN t b ON a.k = b.n WHERE a.k {} ?",
    "SELECT k FROM t WHERE NOT (n {} ?) ORDER BY k DESC LIMIT 3",
    "SELECT k FROM t WHERE n {} ? AND EXISTS (SELECT 1 FROM t u WHERE u.n = t.k)",
    "WITH u AS (SELECT k + 1 AS k, s FROM t) SELECT DISTINCT k, s FROM u WHERE k {} ?",
)


def made(rows: Any = ()) -> ev.Database:
    db = ev.connect()
    db.sql("CREATE TABLE t (k BIGINT, s STRING, n INT); CREATE TABLE d (at DATE, ts TIMESTAMP, s STRING)")
    if rows:
        db.apply({"t": [(row, 1) for row in rows]})
    return db


def planned(db: ev.Database) -> list[str]:
    plans = core_of(db).catalog.query_plans
    return [query.statement.text for query in plans._kept.values() if isinstance(query, PlannedQuery)]  # pyright: ignore[reportPrivateUsage]


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS, st.sampled_from(QUERIES), COMPARED, st.lists(st.integers(-6, 9), min_size=3, max_size=5))
def test_planned_as_bound(rows: Any, later: Any, query: str, by: str, values: list[int]) -> None:
    db, text = made(rows), query.format(by)
    for value in values:
        assert sorted(db.sql(text, [value]), key=repr) == sorted(db.sql(text.replace("?", f"({value})")), key=repr)
    assert text in planned(db)
    if later:
        db.apply({"t": [(row, 1) for row in later]})
    for value in values:
        assert sorted(db.sql(text, [value]), key=repr) == sorted(db.sql(text.replace("?", f"({value})")), key=repr)


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("SELECT k FROM t WHERE s = ?", [["a"], ["b"], ["none"], ["a"]]),
        ("SELECT k FROM t WHERE s > :low AND n < :high", [{"low": "a", "high": 9}, {"low": "b", "high": 4}] * 2),
        ("SELECT count(*) FROM d WHERE at >= ?", [[dt.date(2024, 1, day)] for day in (1, 2, 3)]),
        ("SELECT count(*) FROM d WHERE ts < ?", [[dt.datetime(2024, 1, day, tzinfo=dt.UTC)] for day in (1, 2, 9)]),
        ("SELECT k FROM t WHERE k = ? OR n = ?", [[1, 2], [2, 2**40], [2**40, 2]] * 2),
    ],
)
def test_values_of_every_kind(query: str, values: list[Any]) -> None:
    db, plain = made([(1, "a", 1), (2, "b", 2), (3, "c", None)]), made([(1, "a", 1), (2, "b", 2), (3, "c", None)])
    days = [((dt.date(2024, 1, day), dt.datetime(2024, 1, day, tzinfo=dt.UTC), str(day)), 1) for day in (1, 2, 3)]
    for each in (db, plain):
        each.apply({"d": days})
    for given_ in values:
        core_of(plain).catalog.__dict__.pop("query_plans", None)  # as if it had never been asked
        assert db.sql(query, given_) == plain.sql(query, given_)
    assert query in planned(db)


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("SELECT ? AS x FROM t", [1]),
        ("SELECT k FROM t ORDER BY k LIMIT ?", [1]),
        ("SELECT k FROM t WHERE k IN (?, ?)", [1, 2]),
        ("SELECT k FROM t WHERE s = ?", [None]),
        ("SELECT k FROM t WHERE k = ?", ["1"]),
        ("SELECT count(*) FROM d WHERE ts < now() AND s = ?", ["a"]),
    ],
)
def test_bound_each_time(query: str, values: list[Any]) -> None:
    """What a plan for all values could get wrong is not planned, and gives the same each time."""
    db = made([(1, "a", 1), (2, "b", 2)])
    assert len({repr(db.sql(query, values).rows()) for _ in range(4)}) == 1
    assert query not in planned(db)


def test_other_definitions() -> None:
    db = made([(1, "a", 1)])
    for _ in range(3):
        assert db.sql("SELECT * FROM t") == [(1, "a", 1)]
    db.sql("ALTER TABLE t ADD COLUMN more INT")
    for _ in range(3):
        assert db.sql("SELECT * FROM t") == [(1, "a", 1, None)]
    db.sql("DROP TABLE t")
    with pytest.raises(ev.EverviewError, match="does not exist"):
        db.sql("SELECT * FROM t")


def test_transaction_sees_itself() -> None:
    db = made([(1, "a", 1)])
    for _ in range(3):
        assert db.sql("SELECT count(*) FROM t WHERE k = ?", [1]) == [(1,)]
    with db.transaction() as tx:
        tx.insert("t", [(1, "b", 2)])
        assert db.sql("SELECT count(*) FROM t WHERE k = ?", [1]) == [(2,)]
    assert db.sql("SELECT count(*) FROM t WHERE k = ?", [2]) == [(0,)]


def test_bounded() -> None:
    db = made()
    for number in range(MOST_PLANS + 20):
        db.sql(f"SELECT {number} AS x")
    assert len(core_of(db).catalog.query_plans) == MOST_PLANS


def test_threads() -> None:
    """One plan, many threads, each with its own values."""
    db = made([(k, "abc"[k % 3], k) for k in range(60)])
    wrong: list[Any] = []

    def ask(value: int) -> None:
        for _ in range(60):
            found = db.sql("SELECT count(*), min(k) FROM t WHERE k >= ?", [value])
            if found != [(60 - value, value)]:
                wrong.append((value, found))

    threads = [threading.Thread(target=ask, args=(value,)) for value in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_rows_of_a_statement() -> None:
    """INSERT … VALUES takes what a query of the same rows gives, of every type, NULLs among them."""
    types = "a ARRAY<INT>, s STRUCT<x: INT, y: STRING>, m MAP<STRING, INT>, d DECIMAL(9, 2), t TIMESTAMP, b BINARY"
    types += ", i BIGINT"
    full = "array(1, NULL), struct(1, 'y'), map('k', 1), 1.5, TIMESTAMP '2024-01-01 00:00:00', X'00ff', 7"
    nulls = ", ".join(["NULL"] * 7)
    db = ev.connect()
    db.sql(f"CREATE TABLE one ({types}); CREATE TABLE other ({types})")
    for values in (full, nulls):
        assert db.sql(f"INSERT INTO one VALUES ({values}), ({values})") == 2
        assert db.sql(f"INSERT INTO other SELECT {values} FROM (VALUES (1), (2)) AS v(n)") == 2
    assert sorted(db.sql("SELECT * FROM one"), key=repr) == sorted(db.sql("SELECT * FROM other"), key=repr)
    with pytest.raises(ev.EverviewError, match='column "i" of one'):
        db.sql("INSERT INTO one (i) VALUES ('seven')")


def test_a_plan_is_kept_for_the_schema_that_is_in_use() -> None:
    db = ev.connect()
    db.sql("CREATE SCHEMA b; CREATE TABLE t (x INT); CREATE TABLE b.t (x INT)")
    db.sql("INSERT INTO t VALUES (1); INSERT INTO b.t VALUES (2)")
    for schema, value in (("default", 1), ("b", 2), ("default", 1)):
        db.sql(f"USE {schema}")
        assert [list(db.sql("SELECT x FROM t")) for _ in range(3)] == [[(value,)]] * 3
