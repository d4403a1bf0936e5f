"""Queries at work hold, after every tick, what DuckDB says of the rows that are there."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import everview as ev
from everview.circuit import Circuit
from everview.frontends.sql import CreateTable, CreateView, Tables, bind
from everview.lowering.lower import lower
from everview.optimize import optimize
from everview.oracle.plans import evaluate
from everview.plan.node import Plan
from everview.runtimes.embedded import Embedded
from everview.types import Schema
from everview.zset import ZSet

TABLES = {
    "t": "a INTEGER, b INTEGER NOT NULL, c VARCHAR, d DECIMAL(8,2)",
    "s": "a INTEGER, x INTEGER, g VARCHAR",
    "e": "p INTEGER NOT NULL, q INTEGER NOT NULL",
    "w": "k VARCHAR NOT NULL, o INTEGER NOT NULL, v INTEGER NOT NULL",
    "l": "i INTEGER NOT NULL, arr INTEGER[]",
}

QUERIES = """
SELECT a, b + 1 AS n, c FROM t WHERE b > 1
SELECT DISTINCT c FROM t
SELECT *, a IS NULL AND b > 1, coalesce(a, b), nullif(a, b), a BETWEEN 1 AND 3, c LIKE 'x%' FROM t
SELECT a, CASE WHEN b = 0 THEN -1 ELSE 12 // b END AS q, CASE c WHEN 'x' THEN 1 WHEN 'y' THEN 2 END AS r FROM t
SELECT t.b, s.x FROM t JOIN s ON t.a = s.a
SELECT t.b, s.x FROM t LEFT JOIN s ON t.a = s.a
SELECT t.b, s.x FROM t RIGHT JOIN s ON t.a = s.a AND t.b > 1
SELECT t.b, s.x FROM t FULL JOIN s ON t.a = s.a
SELECT t.b, s.x FROM t JOIN s ON t.a < s.x
SELECT t.b, s.x FROM t LEFT JOIN s ON t.a < s.x AND s.g = t.c
SELECT a, t.b, s.x FROM t FULL JOIN s USING (a)
SELECT a, b, x FROM t NATURAL JOIN s
SELECT x.b, y.b FROM t x JOIN t y ON x.a = y.a AND x.b < y.b
SELECT t.b, s.x FROM t CROSS JOIN s WHERE t.b = 1
SELECT t.b FROM t SEMI JOIN s ON t.a = s.a
SELECT t.b FROM t ANTI JOIN s ON t.a = s.a
SELECT t.b, s.x FROM t, s WHERE t.a = s.a AND t.c = s.g
SELECT t.b, u.b, s.x FROM t JOIN t u ON t.b = u.a JOIN s ON u.b = s.a
SELECT c, count(*), count(a), sum(b), avg(b), min(a), max(a) FROM t GROUP BY c
SELECT count(*), sum(a), min(c), max(d), count(DISTINCT a) FROM t
SELECT a + b AS k, sum(d) AS n FROM t GROUP BY a + b HAVING count(*) > 1
SELECT c, sum(a) FILTER (WHERE b > 1) AS f, bool_and(b > 0) AS g, count(*) FILTER (WHERE a IS NULL) FROM t GROUP BY c
SELECT c, arg_max(b, a) FROM t WHERE a IS NOT NULL GROUP BY c HAVING count(DISTINCT a) = count(a)
SELECT c, a, sum(b), grouping(a) FROM t GROUP BY ROLLUP (c, a)
SELECT c, a, count(*) FROM t GROUP BY GROUPING SETS ((c), (a), ())
SELECT c, a, count(*) FROM t GROUP BY CUBE (c, a)
SELECT a AS k, sum(b) AS n FROM t GROUP BY k ORDER BY n DESC, k LIMIT 3
SELECT a, b FROM t ORDER BY a NULLS FIRST, b DESC, c, d LIMIT 4 OFFSET 2
SELECT a FROM t UNION SELECT a FROM s
SELECT a FROM t UNION ALL SELECT x FROM s
SELECT a FROM t INTERSECT SELECT a FROM s
SELECT a FROM t INTERSECT ALL SELECT a FROM s
SELECT a FROM t EXCEPT SELECT a FROM s
SELECT a FROM t EXCEPT ALL SELECT a FROM s
SELECT a, 1.5 FROM t UNION ALL SELECT x, a FROM s
SELECT b FROM t WHERE a IN (SELECT a FROM s)
SELECT b FROM t WHERE a NOT IN (SELECT a FROM s)
SELECT b FROM t WHERE a NOT IN (SELECT a FROM s WHERE a IS NOT NULL)
SELECT b, a IN (SELECT a FROM s) AS i FROM t
SELECT b FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.a = t.a AND s.x > t.b)
SELECT b FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = t.a)
SELECT b FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.x > t.b) OR c = 'x'
SELECT b, (SELECT max(x) FROM s WHERE s.a = t.a) AS m FROM t
SELECT b, (SELECT count(*) FROM s WHERE s.a = t.a) AS m FROM t
SELECT b FROM t WHERE b > (SELECT avg(x) FROM s)
SELECT b FROM t WHERE b > ALL (SELECT x FROM s WHERE s.a = t.a)
SELECT b, b < ANY (SELECT x FROM s) AS y FROM t
SELECT c, sum(b) FROM t GROUP BY c HAVING sum(b) > (SELECT avg(x) FROM s)
SELECT c, a, (SELECT count(*) FROM s WHERE s.a = t.a) AS n FROM t GROUP BY c, a
SELECT c, max((SELECT max(x) FROM s WHERE s.a = t.a)) FROM t GROUP BY c
SELECT t.b, l.m FROM t, LATERAL (SELECT max(x) AS m FROM s WHERE s.a = t.a) l
SELECT t.b, l.x FROM t JOIN LATERAL (SELECT x FROM s WHERE s.a = t.a AND s.x > t.b) l ON true
SELECT t.b, l.x FROM t LEFT JOIN LATERAL (SELECT x FROM s WHERE s.a = t.a) l ON true
WITH m AS (SELECT c, sum(b) AS n FROM t GROUP BY c) SELECT p.c, q.c FROM m p JOIN m q ON p.n = q.n
SELECT c, n FROM (SELECT c, count(*) AS n FROM t GROUP BY c) z WHERE n > 1
SELECT x FROM (VALUES (1), (2), (NULL)) v(x) WHERE x NOT IN (SELECT a FROM t WHERE a IS NOT NULL)
SELECT b, row_number() OVER (PARTITION BY c ORDER BY b, a, d) AS n FROM t
SELECT b, rank() OVER (PARTITION BY c ORDER BY b) AS r, dense_rank() OVER (PARTITION BY c ORDER BY b) AS d FROM t
SELECT k, o, lag(v) OVER p AS l, lead(v, 1, -1) OVER p AS m FROM w WINDOW p AS (PARTITION BY k ORDER BY o, v)
SELECT k, o, v, sum(v) OVER (PARTITION BY k ORDER BY o) AS n FROM w
SELECT k, o, v, sum(v) OVER (PARTITION BY k ORDER BY o, v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM w
SELECT c, sum(b) OVER (PARTITION BY c) AS n FROM t
SELECT k, o FROM w QUALIFY row_number() OVER (PARTITION BY k ORDER BY o DESC, v) = 1
SELECT c, sum(b) AS n, rank() OVER (ORDER BY sum(b) DESC) AS r FROM t GROUP BY c
WITH RECURSIVE r AS (SELECT p, q FROM e UNION SELECT r.p, e.q FROM r JOIN e ON r.q = e.p) SELECT * FROM r
WITH RECURSIVE r(n) AS (SELECT 0 UNION SELECT q FROM e JOIN r ON p = n) SELECT count(*), max(n) FROM r
SELECT w.k, w.o, p.v FROM w ASOF JOIN w p ON w.k = p.k AND w.o > p.o
SELECT unnest([a, b]) AS z FROM t
SELECT i, unnest(arr) AS z FROM l
SELECT l.i, u.z FROM l, unnest(l.arr) AS u(z) WHERE u.z > 1
SELECT u.z, count(*) FROM l CROSS JOIN unnest(arr) AS u(z) GROUP BY u.z
SELECT (SELECT x FROM s WHERE s.a = 1 ORDER BY x NULLS LAST LIMIT 1) AS v, b FROM t
SELECT c, string_agg(c, '-' ORDER BY c) FROM t WHERE c IS NOT NULL GROUP BY c
SELECT DISTINCT ON (k) k, o, v FROM w ORDER BY k, o DESC, v
SELECT count(*) FROM t JOIN s ON t.a IS NOT DISTINCT FROM s.a
SELECT * FROM (PIVOT (SELECT a, b, c FROM t) ON c IN ('x', 'y') USING sum(b) GROUP BY a)
""".strip().split("\n")
LINES = (Path(__file__).parent / "duckdb_queries.txt").read_text().splitlines()
QUERIES += [line for line in LINES if not line.startswith("#")]


def drawn(chance: random.Random, table: str) -> tuple[Any, ...]:
    """A row of few values, many of them NULL; times differ, since what is first of equal ones is anyone's choice."""

    def small() -> int | None:
        return chance.choice([None, 0, 1, 1, 2, 3])

    match table:
        case "t":
            amount = chance.choice([None, Decimal("1.50"), Decimal("-2.25")])
            return small(), chance.randrange(4), chance.choice([None, "x", "y", "z"]), amount
        case "s":
            return small(), small(), chance.choice([None, "x", "y"])
        case "e":
            return chance.randrange(5), chance.randrange(5)
        case "l":
            elements = [small() for _ in range(chance.randrange(4))]
            return chance.randrange(3), chance.choice([None, tuple(elements)])
        case _:
            return chance.choice("ab"), chance.randrange(10**6), chance.randrange(3)


def ticks(seed: int, count: int = 6) -> Iterator[dict[str, list[tuple[Any, int]]]]:
    """Inserts and deletes of what is there."""
    chance = random.Random(seed)
    held: dict[str, list[Any]] = {name: [] for name in TABLES}
    for number in range(count):
        tick: dict[str, list[tuple[Any, int]]] = {}
        for name, rows in held.items():
            gone = chance.sample(rows, chance.randrange(len(rows) + 1)) if number else []
            for row in gone:
                rows.remove(row)
            new = [drawn(chance, name) for _ in range(chance.randrange(6))]
            rows.extend(new)
            tick[name] = [(row, -1) for row in gone] + [(row, 1) for row in new]
        yield tick


def comparable(rows: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(_cell, row)) for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_cell, value))
    return round(float(value), 6) if isinstance(value, (float, Decimal)) else value


@pytest.fixture(scope="module")
def disagreements() -> dict[str, str]:
    """All queries in one circuit, over one history; for each the first tick after which it was not as it should be."""
    theirs, catalog = duckdb.connect(), Tables({})
    for name, columns in TABLES.items():
        theirs.execute(f"CREATE TABLE {name} ({columns})")
        (table,) = bind(f"CREATE TABLE {name} ({columns})", catalog, "duckdb")
        assert isinstance(table, CreateTable)
        catalog.relations[name] = table.schema
    plans = {text: _plan(text, catalog) for text in QUERIES}
    circuit = Circuit()
    streams = {name: circuit.source(name, s) for name, s in catalog.relations.items() if isinstance(s, Schema)}
    for text, plan in plans.items():
        lower(optimize(plan), streams, circuit).sink(text)
    found: dict[str, str] = {}
    run, held = Embedded(circuit), {name: ZSet() for name in TABLES}
    for number, tick in enumerate(ticks(seed=7)):
        run.tick(tick)
        for name, changes in tick.items():
            held[name] = held[name] + ZSet.of(changes)
            _fill(theirs, name, held[name])
        for text, plan in plans.items():
            wanted = comparable(theirs.execute(text).fetchall())
            if comparable(run.view(text).rows()) != wanted:
                found.setdefault(text, f"tick {number} of\n{plan}")
            if number % 2 and comparable(_repeated(evaluate(plan, held))) != wanted:
                found.setdefault(text, f"the oracle, after tick {number} of\n{plan}")
    return found


def _plan(text: str, catalog: Tables) -> Plan:
    (view,) = bind(f"CREATE MATERIALIZED VIEW v AS {text}", catalog, "duckdb")
    assert isinstance(view, CreateView)
    return view.plan


def _fill(theirs: Any, name: str, rows: ZSet) -> None:
    theirs.execute(f"DELETE FROM {name}")
    if len(rows):
        width = len(TABLES[name].split(", "))
        given = [[list(v) if isinstance(v, tuple) else v for v in row] for row in _repeated(rows)]
        theirs.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * width)})", given)


def _repeated(rows: ZSet) -> Iterator[tuple[Any, ...]]:
    return (row for row, weight in rows for _ in range(weight))


@pytest.mark.parametrize("text", QUERIES)
def test_a_view_is_what_duckdb_says(text: str, disagreements: dict[str, str]) -> None:
    assert disagreements.get(text) is None


@pytest.mark.parametrize("index", ["i", "i + 1", "i - 4", "2", "0", "-1", "9", "length('ab')", "CAST(i AS BIGINT)"])
def test_elements_of_arrays_are_counted_as_the_dialect_does(index: str) -> None:
    rows = [(i, None if i == 7 else [10, 20, 30]) for i in (None, -4, -3, -1, 0, 1, 2, 3, 4, 7)]
    db, duck = ev.connect(), duckdb.connect()
    db.sql("CREATE TABLE t (i INT, a ARRAY<INT>)")
    duck.execute("CREATE TABLE t (i INT, a INT[])")
    db.apply({"t": [(row, 1) for row in rows]})
    duck.executemany("INSERT INTO t VALUES (?, ?)", rows)
    query = f"SELECT i, a[{index}] AS v FROM t"
    expected = dict(duck.execute(query).fetchall())
    assert dict(db.sql(query, dialect="duckdb")) == expected
    at = dict(duck.execute(f"SELECT i, {index} FROM t").fetchall())
    never_from_the_end = {i: None if at[i] is None or at[i] < 1 else value for i, value in expected.items()}
    assert dict(db.sql(query, dialect="postgres")) == never_from_the_end


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a IS NOT NULL AND s ~* 'A'", True),
        ("a = ANY(ARRAY[1, 2])", True),
        ("substr(s, 0, 2)", "a"),
        ("substring(s FROM -1 FOR 3)", "a"),
        ("left(s, -1) || right(s, -1)", "abbc"),
        ("regexp_replace('aaa', 'a', 'b')", "baa"),
        (r"regexp_replace('aaa', '(a)', '<\1\&>', 'g')", "<aa><aa><aa>"),
        ("log(100)", 2.0),
        ("round(2.5::float8)", 2.0),
        ("round(2.5)", Decimal(3)),
        ("trunc(-1.7)", Decimal(-1)),
        ("to_hex(255)", "ff"),
        ("DATE '2024-01-31' + INTERVAL '1 month'", datetime(2024, 2, 29)),
        ("""'{"a": {"b": 1}}'::json -> 'a' ->> 'b'""", "1"),
        ("(SELECT sum(x) FROM generate_series(1, 3) x)", 6),
    ],
)
@pytest.mark.parametrize("dialect", ["postgres", "postgresql"])
def test_expressions_of_postgresql_are_what_it_says(text: str, answer: Any, dialect: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (a INT, s STRING)")
    db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {text} AS x FROM t", dialect=dialect)
    db.apply({"t": [((1, "abc"), 1)]})
    assert db.view("v").rows() == [(answer,)]
    assert db.verify()


def test_elements_of_arrays_are_counted_from_zero_in_sparks_dialect() -> None:
    db = ev.connect()
    assert [db.sql(f"SELECT array(10, 20)[{i}] AS v").rows() for i in ("0", "1", "NULL")] == [
        [(10,)],
        [(20,)],
        [(None,)],
    ]
    for index in ("-1", "-2", "2", "x", "x - 1"):
        with pytest.raises(ev.EverviewError, match="outside the array"):
            db.sql(f"SELECT array(10, 20)[{index}] AS v FROM VALUES (-1) AS t(x)").rows()
