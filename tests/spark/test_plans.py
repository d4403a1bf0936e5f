"""Plans in tasks: constants, sets, windows and aggregates of nothing are on a cluster what they are in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview.optimize import optimize
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Except, Intersect, Project, Scan, Union, Values, Window
from everview.scalars.expressions import AggregateCall, Frame, Literal, WindowCall
from everview.types import BIGINT, INTEGER
from everview.zset import ZSet
from lowering.drawn import TABLES, Tick, plans, ticks
from scalars.agreeing import circuit_of, meanings
from spark.in_process import engine, tick

T, U = Scan("t", TABLES["t"]), Scan("u", TABLES["u"])
A, B, _ = T.columns
PAIRS = Project(T, (A, B), ("a", "d"))
WRITTEN = Values(tuple((Literal(a, BIGINT), Literal(d, INTEGER)) for a, d in ((1, 2), (1, 2), (None, 3))), U.schema)
COUNT = AggregateCall("count", (), False, None, (), BIGINT, False)
RANKED = Window(
    T,
    (
        WindowCall("row_number", (), (A,), ((B, "desc"),), None, INTEGER, False),
        WindowCall("sum", (B,), (A,), ((B, "asc"),), Frame("rows", -1, 0), BIGINT, True),
    ),
    ("n", "s"),
)
PLANS: dict[str, Plan] = {
    "constants": WRITTEN,
    "constants and rows": Union((WRITTEN, U)),
    "an aggregate of nothing": Aggregate(T, (), (COUNT,), ("n",)),
    "what both have": Intersect(U, WRITTEN, True),
    "what one has more": Except(U, WRITTEN, True),
    "windows": RANKED,
}
CHANGES: list[Tick] = [
    {},
    {"t": [((1, 2, "p"), 1), ((1, None, "q"), 2), ((3, 5, None), 1)], "u": [((1, 2), 3), ((2, 2), 1)]},
    {"t": [((1, 2, "p"), -1), ((4, 1, "é"), 1)], "u": [((1, 2), -2), ((None, 3), 1)]},
]


def check(plan: Plan, changes: list[Tick], expected: list[ZSet], path: Path | str, place: Any) -> None:
    run, total = engine(circuit_of(plan), path, place=place, shards=3), ZSet()
    for number, change in enumerate(changes):
        total = total + tick(run, change)["view"].to_zset()
        assert total == expected[number], f"after tick {number}:\n{plan}"


@pytest.mark.parametrize("place", ["cluster", "driver"])
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_in_tasks(name: str, place: str, tmp_path: Path) -> None:
    plan = PLANS[name]
    check(plan, CHANGES, meanings(plan, CHANGES), tmp_path / "state", place)


@given(plan=plans(depth=2), changes=ticks(most=2), place=st.sampled_from(("cluster", "driver")))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_plan_in_tasks(
    plan: Plan, changes: list[Tick], place: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("state") / "state"
    check(optimize(plan), changes, meanings(plan, changes), path, place)
