"""What it means that a plan at work agrees with the oracle."""

from __future__ import annotations

from collections.abc import Sequence

from everview.circuit import Circuit
from everview.lowering.lower import lower
from everview.oracle.plans import evaluate
from everview.plan.node import Plan
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet
from lowering.drawn import TABLES, Tick


def sums(ticks: Sequence[Tick]) -> list[dict[str, ZSet]]:
    """What the tables hold after every tick."""
    held = {name: ZSet() for name in TABLES}
    found: list[dict[str, ZSet]] = []
    for tick in ticks:
        held = held | {name: held[name] + ZSet.of(changes) for name, changes in tick.items()}
        found.append(held)
    return found


def circuit_of(plan: Plan) -> Circuit:
    circuit = Circuit()
    relations = {name: circuit.source(name, schema) for name, schema in TABLES.items()}
    lower(plan, relations, circuit).sink("view")
    return circuit


def meanings(plan: Plan, ticks: Sequence[Tick]) -> list[ZSet]:
    return [evaluate(plan, held) for held in sums(ticks)]


def check_runs(plan: Plan, ticks: Sequence[Tick], expected: Sequence[ZSet], shards: int) -> None:
    """After every tick, contents and the sum of changes are what is expected."""
    run, total = Embedded(circuit_of(plan), shards=shards), ZSet()
    for number, tick in enumerate(ticks):
        total = total + run.tick(tick)["view"].to_zset()
        assert run.view("view").contents().to_zset() == expected[number], f"contents after tick {number}:\n{plan}"
        assert total == expected[number], f"sum of changes up to tick {number}:\n{plan}"
