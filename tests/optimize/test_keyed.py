"""Cyclic joins along keys: never larger than a relation, and what the oracle says, also with NULL."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview import connect
from everview.database.frontends import ReadableDatabase
from everview.optimize.keyed import key_of, order_along_keys
from everview.plan.nodes import Filter, Project, Scan
from everview.plan.typing import call, literal
from everview.types import Schema

TABLES = """
CREATE TABLE land (l BIGINT, name STRING, PRIMARY KEY (l));
CREATE TABLE firm (f BIGINT, land BIGINT, PRIMARY KEY (f));
CREATE TABLE buyer (b BIGINT, land BIGINT, PRIMARY KEY (b));
CREATE TABLE sale (f BIGINT, b BIGINT, n BIGINT, price BIGINT, PRIMARY KEY (n));
"""
AT_HOME = """
SELECT l.name, s.price FROM sale s, buyer b, firm f, land l
WHERE s.b = b.b AND s.f = f.f AND b.land = f.land AND f.land = l.l AND l.name <> 'x'
"""
TRIANGLE = "SELECT x.f FROM sale x, sale y, sale z WHERE x.b = y.f AND y.b = z.f AND z.b = x.f"


def test_references_are_followed_and_other_cycles_are_joined_at_once() -> None:
    db = connect()
    db.sql(TABLES)
    assert "Multiway" not in str(db.sql(f"EXPLAIN {AT_HOME}"))
    assert "Multiway" in str(db.sql(f"EXPLAIN {TRIANGLE}"))
    db.sql("DROP TABLE firm; CREATE TABLE firm (f BIGINT, land BIGINT)")
    assert "Multiway" in str(db.sql(f"EXPLAIN {AT_HOME}"))


small = st.none() | st.integers(0, 2)
keys = st.integers(0, 3)
ticks = st.fixed_dictionaries(
    {
        "land": st.lists(st.tuples(keys, st.sampled_from(["x", "y", None])), max_size=3),
        "firm": st.lists(st.tuples(keys, small), max_size=4),
        "buyer": st.lists(st.tuples(keys, small), max_size=4),
        "sale": st.lists(st.tuples(small, small, st.integers(0, 5), st.integers(0, 2)), max_size=6),
    }
)


@given(drawn=st.lists(ticks, max_size=3))
def test_what_comes_out(drawn: list[dict[str, list[tuple[object, ...]]]]) -> None:
    db = connect()
    db.sql(TABLES)
    for tick in drawn:
        with db.transaction() as tx:
            for name, rows in tick.items():
                tx.upsert(name, rows)
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW later AS {AT_HOME}")
        if "first" not in db.views():
            db.sql(f"CREATE MATERIALIZED VIEW first AS {AT_HOME}")
        db.verify()


def test_a_state_of_another_plan_is_opened(tmp_path: Path) -> None:
    """A view that was joined at once is computed anew, from its tables."""
    rows = {"land": [(1, "y")], "firm": [(1, 1), (2, 1)], "buyer": [(1, 1)], "sale": [(1, 1, 1, 7), (2, 1, 2, 8)]}
    with mock.patch.object(ReadableDatabase, "keys_of", return_value={}), connect(tmp_path / "old") as db:
        db.sql(TABLES)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {AT_HOME}")
        db.apply({name: [(row, 1) for row in drawn] for name, drawn in rows.items()})
        assert "Multijoin" in db.explain("v")
    with connect(tmp_path / "old") as db:
        assert "Multijoin" not in db.explain("v")
        assert sorted(db.view("v").rows()) == [("y", 7), ("y", 8)]
        db.apply({"sale": [(rows["sale"][0], -1)]})
        db.verify()


EDGE = Scan("edge", Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL"))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (EDGE, (1, 0)),
        (Filter(EDGE, call("less", EDGE.column(0), literal(1))), (1, 0)),
        (Project(EDGE, (EDGE.column(1), EDGE.column(0)), ("b", "a")), (0, 1)),
        (Project(EDGE, (EDGE.column(1),), ("b",)), ()),
        (Scan("other", EDGE.schema), ()),
    ],
)
def test_the_key_that_is_left(plan: Scan | Filter | Project, expected: tuple[int, ...]) -> None:
    assert key_of(plan, {"edge": ("b", "a")}) == expected


def test_many_relations_and_relations_without_keys() -> None:
    pair = Scan("pair", EDGE.schema)
    ring = [(n, (n + 1) % 9) for n in range(9)]
    assert order_along_keys([pair] * 9, ring, {"pair": ("a",)}) is None
    assert order_along_keys([pair] * 3, [*ring[:2], (2, 0)], {}) is None
    assert order_along_keys([pair] * 3, [*ring[:2], (2, 0)], {"pair": ("a",)}) == [0, 1, 2]
