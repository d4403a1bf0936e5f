"""Loops that do not end, loops that fail, and state that does not grow."""

from __future__ import annotations

import random

import pyarrow.compute as pc
import pytest

from everview.circuit import Circuit, incrementalize, lifted
from everview.errors import CircuitError, EndlessLoop
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet
from recursion.programs import closure, closure_of, components


def counting(limit: int) -> Circuit:
    """Adds one for ever."""
    circuit = Circuit()
    start = circuit.source("start", "n BIGINT NOT NULL")
    loop = circuit.child("count up", limit=limit)
    number, again = loop.feedback(start.schema)
    numbers = (loop.enter(start) + number.map(lambda n: pc.add(n, 1), start.schema)).distinct()
    again(numbers)
    loop.leave(numbers).sink("number")
    return circuit


@pytest.mark.parametrize("how", [incrementalize, lifted])
def test_a_loop_that_never_ends_is_named(how) -> None:
    run = Embedded(how(counting(limit=30)))
    with pytest.raises(
        EndlessLoop, match=r"loop count up has not ended after 30 iterations.*changed .* rows"
    ) as raised:
        run.tick({"start": [((0,), 1)]})
    assert "limit" in str(raised.value)
    assert run.epoch == 0
    assert run.view("number").rows() == []
    run.tick({"start": []})
    assert run.epoch == 1


def test_changes_that_cancel_do_not_go_round_for_ever() -> None:
    circuit = Circuit()
    x = circuit.source("x", "n BIGINT NOT NULL")
    loop = circuit.child("cancel", limit=10)
    back, again = loop.feedback(x.schema)
    again((loop.enter(x) - loop.enter(x)) + (back - back))
    loop.leave(back).sink("back")
    run = Embedded(incrementalize(circuit))
    run.tick({"x": [((1,), 1)]})
    assert run.view("back").rows() == []


def test_sources_and_sinks_stay_outside() -> None:
    circuit = Circuit()
    stream = circuit.source("x", "n BIGINT NOT NULL")
    loop = circuit.child("loop")
    with pytest.raises(CircuitError, match="inside a child"):
        loop.source("y", "n BIGINT")
    with pytest.raises(CircuitError, match="inside a child"):
        loop.enter(stream).sink("y")
    with pytest.raises(CircuitError, match="another circuit"):
        stream.join(loop.enter(stream), "n")
    with pytest.raises(CircuitError, match="no parent"):
        circuit.leave(stream)


def test_state_does_not_grow_over_many_ticks() -> None:
    rng = random.Random(1)
    run = Embedded(incrementalize(closure()))
    edges = {(rng.randrange(12), rng.randrange(12)) for _ in range(14)}
    run.tick({"edge": [(e, 1) for e in edges]})
    sizes = []
    for tick in range(300):
        gone = rng.choice(sorted(edges))
        run.tick({"edge": [(gone, -1)]})
        run.tick({"edge": [(gone, 1)]})
        if tick % 100 == 99:
            for trace, _, _ in run.state:
                trace.past.compact()
            sizes.append(sum(len(trace.past) for trace, _, _ in run.state))
    assert run.view("path").contents().to_zset() == ZSet.of([(p, 1) for p in closure_of(edges)])
    assert sizes[0] == sizes[-1]


def test_durable_recursion(tmp_path) -> None:
    rng = random.Random(3)
    edges: set[tuple[int, int]] = set()
    memory = Embedded(incrementalize(components()))
    for _ in range(4):
        with Embedded(incrementalize(components()), tmp_path / "state") as run:
            assert run.view("component").contents() == memory.view("component").contents()
            for _ in range(5):
                edge = rng.randrange(6), rng.randrange(6)
                delta = {"edge": [(edge, -1 if edge in edges else 1)]}
                edges ^= {edge}
                assert run.tick(delta)["component"] == memory.tick(delta)["component"]
