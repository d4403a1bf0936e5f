"""Aggregates, windows, orders, joins and sets over a column of every type: accepted and computed, or refused in words.

No view may be accepted that then fails for its types, and none may end in an exception that is none of ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everview.errors import DefinitionError, EverviewError
from everview.frontends.sql import CreateView, Tables, bind
from everview.lowering.aggregates import CALLS
from everview.optimize import optimize
from everview.runtimes.embedded.rehearse import rehearse_plans
from everview.types import Schema

SCHEMA = Schema.parse(
    "a BOOLEAN, b INTEGER, c BIGINT, d DOUBLE, e DATE, f TIMESTAMP, g STRING, h BINARY, i DECIMAL(10,2),"
    " j ARRAY<STRING>, k STRUCT<x: INT, y: STRING>"
)
OVER_ONE = [name for name in CALLS if name not in ("max_by", "min_by", "percentile_cont", "percentile_disc")]
QUERIES = (
    *(f"SELECT a, {name}({{0}}) AS x FROM t GROUP BY a" for name in OVER_ONE),
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY {0}) AS x FROM t",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {0} DESC) AS x FROM t",
    "SELECT max_by({0}, b) AS x, min_by(b, {0}) AS y FROM t",
    "SELECT count(DISTINCT {0}) AS x, array_agg({0} ORDER BY {0} DESC) AS y FROM t",
    "SELECT min({0}) FILTER (WHERE b > 1) AS x FROM t",
    *(f"SELECT b, {name}({{0}}) OVER (PARTITION BY a ORDER BY b) AS x FROM t" for name in ("sum", "avg", "count")),
    *(f"SELECT b, {name}({{0}}) OVER (PARTITION BY a ORDER BY b) AS x FROM t" for name in ("lag", "lead")),
    *(f"SELECT b, {name}({{0}}) OVER (ORDER BY b) AS x FROM t" for name in ("first_value", "last_value")),
    "SELECT b, min({0}) OVER (ORDER BY b) AS x FROM t",
    "SELECT b, rank() OVER (ORDER BY {0}) AS x, count(*) OVER (PARTITION BY {0}) AS y FROM t",
    "SELECT b, sum(b) OVER (ORDER BY {0} RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM t",
    "SELECT {0} FROM t ORDER BY {0} LIMIT 2",
    "SELECT {0}, count(*) AS n FROM t GROUP BY {0}",
    "SELECT DISTINCT {0} FROM t EXCEPT SELECT {0} FROM t WHERE b = 1",
    "SELECT {0} FROM t INTERSECT ALL SELECT {0} FROM t",
    "SELECT t.b FROM t JOIN t AS u ON t.{0} = u.{0}",
    "SELECT t.b FROM t FULL JOIN t AS u ON t.{0} < u.{0}",
    "SELECT {0} FROM t FULL JOIN (SELECT {0} FROM t) AS q USING ({0}) FULL JOIN (SELECT {0} FROM t) AS r USING ({0})",
    "SELECT b FROM t WHERE {0} NOT IN (SELECT {0} FROM t)",
    "SELECT b, (SELECT max({0}) FROM t AS u WHERE u.b = t.b) AS x FROM t",
    "SELECT {0}, grouping({0}) AS g, count(*) AS n FROM t GROUP BY ROLLUP ({0})",
)


@pytest.mark.parametrize("column", SCHEMA.names)
def test_queries_over_a_type(column: str) -> None:
    assert not list(_refused(column))


def _refused(column: str) -> Iterator[str]:
    """What signatures take and nothing computes: only the rehearsal says so."""
    for query in QUERIES:
        try:
            text = f"CREATE MATERIALIZED VIEW v AS {query.format(column)}"
            (view,) = bind(text, Tables({"t": SCHEMA}), "spark")
            assert isinstance(view, CreateView)
            plan = optimize(view.plan)
        except EverviewError:
            continue
        try:
            rehearse_plans([plan])
        except DefinitionError:
            yield query
        except EverviewError:
            continue
