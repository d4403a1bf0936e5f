"""The input of the multiway benchmark: a skewed graph, ticks of changes to its edges, and a graph with a hub.

Edges are drawn by R-MAT with the usual probabilities, so that degrees follow a power law and dense parts are dense
inside; each goes from the lower node to the higher, and there are no double edges. Half of a tick's changes delete an
edge that is there, half insert one that is not. Kept in `benchmarks/data`, made once with a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from stream import DATA

SEED = 20_240
CORNERS = (0.57, 0.19, 0.19, 0.05)
EDGES_A_NODE = 8
HUB_DEGREE = 13_127

Pattern = Literal["triangles", "cliques"]
VARIABLES: dict[Pattern, str] = {"triangles": "abc", "cliques": "abcd"}


def atoms(pattern: Pattern) -> list[tuple[str, str]]:
    """The edges of a pattern, each as its two variables.

    >>> atoms("triangles")
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    return list(combinations(VARIABLES[pattern], 2))


@dataclass(frozen=True, slots=True)
class Stream:
    """The edges at first, one (src, dst) a row; the changes, one (src, dst, weight) a row, tick by tick."""

    start: np.ndarray
    ticks: list[np.ndarray]


def scale_of(edges: int) -> int:
    """The nodes are two to the power of this.

    >>> scale_of(1_000_000)
    17
    """
    return max(4, round(np.log2(edges / EDGES_A_NODE)))


def stream(edges: int, per_tick: int = 0, ticks: int = 0) -> Stream:
    """The same for the same numbers, whoever asks."""
    path = DATA / f"skewed-{edges}-{per_tick}x{ticks}.npz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        random = np.random.default_rng([SEED, edges])
        start = _drawn(random, edges, scale_of(edges))
        fresh = _drawn(random, per_tick * ticks, scale_of(edges), besides=start)
        given = _stream(random, start, fresh, per_tick, ticks)
        np.savez(path, start=given.start, ticks=np.array(given.ticks).reshape(ticks, per_tick, 3))
    found = np.load(path)
    return Stream(found["start"], list(found["ticks"]))


def hub_stream(edges: int, per_tick: int, ticks: int) -> Stream:
    """The edges of a skewed graph, but one node has a degree of its own; only that node's edges change."""
    random = np.random.default_rng([SEED, edges, HUB_DEGREE])
    nodes = 1 << scale_of(edges)
    hub = nodes // 2
    others = stream(edges).start
    others = others[(others != hub).all(axis=1)]
    partners = random.permutation(np.delete(np.arange(max(nodes, 2 * HUB_DEGREE)), hub))
    count = HUB_DEGREE + per_tick * ticks // 2
    drawn = np.sort(np.column_stack([np.full(count, hub), partners[:count]]), axis=1)
    changes = _stream(random, drawn[:HUB_DEGREE], drawn[HUB_DEGREE:], per_tick, ticks)
    return Stream(np.concatenate([others, changes.start]), changes.ticks)


def _stream(random: np.random.Generator, start: np.ndarray, fresh: np.ndarray, per_tick: int, ticks: int) -> Stream:
    """No edge is deleted twice or comes back: what leaves is drawn at once, and so is what arrives."""
    half = per_tick // 2
    gone = random.permutation(start)[: half * ticks]
    found: list[np.ndarray] = []
    for at in range(ticks):
        out, new = gone[at * half : (at + 1) * half], fresh[at * (per_tick - half) : (at + 1) * (per_tick - half)]
        weights = np.repeat([-1, 1], [len(out), len(new)])
        found.append(np.column_stack([np.concatenate([out, new]), weights]))
    return Stream(start, found)


def _drawn(random: np.random.Generator, count: int, scale: int, besides: np.ndarray | None = None) -> np.ndarray:
    """So many different edges, in any order, and none that is there already."""
    known = np.empty(0, np.int64) if besides is None else _coded(besides)
    found = np.empty(0, np.int64)
    while len(found) < count:
        found = np.union1d(found, np.setdiff1d(_coded(_rmat(random, count, scale)), known))
    chosen = random.permutation(found)[:count]
    return np.column_stack([chosen >> 32, chosen & 0xFFFFFFFF])


def _coded(edges: np.ndarray) -> np.ndarray:
    """An edge as one number."""
    return edges[:, 0] << 32 | edges[:, 1]


def _rmat(random: np.random.Generator, count: int, scale: int) -> np.ndarray:
    """Each bit of the two ends says in which quarter of the matrix an edge lies."""
    bounds = np.cumsum(CORNERS)[:3]
    ends = np.zeros((count, 2), np.int64)
    for _ in range(scale):
        quarter = np.searchsorted(bounds, random.random(count), side="right")
        ends = 2 * ends + np.column_stack([quarter >> 1, quarter & 1])
    ends.sort(axis=1)
    return ends[ends[:, 0] != ends[:, 1]]


def binary(edges: np.ndarray) -> dict[str, int]:
    """How many rows each first join of a binary plan for triangles has: the squares of degrees, summed up."""
    nodes = int(edges.max()) + 1
    out, into = (np.bincount(edges[:, side], minlength=nodes) for side in (0, 1))
    return {
        "ab, bc": int(out @ into),
        "ab, ac": int(out @ out),
        "ac, bc": int(into @ into),
        "any two": int((out + into) @ (out + into)),
    }
