"""As-of joins as tasks over shards: after every tick what the oracle says, or what one process gives."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.circuit import Circuit
from everview.oracle import evaluate
from everview.runtimes.embedded import Embedded
from operators.asofs import cases
from oracle.cases import Case, Tick
from spark.in_process import engine, tick

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@settings(max_examples=20)
@given(case=cases())
def test_by_tasks(case: Case, tmp_path_factory: pytest.TempPathFactory) -> None:
    query = case.build()
    with engine(query, tmp_path_factory.mktemp("asof") / "state") as run:
        for number, (changes, held) in enumerate(zip(case.ticks, case.sums(), strict=True)):
            run.placement.place = "driver" if number % 3 == 2 else "cluster"
            tick(run, changes)
            found = {name: view.contents().to_zset() for name, view in run.run.views.items()}
            assert found == evaluate(query, held)


def remembering() -> Circuit:
    circuit = Circuit()
    orders = circuit.source("orders", "id BIGINT NOT NULL, item STRING NOT NULL")
    prices = circuit.source("prices", "item STRING, price STRING")
    orders.as_of_now(prices, "item", remember=True).sink("pay me")
    return circuit


def life(seed: int) -> list[Tick]:
    chance = random.Random(seed)
    found: list[Tick] = [{} for _ in range(5)]
    for _ in range(40):
        order: Any = ("orders", (chance.randint(0, 2), chance.choice("xyz")))
        price: Any = ("prices", (chance.choice("xyz"), chance.choice(["a", "ä", "\U0001f600", "\uffff"])))
        name, row = chance.choice([order, order, price])
        chance.choice(found).setdefault(name, []).append((row, chance.choice([1, 1, 2, -1, -2])))
    return found


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_what_was_billed_is_remembered_by_tasks(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    circuit, expected = remembering(), Embedded(remembering())
    with engine(circuit, tmp_path_factory.mktemp("billed") / "state") as run:
        for number, changes in enumerate(life(seed)):
            run.placement.place = "driver" if number % 3 == 2 else "cluster"
            assert tick(run, changes) == expected.tick(changes)


def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """A price by its time, a price of the moment, and a price that comes late."""

    def shop() -> Circuit:
        circuit = remembering()
        orders = circuit.source("timed orders", "item STRING NOT NULL, t BIGINT NOT NULL")
        prices = circuit.source("timed prices", "item STRING NOT NULL, t BIGINT NOT NULL, price STRING NOT NULL")
        orders.asof_join(prices, "item", at="t", direction="nearest", how="left").sink("found")
        return circuit

    ticks: list[Any] = [
        {
            "orders": [((n, "bacon"), 1) for n in range(5)],
            "prices": [(("bacon", "5.00"), 1)],
            "timed orders": [((item, t), 1) for item in ("bacon", "egg") for t in range(20)],
            "timed prices": [(("bacon", 10, "5.00"), 1)],
        },
        {"prices": [(("bacon", "5.00"), -1), (("bacon", "7.00"), 1)], "timed prices": [(("bacon", 4, "4.00"), 1)]},
        {"orders": [((3, "bacon"), -1)], "timed prices": [(("bacon", 10, "5.00"), -1)]},
    ]
    expected = Embedded(shop())
    with engine(shop(), tmp_path / "state", session=spark) as run:
        for changes in ticks:
            assert tick(run, changes) == expected.tick(changes)
