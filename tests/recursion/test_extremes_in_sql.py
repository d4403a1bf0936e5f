"""The least and greatest values of groups inside of WITH RECURSIVE, kept as edges come and go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import SqlError

SHORTEST = """
    WITH RECURSIVE d(x, n) AS (
      SELECT x, min(n) FROM (SELECT 1 AS x, 0 AS n UNION ALL SELECT e.y, d.n + e.w FROM d JOIN e ON d.x = e.x) AS q
      GROUP BY x)
    SELECT * FROM d
"""
WIDEST = """
    WITH RECURSIVE d(x, n) AS (
      SELECT x, max(n) AS n FROM (
        SELECT 1 AS x, 99 AS n UNION ALL SELECT e.y, least(d.n, e.w) FROM d JOIN e ON d.x = e.x AND d.n >= 2) AS q
      GROUP BY x)
    SELECT x, n FROM d
"""
PARTS = """
    WITH RECURSIVE c(x, r) AS (
      SELECT x, min(r) FROM (
        SELECT x, x AS r FROM e UNION ALL SELECT e.y, c.r FROM c JOIN e ON c.x = e.x
        UNION ALL SELECT e.x, c.r FROM c JOIN e ON c.x = e.y) AS q
      GROUP BY x)
    SELECT * FROM c
"""
edges = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 9))


def fixed_point(edges: list[tuple[int, int, int]], start: dict[int, int], step: Any, better: Any) -> set[Any]:
    """What the queries mean, by going on until nothing changes."""
    found = dict(start)
    while True:
        before = dict(found)
        for x, value in before.items():
            for a, b, w in edges:
                for to, new in step(x, value, a, b, w):
                    found[to] = better(found[to], new) if to in found else new
        if found == before:
            return set(found.items())


def expected(rows: list[tuple[int, int, int]]) -> dict[str, set[Any]]:
    starts = {x: x for x, _, _ in rows}
    return {
        "shortest": fixed_point(rows, {1: 0}, lambda x, n, a, b, w: [(b, n + w)] if a == x else [], min),
        "widest": fixed_point(rows, {1: 99}, lambda x, n, a, b, w: [(b, min(n, w))] if a == x and n >= 2 else [], max),
        "parts": fixed_point(rows, starts, lambda x, r, a, b, w: [(b, r)] * (a == x) + [(a, r)] * (b == x), min),
    }


@settings(max_examples=15)
@given(st.lists(st.lists(edges, min_size=1, max_size=4), min_size=1, max_size=4))
def test_extremes_in_recursion(ticks: list[list[tuple[int, int, int]]]) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE e (x INT, y INT, w INT)")
    for name, query in (("shortest", SHORTEST), ("widest", WIDEST), ("parts", PARTS)):
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    held: list[tuple[int, int, int]] = []
    for tick in ticks:
        changes: list[tuple[Any, int]] = []
        for edge in dict.fromkeys(tick):
            changes.append((edge, -1 if edge in held else 1))
            held = [e for e in held if e != edge] if edge in held else [*held, edge]
        db.apply({"e": changes})
        assert {name: set(db.view(name).rows()) for name in db.views()} == expected(held)
    db.verify().raise_if_different()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("SELECT e.y, d.n + e.w FROM d JOIN e ON d.x = e.x WHERE d.n > 3", "n > 3, which may become false"),
        ("SELECT e.y, d.n + e.w FROM d JOIN e ON d.n = e.x", "n = x, which may become false"),
        ("SELECT e.y, -d.n FROM d JOIN e ON d.x = e.x", "min of what gets less or more"),
        ("SELECT d.n, e.w FROM d JOIN e ON d.x = e.x", "a group by its extreme"),
        ("SELECT e.y, d.n * e.w FROM d JOIN e ON d.x = e.x", "uses its extreme in n * w"),
    ],
)
def test_what_is_not_monotone_is_refused(step: str, said: str) -> None:
    db = ev.connect()
    db.sql("CREATE TABLE e (x INT, y INT, w INT)")
    inner = f"SELECT 1 AS x, 0 AS n UNION ALL {step}"
    query = f"WITH RECURSIVE d(x, n) AS (SELECT x, min(n) AS n FROM ({inner}) AS q GROUP BY x) SELECT * FROM d"
    with pytest.raises(SqlError) as told:
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert said in str(told.value)
