"""The plans of a graph mean what the graph does: evaluated from scratch, lowered, and rewritten by the optimizer."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.circuit import Circuit
from everview.circuit.nodes import Child
from everview.errors import GraphError
from everview.frontends.graphspec import Graph, check, graph, parse, plans
from everview.optimize import optimize
from everview.oracle.plans import contents, evaluate
from everview.plan.node import walk
from everview.plan.nodes import Multiway, Recursive
from everview.plan.nullary import NULLARY
from everview.runtimes.embedded import Embedded
from relational.drawn import RELATIONS, Drawn, Row, World, meaning, tags
from relational.specs import WORKED

seeds = st.integers(0, 2**32 - 1)


class Plain(Drawn):
    """A graph that asks no predicate."""

    def judge(self) -> None:
        self.join()


def checked(spec: Mapping[str, Any]) -> Graph:
    return check(parse(spec))


@settings(max_examples=25)
@given(seed=seeds, size=st.integers(1, 7))
def test_plans_hold_what_the_kernel_does(seed: int, size: int) -> None:
    chance = random.Random(seed)
    drawn, world = Plain(chance, size), World(chance)
    found = plans(checked(drawn.spec))
    rewritten = {name: optimize(plan) for name, plan in found.items()}
    kernel = ev.Kernel()
    asked = {"E": world.enumerated} if "E" in checked(drawn.spec).enumerated else {}
    kernel.define_graph("g", drawn.spec, providers=asked)
    kernel.activate_graph("g")
    for _ in range(3):
        world.change()
        batch = world.batch()
        kernel.push_batch({name: ev.Delta(*delta) for name, delta in batch.items()})
        world.take(batch)
        rows = {name: [(row, 1) for row in kernel.relation(name)] for name in RELATIONS}
        rows["N"] = [((True,), weight) for _, weight in rows["N"]]
        rows["E"] = [(row, 1) for row in world.enumerated.rows.values()]
        wanted = meaning(drawn.spec, {**world.held, "E": set(world.enumerated.rows)}, None)
        for output in drawn.spec["outputs"]:
            name = output["name"]
            # As the oracle holds them: to a Z-set of Python's values, 1 and True would be one.
            one = contents(found[name], rows)
            assert {w for _, w in one} <= {1}, "a set"
            assert len(list(one)) == len(kernel.output(name))
            assert tags(kernel.output(name)) == wanted[output["from"]] == tags(outside(one, found[name]))
            assert contents(rewritten[name], rows).weights == one.weights


def outside(rows: Any, plan: Any) -> list[Row]:
    """The rows as tuples; a relation without columns has one of one value in plans."""
    return [() if plan.schema == NULLARY else row for row, _ in rows.outside(plan.schema)]


TYPES = {"r": "x INTEGER, y BIGINT", "s": "y BIGINT NOT NULL, z SMALLINT", "t": "x SMALLINT"}
SPEC: dict[str, Any] = {
    "nodes": [
        *({"id": name, "op": "Scan", "rel": name} for name in "rst"),
        {"id": "j", "op": "Join", "inputs": ["r", "r", "s"], "vo": ["c", "b", "a"],
         "atoms": [{"vars": ["a", "b"]}, {"vars": ["b", "c"]}, {"vars": ["c", "b"]}]},
        {"id": "k", "op": "Join", "inputs": ["r", "t"], "vo": ["y", "x"], "atoms": [{"vars": ["x", "y"]},
                                                                                     {"vars": ["x"]}]},
        {"id": "m", "op": "Rename", "inputs": ["t"], "names": {"x": "y"}},
        {"id": "d", "op": "Diff", "inputs": ["m", "s"], "key": ["y"]},
        {"id": "e", "op": "Diff", "inputs": ["r", "t"], "key": ["x"]},
        {"id": "v", "op": "Project", "inputs": ["s"], "attrs": ["y"]},
        {"id": "u", "op": "Union", "inputs": ["m", "v"]},
        {"id": "step", "op": "Join", "inputs": ["walk", "r"], "vo": ["y", "x"],
         "atoms": [{"vars": ["x"]}, {"vars": ["x", "y"]}]},
        {"id": "to", "op": "Project", "inputs": ["step"], "attrs": ["y"]},
        {"id": "as", "op": "Rename", "inputs": ["to"], "names": {"y": "x"}},
        {"id": "walk", "op": "Union", "inputs": ["t", "as"]},
    ],
    "outputs": [{"name": name, "from": name} for name in ("j", "k", "d", "e", "u", "walk", "step")],
}  # fmt: skip


@settings(max_examples=10)
@given(seed=seeds)
def test_types_that_meet_and_null(seed: int) -> None:
    """Columns of sources may have types and NULL, which is a value like any other."""
    chance, circuit = random.Random(seed), Circuit()
    sources = {name: circuit.source(name, schema) for name, schema in TYPES.items()}
    for name, stream in graph(circuit, SPEC).items():
        stream.sink(name)
    schemas = {name: source.schema for name, source in sources.items()}
    relations = [{"name": name, "schema": list(schema.names)} for name, schema in schemas.items()]
    found = plans(checked({**SPEC, "relations": relations}), schemas)
    run, given_ = Embedded(circuit), {name: dict[Row, int]() for name in TYPES}
    for _ in range(3):
        ticks: dict[str, list[tuple[Row, int]]] = {}
        for name, schema in schemas.items():
            for _ in range(chance.randint(0, 5)):
                row = tuple(chance.choice([0, 1, 2, *([None] if f.nullable else [])]) for f in schema.fields)
                weight = chance.choice([1, 1, 2, -1])
                ticks.setdefault(name, []).append((row, weight))
                given_[name][row] = given_[name].get(row, 0) + weight
        run.tick(ticks)
        sets = {name: [(row, 1) for row, w in rows.items() if w > 0] for name, rows in given_.items()}
        for name, plan in found.items():
            assert run.views[name].contents().to_zset() == evaluate(plan, sets), name


RELATED = [{"name": "r", "schema": ["x", "y"]}, {"name": "s", "schema": ["y", "z"]}, {"name": "t", "schema": ["x"]}]


def test_a_join_is_in_the_planners_order() -> None:
    found = plans(checked({**SPEC, "relations": RELATED}))
    (join,) = (part for part in walk(found["j"]) if isinstance(part, Multiway))
    assert join.order == (0, 1, 2)
    assert join.variables == ((2, 1), (1, 0), (0, 1)), "by their places in that order"


def test_a_cycle_is_one_recursion_for_all_who_read_it() -> None:
    found = plans(checked({**SPEC, "relations": RELATED}))
    loops = {part.bindings for name in ("walk", "step") for part in walk(found[name]) if isinstance(part, Recursive)}
    assert len(loops) == 1
    circuit = Circuit()
    for name, schema in TYPES.items():
        circuit.source(name, schema)
    graph(circuit, SPEC)
    assert sum(isinstance(node, Child) for node in circuit) == 1


def test_a_predicate_is_no_part_of_a_plan() -> None:
    with pytest.raises(GraphError, match='node "qFilter"'):
        plans(checked(WORKED))


@pytest.mark.parametrize("double", [False, True])
def test_long_cycles(double: bool) -> None:
    """As long as you like, and with every node read twice: what is made of them grows with the nodes, no more."""
    length = 400
    nodes: list[dict[str, Any]] = [{"id": "n0", "op": "Union", "inputs": ["a", f"n{length - 1}"]}]
    for at in range(1, length):
        one: dict[str, Any] = {"id": f"n{at}", "inputs": [f"n{at - 1}"]}
        swap = {"op": "Rename", "names": {"a": "b", "b": "a"}}
        nodes.append({**one, **swap} if not double else {**one, "op": "Union", "inputs": one["inputs"] * 2})
    nodes.append({"id": "a", "op": "Scan", "rel": "A"})
    if not double:
        nodes.append({"id": "back", "op": "Project", "inputs": [f"n{length - 1}"], "attrs": ["a", "b"]})
        nodes[0]["inputs"] = ["a", "back"]
    spec = {"relations": [{"name": "A", "schema": ["a", "b"]}], "nodes": nodes,
            "outputs": [{"name": "out", "from": "n0"}]}  # fmt: skip
    kernel = ev.Kernel()
    kernel.define_graph("g", spec)
