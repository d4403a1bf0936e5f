"""Calls in the dialects of DuckDB and PostgreSQL: views of them hold what these databases answer for the same rows."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import everview as ev
from empty_duckdb import empty_duckdb
from everview.errors import EverviewError
from everview.frontends.sql import CreateView, Tables, bind
from everview.frontends.sql.spark import spark_query
from everview.types import Schema, Variant

HERE = Path(__file__).parent
Row = tuple[Any, ...]
ROWS: list[Row] = [
    (1, 1, 1.5, "hello", [1, 2, 3], dt.date(2020, 1, 31), dt.datetime(2020, 1, 31, 10, 27, 50)),
    (2, 2, 0.0, "hallo wELT-ß ŉ", [2, None], dt.date(1999, 12, 31), dt.datetime(1969, 12, 31, 23, 59, 59, 999500)),
    (3, -7, -2.25, "", [], dt.date(2000, 1, 1), dt.datetime(2000, 2, 29)),
    (4, 3, 1e16, '{"a": 1}', [5, 1, 5, 2], dt.date(2020, 2, 29), dt.datetime(2024, 2, 29, 23, 59, 59)),
    (5, None, None, None, None, None, None),
    (6, 0, 12345.678, "é", [None], dt.date(1970, 1, 1), dt.datetime(1970, 1, 1)),
]
COLUMNS = "id INT, i INT, x DOUBLE PRECISION, s VARCHAR, l INT[], d DATE, ts TIMESTAMP"
FIRST = {"duckdb": ", MAP{'a': i} AS m, x::FLOAT AS f", "postgres": ""}


def lines_of(name: str) -> list[str]:
    """The lines of a file, without comments."""
    lines = (HERE / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def comparable(value: Any) -> Any:
    """A value as both engines give it: numbers to twelve digits, lists as tuples."""
    if isinstance(value, dict):
        return tuple((comparable(k), comparable(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(comparable, value))
    if isinstance(value, (float, Decimal)):
        return "nan" if math.isnan(value) else float(f"{float(value):.12g}")
    return comparable(value.value) if isinstance(value, Variant) else value


def check(dialect: str, lines: list[str], asked: Callable[[str], list[Row]]) -> None:
    """Compare one view of all calls with what the database says, after rows have come and gone; and with the oracle."""
    selected = ", ".join(f"{line} AS c{number}" for number, line in enumerate(lines))
    query = f"SELECT id, {selected} FROM (SELECT *{FIRST[dialect]} FROM t) AS r"
    with ev.connect() as db:
        db.sql(f"CREATE TABLE t ({COLUMNS})", dialect=dialect)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}", dialect=dialect)
        db.apply({"t": [(row, 1) for row in ROWS]})
        db.apply({"t": [(ROWS[0], -1), ((0, *ROWS[0][1:]), 1)]})
        db.apply({"t": [(ROWS[0], 1), ((0, *ROWS[0][1:]), -1)]})
        ours = {row[0]: row for row in db.view("v").rows()}
        db.verify()
    theirs = {row[0]: row for row in asked(query)}
    wrong = [
        f"{line} of row {id_}: {ours[id_][place]!r} for {theirs[id_][place]!r}"
        for place, line in enumerate(lines, 1)
        for id_ in theirs
        if comparable(ours[id_][place]) != comparable(theirs[id_][place])
    ]
    assert not wrong, "\n".join(wrong)


def test_duckdb_answers_alike() -> None:
    database = duckdb.connect()
    database.execute(f"CREATE TABLE t ({COLUMNS})")
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", ROWS)
    check("duckdb", lines_of("duckdb_calls.txt"), lambda query: database.execute(query).fetchall())


def rows_in_postgresql(database: psycopg.Connection[Any]) -> None:
    """Make the table of the rows, for one connection."""
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"CREATE TEMP TABLE t ({COLUMNS})")
    for row in ROWS:
        database.execute("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s, %s)", row)


def test_postgresql_answers_alike(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as database:
        rows_in_postgresql(database)
        check("postgres", lines_of("postgres_calls.txt"), lambda query: database.execute(query.encode()).fetchall())


def test_queries_of_postgresql(postgres: str) -> None:
    """Views of whole queries hold the rows that PostgreSQL answers."""
    queries = lines_of("postgres_queries.txt")
    with psycopg.connect(postgres, autocommit=True) as database, ev.connect() as db:
        rows_in_postgresql(database)
        db.sql(f"CREATE TABLE t ({COLUMNS})", dialect="postgres")
        for number, query in enumerate(queries):
            db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}", dialect="postgres")
        db.apply({"t": [(row, 1) for row in ROWS[:3]]})
        db.apply({"t": [(row, 1) for row in ROWS[2:]] + [(ROWS[2], -1)]})
        for number, query in enumerate(queries):
            theirs = Counter(map(comparable, database.execute(query.encode()).fetchall()))
            assert Counter(map(comparable, db.view(f"v{number}").rows())) == theirs, query


LETTERS = [chr(code) for code in range(0x20, 0x2FFF) if not 0xD800 <= code < 0xE000]


def test_every_letter_has_the_capital_of_duckdb_and_postgresql(postgres: str) -> None:
    """Letters that Unicode has changed since one of the databases was made are few."""
    with psycopg.connect(postgres) as database:
        theirs = database.execute("SELECT c, upper(c), lower(c) FROM unnest(%s::text[]) c", [LETTERS]).fetchall()
    asked = duckdb.connect()
    asked.execute("CREATE TABLE t (c VARCHAR)")
    asked.executemany("INSERT INTO t VALUES (?)", [(letter,) for letter in LETTERS])
    for dialect, expected in (
        ("duckdb", asked.execute("SELECT c, upper(c), lower(c) FROM t").fetchall()),
        ("postgres", theirs),
    ):
        with ev.connect() as db:
            db.sql("CREATE TABLE t (c TEXT)")
            db.apply({"t": [((letter,), 1) for letter in LETTERS]})
            ours = db.sql("SELECT c, upper(c), lower(c) FROM t", dialect=dialect).rows()
        wrong = {*ours} - {*map(tuple, expected)}
        assert len(wrong) < 40, sorted(wrong)


AGGREGATES = """
SELECT kurtosis(v) FROM n
SELECT skewness(v) FROM n
SELECT k, kurtosis(v), skewness(v), kurtosis_pop(v), product(v) FROM n GROUP BY k
SELECT k, histogram(v), max(v, 2), min(v, 2), arg_max(k, v, 2) FROM n GROUP BY k
SELECT kurtosis(v) FILTER (WHERE v > 1) FROM n
SELECT k, any_value(MAP{'a': k}) AS m, first(MAP{'a': k}) AS f FROM n GROUP BY k
""".strip().splitlines()
NUMBERS = [
    ("a", 1),
    ("a", 2),
    ("a", 4),
    ("a", 9),
    ("a", 9),
    ("b", 1),
    ("b", 2),
    ("b", 3),
    ("c", 5),
    ("c", 5),
    ("d", None),
]


@pytest.mark.parametrize("query", AGGREGATES)
def test_duckdb_aggregates_alike(query: str) -> None:
    database = empty_duckdb()
    database.execute("CREATE TABLE n (k VARCHAR, v INT)")
    database.executemany("INSERT INTO n VALUES (?, ?)", NUMBERS)
    with ev.connect() as db:
        db.sql("CREATE TABLE n (k VARCHAR, v INT)")
        db.sql(f"CREATE MATERIALIZED VIEW w AS {query}", dialect="duckdb")
        extra = [(("a", 7), 1), (("c", None), 1), (("e", 3), 1)]
        db.apply({"n": [(row, 1) for row in NUMBERS] + extra})
        db.apply({"n": [(row, -1) for row, _ in extra]})
        ours = {*map(comparable, db.view("w").rows())}
        db.verify()
    assert ours == {*map(comparable, database.execute(query).fetchall())}


REFUSED = """
postgres | sqrt(-1) | square root of a negative number
postgres | ln(0) | logarithm of a number that is not positive
postgres | log(-1) | logarithm of a number that is not positive
postgres | 'a\\'::bytea | is no BINARY
postgres | to_char(1, '999') | to_char of a number
postgres | to_char(now(), 'xyz') | in the pattern
postgres | to_date('a', 'DD DAY') | DAY where a moment is read
postgres | 'a' SIMILAR TO upper('a') | not written down
duckdb | 'é'::BLOB | beyond ASCII
duckdb | '\\xA'::BLOB | is no BLOB
duckdb | 'x'::INTERVAL | is no interval
duckdb | date_diff('moon', DATE '2020-01-01', DATE '2020-01-01') | the units are
duckdb | date_sub('month', DATE '2020-01-01', DATE '2020-01-01') | date_diff counts
duckdb | list_aggregate([1], 'entropy') | there are sum
duckdb | format('{:d}', 1) | printf
duckdb | [1, 2, 3][1:3:2] | STEP in SLICE
spark | array(1, 2)[1:2] | slice
spark | INTERVAL '1 day or so' | is no interval
""".strip().splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_what_a_dialect_refuses_is_refused(line: str) -> None:
    dialect, call, said = (part.strip() for part in line.split(" | "))
    with ev.connect() as db, pytest.raises(EverviewError) as refused:
        db.sql(f"SELECT {call}", dialect=dialect).rows()
    assert said in f"{refused.value}{refused.value.hint}"


def test_intervals_and_bytes_are_inserted_as_text() -> None:
    with ev.connect() as db:
        db.sql("CREATE TABLE t (i INTERVAL, b BYTEA)", dialect="postgres")
        db.sql(r"INSERT INTO t VALUES ('1 day', '\x61'), ('01:00', 'a')", dialect="postgres")
        db.sql(r"INSERT INTO t (b) VALUES ('\x62')", dialect="postgres")
        expected = {(dt.timedelta(days=1), b"a"), (dt.timedelta(hours=1), b"a"), (None, b"b")}
        assert {*db.table("t").rows()} == expected


def test_series_of_moments_take_an_interval_in_text() -> None:
    with ev.connect() as db:
        for step in ("'1 day'::interval", "'1 day'", "interval '1 day'"):
            series = f"generate_series(timestamp '2020-01-01', timestamp '2020-01-03', {step})"
            rows = db.sql(f"SELECT x FROM {series} AS g(x)", dialect="postgres").rows()
            assert [*rows] == [(dt.datetime(2020, 1, day),) for day in (1, 2, 3)]


def test_a_view_of_the_last_hour_in_postgresql_s_words() -> None:
    with ev.connect() as db:
        db.advance(now=dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC))
        db.sql("CREATE TABLE t (a INT, ts TIMESTAMPTZ)", dialect="postgres")
        db.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE ts > now() - '1 hour'::interval", dialect="postgres"
        )
        hours = [(n, dt.datetime(2026, 1, 1, 9 + n, 30, tzinfo=dt.UTC)) for n in range(3)]
        db.apply({"t": [(row, 1) for row in hours]})
        assert [*db.view("v").rows()] == [(2,)]


def test_spark_casts_a_text_to_an_interval() -> None:
    with ev.connect() as db:
        rows = db.sql(
            "SELECT DATE'2026-01-01' + CAST('1 day' AS INTERVAL), CAST('interval 2 months' AS INTERVAL)"
        ).rows()
        assert [*rows] == [(dt.date(2026, 1, 2), 2)]


@pytest.mark.parametrize("dialect", ["spark", "postgres"])
def test_a_text_that_is_too_long_for_its_column_is_refused(dialect: str) -> None:
    with ev.connect() as db:
        db.sql("CREATE TABLE t (a VARCHAR(2), b CHAR(3), c TEXT)", dialect=dialect)
        db.sql("INSERT INTO t VALUES ('ßé', 'abc', 'longer'), (NULL, '', NULL)")
        for values in ("('abc', 'a', 'a')", "('a', 'abcd', 'a')"):
            with pytest.raises(EverviewError, match="t_lengths"):
                db.sql(f"INSERT INTO t VALUES {values}", dialect=dialect)
        db.sql("ALTER TABLE t ADD COLUMN d VARCHAR(1)", dialect=dialect)
        with pytest.raises(EverviewError, match="t_lengths"):
            db.sql("UPDATE t SET d = 'ab'", dialect=dialect)
        db.sql("ALTER TABLE t RENAME COLUMN d TO e; ALTER TABLE t DROP COLUMN a")
        with pytest.raises(EverviewError, match="t_lengths"):
            db.sql("UPDATE t SET e = 'ab'", dialect=dialect)
        db.sql("ALTER TABLE t DROP COLUMN e; ALTER TABLE t DROP COLUMN b; UPDATE t SET c = 'as long as it likes'")
        assert db.sql("SELECT * FROM information_schema.check_constraints").rows() == []
        assert len(db.table("t").rows()) == 2


def test_duckdb_and_casts_of_spark_know_no_length() -> None:
    with ev.connect() as db:
        db.sql("CREATE TABLE t (a VARCHAR(2))", dialect="duckdb")
        db.sql("INSERT INTO t VALUES ('abc')")
        assert [*db.sql("SELECT CAST(a AS VARCHAR(2)) FROM t").rows()] == [("abc",)]


@pytest.mark.parametrize(
    "call",
    [
        "x::VARCHAR",
        "s[2:3]",
        "upper(s)",
        "ln(x)",
        "[e FOR e IN l]",
        "1 IN l",
        "'1 day'::INTERVAL",
        "(x, s) < (1, 'a')",
        "(x, s) IN ((1, 'a'))",
        "x > ALL(l)",
        "concat(x, s)",
    ],
)
def test_spark_is_not_asked_what_it_means_otherwise(call: str) -> None:
    created = f"CREATE VIEW v AS SELECT {call} AS c FROM t"
    schema = Schema.parse("x DOUBLE, s STRING, l ARRAY<INT>")
    (view,) = bind(created, Tables({"t": schema}), "duckdb")
    assert isinstance(view, CreateView)
    assert spark_query(view) is None
