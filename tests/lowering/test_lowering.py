"""A plan at work holds, after every tick, what the oracle says of the rows that came; on one shard and on several."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.circuit import Circuit
from everview.errors import CircuitError
from everview.lowering.lower import lower
from everview.oracle import evaluate as evaluate_circuit
from everview.plan.node import Plan
from everview.plan.nodes import Except, Project, Recursive, Reference, Scan
from lowering.drawn import TABLES, Tick, plans, ticks
from scalars.agreeing import check_runs, circuit_of, meanings, sums


@given(plan=plans(), changes=ticks(), shards=st.sampled_from((1, 3)))
@settings(max_examples=40, deadline=None)
def test_a_plan_at_work_is_what_it_means(plan: Plan, changes: list[Tick], shards: int) -> None:
    check_runs(plan, changes, meanings(plan, changes), shards)


@given(plan=plans(depth=2), changes=ticks(most=1))
@settings(max_examples=20, deadline=None)
def test_the_circuit_means_what_the_plan_means(plan: Plan, changes: list[Tick]) -> None:
    (held,), (expected,) = sums(changes), meanings(plan, changes)
    assert evaluate_circuit(circuit_of(plan), held)["view"] == expected, plan


@given(plan=plans())
@settings(max_examples=20, deadline=None)
def test_the_same_plan_is_the_same_node(plan: Plan) -> None:
    if any(isinstance(part, Recursive) for part in _parts(plan)):
        return
    circuit = Circuit()
    relations = {name: circuit.source(name, schema) for name, schema in TABLES.items()}
    first = lower(plan, relations, circuit)
    count = len(circuit)
    assert lower(plan, relations, circuit).id == first.id
    assert len(circuit) == count


def _parts(plan: Plan) -> list[Plan]:
    return [plan, *(part for i in plan.inputs for part in _parts(i))]


def test_recursion_that_takes_rows_away_is_refused() -> None:
    edge = Scan("e", TABLES["e"])
    path = Reference("path", edge.schema)
    with pytest.raises(CircuitError, match="through the right side of an EXCEPT"):
        circuit_of(Recursive((("path", Except(edge, path)),), path))


def test_mutual_recursion() -> None:
    """Vertices at an even and an odd distance."""
    from everview.plan.nodes import Filter, Join, Union
    from everview.plan.typing import call
    from everview.scalars.expressions import Literal
    from everview.types import INTEGER, Schema

    edge = Scan("e", TABLES["e"])
    vertex = Schema.parse("v INTEGER NOT NULL")
    even, odd = Reference("even", vertex), Reference("odd", vertex)
    start = Project(Filter(edge, call("equal", edge.column(0), Literal(0, INTEGER))), (edge.column(0),), ("v",))

    def after(side: Reference) -> Plan:
        joined = Join(side, edge, "inner")
        joined = Join(side, edge, "inner", call("equal", joined.column(0), joined.column(1)))
        return Project(joined, (joined.column(2),), ("v",))

    plan = Recursive((("even", Union((start, after(odd)))), ("odd", after(even))), Union((even, odd)))
    changes: list[Tick] = [{"e": [((0, 1), 1), ((1, 2), 1), ((2, 0), 1)]}, {"e": [((1, 2), -1)]}, {"e": [((1, 3), 1)]}]
    for shards in (1, 3):
        check_runs(plan, changes, meanings(plan, changes), shards)
