"""Whatever the graph, and whatever arrives: outputs hold what the graph means, and change by the difference."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import ProviderError
from relational.drawn import Drawn, Row, World, meaning, tagged, tags

seeds = st.integers(0, 2**32 - 1)


class Truth:
    """What predicates say, as a graph is to remember it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.known: dict[str, dict[Row, bool]] = {}

    def __call__(self, node: Mapping[str, Any], candidates: set[Row]) -> set[Row]:
        if node["rel"] == "F":
            return candidates & self.world.flipping.rows.keys()
        before = self.known.get(node["id"], {})
        now = {row: before.get(row, row in self.world.asked.rows) for row in candidates}
        self.known[node["id"]] = now
        return {row for row, true in now.items() if true}


def expected(spec: Mapping[str, Any], world: World, truth: Truth) -> dict[str, set[Row]]:
    held = {**world.held, "E": set(world.enumerated.rows)}
    rows = meaning(spec, held, truth)
    return {output["name"]: rows[output["from"]] for output in spec["outputs"]}


def pushed(kernel: ev.Kernel, world: World, batch: Mapping[str, ev.Delta], broken: bool) -> dict[str, ev.Delta]:
    """Push a batch; if providers are broken and it fails, nothing has changed, and it can be pushed again."""
    world.flipping.broken = world.asked.broken = broken
    before = {name: list(kernel.relation(name)) for name in ("A", "B", "C", "D")}
    try:
        return kernel.push_batch(batch)
    except ProviderError:
        assert broken
    assert {name: list(kernel.relation(name)) for name in ("A", "B", "C", "D")} == before
    world.flipping.broken = world.asked.broken = False
    return kernel.push_batch(batch)


@settings(max_examples=60)
@given(seed=seeds, size=st.integers(1, 8))
def test_random_graphs(seed: int, size: int) -> None:
    chance = random.Random(seed)
    drawn, world = Drawn(chance, size), World(chance)
    spec, truth = drawn.spec, Truth(world)
    kernel = ev.Kernel()
    asked = {node["rel"] for node in reached(spec) if node["op"] == "Compute"}
    providers = {name: one for name, one in world.providers.items() if name in asked}
    kernel.define_graph("g", json.dumps(spec) if chance.random() < 0.5 else spec, providers=providers)
    start = world.batch()
    world.change()
    world.take(start)
    out = kernel.activate_graph("g", bootstrap={name: ev.Delta(*delta) for name, delta in start.items()})
    before = expected(spec, world, truth)
    assert {name: tags(delta.adds) for name, delta in out.items()} == before
    for _ in range(5):
        world.change()
        batch = world.batch()
        given_ = {name: ev.Delta(adds=adds, removes=removes) for name, (adds, removes) in batch.items()}
        out = pushed(kernel, world, given_, chance.random() < 0.3)
        world.take(batch)
        after = expected(spec, world, truth)
        for name, delta in out.items():
            assert tags(delta.adds) == after[name] - before[name]
            assert tags(delta.removes) == before[name] - after[name]
            assert tags(kernel.output(name)) == after[name]
            assert len(kernel.output(name)) == len(after[name])
        before = after
    for name in ("A", "B", "C", "D"):
        assert tags(kernel.relation(name)) == world.held[name]


def reached(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The nodes that outputs depend on."""
    nodes = {node["id"]: node for node in spec["nodes"]}
    found, waiting = dict[str, None](), [output["from"] for output in spec["outputs"]]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = None
            waiting += nodes[one].get("inputs", ())
    return [nodes[one] for one in found]


@settings(max_examples=15)
@given(seed=seeds, size=st.integers(2, 8))
def test_the_same_batches_give_the_same_in_the_same_order(seed: int, size: int) -> None:
    def run() -> list[list[tuple[str, list[Row], list[Row]]]]:
        chance = random.Random(seed)
        drawn, world = Drawn(chance, size), World(chance)
        kernel = ev.Kernel()
        asked = {node["rel"] for node in reached(drawn.spec) if node["op"] == "Compute"}
        providers = {name: one for name, one in world.providers.items() if name in asked}
        kernel.define_graph("g", drawn.spec, providers=providers)
        kernel.activate_graph("g")
        said: list[list[tuple[str, list[Row], list[Row]]]] = []
        for _ in range(3):
            world.change()
            batch = {name: ev.Delta(*delta) for name, delta in world.batch().items()}
            out = kernel.push_batch(batch)
            said.append([(name, [*map(tagged, d.removes)], [*map(tagged, d.adds)]) for name, d in out.items()])
        return said

    assert run() == run()
