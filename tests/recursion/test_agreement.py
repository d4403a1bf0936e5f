"""After every tick a recursive view is what the oracle finds by plain iteration over all rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.compute as pc
import pytest

from everview.circuit import Circuit, incrementalize, lifted
from everview.errors import CircuitError, EndlessLoop
from everview.oracle import evaluate
from everview.runtimes import compiled_scope
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet
from recursion.drawn import SOURCES, drawn
from recursion.programs import PROGRAMS, Program, closure, pair

Row = tuple[Any, ...]
Ticks = Iterator[tuple[dict[str, ZSet], dict[str, list[tuple[Row, int]]]]]
Drawers = dict[str, Callable[[random.Random, int], Row]]


def life(draw: Drawers, rng: random.Random, ticks: int, n: int, most: int) -> Ticks:
    """What the sources hold after each tick, a row up to ``most`` times, and the changes that lead there."""
    held = {name: ZSet() for name in draw}
    for _ in range(ticks):
        delta: dict[str, list[tuple[Row, int]]] = {name: [] for name in draw}
        for _ in range(rng.choice([0, 1, 2, 3, 6])):
            name = rng.choice(sorted(draw))
            rows = [row for row, _ in held[name]]
            row = rng.choice(rows) if rows and rng.random() < 0.4 else draw[name](rng, n)
            weight = rng.randint(0, most) - held[name][row]
            delta[name].append((row, weight))
            held[name] = held[name] + ZSet.of([(row, weight)])
        yield held, delta


def check(build: Callable[[], Circuit], run: Embedded, ticks: Ticks) -> None:
    query = build()
    for held, delta in ticks:
        run.tick(delta)
        found = {name: view.contents().to_zset() for name, view in run.views.items()}
        assert found == evaluate(query, held), (held, delta)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.parametrize("shards", [1, 3])
def test_programs(program: Program, shards: int) -> None:
    rng = random.Random(f"{program.name} {shards}")
    # Strong components subtract what was cut once, so they are of sets.
    most = 1 if program.name == "strong components" else 3
    ticks = life(program.draw, rng, ticks=10, n=5, most=most)
    check(program.build, Embedded(incrementalize(program.build()), shards=shards), ticks)


@pytest.mark.parametrize("seed", range(25))
def test_drawn_programs(seed: int) -> None:
    rng = random.Random(seed)
    ways = (incrementalize, incrementalize, lifted)
    run = Embedded(ways[seed % 3](drawn(random.Random(seed))), shards=1 + seed % 2)
    ticks = life(dict.fromkeys(SOURCES, pair), rng, ticks=6, n=5, most=2)
    check(lambda: drawn(random.Random(seed)), run, ticks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_drawn_programs(seed: int) -> None:
    run = Embedded(incrementalize(drawn(random.Random(seed))), shards=1 + seed % 3)
    ticks = life(dict.fromkeys(SOURCES, pair), random.Random(seed), ticks=10, n=6, most=2)
    check(lambda: drawn(random.Random(seed)), run, ticks)


def test_what_does_not_depend_on_a_loop_is_computed_once() -> None:
    calls: list[int] = []

    def spy(a: Any, b: Any) -> Any:
        calls.append(len(a))
        return pc.less(a, b)

    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    loop = circuit.child("closure")
    step = loop.enter(edge).filter(spy)
    path, again = loop.feedback(edge.schema)
    paths = (step + path.join(step, ("b", "a"), select=["left.a", "right.b"])).distinct()
    again(paths)
    loop.leave(paths).sink("path")
    found = evaluate(circuit, {"edge": ZSet({(n, n + 1): 1 for n in range(20)})})
    assert len(found["path"]) == 210
    assert sum(calls) == 20


def test_a_loop_without_end_is_named_with_its_limit() -> None:
    circuit = Circuit()
    start = circuit.source("start", "n BIGINT NOT NULL")
    loop = circuit.child("count up", limit=30)
    number, again = loop.feedback(start.schema)
    numbers = (loop.enter(start) + number.map(lambda n: pc.add(n, 1), start.schema)).distinct()
    again(numbers)
    loop.leave(numbers).sink("number")
    with pytest.raises(EndlessLoop, match=r"loop count up has not ended after 30 iterations.* 29, 30 rows"):
        evaluate(circuit, {"start": ZSet({(0,): 1})})


@pytest.mark.parametrize("edges", [4, 5])
def test_the_limit_is_the_same_as_at_work(edges: int) -> None:
    """A path of n edges takes n iterations, and one to see that nothing changes any more."""
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    loop = circuit.child("closure", limit=5)
    path, again = loop.feedback(edge.schema)
    paths = (loop.enter(edge) + path.join(loop.enter(edge), ("b", "a"), select=["left.a", "right.b"])).distinct()
    again(paths)
    loop.leave(paths).sink("path")
    rows = ZSet({(n, n + 1): 1 for n in range(edges)})
    run = Embedded(incrementalize(circuit))
    if edges < 5:
        run.tick({"edge": list(rows)})
        assert evaluate(circuit, {"edge": rows}) == {"path": run.view("path").contents().to_zset()}
        return
    with pytest.raises(EndlessLoop):
        run.tick({"edge": list(rows)})
    with pytest.raises(EndlessLoop):
        evaluate(circuit, {"edge": rows})


def test_a_delay_at_the_root_means_nothing_to_a_single_input() -> None:
    circuit = Circuit()
    edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
    edge.delay().sink("late")
    edge.distinct().sink("now")
    with pytest.raises(CircuitError, match=r"node 1 \(z⁻¹\) is of the tick before"):
        evaluate(circuit, {})
    assert evaluate(circuit, {"edge": ZSet({(1, 2): 3})}, ["now"]) == {"now": ZSet({(1, 2): 1})}


def test_a_child_on_changes_is_no_query() -> None:
    with pytest.raises(CircuitError, match="before `incrementalize`"):
        evaluate(incrementalize(closure()), {})


@pytest.mark.parametrize("rows", [0, 5])
@pytest.mark.parametrize("seed", range(8))
def test_rounds_that_python_runs(seed: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that has grown too much for one call gives up what it has done, and is run round by round."""
    monkeypatch.setattr(compiled_scope, "MOST_ROWS", rows)
    run = Embedded(incrementalize(drawn(random.Random(seed))))
    ticks = life(dict.fromkeys(SOURCES, pair), random.Random(seed), ticks=6, n=5, most=2)
    check(lambda: drawn(random.Random(seed)), run, ticks)
