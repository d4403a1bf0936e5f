"""Subqueries in the condition of a join: every kind of join, form of subquery and side that it reads, against DuckDB.

The product of `KINDS`, `FORMS` and `READS`. DuckDB is asked what a join means by its definition, so that it needs no
subqueries in ON: the pairs by WHERE, beside the rows whose partners are none.
"""

from __future__ import annotations

import os
import random

import pytest

import everview as ev
from frontends.sql.beside_duckdb import check

EVERYTHING = bool(os.environ.get("EVERVIEW_CONFORMANCE"))  # `make conformance` sets it

KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")

# What the subquery's rows have to do with the rows around it: of the left, the right, both, and the query around.
READS = {
    "nothing": "u.b > 0",
    "left": "u.a = l.a",
    "right": "u.a = r.a",
    "both": "u.a = l.a AND u.b = r.b",
    "left by order": "u.a < l.b",
    "right by order": "u.a >= r.b",
    "both in one": "u.a = l.a + r.a",
    "both by order": "u.a <= l.a AND u.b < r.b",
    "around": "u.a = o.a",
    "around and left": "u.a = o.a AND u.b = l.b",
    "around and both": "u.a = l.a AND u.b + r.b < o.a",
}

FORMS = {
    "exists": "EXISTS (SELECT 1 FROM u WHERE {})",
    "not exists": "NOT EXISTS (SELECT 1 FROM u WHERE {})",
    "exists or": "l.a = r.a OR EXISTS (SELECT 1 FROM u WHERE {})",
    "exists and": "l.a = r.a AND EXISTS (SELECT u.a FROM u WHERE {})",
    "a truth": "(EXISTS (SELECT 1 FROM u WHERE {})) = (l.a > 1)",
    "left in": "l.b IN (SELECT u.b FROM u WHERE {})",
    "left not in": "l.b NOT IN (SELECT u.b FROM u WHERE {})",
    "right in": "r.b IN (SELECT u.b FROM u WHERE {})",
    "right not in": "r.b NOT IN (SELECT u.b FROM u WHERE {})",
    "both in": "l.b + r.b IN (SELECT u.b FROM u WHERE {})",
    "both not in": "NOT (l.b + r.b IN (SELECT u.b FROM u WHERE {}))",
    "not in, or": "l.a = 1 OR r.b NOT IN (SELECT u.b FROM u WHERE {})",
    "any": "l.b > ANY (SELECT u.b FROM u WHERE {})",
    "all": "r.b <= ALL (SELECT u.b FROM u WHERE {})",
    "greatest": "l.b = (SELECT MAX(u.b) FROM u WHERE {})",
    "number": "(SELECT COUNT(*) FROM u WHERE {}) < 1",
    "numbers": "(SELECT COUNT(u.b) + 1 FROM u WHERE {}) = r.b",
    "sums": "(SELECT SUM(u.b) * l.a FROM u WHERE {}) = (SELECT SUM(u.a) * r.a FROM u)",
    "two": "EXISTS (SELECT 1 FROM u WHERE {}) AND l.b IN (SELECT b FROM u WHERE u.a = r.a)",
    "nested": "EXISTS (SELECT 1 FROM u WHERE {} AND u.b IN (SELECT v.b FROM u AS v WHERE v.a = r.a OR v.b = l.b))",
    "counted": "r.b = (SELECT COUNT(*) FROM (SELECT DISTINCT u.a FROM u WHERE {}) AS q)",
}


def joined(kind: str, condition: str) -> str:
    """The join as SQL writes it."""
    columns = "l.a, l.b" if "LEFT " in kind else "l.a, l.b, r.a AS c, r.b AS d"
    return f"SELECT {columns} FROM l {kind} JOIN r ON {condition}"


def defined(kind: str, condition: str) -> str:
    """The same by its definition, without a join."""
    # Counted: DuckDB 2.0 takes EXISTS for false where its rows depend on nothing and a table inside is empty.
    partner = f"(SELECT COUNT(*) FROM r WHERE {condition}) > 0"
    if "LEFT " in kind:
        return f"SELECT l.a, l.b FROM l WHERE {'NOT ' if 'ANTI' in kind else ''}{partner}"
    parts = [f"SELECT l.a, l.b, r.a AS c, r.b AS d FROM l, r WHERE {condition}"]
    if kind in ("LEFT", "FULL"):
        parts.append(f"SELECT l.a, l.b, NULL, NULL FROM l WHERE NOT {partner}")
    if kind in ("RIGHT", "FULL"):
        parts.append(f"SELECT NULL, NULL, r.a, r.b FROM r WHERE (SELECT COUNT(*) FROM l WHERE {condition}) = 0")
    return " UNION ALL ".join(parts)


def around(query: str, reads: str) -> str:
    """The query as it is, or for every row of a further table, which it reads."""
    return f"SELECT o.a AS o, q.* FROM o, LATERAL ({query}) AS q" if "around" in reads else query


@pytest.mark.parametrize("form", FORMS)
def test_subqueries_in_the_condition_of_a_join(form: str) -> None:
    chance = random.Random(form)
    cases = [(kind, reads) for kind in KINDS for reads in READS]
    if not EVERYTHING:
        cases = chance.sample(cases, 3)
    views: dict[str, tuple[str, str]] = {}
    for kind, reads in cases:
        condition = FORMS[form].format(READS[reads])
        ours, theirs = (around(written(kind, condition), reads) for written in (joined, defined))
        views[f"{form}, {kind}, {reads}"] = ours, theirs
    check(views, chance)


def test_both_sides_by_values_that_depend_on_them() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (i INT); INSERT INTO t VALUES (1), (2), (3), (NULL)")
    on = "(SELECT SUM(i) * s1.i FROM t) = (SELECT SUM(i) * s2.i FROM t)"
    found = db.sql(f"SELECT s1.i, s2.i AS j FROM t AS s1 LEFT JOIN t AS s2 ON {on}").rows()
    assert sorted(found, key=str) == [(1, 1), (2, 2), (3, 3), (None, None)]
