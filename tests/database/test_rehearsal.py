"""What a view is tried on before it is accepted: a view that fails whatever its rows are is refused, others are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

import everview as ev
from everview.circuit.stream import Stream
from everview.errors import ArithmeticFailure, DefinitionError
from everview.lowering.rows import filtered, projected
from everview.plan.nodes import Project, Scan
from everview.plan.typing import call, literal
from everview.runtimes.embedded.rehearse import rehearse_plans
from everview.scalars.expressions import Column, Outer
from everview.types import BIGINT, Schema

LOST = Outer(0, 1, "lost", BIGINT)  # a column of a query around that is not there: nothing can evaluate it


def lost(stream: Stream) -> Stream:
    return projected(stream, [LOST], ["x"])


def none_of(stream: Stream) -> Stream:
    """No row of a stream: its condition holds for none."""
    return filtered(stream, call("greater", Column(0, "a", BIGINT), literal(1_000_000)))


Build = Callable[[Mapping[str, Stream]], Stream]
IMPOSSIBLE: dict[str, Build] = {
    "computed": lambda of: lost(of["t"]),
    "a condition": lambda of: filtered(of["t"], call("greater", LOST, literal(1))),
    "after a condition": lambda of: lost(none_of(of["t"])),
    "after a join of nothing": lambda of: lost(none_of(of["t"]).join(of["u"], ("a", "a"))),
    "after an aggregate of nothing": lambda of: lost(none_of(of["t"]).aggregate(["b"], n="count")),
    "after what fails by its rows": lambda of: lost(
        projected(of["t"], [call("divide", literal(1), call("subtract", Column(0, "a", BIGINT), literal(1)))], ["y"])
    ),
}


@pytest.fixture
def db() -> ev.Database:
    db = ev.connect()
    db.sql("CREATE TABLE t (a BIGINT, b STRING); CREATE TABLE u (a BIGINT, c DOUBLE)")
    return db


@pytest.mark.parametrize("build", IMPOSSIBLE.values(), ids=list(IMPOSSIBLE))
def test_what_fails_whatever_the_rows_are_is_refused_and_leaves_nothing(db: ev.Database, build: Build) -> None:
    epoch = db.epoch
    with pytest.raises(DefinitionError, match="whatever its rows are"):
        db.create_view("v", build)
    assert (db.epoch, db.views()) == (epoch, [])
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    db.apply({"t": [((1, "x"), 1)]})
    assert db.view("v").rows() == [(1,)]


def test_a_function_inside_a_recursion_is_tried_too() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE edge (a BIGINT, b BIGINT)")

    def build(of: Mapping[str, Stream]) -> Stream:
        edge = of["edge"]
        child = edge.circuit.child("path")
        path, again = child.feedback(edge.schema)
        found = child.enter(edge).plus(projected(path, [LOST, LOST], ["a", "b"])).distinct()
        again(found)
        return child.leave(found)

    with pytest.raises(DefinitionError, match="whatever its rows are"):
        db.create_view("v", build)


ACCEPTED = (
    "SELECT 1 / (a - 1) AS x FROM t",
    "SELECT CAST(b AS DATE) AS x FROM t",
    "SELECT a + 9223372036854775807 AS x FROM t",
    "SELECT (SELECT c FROM u) AS x FROM t",  # a value of several rows
    "SELECT SUM(a) OVER (ORDER BY b) AS x FROM t WHERE b > 'zzz'",
    "SELECT b, MAX(a) AS m FROM t GROUP BY b HAVING COUNT(*) > 100 ORDER BY m LIMIT 3",
    "SELECT t.a FROM t, u, t AS v, u AS w, t AS x, u AS y, t AS z, u AS q, t AS r, u AS s WHERE t.a < u.a",
    "WITH RECURSIVE n(i) AS (SELECT a FROM t UNION SELECT i + 1 FROM n WHERE i < 100) SELECT * FROM n",
)


@pytest.mark.parametrize("query", ACCEPTED)
def test_what_fails_because_of_rows_is_accepted(db: ev.Database, query: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")


def test_functions_of_users_are_not_called(db: ev.Database) -> None:
    called: list[object] = []

    def seen(*values: object) -> object:
        called.append(values)
        return values[0]

    db.create_view("v", lambda of: of["t"].map(seen, "a BIGINT, b STRING", by_row=True))
    db.create_view("w", lambda of: of["t"].filter(seen, by_row=True).inspect(called.append))
    assert not called


def test_a_view_of_views_is_tried_alone(db: ev.Database) -> None:
    """Views that are there are not tried again: their rows are made up."""
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT v.a, v.n, u.c FROM v LEFT JOIN u ON u.a = v.n")
    db.apply({"t": [((1, "x"), 1)], "u": [((1, 2.5), 1)]})
    assert db.view("w").rows() == [(1, 1, 2.5)]


def test_plans_are_tried_before_a_pipeline_takes_them() -> None:
    scan = Scan("t", Schema.parse("a BIGINT"))
    rehearse_plans([scan])
    with pytest.raises(DefinitionError, match="whatever its rows are"):
        rehearse_plans([scan, Project(scan, (LOST,), ("x",))])


def test_of_no_rows_an_expression_fails_as_in_spark(db: ev.Database) -> None:
    """``10 / count(*)`` has no value over an empty table: neither the view nor the tick that would empty it."""
    view = "CREATE MATERIALIZED VIEW share AS SELECT 10 / COUNT(*) AS x FROM t"
    with pytest.raises(ArithmeticFailure, match="division by zero"):
        db.sql(view)
    assert db.views() == []
    db.sql("INSERT INTO t VALUES (1, 'a')")
    db.sql(view)
    assert db.view("share").rows() == [(10.0,)]
    db.apply({"t": [((1, "a"), -1), ((2, "b"), 1), ((3, "c"), 1)]})
    assert db.view("share").rows() == [(5.0,)]
    with pytest.raises(ArithmeticFailure, match="division by zero"):
        db.sql("DELETE FROM t")
    assert db.view("share").rows() == [(5.0,)]


def test_a_view_that_multiplies_weights_beyond_their_range_may_be_made() -> None:
    """Only rows that are there many times would do that, and most are not."""
    db = ev.connect()
    db.sql("CREATE TABLE t (a BIGINT, b BIGINT)")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT a FROM t t0 " + "".join(f"JOIN t t{n} USING (a) " for n in range(1, 40))
    )
    db.sql("INSERT INTO t VALUES (1, 1), (2, 1)")
    assert sorted(db.view("v").rows()) == [(1,), (2,)]
