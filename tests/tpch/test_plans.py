"""What the optimizer makes of some queries of TPC-H: the joins that it must not miss, and what it need not keep."""

from __future__ import annotations

import re

import pytest

import everview as ev
from frontends.sql.tpch import QUERIES, TABLES


@pytest.fixture(scope="module")
def db() -> ev.Database:
    found = ev.connect()
    found.sql(TABLES)
    return found


def optimized(db: ev.Database, number: int) -> list[str]:
    text = str(db.sql(f"EXPLAIN {QUERIES[number]}"))
    return [line.strip() for line in text[text.index("optimized") :].splitlines()]


def test_an_equality_in_every_alternative_is_a_key(db: ev.Database) -> None:
    (join,) = (line for line in optimized(db, 19) if line.startswith("Join"))
    assert join.startswith("Join inner on p_partkey = l_partkey AND ")


def test_alternatives_over_both_sides_filter_each(db: ev.Database) -> None:
    filters = [line for line in optimized(db, 7) if line.startswith("Filter n_name")]
    assert [sorted(re.findall("FRANCE|GERMANY", line)) for line in filters] == [["FRANCE", "GERMANY"]] * 2


def test_like_moves_below_joins(db: ev.Database) -> None:
    plan = optimized(db, 9)
    assert plan[plan.index("Filter p_name LIKE '%green%'") + 2] == "Scan part"


def test_joins_start_where_conditions_leave_the_least(db: ev.Database) -> None:
    scans = [line for line in optimized(db, 21) if line.startswith("Scan")]
    assert scans[:3] == ["Scan nation", "Scan supplier", "Scan lineitem"]


def test_columns_of_conditions_are_not_kept(db: ev.Database) -> None:
    plan = optimized(db, 3)
    assert plan[plan.index("Filter c_mktsegment = 'BUILDING'") - 1] == "Project c_custkey"


def test_a_strict_semijoin_comes_before_the_joins(db: ev.Database) -> None:
    plan = optimized(db, 18)
    assert plan[plan.index("Join semi on o_orderkey = l_orderkey") + 2] == "Scan orders"


def test_a_cycle_of_references_is_joined_along_keys(db: ev.Database) -> None:
    plan = optimized(db, 5)
    scans = [line.removeprefix("Scan ") for line in plan if line.startswith("Scan")]
    assert scans == ["nation", "region", "customer", "orders", "lineitem", "supplier"]
    assert "Join inner on l_suppkey = s_suppkey AND n_nationkey = s_nationkey" in plan
