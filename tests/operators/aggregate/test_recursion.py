"""Aggregates inside a recursive scope, where a trace is read as it was at several times at once."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator

import pytest

from everview.circuit import Circuit, incrementalize, lifted
from everview.runtimes.embedded import Embedded
from operators.aggregate.meanings import close

EDGE = "a BIGINT NOT NULL, b BIGINT NOT NULL"
Edge = tuple[int, int]

WAYS = {
    "incremental": lambda circuit: Embedded(incrementalize(circuit)),
    "recomputed": lambda circuit: Embedded(lifted(circuit)),
    "three shards": lambda circuit: Embedded(incrementalize(circuit), shards=3),
}


def edges_over_time(seed: int, ticks: int = 7, nodes: int = 6) -> Iterator[tuple[list[tuple[Edge, int]], set[Edge]]]:
    """A few edges come and a few go, every tick; and those that are there."""
    chance, there = random.Random(seed), set[Edge]()
    for _ in range(ticks):
        gone = set(chance.sample(sorted(there), k=len(there) // 3))
        come = {(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(3)} - there
        there = (there - gone) | come
        yield [*((edge, 1) for edge in come), *((edge, -1) for edge in gone)], there


# -- what is added up, and fed back: who has at least two different neighbours that know a rumour knows it


def rumour() -> Circuit:
    circuit = Circuit()
    edge, seed = circuit.source("edge", EDGE), circuit.source("seed", "a BIGINT NOT NULL")
    loop = circuit.child("rumour")
    knows, again = loop.feedback("a BIGINT NOT NULL")
    heard = loop.enter(edge).join(knows, "a").aggregate(["b"], n=("count distinct", "a"), v=("variance", "a"))
    convinced = heard.filter(lambda b, n, v: n >= 2, by_row=True).select(a="b")
    spread = (loop.enter(seed) + convinced).distinct()
    again(spread)
    loop.leave(spread).sink("knows")
    loop.leave(heard).sink("heard")
    return circuit


def rumour_of(edges: set[Edge], seeds: set[int]) -> tuple[set[int], dict[int, set[int]]]:
    knows: set[int] = set()
    while True:
        heard = {b: {x for x, y in edges if y == b and x in knows} for _, b in edges}
        following = seeds | {b for b, sources in heard.items() if len(sources) >= 2}
        if following == knows:
            return knows, {b: sources for b, sources in heard.items() if sources}
        knows = following


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_added_up_can_be_fed_back(way: str, seed: int) -> None:
    run = WAYS[way](rumour())
    run.tick({"seed": [((0,), 1), ((1,), 1), ((2,), 1)]})
    for changes, edges in edges_over_time(seed):
        run.tick({"edge": changes})
        knows, heard = rumour_of(edges, {0, 1, 2})
        assert {a for (a,) in run.view("knows").rows()} == knows
        found = {b: (n, v) for b, n, v in run.view("heard").rows()}
        assert found.keys() == heard.keys()
        for b, (n, v) in found.items():
            assert n == len(heard[b])
            assert close(v, statistics.variance(heard[b]) if len(heard[b]) > 1 else None)


# -- what reads an order, and is fed back: the least label that is reached


def components() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    both = edge + edge.select(a="b", b="a")
    own = both.select("a", label="a").distinct()
    loop = circuit.child("components")
    labels, again = loop.feedback("a BIGINT NOT NULL, label BIGINT NOT NULL")
    passed = loop.enter(both).join(labels, "a", select=["right.label", "left.b as a"]).select("a", "label")
    least = (loop.enter(own) + passed).aggregate(["a"], label=("first", "label", {"order": ["label"]}))
    again(least)
    loop.leave(least).sink("component")
    return circuit


def components_of(edges: set[Edge]) -> set[Edge]:
    labels = {node: node for edge in edges for node in edge}
    for _ in labels:
        for a, b in edges:
            labels[a] = labels[b] = min(labels[a], labels[b])
    return set(labels.items())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_what_reads_an_order_can_be_fed_back(way: str, seed: int) -> None:
    run = WAYS[way](components())
    for changes, edges in edges_over_time(seed, nodes=9):
        run.tick({"edge": changes})
        assert set(run.view("component").rows()) == components_of(edges)


# -- whole groups, at every iteration of a loop


def reached() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    loop = circuit.child("closure")
    path, again = loop.feedback(EDGE)
    longer = path.join(loop.enter(edge), ("b", "a"), select=["left.a", "right.b"])
    paths = (loop.enter(edge) + longer).distinct()
    again(paths)
    told = paths.aggregate(
        ["a"],
        bs=("array", "b", {"order": ["b desc"]}),
        middle=("median", "b"),
        last=("last", "b", {"order": ["b"]}),
        deviation=("stddev pop", "b"),
        product=(lambda bs: sum(b * b for b in bs), "b", {"type": "BIGINT", "by_group": True}),
    )
    loop.leave(told).sink("told")
    return circuit


def reached_of(edges: set[Edge]) -> dict[int, set[int]]:
    found = {a: {b for x, b in edges if x == a} for a, _ in edges}
    for _ in range(len(found)):
        found = {a: bs.union(*(found.get(b, set()) for b in bs)) for a, bs in found.items()}
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_whole_groups_inside_a_loop(way: str, seed: int) -> None:
    run = WAYS[way](reached())
    for changes, edges in edges_over_time(seed):
        run.tick({"edge": changes})
        found = {a: results for a, *results in run.view("told").rows()}
        wanted = {
            a: [sorted(bs)[::-1], statistics.median(bs), max(bs), statistics.pstdev(bs), sum(b * b for b in bs)]
            for a, bs in reached_of(edges).items()
        }
        assert found.keys() == wanted.keys()
        assert all(close(found[a], wanted[a]) for a in found)
