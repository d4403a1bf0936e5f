"""Groups that come, go and come again: what is kept of them, and what is read again."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from everview.errors import DefinitionError, WeightOverflow
from everview.plan.nodes import Aggregate, Filter, Scan, Top
from everview.plan.typing import call, literal
from everview.pull import Pipeline
from everview.scalars.expressions import AggregateCall, Column
from everview.sources.memory import Memory
from everview.types import BIGINT, Array, Type

COLUMNS = "id BIGINT, who STRING NOT NULL, n BIGINT, price DECIMAL(8,2)"
ROWS = [(1, "a", 5, Decimal("0.10")), (2, "a", 7, None), (3, "b", None, Decimal("0.20"))]


def made(function: str, column: int = 2, of: Type = BIGINT, *, distinct: bool = False) -> Callable[[Scan], Aggregate]:
    def plan(scan: Scan) -> Aggregate:
        argument = scan.column(column)
        found = AggregateCall(function, (argument,), distinct, None, (), of, True)
        return Aggregate(scan, (Column(1, "who", scan.column(1).type, False),), (found,), ("who", "found"))

    return plan


def attached(plan: Callable[[Scan], Any], rows: list[Any] = ROWS) -> tuple[Pipeline, Memory, Any]:
    source = Memory(COLUMNS, "id", rows)
    pipeline = Pipeline({"t": source})
    return pipeline, source, pipeline.attach(plan(Scan("t", source.schema)))


def test_the_greatest_goes_and_comes() -> None:
    pipeline, source, feed = attached(made("max"))
    assert sorted(feed.rows()) == [("a", 7), ("b", None)]
    source.rows_read = 0
    pipeline.apply({"t": [(ROWS[1], -1)]})
    assert sorted(feed.rows()) == [("a", 5), ("b", None)]
    assert source.rows_read == 1
    pipeline.apply({"t": [(ROWS[0], -1)]})
    assert feed.rows() == [("b", None)]
    pipeline.apply({"t": [((9, "a", 1, None), 1)]})
    assert sorted(feed.rows()) == [("a", 1), ("b", None)]
    assert source.rows_read == 1


def test_the_greatest_of_all_rows_after_none() -> None:
    def plan(scan: Scan) -> Aggregate:
        return Aggregate(scan, (), (AggregateCall("max", (scan.column(2),), False, None, (), BIGINT, True),), ("n",))

    pipeline, _, feed = attached(plan)
    for row in ROWS:
        pipeline.apply({"t": [(row, -1)]})
    assert feed.rows() == [(None,)]
    pipeline.apply({"t": [((9, "a", 1, None), 1)]})
    assert feed.rows() == [(1,)]


def test_sums_read_nothing() -> None:
    pipeline, source, feed = attached(made("sum"))
    source.rows_read = 0
    pipeline.apply({"t": [((4, "a", 1, None), 1), (ROWS[0], -1)]})
    pipeline.apply({"t": [((5, "c", 9, None), 1)]})
    assert sorted(feed.rows()) == [("a", 8), ("b", None), ("c", 9)]
    assert source.rows_read == 0


def test_what_is_collected_reads_its_group() -> None:
    pipeline, source, feed = attached(made("array_agg", of=Array(BIGINT)))
    source.rows_read = 0
    pipeline.apply({"t": [((4, "a", 1, None), 1)]})
    assert sorted(feed.rows()) == [("a", [1, 5, 7]), ("b", [])]
    assert source.rows_read == 3


def test_different_values() -> None:
    pipeline, _, feed = attached(made("count", distinct=True))
    pipeline.apply({"t": [((4, "a", 5, None), 1)]})
    assert sorted(feed.rows()) == [("a", 2), ("b", 0)]
    pipeline.apply({"t": [((4, "a", 5, None), -1), (ROWS[0], -1)]})
    assert sorted(feed.rows()) == [("a", 1), ("b", 0)]


def test_groups_under_a_limit_are_read_as_far_as_it_goes() -> None:
    rows = [(n, f"who {n // 10:05}", n, None) for n in range(10_000)]
    plan = made("sum")

    def first(scan: Scan) -> Top:
        groups = plan(scan)
        return Top(groups, ((groups.column(0), "asc"),), 2)

    pipeline, source, feed = attached(first, rows)
    assert sorted(feed.rows()) == [("who 00000", 45), ("who 00001", 145)]
    assert source.rows_read <= 31
    source.rows_read = 0
    pipeline.apply({"t": [(row, -1) for row in rows[:10]]})
    assert sorted(feed.rows()) == [("who 00001", 145), ("who 00002", 245)]
    assert source.rows_read <= 31
    pipeline.apply({"t": [(rows[9_999], -1)]})  # a group that nobody has looked at
    assert len(feed) == 2


def test_conditions_on_groups_and_on_results() -> None:
    def plan(scan: Scan) -> Filter:
        groups = made("sum")(scan)
        both = call("and", call("equal", groups.column(0), literal("a")), call("greater", groups.column(1), literal(9)))
        return Filter(groups, both)

    pipeline, source, feed = attached(plan)
    assert feed.rows() == [("a", 12)]
    assert source.rows_read == 2
    pipeline.apply({"t": [(ROWS[0], -1), ((7, "b", 100, None), 1)]})
    assert feed.rows() == []


def test_an_overflow_leaves_all_as_it_was() -> None:
    pipeline, source, feed = attached(made("sum"))
    most = 2**63 - 1
    with pytest.raises(WeightOverflow):
        pipeline.apply({"t": [((8, "a", most, None), 1)]})
    assert sorted(feed.rows()) == [("a", 12), ("b", None)]
    pipeline.apply({"t": [((8, "c", most, None), 1)]})
    assert ("c", most) in feed.rows()
    assert bool(pipeline.verify())
    assert source is pipeline.sources["t"]


def test_what_has_no_pull_is_refused() -> None:
    with pytest.raises(DefinitionError, match="keep=True"):
        attached(made("median"))
