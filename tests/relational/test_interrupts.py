"""An exception at any line of a batch or an activation leaves a kernel as it was, or as it would be."""

from __future__ import annotations

from functools import partial
from typing import Any

import everview as ev
from torture.every_line import Passed, Place, RaiseAt
from torture.interrupts import traced

SPEC = {
    "relations": [{"name": "A", "schema": ["a", "b"]}, {"name": "B", "schema": ["b", "c"]}],
    "nodes": [
        {"id": "scanA", "op": "Scan", "rel": "A"},
        {"id": "scanB", "op": "Scan", "rel": "B"},
        {
            **{"id": "join", "op": "Join", "inputs": ["scanA", "scanB"], "vo": ["a", "b", "c"]},
            "atoms": [{"rel": "A", "vars": ["a", "b"]}, {"rel": "B", "vars": ["b", "c"]}],
        },
        {"id": "path", "op": "Project", "inputs": ["join"], "attrs": ["a", "c"]},
    ],
}
ON = {"A": ev.Delta({("a", "b"), ("x", "y")}), "B": ev.Delta({("b", "c")})}
OFF = {"A": ev.Delta(removes={("a", "b"), ("x", "y")}), "B": ev.Delta(removes={("b", "c")})}


def kernel_of(*graphs: str) -> ev.Kernel:
    kernel = ev.Kernel()
    for graph in graphs:
        kernel.define_graph(graph, {**SPEC, "outputs": [{"name": f"out {graph}", "from": "path"}]})
    return kernel


def seen(kernel: ev.Kernel) -> Any:
    outputs = {f"out {graph}": set(kernel.output(f"out {graph}")) for graph, on in kernel.graphs.items() if on}
    return {name: set(kernel.relation(name)) for name in kernel.relations}, kernel.graphs, outputs


def every_line(act: Any) -> list[Place]:
    passed = Passed()
    traced(passed, act)
    return [place for line in sorted(passed.lines) if (place := Place(*line, 1)).stateful]


def test_a_batch() -> None:
    kernel = kernel_of("one", "two")
    kernel.activate_graph("one")
    kernel.activate_graph("two")
    before = seen(kernel), kernel.epoch
    kernel.push_batch(ON)
    after = seen(kernel), kernel.epoch
    kernel.push_batch(OFF)
    lines = every_line(partial(kernel.push_batch, ON))
    kernel.push_batch(OFF)
    assert len(lines) > 150
    for place in lines[::2]:  # all of them were tried once
        epoch = kernel.epoch
        traced(RaiseAt(place), partial(kernel.push_batch, ON))
        now = seen(kernel), kernel.epoch - epoch + before[1]
        assert now in (before, after), place
        assert kernel.push_batch({"A": ev.Delta({("a2", "b")})})["out one"].removes == set()
        kernel.push_batch(ON)
        assert kernel.output("out one") == kernel.output("out two") == {("a", "c"), ("a2", "c")}, place
        kernel.push_batch({**OFF, "A": ev.Delta(removes={("a", "b"), ("x", "y"), ("a2", "b")})})
        assert seen(kernel) == before[0], place


def test_an_activation() -> None:
    kernel = kernel_of("one", "two")
    kernel.activate_graph("one")
    before = seen(kernel)
    lines = every_line(partial(kernel.activate_graph, "two", ON))
    after = seen(kernel)

    def back() -> None:
        if kernel.graphs["two"]:
            kernel.deactivate_graph("two")
        kernel.push_batch(OFF)

    back()
    for place in lines[:: len(lines) // 50]:
        traced(RaiseAt(place), partial(kernel.activate_graph, "two", ON))
        assert seen(kernel) in (before, after), place
        back()
        assert seen(kernel) == before, place
