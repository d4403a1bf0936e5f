"""The current time: one moment in each statement; what is kept may only ask it when a row is there."""

from __future__ import annotations

import datetime as dt

import pytest

import everview as ev
from everview.circuit.circuit import Circuit
from everview.errors import DefinitionError
from everview.spark.queries import Queries

MOMENTS = [
    "now()",
    "current_timestamp",
    "current_timestamp()",
    "CURRENT_DATE",
    "curdate()",
    "localtimestamp()",
    "unix_timestamp()",
    "TIMESTAMP'now'",
    "DATE'today'",
    "CAST('yesterday' AS DATE)",
    "date_add(current_date(), 1)",
    "(SELECT max(now()) FROM t)",
]
CLAUSES = [
    "SELECT count(*) AS n FROM t GROUP BY date_trunc('day', current_timestamp)",
    "SELECT a FROM t WHERE ts = now() - INTERVAL 1 MONTH",
    "SELECT a FROM t WHERE ts <> now()",
    "SELECT a FROM t WHERE sqrt(unix_timestamp()) > a",
    "SELECT t.a FROM t LEFT JOIN t AS u ON t.a = u.a AND t.ts < now()",
    "SELECT a FROM t ORDER BY ts - now() > INTERVAL 1 DAY LIMIT 1",
    "SELECT a, e FROM t, LATERAL explode(array(now())) AS x(e)",
    "WITH RECURSIVE r(n, at) AS (SELECT 1, now() UNION SELECT n + 1, at FROM r WHERE n < 3) SELECT n FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r, t WHERE n < 3 AND ts + n * INTERVAL 1 HOUR > now()) "
    "SELECT n FROM r",
    "SELECT n FROM moment",
]


@pytest.fixture
def db() -> ev.Database:
    found = ev.connect()
    found.sql("CREATE TABLE t (a INT, ts TIMESTAMP)")
    found.sql("INSERT INTO t VALUES (1, current_timestamp), (2, NULL)")
    found.sql("CREATE VIEW moment AS SELECT now() AS n")
    return found


@pytest.mark.parametrize("query", [*(f"SELECT a, {moment} AS m FROM t" for moment in MOMENTS), *CLAUSES])
def test_a_view_that_is_kept_refuses_to_show_the_time(db: ev.Database, query: str) -> None:
    before = db.views()
    with pytest.raises(DefinitionError, match="cannot be kept up as time passes") as failed:
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert failed.value.hint
    assert db.views() == before


@pytest.mark.parametrize("query", ["SELECT a, now() AS m FROM t", *CLAUSES])
def test_a_query_may_ask_for_it(db: ev.Database, query: str) -> None:
    if "RECURSIVE" not in query:
        db.sql(query)


def test_a_plain_view_is_read_in_the_moment(db: ev.Database) -> None:
    (first,) = db.sql("SELECT n FROM moment")[0]
    (second,) = db.sql("SELECT n FROM moment")[0]
    assert first < second
    assert db.sql("SELECT m.n = now(), count(*) FROM moment AS m GROUP BY m.n") == [(True, 1)]


def test_a_plain_view_that_becomes_timed_is_refused_where_it_is_kept(db: ev.Database) -> None:
    db.sql("CREATE VIEW p AS SELECT a FROM t")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM p")
    with pytest.raises(DefinitionError, match="view v reads"):
        db.sql("CREATE OR REPLACE VIEW p AS SELECT a FROM t WHERE hour(now()) > a")
    assert sorted(db.sql("SELECT a FROM v")) == [(1,), (2,)]


def test_views_in_other_languages_refuse_it_too(db: ev.Database) -> None:
    for define in (
        lambda: db.create_view("v", lambda relations: relations["moment"]),
        lambda: db.datalog("v(N) :- moment(N)."),
    ):
        with pytest.raises(DefinitionError, match=r"time has passed|as time passes"):
            define()
    assert db.views() == ["moment"]


def test_statements_have_one_moment(db: ev.Database) -> None:
    db.sql("CREATE TABLE s (x TIMESTAMP, y TIMESTAMP, z TIMESTAMP DEFAULT current_timestamp)")
    db.sql("INSERT INTO s (x, y) SELECT now(), current_timestamp() FROM t")
    assert db.sql("SELECT count(DISTINCT x), bool_and(x = y) FROM s") == [(1, True)]
    db.sql("UPDATE s SET y = now() WHERE x <= now()")
    assert db.sql("SELECT count(DISTINCT y) FROM s") == [(1,)]
    today = dt.datetime.now(dt.UTC).date()
    assert db.sql("SELECT current_date BETWEEN DATE'yesterday' AND DATE'tomorrow'") == [(True,)]
    assert abs((db.sql("SELECT current_date()")[0][0] - today).days) <= 1


def test_a_pipeline_reads_the_clock_too() -> None:
    circuit = Circuit()
    circuit.source("t", "a INT, ts TIMESTAMP")
    queries = Queries(circuit)
    queries.define_sql("CREATE VIEW moment AS SELECT now() AS n", "spark")
    with pytest.raises(DefinitionError, match="cannot be kept up as time passes"):
        queries.define_sql("CREATE MATERIALIZED VIEW v AS SELECT n FROM moment", "spark")
    queries.define_sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE ts > now()", "spark")
    assert set(circuit.sources) == {"t", "now()"}
