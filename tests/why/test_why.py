"""Why rows are there: the base rows of an explanation alone give the row, for views of every kind and front end."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from everview.database.snapshots import snapshot_of
from everview.errors import (
    DefinitionError,
    NoSuchRow,
    QueryError,
    TooMuchToExplain,
    UnknownName,
    WrongArity,
    WrongType,
)
from everview.oracle.plans import evaluate
from everview.why import Why

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
    "mixed": "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM edge UNION SELECT r.a, s.b FROM r JOIN (WITH RECURSIVE "
    "q(a, b) AS (SELECT a, b FROM edge WHERE a > b UNION SELECT q.a, e.b FROM q JOIN edge e ON q.b = e.a) "
    "SELECT a, b FROM q) s ON r.b = s.a) SELECT a, b FROM r WHERE a = b",
    "asof": "SELECT t.k, t.x, u.y FROM t ASOF JOIN u MATCH_CONDITION (t.x >= u.y) ON t.k = u.k",
    "lateral_": "SELECT t.k, s.y FROM t, LATERAL (SELECT y FROM u WHERE u.k = t.k ORDER BY y LIMIT 1) s",
    "compared": "SELECT k FROM t WHERE x > (SELECT avg(x) FROM t)",
    "cubed": "SELECT g, x, count(*) AS n FROM t GROUP BY CUBE (g, x)",
    "twice_out": "SELECT k FROM t EXCEPT (SELECT k FROM t EXCEPT SELECT b FROM edge)",
    "divided": "SELECT k FROM t p WHERE NOT EXISTS "
    "(SELECT 1 FROM t q WHERE q.k = p.k AND q.x NOT IN (SELECT a FROM edge))",
    "more_often": "SELECT k, count(*) AS n FROM (SELECT k FROM t EXCEPT ALL SELECT b FROM edge) GROUP BY k",
    "of_few": "SELECT k FROM t WHERE k NOT IN (SELECT k FROM t GROUP BY k HAVING count(*) = 1)",
    "behind": "SELECT k FROM t WHERE k NOT IN (SELECT k FROM t ORDER BY k LIMIT 2)",
    "none_out": "SELECT max(k) AS high FROM (VALUES (1), (2)) v(k) WHERE NOT EXISTS (SELECT 1 FROM u WHERE y > 1)",
    "over": "SELECT g, s FROM summed WHERE n > 1",
}  # fmt: skip
KEPT = ("summed", "over", "steps")
RULES = """
.decl edge(a: number, b: number)
.decl tc(a: number, b: number)
.decl root(a: number)
.decl even(a: number, b: number)
.decl odd(a: number, b: number)
.decl apart(a: number, b: number)
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), tc(y, z).
root(x) :- edge(x, _), !edge(_, x).
odd(x, y) :- edge(x, y).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), edge(y, z).
apart(x, y) :- tc(x, _), tc(_, y), !tc(x, y), x < y.
.decl near(a: number)
near(x) :- edge(x, _), !apart(x, _), !root(x).
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
    db.datalog("far(x, min(0)) :- x = 1.  far(y, min(d + 1)) :- far(x, d), edge(x, y).")
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


def by_oracle(db: Any, tables: dict[str, list[Any]], only: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """The rows of all views, or of some, computed from scratch."""
    catalog = db._core.catalog
    relations: dict[str, Any] = {name: [(row, 1) for row in tables.get(name, [])] for name in db.tables()}
    views = [view for view in catalog.ordered() if not only or view.name in only]
    for view in views:
        relations[view.name] = list(evaluate(view.plan, relations))
    return {view.name: [row for row, w in relations[view.name] if w > 0] for view in views}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_=rows)
def test_base_rows_alone_give_the_row(plain: Any, given_: dict[str, list[Any]]) -> None:
    hold(plain, given_)
    for name, held in by_oracle(plain, given_).items():
        for row in held[:2]:
            why = plain.why(name, row, rows=100)
            assert why.complete, f"{name} {row}\n{why}"
            assert row in by_oracle(plain, why.base_rows(), ("summed", name))[name], f"{name} {row}\n{why}"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_=rows, seed=st.randoms(use_true_random=False))
def test_every_absence_has_a_reason(plain: Any, given_: dict[str, list[Any]], seed: Any) -> None:
    hold(plain, given_)
    for name, held in by_oracle(plain, given_).items():
        fields = plain._core.catalog.views[name].schema.fields
        values = [seed.choice("abc") if str(f.type) == "STRING" else seed.randrange(5) for f in fields]
        row = tuple(b if seed.random() < 0.5 else a for a, b in zip(values, seed.choice([*held, values]), strict=True))
        if row not in held and all(v is not None or f.nullable for v, f in zip(row, fields, strict=True)):
            why_not = plain.why_not(name, row)
            assert any(node.note for node in why_not.walk()), f"{name} {row}\n{why_not}"
            assert str(why_not).startswith("not in view")


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_=rows)
def test_base_rows_alone_give_the_row_of_a_kept_view(kept: Any, given_: dict[str, list[Any]]) -> None:
    hold(kept, given_)
    asked = [(name, row) for name in kept.views() for row in list(dict.fromkeys(kept.view(name).rows()))[:4]]
    told = [kept.why(name, row, rows=100) for name, row in asked]
    seen = snapshot_of(kept, whole=True)
    for (name, row), why in zip(asked, told, strict=True):
        assert why.complete, f"{name} {row}\n{why}"
        hold(kept, why.base_rows())
        assert str(seen.reader().why(name, row, rows=100)) == str(why)  # whatever has changed meanwhile
        assert row in kept.view(name).rows(), f"{name} {row}\n{why}"


# -- what explanations say


SHOP = """
CREATE TABLE customer (id BIGINT PRIMARY KEY, name STRING NOT NULL, country STRING);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, amount BIGINT NOT NULL);
CREATE TABLE refund (order_id BIGINT NOT NULL);
CREATE VIEW paid AS SELECT name, o.id, amount FROM orders o JOIN customer c ON c.id = o.customer
  WHERE amount > 10 AND NOT EXISTS (SELECT 1 FROM refund r WHERE r.order_id = o.id);
CREATE VIEW totals AS SELECT name, count(*) AS n, max(amount) AS largest FROM paid GROUP BY name;
CREATE VIEW known AS SELECT o.id, name FROM orders o LEFT JOIN customer c ON c.id = o.customer;
CREATE VIEW refunded AS SELECT id FROM orders EXCEPT (SELECT id FROM orders EXCEPT SELECT order_id FROM refund);
INSERT INTO customer VALUES (1, 'Ada', 'UK'), (2, 'Bob', NULL);
INSERT INTO orders VALUES (1, 1, 20), (2, 1, 50), (3, 2, 5), (4, 2, 70), (5, 9, 30);
INSERT INTO refund VALUES (4);
"""


@pytest.fixture(scope="module")
def shop() -> Any:
    db = ev.connect()
    db.sql(SHOP)
    return db


def notes(why: Why) -> list[str]:
    return [f"{node.table or node.node}: {node.note}" for node in why.walk() if node.note]


def test_an_aggregate_names_its_rows_and_the_one_that_decides(shop: Any) -> None:
    why = shop.why("totals", ("Ada", 2, 50))
    assert why.base_rows() == {"orders": [(2, 1, 50), (1, 1, 20)], "customer": [(1, "Ada", "UK")]}
    assert any(note.endswith("decides max(amount)") for note in notes(why))
    assert "absent: refund: no row with order_id = 2" in notes(why)
    few = shop.why("totals", {"name": "Ada", "n": 2, "largest": 50}, rows=1)
    assert not few.complete
    assert "… and 1 more" in str(few)
    assert few.base_rows()["orders"] == [(2, 1, 50)]


def test_an_outer_join_says_why_there_is_null(shop: Any) -> None:
    assert "absent: customer: no row with id = 9" in notes(shop.why("known", (5, None)))


def test_what_keeps_others_away_stands_beside_a_row(shop: Any) -> None:
    why = shop.why("refunded", (4,))
    assert why.base_rows() == {"orders": [(4, 2, 70)], "refund": [(4,)]}
    assert "kept away by" in str(why)


@pytest.mark.parametrize(
    ("view", "row", "note"),
    [
        ("totals", ("Ada", 3, 50), "count(*) is 2, not 3"),
        ("paid", ("Bob", 3, 5), "amount > 10L is false"),
        ("paid", ("Bob", 4, 70), "rows are there that must not be"),
        ("paid", ("Bob", 1, 20), "name is 'Ada', not 'Bob'"),
        ("known", (6, "Ada"), "orders has no row with id = 6"),
        ("known", (5, "Ada"), "the row has no partner, so the other side is NULL"),
    ],
)
def test_an_absence_names_the_first_condition_that_fails(shop: Any, view: str, row: Any, note: str) -> None:
    why_not = shop.why_not(view, row)
    assert note in [node.note for node in why_not.walk()], str(why_not)


def test_long_derivations_and_large_groups_are_bounded() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL); CREATE VIEW n AS SELECT count(*) AS n FROM edge;")
    db.datalog(".decl tc(a: number, b: number) tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z).")
    db.apply({"edge": [((i, i + 1), 1) for i in range(400)]})
    why = db.why("tc", (0, 400))
    assert len(why.base_rows()["edge"]) == 400
    assert len(str(why).splitlines()) > 400
    assert why.to_dict()["row"] == {"a": 0, "b": 400}
    assert "<details" in why._repr_html_()
    counted = db.why("n", (400,), rows=7)
    assert "… and 393 more" in str(counted)
    assert len(counted.base_rows()["edge"]) == 7
    with pytest.raises(TooMuchToExplain, match="seconds"):
        db.why("tc", (0, 400), seconds=1e-9)


@pytest.mark.parametrize("shards", [1, 2])
def test_rounds_are_looked_up_after_changes_too(shards: int) -> None:
    db = ev.connect(shards=shards)
    db.sql("CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL)")
    db.datalog(".decl tc(a: number, b: number) tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z).")
    db.apply({"edge": [((1, 2), 1), ((2, 3), 1), ((3, 4), 1), ((1, 4), 1)]})
    assert db.why("tc", (1, 4)).base_rows() == {"edge": [(1, 4)]}
    db.apply({"edge": [((1, 4), -1)]})
    assert sorted(db.why("tc", (1, 4)).base_rows()["edge"]) == [(1, 2), (2, 3), (3, 4)]
    db.apply({"edge": [((2, 4), 1)]})
    assert sorted(db.why("tc", (1, 4)).base_rows()["edge"]) == [(1, 2), (2, 4)]


def test_values_of_all_kinds_are_found_again() -> None:
    db = ev.connect()
    db.sql("""
      CREATE TABLE v (id BIGINT PRIMARY KEY, f DOUBLE, at TIMESTAMP, d DECIMAL(9,2), a ARRAY<INT>, s STRUCT<x: INT>);
      CREATE VIEW same_ AS SELECT p.id, q.f, q.at, q.d, q.a, q.s FROM v p JOIN v q ON p.f = q.f AND p.at = q.at
        AND p.a = q.a AND p.s = q.s WHERE q.d > 1;
    """)
    row = (1, float("nan"), dt.datetime(2026, 1, 1), "2.50", [1, None], {"x": 3})
    db.apply({"v": [(row, 1), ((2, *row[1:]), 1), ((3, 0.0, *row[2:]), 1)]})
    for shown in db.sql("SELECT * FROM same_"):
        assert {r[0] for r in db.why("same_", shown).base_rows()["v"]} <= {1, 2} if shown[0] < 3 else {3}
    with pytest.raises(NoSuchRow):
        db.why("same_", (1, 0.0, *row[2:]))


def test_mistakes_are_named(shop: Any) -> None:
    for view, row, error in [
        ("totals", ("Ada", 3, 50), NoSuchRow),
        ("totals", ("Ada",), WrongArity),
        ("totals", {"name": "Ada"}, WrongArity),
        ("totals", ("Ada", "two", 50), WrongType),
        ("totals", "Ada", QueryError),
        ("nowhere", (1,), UnknownName),
        ("orders", (1, 1, 20), DefinitionError),
    ]:
        with pytest.raises(error):
            shop.why(view, row)
    with pytest.raises(NoSuchRow, match="has the row"):
        shop.why_not("totals", ("Ada", 2, 50))
    with pytest.raises(QueryError, match="0 rows"):
        shop.why("totals", ("Ada", 2, 50), rows=0)
    shop.create_view("made", lambda of: of["orders"].distinct(), materialized=False)
    with pytest.raises(QueryError, match="made by a function"):
        shop.why("made", (1, 1, 20))
