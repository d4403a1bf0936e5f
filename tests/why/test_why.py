"""Why rows are there: the base rows of an explanation alone give the row, for views of every kind and front end."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.oracle.plans import evaluate

TABLES = """
CREATE TABLE t (k BIGINT NOT NULL, g STRING, x BIGINT);
CREATE TABLE u (k BIGINT NOT NULL, y DOUBLE);
CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE e (id BIGINT NOT NULL, at TIMESTAMP NOT NULL);
"""
VIEWS = {
    "filtered": "SELECT k, x + 1 AS x FROM t WHERE x > 1 AND g = 'a'",
    "projected": "SELECT g FROM t",
    "distinct_": "SELECT DISTINCT g, x FROM t",
    "joined": "SELECT t.k, g, y FROM t JOIN u ON t.k = u.k AND t.x < u.y",
    "lefts": "SELECT t.k, g, y FROM t LEFT JOIN u ON t.k = u.k",
    "rights": "SELECT t.g, u.k, y FROM t RIGHT JOIN u ON t.k = u.k",
    "fulls": "SELECT t.k AS tk, u.k AS uk, x, y FROM t FULL JOIN u ON t.k = u.k",
    "having_": "SELECT k, x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.y > t.x)",
    "lacking": "SELECT k, x FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "among": "SELECT k FROM t WHERE k IN (SELECT a FROM edge)",
    "outside_": "SELECT k FROM t WHERE k NOT IN (SELECT a FROM edge)",
    "summed": "SELECT g, count(*) AS n, sum(x) AS s, min(x) AS low, max(x) AS high FROM t GROUP BY g",
    "of_join": "SELECT g, sum(y) AS s, count(DISTINCT x) AS n FROM t JOIN u ON t.k = u.k GROUP BY g",
    "total": "SELECT count(*) AS n, max(x) AS high FROM t",
    "by_half": "SELECT k % 2 AS half, avg(x) AS mean FROM t GROUP BY k % 2 HAVING count(*) > 1",
    "scalar_": "SELECT k, (SELECT max(y) FROM u WHERE u.k = t.k) AS best FROM t",
    "unions": "SELECT k FROM t UNION SELECT a FROM edge UNION SELECT 7",
    "union_all": "SELECT k, 1 AS n FROM t UNION ALL SELECT k, 2 FROM u",
    "intersects": "SELECT k FROM t INTERSECT SELECT b FROM edge",
    "excepts": "SELECT k FROM t EXCEPT SELECT b FROM edge",
    "excepts_all": "SELECT k FROM t EXCEPT ALL SELECT b FROM edge",
    "first_": "SELECT k, x FROM t ORDER BY x DESC, k LIMIT 2",
    "second": "SELECT k, x FROM t ORDER BY x DESC, k LIMIT 2 OFFSET 1",
    "ranked": "SELECT k, x, row_number() OVER (PARTITION BY g ORDER BY x, k) AS r, sum(x) OVER (PARTITION BY k) AS s "
    "FROM t",
    "exploded": "SELECT k, n FROM t LATERAL VIEW explode(array(x, k)) AS n",
    "triangles": "SELECT p.a, q.a AS b, r.a AS c FROM edge p, edge q, edge r WHERE p.b = q.a AND q.b = r.a "
    "AND r.b = p.a",
    "walks": "SELECT count(*) AS n FROM edge p JOIN edge q ON p.b = q.a JOIN edge r ON q.b = r.a",
    "reach": "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM edge UNION SELECT r.a, e.b FROM r JOIN edge e ON r.b = e.a) "
    "SELECT a, b FROM r",
    "steps": "WITH RECURSIVE r(b, n) AS (SELECT a, 0 FROM edge WHERE a = 1 UNION SELECT e.b, n + 1 FROM r JOIN edge e "
    "ON r.b = e.a WHERE n < 4) SELECT b, min(n) AS n FROM r GROUP BY b",
    "counted": "WITH RECURSIVE r(b, n) AS (SELECT a, 0 FROM edge WHERE a = 1 UNION ALL SELECT e.b, n + 1 FROM r JOIN "
    "edge e ON r.b = e.a WHERE n < 3) SELECT b, count(*) AS n FROM r GROUP BY b",
    "mixed": "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM edge UNION SELECT r.a, s.b FROM r JOIN (WITH RECURSIVE q(a, b) "
    "AS (SELECT a, b FROM edge WHERE a > b UNION SELECT q.a, e.b FROM q JOIN edge e ON q.b = e.a) SELECT a, b FROM q) s "
    "ON r.b = s.a) SELECT a, b FROM r WHERE a = b",
    "asof": "SELECT t.k, t.x, u.y FROM t ASOF JOIN u MATCH_CONDITION (t.x >= u.y) ON t.k = u.k",
    "lateral_": "SELECT t.k, s.y FROM t, LATERAL (SELECT y FROM u WHERE u.k = t.k ORDER BY y LIMIT 1) s",
    "compared": "SELECT k FROM t WHERE x > (SELECT avg(x) FROM t)",
    "cubed": "SELECT g, x, count(*) AS n FROM t GROUP BY CUBE (g, x)",
    "over": "SELECT g, s FROM summed WHERE n > 1",
}  # fmt: skip
KEPT = ("summed", "over", "triangles", "steps")
RULES = """
.decl edge(a: number, b: number)
.decl tc(a: number, b: number)
.decl root(a: number)
.decl even(a: number, b: number)
.decl odd(a: number, b: number)
.decl apart(a: number, b: number)
.decl far(a: number, n: number)
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), tc(y, z).
root(x) :- edge(x, _), !edge(_, x).
odd(x, y) :- edge(x, y).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), edge(y, z).
apart(x, y) :- tc(x, _), tc(_, y), !tc(x, y), x < y.
far(x, n) :- edge(x, _), n = count : { tc(x, _) }.
"""
NOW = dt.datetime(2100, 1, 1, 12)


@pytest.fixture(scope="module")
def plain() -> Any:
    """A database with views that hold nothing: their recursions are computed by explanations themselves."""
    db = ev.connect()
    db.sql(TABLES)
    for name, query in VIEWS.items():
        db.sql(f"CREATE VIEW {name} AS {query}")
    return db


@pytest.fixture(scope="module")
def kept() -> Any:
    """A database whose views are kept, of all front ends: rounds of recursions are looked up."""
    db = ev.connect()
    db.sql(TABLES)
    for name in KEPT:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    db.sql("CREATE MATERIALIZED VIEW recent AS SELECT id FROM e WHERE at > now() - INTERVAL 1 HOUR")
    db.datalog(RULES)
    db.edn("[:find ?a ?c :where [?a :to ?b] [?b :to ?c] (not [?a :to ?c])]", name="hops")
    db.query("t").where("x", ">", 0).select("k", "g").materialize("fluent")
    db.advance(NOW)
    return db


number = st.integers(0, 4)
rows = st.fixed_dictionaries(
    {
        "t": st.lists(st.tuples(number, st.sampled_from(["a", "b", None]), st.none() | number), max_size=6),
        "u": st.lists(st.tuples(number, st.sampled_from([0.5, 2.0, None])), max_size=4),
        "edge": st.lists(st.tuples(number, number), max_size=7),
        "e": st.lists(st.tuples(number, st.sampled_from([NOW, NOW - dt.timedelta(hours=2)])), max_size=2),
        ":to": st.lists(st.tuples(number, number), max_size=4, unique=True),
    }
)


def hold(db: Any, wanted: dict[str, list[Any]]) -> None:
    """Let the tables hold these rows, and no others."""
    held = {name: [(row, -w) for row, w in db.table(name).contents()] for name in db.tables()}
    db.apply({name: [*held[name], *((row, 1) for row in wanted.get(name, []))] for name in held})


def by_oracle(db: Any, tables: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The rows of all views, computed from scratch."""
    catalog = db._core.catalog
    relations: dict[str, Any] = {name: [(row, 1) for row in tables.get(name, [])] for name in db.tables()}
    for view in catalog.ordered():
        relations[view.name] = list(evaluate(view.plan, relations))
    return {view: [row for row, w in relations[view] if w > 0] for view in catalog.views}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_=rows)
def test_base_rows_alone_give_the_row(plain: Any, given_: dict[str, list[Any]]) -> None:
    hold(plain, given_)
    for name, held in by_oracle(plain, given_).items():
        for row in held[:2]:
            why = plain.why(name, row, rows=100)
            assert why.complete, f"{name} {row}\n{why}"
            assert row in by_oracle(plain, why.base_rows())[name], f"{name} {row}\n{why}"


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_=rows)
def test_base_rows_alone_give_the_row_of_a_kept_view(kept: Any, given_: dict[str, list[Any]]) -> None:
    hold(kept, given_)
    asked = [(name, row) for name in kept.views() for row in list(dict.fromkeys(kept.view(name).rows()))[:4]]
    told = [kept.why(name, row, rows=100) for name, row in asked]
    for (name, row), why in zip(asked, told, strict=True):
        assert why.complete, f"{name} {row}\n{why}"
        hold(kept, why.base_rows())
        assert row in kept.view(name).rows(), f"{name} {row}\n{why}"
