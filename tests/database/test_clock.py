"""Views that ask the time: rows come and go as the clock moves, without any change of a table."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from empty_duckdb import empty_duckdb
from everview.errors import DefinitionError, EverviewError, TransactionError

START = dt.datetime(2030, 1, 1, 12)
HOUR = dt.timedelta(hours=1)

TABLES = """
CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP, d DATE, s TIMESTAMP NOT NULL, e TIMESTAMP NOT NULL);
CREATE TABLE u (id BIGINT PRIMARY KEY, of_t BIGINT, ts TIMESTAMP)
"""

# Each is understood by DuckDB, too, once the time is written in.
CONDITIONS = [
    "ts > now() - INTERVAL 1 HOUR",
    "ts >= now() - INTERVAL 1 HOUR",
    "ts < now() - INTERVAL 90 MINUTE",
    "NOT ts > now()",
    "ts = now()",
    "ts + INTERVAL 1 HOUR > now() AND ts <= now()",
    "now() BETWEEN s AND e",
    "now() - ts < INTERVAL 2 HOUR",
    "s - now() >= INTERVAL 1 HOUR",
    "d = current_date",
    "d >= current_date - 1",
    "current_date < d",
    "CAST(ts AS DATE) = current_date",
    "ts >= date_trunc('hour', now())",
    "ts < date_trunc('day', now())",
    "date_trunc('month', now()) <= ts",
    "date_trunc('week', now()) > ts",
    "ts >= CAST(current_date AS TIMESTAMP)",
    "CAST(current_date AS TIMESTAMP) < ts",
    "id > 3 OR ts > now() AND id <> 2",
    "ts > now() OR s <= now()",
    "e < now() OR ts >= now() AND id > 2 OR d = current_date",
    "id = 1 OR now() BETWEEN s AND e OR ts BETWEEN now() - INTERVAL 1 HOUR AND now()",
    "ts NOT BETWEEN now() - INTERVAL 1 HOUR AND now()",
    "NOT (ts > now() AND id > 2 OR d = current_date)",
    "CASE WHEN id > 3 THEN ts > now() WHEN ts > now() - INTERVAL 2 HOUR THEN id = 2 ELSE s <= now() END",
    "CASE WHEN ts > now() THEN NULL WHEN id = 1 THEN e > now() END",
    "coalesce(ts > now(), true)",
    "(ts <= now()) IS NOT TRUE AND e < now()",
    "(ts = now()) IS NOT TRUE",
    "ts IN (now(), s) OR now() IN (e)",
    "year(ts) = year(now())",
    "year(d) < year(now()) OR year(now()) = 2030 + id",
    "id % 2 = 0 AND e > now() AND s <= now() AND d <= current_date",
]
QUERIES = [f"SELECT id FROM t WHERE {condition}" for condition in CONDITIONS] + [
    "SELECT d, count(*) AS n FROM t WHERE ts <= now() GROUP BY d HAVING max(ts) > now() - INTERVAL 3 HOUR",
    "SELECT t.id, u.id AS v FROM t JOIN u ON t.id = u.of_t AND u.ts > now() WHERE t.s <= now()",
    "SELECT t.id, u.id AS v FROM t JOIN u ON t.id = u.of_t WHERE now() - t.ts < u.ts - t.s",
    "SELECT t.id, u.id AS v FROM t LEFT JOIN u ON t.id = u.of_t AND u.ts > now()",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.of_t = t.id AND u.ts <= now())",
    "SELECT id FROM t WHERE s <= now() ORDER BY s DESC, id LIMIT 2",
]

moments = st.integers(-6, 6).map(lambda n: START + n * HOUR / 2) | st.integers(-40, 40).map(lambda n: START + n * HOUR)
rows_of_t = st.tuples(
    st.integers(0, 6), st.none() | moments, st.none() | moments.map(dt.datetime.date), moments, moments
)
rows_of_u = st.tuples(st.integers(0, 6), st.none() | st.integers(0, 6), st.none() | moments)
advances = st.sampled_from([0, 1, 1800, 3599, 3600, 5400, 86_400, 40 * 86_400]).map(
    lambda seconds: dt.timedelta(seconds=seconds)
)
acts = st.lists(
    st.tuples(st.just("t"), rows_of_t) | st.tuples(st.just("u"), rows_of_u) | st.tuples(st.just("now"), advances),
    min_size=1,
    max_size=12,
)


def act(db: ev.Database, what: str, given: Any, now: dt.datetime) -> dt.datetime:
    """Put a row in place of the one with its key, take it away if it is there as it is, or move the clock."""
    if what == "now":
        now += given
        db.advance(now)
        return now
    with db.transaction() as tx:
        if given in db.table(what).rows():
            tx.delete(what, [given[:1]])
        else:
            tx.upsert(what, [given])
    return now


def by_duckdb(db: ev.Database, query: str, now: dt.datetime) -> list[tuple[Any, ...]]:
    duck = empty_duckdb()
    duck.execute(TABLES)
    for table in ("t", "u"):
        for row in db.table(table).rows():
            duck.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    text = query.replace("now()", f"TIMESTAMP '{now}'").replace("current_date", f"DATE '{now.date()}'")
    return duck.execute(text).fetchall()


@settings(max_examples=60)
@given(st.sampled_from(QUERIES), acts)
def test_a_view_holds_at_every_moment_what_its_query_says(query: str, todo: list[tuple[str, Any]]) -> None:
    db = ev.connect()
    db.sql(TABLES)
    db.advance(START)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    now = START
    for what, given_ in todo:
        now = act(db, what, given_, now)
        db.verify().raise_if_different()
        assert sorted(db.view("v").rows(), key=repr) == sorted(by_duckdb(db, query, now), key=repr)


COUNTED = [  # DuckDB has no such functions, or others; a SELECT has no clock
    "unix_timestamp(now()) - unix_timestamp(ts) <= 3600",
    "unix_timestamp(now()) > {n}",
    "unix_timestamp(now()) = {n}",
    "unix_timestamp(ts) - unix_timestamp(now()) < {n}",
    "timestampdiff(MINUTE, ts, now()) < {n}",
    "timestampdiff(MINUTE, ts, now()) = {n}",
    "timestampdiff(HOUR, now(), ts) >= {n}",
    "timestampdiff(MINUTE, now(), ts) NOT IN (0, {n})",
    "ts >= time_bucket(INTERVAL 15 MINUTES, now())",
    "ts < time_bucket(INTERVAL 2 DAYS, now(), TIMESTAMP'1970-01-02 03:00:00')",
    "ts = time_bucket(INTERVAL 15 MINUTES, now())",
    "year(now()) - year(ts) = {n}",
    "if(id % 2 = 0, ts > now(), timestampdiff(MINUTE, ts, now()) >= {n})",
]
near_1970 = st.integers(-200, 200).map(lambda n: dt.datetime(1970, 1, 1) + n * dt.timedelta(minutes=7.5))
near_zero = st.integers(-90, 90).map(lambda n: dt.datetime(1970, 1, 1) + n * dt.timedelta(seconds=0.5))


@settings(max_examples=40)
@given(
    st.sampled_from(COUNTED),
    st.integers(-3, 3),
    st.lists(st.none() | near_1970 | near_zero, min_size=1, max_size=6),
    st.lists(near_1970 | near_zero, min_size=1, max_size=6),
)
def test_counts_of_seconds_minutes_and_years(
    condition: str, n: int, rows: list[dt.datetime | None], times: list[dt.datetime]
) -> None:
    db = ev.connect()
    db.sql(TABLES)
    db.advance(dt.datetime(1969, 1, 1))
    query = f"SELECT id FROM t WHERE {condition.format(n=n)}"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    with db.transaction() as tx:
        tx.upsert("t", [(number, at, None, START, START) for number, at in enumerate(rows)])
    for now in sorted(times):
        db.advance(now)
        assert sorted(db.view("v").rows()) == sorted(db.sql(query.replace("now()", f"TIMESTAMP'{now}'")).rows()), now
    db.verify().raise_if_different()


REFUSED = {
    "SELECT count(*) FILTER (WHERE ts > now()) AS n FROM t GROUP BY d": "aggregate the rows that are there now",
    "SELECT sum(CASE WHEN ts > now() THEN 1 ELSE 0 END) AS n FROM t": "aggregate the rows that are there now",
    "SELECT id FROM t WHERE month(ts) = month(now())": r"date_trunc\('month', ts\) = date_trunc\('month', now",
    "SELECT id FROM t WHERE months_between(now(), ts) < 3": r"ts \+ INTERVAL 1 MONTH > now",
    "SELECT id FROM t WHERE CASE WHEN hour(now()) > 3 THEN ts > now() END": r"date_trunc\('month', ts\)",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused_says_what_to_write(query: str) -> None:
    db = ev.connect()
    db.sql(TABLES)
    with pytest.raises(DefinitionError) as refused:
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert re.search(REFUSED[query], refused.value.hint or "")


# A month before the last days of March is the last of February, with each day's time: rows come and go several times.
OVER_MONTHS = [
    "ts > now() - INTERVAL 1 MONTH",
    "ts >= now() - INTERVAL 1 MONTH",
    "ts < now() - INTERVAL 13 MONTH",
    "NOT ts < now() + INTERVAL 1 MONTH",
    "ts + INTERVAL 1 DAY <= now() - INTERVAL 1 HOUR - INTERVAL 1 MONTH",
    "ts BETWEEN now() - INTERVAL 1 MONTH AND now()",
    "ts > date_trunc('month', now()) - INTERVAL 1 MONTH",
    "d > current_date - INTERVAL 1 MONTH",
    "d <= current_date + INTERVAL 1 MONTH",
    "d = current_date - INTERVAL 1 MONTH",
    "ts > now() - INTERVAL 1 MONTH OR s <= now() OR id = 3",
]
ends_of_months = st.builds(
    lambda month, day, hour: dt.datetime(2031 + month // 12, month % 12 + 1, 1) + dt.timedelta(day - 4, hours=hour),
    st.sampled_from([0, 1, 2, 3, 13, 14]),
    st.integers(0, 6),
    st.sampled_from([0, 1, 12, 23]),
)


@settings(max_examples=20)
@given(
    st.sampled_from(OVER_MONTHS),
    st.lists(st.none() | ends_of_months, min_size=1, max_size=6),
    st.lists(ends_of_months, min_size=1, max_size=8),
)
def test_months_before_now(condition: str, rows: list[dt.datetime | None], times: list[dt.datetime]) -> None:
    db = ev.connect()
    db.sql(TABLES)
    db.advance(dt.datetime(2030, 6, 1))
    query = f"SELECT id FROM t WHERE {condition}"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    with db.transaction() as tx:
        tx.upsert("t", [(n, at, None if at is None else at.date(), START, START) for n, at in enumerate(rows)])
    for now in sorted(times):
        db.advance(now)
        assert sorted(db.view("v").rows()) == sorted(by_duckdb(db, query, now))
    db.verify().raise_if_different()


@settings(max_examples=15)
@given(st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3, unique=True), acts, st.integers(1, 3))
def test_the_clock_is_part_of_the_state(
    tmp_path_factory: pytest.TempPathFactory, queries: list[str], todo: list[tuple[str, Any]], shards: int
) -> None:
    path, now = tmp_path_factory.mktemp("state"), START
    with ev.connect(path, shards=shards) as db:
        db.sql(TABLES)
        db.advance(START)
        for number, query in enumerate(queries):
            db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
    for what, given_ in todo:
        with ev.connect(path) as db:
            db.verify().raise_if_different()
            now = act(db, what, given_, now)
            db.verify().raise_if_different()


def test_rows_leave_and_listeners_are_told() -> None:
    db = ev.connect()
    db.sql(TABLES)
    db.advance(START)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts > now() - INTERVAL 1 HOUR")
    told: list[Any] = []
    db.view("v").subscribe(lambda change, epoch: told.append(sorted(change)))
    db.apply({"t": [((1, START, None, START, START), 1), ((2, START - HOUR / 2, None, START, START), 1)]})
    assert sorted(db.advance(START + HOUR / 2)["v"]) == [((2,), -1)]
    assert told == [[((1,), 1), ((2,), 1)], [((2,), -1)]]
    assert db.tables() == ["t", "u"]
    assert db.sql("SELECT now FROM `now()`") == [(START + HOUR / 2,)]


def test_a_tick_of_the_clock_looks_at_what_falls_due() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP NOT NULL)")
    db.advance(START)
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts > now()")
    db.apply({"t": [((n, START + dt.timedelta(seconds=n)), 1) for n in range(2000)]})
    for n in range(1, 4):
        assert [row for row, _ in db.advance(START + dt.timedelta(seconds=n))["v"]] == [(n,)]


@pytest.mark.parametrize("clock", ["wall", True])
def test_a_clock_that_follows_the_wall(clock: str | bool) -> None:
    db = ev.connect(clock=clock)
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP NOT NULL)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE ts <= now()")
    past = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    db.apply({"t": [((1, past), 1), ((2, past + 24 * HOUR), 1)]})
    assert db.view("v").rows() == [(1,)]
    (before,) = db.sql("SELECT now FROM `now()`")[0]
    db.apply({})
    assert db.sql("SELECT now FROM `now()`")[0][0] > before
    assert db.advance()["v"].schema.names == ("id",)


def test_the_clock_does_not_go_back_and_is_not_written() -> None:
    db = ev.connect()
    db.sql(TABLES)
    db.advance(START)
    with pytest.raises(EverviewError, match="cannot go back"):
        db.advance(START - HOUR)
    db.advance(START.replace(tzinfo=dt.timezone(-HOUR)))
    assert db.sql("SELECT now FROM `now()`") == [(START + HOUR,)]
    with pytest.raises(DefinitionError, match="is the clock of views"):
        db.apply({"now()": [((START,), 1)]})
    with db.transaction(), pytest.raises(TransactionError):
        db.advance(START + 2 * HOUR)
    with pytest.raises(DefinitionError, match="follows something else"):
        db.sql("ALTER TABLE `now()` ADD COLUMN x INT")
    with pytest.raises(DefinitionError, match="is the clock of views"):
        ev.connect().sql("CREATE TABLE `now()` (a INT)")
    assert [row[1] for row in db.sql("SHOW TABLES")] == ["t", "u"]
    with pytest.raises(EverviewError, match="clock 'sundial'"):
        ev.connect(clock="sundial")


def test_a_view_goes_on_when_its_definition_changes(tmp_path: Path) -> None:
    with ev.connect(tmp_path) as db:
        db.sql(TABLES)
        db.advance(START)
        db.apply({"t": [((1, START, None, START, START), 1)]})
        db.sql("CREATE VIEW p AS SELECT id FROM t WHERE ts > now() - INTERVAL 1 HOUR")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM p")
        db.sql("CREATE OR REPLACE VIEW p AS SELECT id FROM t WHERE ts > now()")
        assert db.view("v").rows() == []
        db.sql("CREATE OR REPLACE VIEW p AS SELECT id FROM t WHERE ts >= now()")
    with ev.connect(tmp_path) as db:
        assert db.view("v").rows() == [(1,)]
        assert db.advance(START + HOUR)["v"]
