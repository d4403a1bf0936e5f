"""The input of the recursion benchmark: random graphs without double edges, and ticks of changes to their edges.

For reachability, any edge may be drawn, so there are cycles through most of the nodes. For the closure, edges go
from the lower node to the higher within blocks of nodes, so that its size follows the number of edges and stays
about the same while they change. About half of the changes delete an edge that is there, the others insert one
that is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

SEED = 20_240
PAUSE = 0.005  # seconds before a tick, the same for all: what never rests, a busy machine makes wait
ROOT = 0
PRIME = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Graph:
    """What is asked of it, its size, and how many nodes an edge may choose from."""

    asked: Literal["reachability", "closure"]
    nodes: int
    edges: int
    block: int


@dataclass(frozen=True, slots=True)
class Stream:
    """The edges at first, one (a, b) a row; the changes, one (a, b, weight) a row, tick by tick; the edges at last."""

    start: np.ndarray
    ticks: list[np.ndarray]
    end: np.ndarray


def stream(graph: Graph, per_tick: int, ticks: int) -> Stream:
    """The same for the same numbers, whoever asks.

    >>> small = stream(Graph("closure", 10, 5, 10), per_tick=2, ticks=3)
    >>> small.start.shape, [tick[:, 2].tolist() for tick in small.ticks]
    ((5, 2), [[-1, 1], [-1, 1], [-1, 1]])
    """
    random = np.random.default_rng([SEED, graph.nodes, graph.edges, graph.block])
    drawn = _drawn(graph, random)
    live: dict[tuple[int, int], None] = {}
    while len(live) < graph.edges:
        live[next(drawn)] = None
    start = np.array(list(live))
    edges = list(live)
    return Stream(start, [_tick(edges, live, drawn, random, per_tick, at) for at in range(ticks)], np.array(edges))


def _tick(
    edges: list[tuple[int, int]],
    live: dict[tuple[int, int], None],
    drawn: Iterator[tuple[int, int]],
    random: np.random.Generator,
    per_tick: int,
    at: int,
) -> np.ndarray:
    """Of an odd number of changes, the odd one is a delete and an insert in turn."""
    deletes = (per_tick + (at % 2 == 0)) // 2
    gone, come = [], []
    for _ in range(deletes):
        slot = int(random.integers(len(edges)))
        edges[slot], edges[-1] = edges[-1], edges[slot]
        gone.append(edges.pop())
    while len(come) < per_tick - deletes:
        edge = next(drawn)
        if edge not in live:
            live[edge] = None
            come.append(edge)
    for edge in gone:
        del live[edge]
    edges += come
    return np.array([(*edge, -1) for edge in gone] + [(*edge, 1) for edge in come], np.int64).reshape(-1, 3)


def _drawn(graph: Graph, random: np.random.Generator) -> Iterator[tuple[int, int]]:
    while True:
        base = random.integers(graph.nodes // graph.block, size=(1_000, 1)) * graph.block
        pairs = random.integers(graph.block, size=(1_000, 2))
        if graph.asked == "closure":
            pairs.sort(axis=1)
        yield from ((a, b) for a, b in (base + pairs).tolist() if a != b)


def digest(rows: np.ndarray) -> list[int]:
    """How many rows, and one number for what they are."""
    mixed = np.zeros(len(rows), np.int64)
    for column in rows.T:
        mixed = (mixed * 1_000_003 + column + 1) % PRIME
    return [len(rows), int((mixed * mixed % PRIME).sum())]


def expected(graph: Graph, edges: np.ndarray) -> list[int]:
    """The digest of what is asked, computed from scratch."""
    after: dict[int, list[int]] = {}
    for a, b in edges.tolist():
        after.setdefault(a, []).append(b)
    if graph.asked == "reachability":
        return digest(np.array([(b,) for b in {ROOT, *_reached(after, ROOT)}]))
    return digest(np.array([(a, b) for a in after for b in _reached(after, a)]))


def _reached(after: dict[int, list[int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for node in after.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found
