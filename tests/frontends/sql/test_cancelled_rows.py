"""Expressions without a value for rows that come and go within a tick: no state has such a row, so nothing fails."""

from __future__ import annotations

import pytest

import everview as ev
from everview.circuit.circuit import Circuit
from everview.errors import ArithmeticFailure
from everview.frontends.sql import CreateView, Tables, bind
from everview.lowering.lower import lower
from everview.optimize import optimize
from everview.types import Schema

# Over t (k, a) and z (k, b): a query, and its rows after a tick of `FIRST` and after one of `SECOND`.
CASES = {
    "SELECT 10 / a AS x FROM t WHERE NOT EXISTS (SELECT 1 FROM z WHERE z.b = t.a)": ([(5.0,)], [(2.0,)]),
    "SELECT 10 / a AS x FROM t WHERE a NOT IN (SELECT b FROM z)": ([(5.0,)], [(2.0,)]),
    "SELECT 10 / a AS x FROM t LEFT ANTI JOIN z ON z.b = t.a": ([(5.0,)], [(2.0,)]),
    "SELECT 10 / a AS x FROM (SELECT a FROM t EXCEPT SELECT b FROM z)": ([(5.0,)], [(2.0,)]),
    "SELECT a FROM (SELECT a FROM t EXCEPT SELECT b FROM z) WHERE 10 / a > 1": ([(2,)], [(5,)]),
    "SELECT SUM(10 / a) AS x FROM t WHERE NOT EXISTS (SELECT 1 FROM z WHERE z.b = t.a)": ([(5.0,)], [(2.0,)]),
    "SELECT 10 / (a - b) AS x FROM t JOIN z ON t.k + 1 = z.k": ([(5.0,)], [(2.0,)]),
    "SELECT 10 / COUNT(*) AS x FROM t": ([(5.0,)], [(5.0,)]),
    "SELECT 10 / (COUNT(*) - 1) AS x FROM t": ([(10.0,)], [(10.0,)]),
    "SELECT (SELECT 10 / COUNT(*) FROM t WHERE t.k < z.k) AS x FROM z": ([(10.0,)], [(10.0,)]),
    "SELECT (SELECT 10 / COUNT(*) FROM t WHERE t.k + 1 = z.k) AS x FROM z": ([(10.0,)], [(10.0,)]),
    "SELECT 10 / n AS x FROM z, LATERAL (SELECT COUNT(*) AS n FROM t WHERE t.k < z.k) AS q": ([(10.0,)], [(10.0,)]),
}
FIRST = {"t": [((1, 2), 1), ((2, 0), 1)], "z": [((2, 0), 1)]}
# The first rows of both change together: the new row of t never stood beside the old one of z.
SECOND = {"t": [((1, 2), -1), ((1, 5), 1), ((2, 0), -1), ((2, 0), 1)], "z": [((2, 0), -1), ((2, 0), 1)]}


@pytest.mark.parametrize("query", CASES)
def test_rows_that_cancel_make_nothing_fail(query: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, a INT); CREATE TABLE z (k INT, b INT)")
    db.apply(FIRST)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert (db.view("v").rows(), db.sql(query).rows()) == (CASES[query][0], CASES[query][0])
    db.apply(SECOND)
    assert (db.view("v").rows(), db.sql(query).rows()) == (CASES[query][1], CASES[query][1])


@pytest.mark.parametrize("query", [q for q in CASES if "COUNT" not in q])
def test_the_same_in_the_first_tick_of_a_view(query: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, a INT); CREATE TABLE z (k INT, b INT)")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    db.apply(FIRST)
    db.apply(SECOND)
    assert db.view("v").rows() == CASES[query][1]


def test_a_join_whose_sides_change_at_once() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, a INT); CREATE TABLE z (k INT, b INT)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT 10 / (a - b) AS x FROM t JOIN z ON t.k = z.k")
    db.apply({"t": [((1, 5), 1)], "z": [((1, 3), 1)]})
    db.apply({"t": [((1, 5), -1), ((1, 3), 1)], "z": [((1, 3), -1), ((1, 1), 1)]})
    assert db.view("v").rows() == [(5.0,)]


def test_a_row_that_stays_still_fails() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (k INT, a INT); CREATE TABLE z (k INT, b INT)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS x FROM t WHERE a NOT IN (SELECT b FROM z)")
    db.apply(FIRST)
    with pytest.raises(ArithmeticFailure, match="division by zero"):
        db.apply({"z": [((2, 0), -1)]})
    assert db.view("v").rows() == [(5.0,)]


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize("query", CASES)
def test_rows_that_cancel_do_so_on_one_shard(query: str, shards: int) -> None:
    schemas = {"t": Schema.parse("k INTEGER, a INTEGER"), "z": Schema.parse("k INTEGER, b INTEGER")}
    (view,) = bind(f"CREATE MATERIALIZED VIEW v AS {query}", Tables(schemas), "spark")
    assert isinstance(view, CreateView)
    circuit = Circuit()
    streams = {name: circuit.source(name, schema) for name, schema in schemas.items()}
    lower(optimize(view.plan), streams).sink("v")
    run = ev.Embedded(circuit, shards=shards)
    for tick, expected in zip((FIRST, SECOND), CASES[query], strict=True):
        run.tick(tick)
        assert run.view("v").rows() == expected
