"""Groups that a join asks for are the only ones that are added up; what comes out is what the oracle says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview as ev

TABLES = """
CREATE TABLE part (k BIGINT PRIMARY KEY, brand BIGINT);
CREATE TABLE line (n BIGINT PRIMARY KEY, part BIGINT, pieces BIGINT);
CREATE TABLE stock (part BIGINT, shop BIGINT, held BIGINT, PRIMARY KEY (part, shop));
"""
OF_BRAND = "SELECT l.n FROM line l, part p WHERE l.part = p.k AND p.brand = 1"
REDUCED = {
    "inner": f"{OF_BRAND} AND l.pieces * 2 > (SELECT avg(m.pieces) FROM line m WHERE m.part = p.k)",
    "least": f"{OF_BRAND} AND l.pieces = (SELECT min(m.pieces) FROM line m WHERE m.part = p.k)",
    "semi": "SELECT s.shop FROM stock s WHERE s.part IN (SELECT k FROM part WHERE brand = 1) AND s.held > "
    "(SELECT sum(l.pieces) FROM line l WHERE l.part = s.part)",
}
WHOLE = {
    "any brand": "SELECT l.n FROM line l, part p WHERE l.part = p.k AND l.pieces > "
    "(SELECT avg(m.pieces) FROM line m WHERE m.part = p.k)",
    "another column": f"{OF_BRAND} AND l.pieces > (SELECT avg(m.pieces) FROM line m WHERE m.n = l.pieces)",
}


def database() -> ev.Database:
    db = ev.connect()
    db.sql(TABLES)
    return db


@pytest.mark.parametrize("query", [*REDUCED.values(), *WHOLE.values()], ids=[*REDUCED, *WHOLE])
def test_which_aggregates_are_over_fewer_rows(query: str) -> None:
    optimized = str(database().sql(f"EXPLAIN {query}")).split("optimized")[1]
    below = optimized[optimized.rindex("Aggregate") :]
    assert ("brand = 1" in below) == (query in REDUCED.values())


small = st.none() | st.integers(0, 2)
ticks = st.fixed_dictionaries(
    {
        "part": st.lists(st.tuples(st.integers(0, 3), small), max_size=3),
        "line": st.lists(st.tuples(st.integers(0, 5), small, small), max_size=5),
        "stock": st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), small), max_size=3),
    }
)


@given(drawn=st.lists(ticks, min_size=1, max_size=3))
def test_what_comes_out(drawn: list[dict[str, list[tuple[object, ...]]]]) -> None:
    db = database()
    for number, query in enumerate((*REDUCED.values(), *WHOLE.values())):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
    for tick in drawn:
        with db.transaction() as tx:
            for name, rows in tick.items():
                tx.upsert(name, rows)
        db.verify()
    db.sql("DELETE FROM part WHERE brand = 1")
    db.verify()
