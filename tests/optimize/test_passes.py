"""Every pass, and all of them together, leave the meaning of a plan as it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.optimize import PASSES, REQUIRED, optimize
from everview.oracle.plans import evaluate
from everview.plan.node import Plan, walk
from everview.plan.outers import subqueries as subqueries_of
from lowering.drawn import Tick, plans, ticks
from scalars.agreeing import check_runs, meanings, sums


def required(plan: Plan) -> Plan:
    for change in REQUIRED:
        plan = change(plan)
    return plan


@given(plan=plans(subqueries=True), changes=ticks(), shards=st.sampled_from((1, 3)))
@settings(max_examples=25, deadline=None)
def test_an_optimized_plan_at_work_is_what_the_plan_means(plan: Plan, changes: list[Tick], shards: int) -> None:
    check_runs(optimize(plan), changes, meanings(plan, changes), shards)


@given(plan=plans(subqueries=True), changes=ticks(most=2), shards=st.sampled_from((1, 3)))
@settings(max_examples=25, deadline=None)
def test_a_plan_that_is_only_decorrelated_is_what_it_means(plan: Plan, changes: list[Tick], shards: int) -> None:
    check_runs(required(plan), changes, meanings(plan, changes), shards)


@pytest.mark.parametrize("change", dict.fromkeys(PASSES), ids=lambda change: change.__name__)
@given(plan=plans(subqueries=True), changes=ticks(most=1))
@settings(max_examples=10, deadline=None)
def test_a_pass_changes_no_meaning(change, plan: Plan, changes: list[Tick]) -> None:
    (held,) = sums(changes)
    before = plan if change in REQUIRED else required(plan)
    after = change(before)
    assert evaluate(after, held) == evaluate(plan, held), f"{before}\n\n{after}"
    assert after.schema.types == plan.schema.types


@given(plan=plans(subqueries=True))
@settings(max_examples=25, deadline=None)
def test_no_subquery_is_left(plan: Plan) -> None:
    for prepared in (required(plan), optimize(plan)):
        assert not [e for part in walk(prepared) for each in part.expressions for e in subqueries_of(each)]
