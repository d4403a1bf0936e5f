"""The input of the native benchmark: four workloads, each as files that programs in other languages read, too.

A file is rows of little-endian 64-bit integers, one row after the other, without a header. A workload has a file for
every relation, and one for every size of tick, whose rows end with a weight; the ticks of one size follow those of the
size before. All is drawn with fixed seeds, so equal sizes mean equal files.

- `orders`: customers (id, nation) and orders (id, customer, amount). A tick gives some orders a new amount.
- `reachability`: roots (node), and edges (a, b) of a random graph, most of which lies on cycles.
- `closure`: edges (a, b) from the lower node to the higher, within blocks, so that there are about ten paths an edge.
- `triangles`: edges (a, b) of a skewed graph, from the lower node to the higher.

A tick of a graph deletes edges that are there and inserts as many that never were.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import graphs
import numpy as np
import skewed
from stream import DATA, SEED

Name = Literal["orders", "reachability", "closure", "triangles"]
Plan = dict[int, int]  # how many ticks, by their size
NATIONS = 25
CENTS = 100_000
ROOT = 0
WORD = np.dtype("<i8")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of the relations that change; a customer has ten orders, a node of a random graph four edges."""

    name: str
    orders: int
    reachability: int
    closure: int  # in blocks of 290 nodes and 1,009 edges, or one smaller block
    triangles: int
    plans: Mapping[Name, Plan]


FULL = Sizes(
    "full",
    orders=1_000_000,
    reachability=200_000,
    closure=20_180,
    triangles=1_000_000,
    plans={
        "orders": {10: 1_000, 1_000: 200, 100_000: 10},
        "reachability": {10: 200},
        "closure": {10: 200},
        "triangles": {100: 50, 1_000: 20},
    },
)
QUICK = Sizes(
    "quick",
    orders=100_000,
    reachability=20_000,
    closure=4_036,
    triangles=20_000,
    plans={
        "orders": {10: 200, 1_000: 50, 10_000: 5},
        "reachability": {10: 50},
        "closure": {10: 50},
        "triangles": {100: 20, 1_000: 5},
    },
)
TINY = Sizes(
    "tiny",
    orders=300,
    reachability=120,
    closure=60,
    triangles=200,
    plans={
        "orders": {4: 5, 20: 3},
        "reachability": {4: 8},
        "closure": {4: 8},
        "triangles": {4: 5, 10: 3},
    },
)
SIZES = {sizes.name: sizes for sizes in (FULL, QUICK, TINY)}


@dataclass(frozen=True, slots=True)
class Workload:
    """The relations to load, which of them changes, and its ticks by size."""

    relations: dict[str, np.ndarray]
    changing: str
    changes: dict[int, np.ndarray]  # rows and weights, tick after tick


def workload(name: Name, sizes: Sizes) -> Workload:
    """One workload, drawn anew.

    >>> drawn = workload("closure", TINY)
    >>> drawn.relations["edges"].shape, {size: changes.shape for size, changes in drawn.changes.items()}
    ((60, 2), {4: (32, 3)})
    """
    return DRAWN[name](sizes)


def files(name: Name, sizes: Sizes) -> Path:
    """The folder with the files of a workload, which are written if they are not there."""
    folder = DATA / f"native-{sizes.name}" / name
    if not folder.exists():
        unfinished = folder.with_suffix(".tmp")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        drawn = workload(name, sizes)
        for relation, rows in drawn.relations.items():
            _write(unfinished / f"{relation}.i64", rows)
        for size, changes in drawn.changes.items():
            _write(unfinished / f"ticks-{size}.i64", changes)
        unfinished.rename(folder)
    return folder


def rows_of(folder: Path, relation: str, width: int) -> np.ndarray:
    """All rows of a relation."""
    return np.fromfile(folder / f"{relation}.i64", WORD).reshape(-1, width)


def ticks_of(folder: Path, size: int, ticks: int, width: int) -> Iterator[np.ndarray]:
    """The changes of one tick after the other, read when they are asked for: all of them would count as memory.

    The file stays open, and is read through a buffer, as the peers do: no tick has calls of the system before it.
    """
    with (folder / f"ticks-{size}.i64").open("rb") as file:
        for _ in range(ticks):
            words = file.read(size * width * WORD.itemsize)
            yield np.frombuffer(words, WORD).reshape(size, width)


def _write(path: Path, rows: np.ndarray) -> None:
    np.ascontiguousarray(rows, WORD).tofile(path)


# -- drawing


def _orders(sizes: Sizes) -> Workload:
    random = np.random.default_rng([SEED, sizes.orders])
    customers = sizes.orders // 10
    nations = np.column_stack([np.arange(customers), random.integers(0, NATIONS, customers)])
    start = np.column_stack(
        [
            np.arange(sizes.orders),
            random.integers(0, customers, sizes.orders),
            random.integers(1, CENTS, sizes.orders),
        ]
    )
    live = start.copy()
    changes = {
        size: np.concatenate([_repriced(random, live, size) for _ in range(ticks)])
        for size, ticks in sizes.plans["orders"].items()
    }
    return Workload({"customers": nations, "orders": start}, "orders", changes)


def _repriced(random: np.random.Generator, live: np.ndarray, size: int) -> np.ndarray:
    """A tick that gives some orders another amount, also in `live`."""
    slots = random.choice(len(live), size // 2, replace=False)
    old, new = live[slots], live[slots]
    new[:, 2] = (old[:, 2] - 1 + random.integers(1, CENTS - 1, len(slots))) % (CENTS - 1) + 1
    live[slots] = new
    return np.column_stack([np.concatenate([old, new]), np.repeat([-1, 1], len(slots))])


def _reachability(sizes: Sizes) -> Workload:
    nodes = sizes.reachability // 4
    drawn = _graph("reachability", sizes, lambda count: _random("reachability", nodes, count, nodes))
    return Workload({"roots": np.array([[ROOT]])} | drawn.relations, drawn.changing, drawn.changes)


def _closure(sizes: Sizes) -> Workload:
    blocks = max(1, sizes.closure // 1_009)
    block = min(290, sizes.closure)
    return _graph("closure", sizes, lambda count: _random("closure", blocks * block, count, block))


def _triangles(sizes: Sizes) -> Workload:
    return _graph("triangles", sizes, lambda count: skewed.stream(count).start)


DRAWN: dict[Name, Callable[[Sizes], Workload]] = {
    "orders": _orders,
    "reachability": _reachability,
    "closure": _closure,
    "triangles": _triangles,
}


def _random(asked: Literal["reachability", "closure"], nodes: int, edges: int, block: int) -> np.ndarray:
    return graphs.stream(graphs.Graph(asked, nodes, edges, block), 0, 0).start


def _graph(name: Name, sizes: Sizes, drawn: Callable[[int], np.ndarray]) -> Workload:
    """A graph of different edges, of which the last ones arrive by and by, while some of the first leave."""
    count, plan = getattr(sizes, name), sizes.plans[name]
    replaced = sum(size // 2 * ticks for size, ticks in plan.items())
    edges = drawn(count + replaced)
    random = np.random.default_rng([SEED, count, replaced])
    leaving = iter(random.permutation(edges[:count])[:replaced])
    arriving = iter(edges[count:])
    changes = {
        size: np.concatenate([_replaced(leaving, arriving, size // 2) for _ in range(ticks)])
        for size, ticks in plan.items()
    }
    return Workload({"edges": edges[:count]}, "edges", changes)


def _replaced(leaving: Iterator[np.ndarray], arriving: Iterator[np.ndarray], half: int) -> np.ndarray:
    rows = [next(edges) for edges in (leaving, arriving) for _ in range(half)]
    return np.column_stack([np.stack(rows), np.repeat([-1, 1], half)])


# -- the digest


def digest_of(columns: list[np.ndarray], weights: np.ndarray) -> int:
    """One number for a change: the sum over its rows, so that the sum over all changes is that of the contents.

    >>> one, other = np.array([1, 2]), np.array([3, 4])
    >>> digest_of([one, other], np.array([1, 1])) - digest_of([one[:1], other[:1]], np.array([1])) == digest_of(
    ...     [one[1:], other[1:]], np.array([1])
    ... )
    True
    """
    mixed = np.full(len(weights), OFFSET, np.uint64)
    for column in columns:
        mixed = (mixed + column.astype(np.int64).view(np.uint64)) * FACTOR
        mixed ^= mixed >> np.uint64(29)
    return int((mixed * weights.astype(np.int64).view(np.uint64)).sum(dtype=np.uint64))


OFFSET = np.uint64(0xCBF29CE484222325)
FACTOR = np.uint64(0x9E3779B97F4A7C15)
MODULUS = 2**64


class Trail:
    """The contents of a view after the load and after every tick, all in one number."""

    def __init__(self) -> None:
        self.contents = 0
        self.digest = 0
        self.rows = 0

    def begin(self, columns: list[np.ndarray]) -> None:
        """Take in the rows that are there before the load."""
        count = len(columns[0])
        self.contents = digest_of(columns, np.ones(count, np.int64))
        self.rows = count

    def add(self, columns: list[np.ndarray], weights: np.ndarray) -> None:
        """Take in what one tick has changed."""
        self.contents = (self.contents + digest_of(columns, weights)) % MODULUS
        self.digest = (self.digest * int(FACTOR) + self.contents) % MODULUS
        self.rows += int(weights.sum())
