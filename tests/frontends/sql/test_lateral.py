"""LATERAL and values of subqueries: aggregates of no rows, groups, orders and limits, against DuckDB.

The product of `INSIDE` and `READS`, each as a row beside (inner and left) and, where it has one column and at most one
row, as a value. Of no rows a COUNT is 0, not NULL, and a row that is computed from it is there.
"""

from __future__ import annotations

import os
import random

import pytest

from frontends.sql.beside_duckdb import check

EVERYTHING = bool(os.environ.get("EVERVIEW_CONFORMANCE"))  # `make conformance` sets it

READS = {
    "nothing": "u.b > 0",
    "equal": "u.a = l.a",
    "two": "u.a = l.a AND u.b = l.b",
    "order": "u.a <= l.b",
    "computed": "u.a + 1 = l.a + l.b",
    "equal and more": "u.a = l.a AND u.b > l.b",
}

VALUES = {
    "count": "SELECT COUNT(*) AS x FROM u WHERE {}",
    "count of values": "SELECT COUNT(u.b) AS x FROM u WHERE {}",
    "count of different": "SELECT COUNT(DISTINCT u.b) AS x FROM u WHERE {}",
    "count and one": "SELECT COUNT(*) + 1 AS x FROM u WHERE {}",
    "count and the row": "SELECT COUNT(*) + l.a AS x FROM u WHERE {}",
    "count, or not": "SELECT CASE WHEN COUNT(*) = 0 THEN l.b ELSE MAX(u.b) END AS x FROM u WHERE {}",
    "sum": "SELECT SUM(u.b) AS x FROM u WHERE {}",
    "sum, or none": "SELECT COALESCE(SUM(u.b), -1) AS x FROM u WHERE {}",
    "filtered": "SELECT COUNT(*) FILTER (WHERE u.b > 1) AS x FROM u WHERE {}",
    "having": "SELECT COUNT(*) AS x FROM u WHERE {} HAVING COUNT(*) > 1",
    "having none": "SELECT COUNT(*) AS x FROM u WHERE {} HAVING COUNT(*) = 0",
    "count of a count": "SELECT COUNT(*) AS x FROM (SELECT u.b, COUNT(*) AS n FROM u WHERE {} GROUP BY u.b) AS g",
    "count, different": "SELECT DISTINCT COUNT(*) AS x FROM u WHERE {}",
    "count, joined": "SELECT COUNT(*) AS x FROM u JOIN r ON r.a = u.b WHERE {}",
    "count, left joined": "SELECT COUNT(r.a) AS x FROM u LEFT JOIN r ON r.a = u.b WHERE {}",
    "count of a count of nothing": "SELECT SUM(g.n) AS x FROM (SELECT COUNT(*) AS n FROM u WHERE {}) AS g",
    "first": "SELECT u.b AS x FROM u WHERE {} ORDER BY u.b DESC NULLS LAST, u.a LIMIT 1",
}

ROWS = {
    "rows": "SELECT u.a AS x, u.b AS y FROM u WHERE {}",
    "groups": "SELECT u.b AS x, COUNT(*) AS y FROM u WHERE {} GROUP BY u.b",
    "two aggregates": "SELECT COUNT(*) AS x, SUM(u.b) AS y FROM u WHERE {}",
    "an aggregate and the row": "SELECT COUNT(*) AS x, l.b + SUM(u.b) AS y FROM u WHERE {}",
    "counts together": (
        "SELECT COUNT(*) AS x, 1 AS y FROM u WHERE {} UNION ALL SELECT COUNT(*), 2 FROM r WHERE r.a = l.a"
    ),
    "different": "SELECT DISTINCT u.b AS x, l.a AS y FROM u WHERE {}",
    "first two": "SELECT u.a AS x, u.b AS y FROM u WHERE {} ORDER BY u.a NULLS FIRST, u.b NULLS FIRST LIMIT 2",
}


@pytest.mark.parametrize("form", [*VALUES, *ROWS])
def test_rows_of_subqueries_beside_the_rows_that_they_read(form: str) -> None:
    chance = random.Random(form)
    inside = {**VALUES, **ROWS}[form]
    reads = list(READS) if EVERYTHING else chance.sample(list(READS), 2)
    views: dict[str, tuple[str, str]] = {}
    for name in reads:
        query = inside.format(READS[name])
        asked = [f"SELECT l.a, l.b, q.* FROM l, LATERAL ({query}) AS q"]
        asked += [f"SELECT l.a, l.b, q.* FROM l LEFT JOIN LATERAL ({query}) AS q ON TRUE"]
        if form in VALUES:
            asked += [f"SELECT l.a, l.b, ({query}) AS x FROM l", f"SELECT l.a FROM l WHERE ({query}) >= l.b"]
        views |= {f"{form}, {name}, {at}": (text, text) for at, text in enumerate(asked)}
    check(views, chance)


NESTED = {
    "a count of a count": (
        "SELECT l.a, c.n, d.m FROM l, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.a = l.a) AS c,"
        " LATERAL (SELECT COUNT(*) AS m FROM r WHERE r.a = c.n) AS d"
    ),
    "inside": (
        "SELECT l.a, c.n FROM l, LATERAL (SELECT SUM(q.m) AS n FROM u,"
        " LATERAL (SELECT COUNT(*) AS m FROM r WHERE r.a = u.a AND r.b = l.b) AS q WHERE u.b = l.b) AS c"
    ),
    "then a join": (
        "SELECT l.a, c.n, r.b FROM l, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.a = l.a) AS c JOIN r ON r.a = c.n"
    ),
    "by a condition": (
        "SELECT l.a, c.n FROM l LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.a = l.a) AS c ON c.n > l.b"
    ),
}


def test_lateral_inside_and_after_lateral() -> None:
    check({name: (text, text) for name, text in NESTED.items()}, random.Random(0))
