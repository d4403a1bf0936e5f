"""Relations that are written down: there from the first tick on, once, on any number of shards, after a restart too."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.circuit import Circuit, incrementalize, lifted
from everview.lowering.lower import lower
from everview.oracle import evaluate
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Join, Scan, Union, Values
from everview.plan.typing import call
from everview.runtimes.embedded import Embedded
from everview.scalars.expressions import AggregateCall, Literal
from everview.types import BIGINT, Schema
from everview.zset import ZSet
from lowering.drawn import TABLES
from scalars.agreeing import circuit_of

SCHEMA = Schema.parse("a BIGINT, d INTEGER NOT NULL")
ROWS = ((1, 2), (1, 2), (None, 3))


def values() -> Values:
    made = tuple(tuple(Literal(v, f.type) for v, f in zip(row, SCHEMA.fields, strict=True)) for row in ROWS)
    return Values(made, SCHEMA)


@pytest.mark.parametrize("shards", [1, 3])
def test_they_come_once(shards: int) -> None:
    run = Embedded(circuit_of(values()), shards=shards)
    assert run.tick()["view"].to_zset() == ZSet({(1, 2): 2, (None, 3): 1})
    assert run.tick()["view"].to_zset() == ZSet()
    assert run.view("view").contents().to_zset() == ZSet({(1, 2): 2, (None, 3): 1})


def test_a_restart_does_not_repeat_them(tmp_path: Path) -> None:
    circuit = circuit_of(Union((values(), Scan("u", TABLES["u"]))))
    run = Embedded(circuit, tmp_path)
    run.tick()
    run.close()
    again = Embedded(circuit, tmp_path)
    assert again.tick({"u": [((1, 2), 1)]})["view"].to_zset() == ZSet({(1, 2): 1})
    assert again.view("view").contents().to_zset() == ZSet({(1, 2): 3, (None, 3): 1})
    again.close()


def test_incrementalizing_twice_changes_nothing() -> None:
    once = incrementalize(circuit_of(values()))
    assert str(incrementalize(once)) == str(once)


def test_every_way_gives_the_same() -> None:
    circuit = circuit_of(values())
    expected = ZSet({(1, 2): 2, (None, 3): 1})
    assert evaluate(circuit, {})["view"] == expected
    assert Embedded(lifted(circuit), as_is=True).tick()["view"].to_zset() == expected


def test_no_relation_at_all() -> None:
    circuit = Circuit()
    lower(values(), {}, circuit).sink("view")
    assert Embedded(circuit).tick()["view"].to_zset() == ZSet({(1, 2): 2, (None, 3): 1})


def test_they_are_joined_with_rows() -> None:
    scan, constant = Scan("u", TABLES["u"]), values()
    both = Join(scan, constant, "inner")
    plan: Plan = Join(scan, constant, "inner", call("equal", both.column(0), both.column(2)))
    run = Embedded(circuit_of(plan), shards=3)
    assert run.tick({"u": [((1, 9), 1), ((None, 9), 1)]})["view"].to_zset() == ZSet({(1, 9, 1, 2): 2})


def test_an_aggregate_of_nothing_has_a_row() -> None:
    count = AggregateCall("count", (), False, None, (), BIGINT, False)
    plan = Aggregate(Scan("u", TABLES["u"]), (), (count,), ("n",))
    run = Embedded(circuit_of(plan), shards=3)
    assert run.tick()["view"].to_zset() == ZSet({(0,): 1})
    assert run.tick({"u": [((1, 2), 3)]})["view"].to_zset() == ZSet({(0,): -1, (3,): 1})
    assert run.tick({"u": [((1, 2), -3)]})["view"].to_zset() == ZSet({(0,): 1, (3,): -1})
