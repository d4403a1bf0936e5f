"""Reachability: a view that is defined by itself, under insertions and deletions.

A district is a ring of one-way roads, so everybody in it reaches everybody, over paths that support each other. The
view holds all pairs (a, b) for which b can be reached from a. For every tick the program prints how many rows changed
inside the loop, over all its iterations: that is the work, and it follows the change, not the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from rich.console import Console
from rich.table import Column, Table

import everview as ev

Edge = tuple[int, int]
ROAD = "a BIGINT NOT NULL, b BIGINT NOT NULL"
DISTRICTS, SIZE = 40, 20
FIGURES = ("Δ roads", "Δ pairs", "rows inside", "iterations", "ms")


@dataclass
class Work:
    """What passes inside the loop."""

    rows: int = 0
    iterations: int = 0

    def found(self, changes: ev.ZSet) -> None:
        self.rows += len(changes)
        self.iterations += 1

    def tried(self, changes: ev.ZSet) -> None:
        self.rows += len(changes)


def reachability(work: Work) -> ev.Circuit:
    circuit = ev.Circuit()
    road = circuit.source("road", ROAD)
    loop = circuit.child("reach")
    step = loop.enter(road)
    reach, again = loop.feedback(ROAD)  # what the last iteration has found
    further = reach.join(step, on=("b", "a"), select=["left.a", "right.b"]).inspect(work.tried)
    found = (step + further).distinct().inspect(work.found)
    again(found)
    loop.leave(found).sink("reach", positive=True)
    return circuit


def by_search(roads: set[Edge]) -> ev.ZSet:
    """The same in plain Python, from scratch."""
    onward: dict[int, list[int]] = {}
    for a, b in roads:
        onward.setdefault(a, []).append(b)
    pairs: list[tuple[Edge, int]] = []
    for start in onward:
        seen, waiting = set[int](), [start]
        while waiting:
            for b in onward.get(waiting.pop(), ()):
                if b not in seen:
                    seen.add(b)
                    waiting.append(b)
        pairs += [((start, b), 1) for b in seen]
    return ev.ZSet.of(pairs)


class City:
    """The roads, the view of them, and a line for every tick."""

    def __init__(self) -> None:
        self.roads: set[Edge] = set()
        self.work = Work()
        self.run = ev.Embedded(reachability(self.work))
        figures = [Column(name, justify="right") for name in FIGURES]
        self.table = Table("tick", *figures, box=None, pad_edge=False)

    def tick(self, title: str, add: set[Edge], remove: set[Edge] = frozenset()) -> tuple[int, Work]:
        """Change the roads; how many pairs changed, and the work."""
        self.roads = (self.roads - remove) | add
        self.work.rows = self.work.iterations = 0
        changes = [(road, +1) for road in add] + [(road, -1) for road in remove]
        started = perf_counter()
        out = self.run.tick({"road": changes})["reach"]
        took = f"{1000 * (perf_counter() - started):.0f}"
        cells = len(changes), len(out), self.work.rows, self.work.iterations
        self.table.add_row(title, *(f"{n:,}" for n in cells), took)
        assert self.run.view("reach").contents().to_zset() == by_search(self.roads), title
        return len(out), Work(self.work.rows, self.work.iterations)


def ring(district: int) -> set[Edge]:
    first = district * SIZE
    return {(first + n, first + (n + 1) % SIZE) for n in range(SIZE)}


def main() -> None:
    city = City()
    pairs, load = city.tick("build every district", set().union(*map(ring, range(DISTRICTS))))
    assert pairs == DISTRICTS * SIZE * SIZE

    pairs, work = city.tick("a shortcut in a district", {(0, 12)})
    assert pairs == 0, "everybody is reached already, only sooner"
    assert work.rows > 0

    pairs, work = city.tick("a bridge between two districts", {(3, SIZE + 7)})
    assert pairs == SIZE * SIZE
    assert work.rows < load.rows / 10

    pairs, work = city.tick("a road of a ring is closed", set(), {(2 * SIZE, 2 * SIZE + 1)})
    assert pairs == SIZE * (SIZE + 1) // 2, "nobody drives in a circle any more, and half of the others are cut off"
    assert work.rows < load.rows / 10

    pairs, _ = city.tick("and opened elsewhere", {(2 * SIZE, 2 * SIZE + 2)})
    assert 0 < pairs < SIZE * SIZE

    pairs, _ = city.tick("the bridge is pulled down", set(), {(3, SIZE + 7)})
    assert pairs == SIZE * SIZE

    pairs, work = city.tick("nothing at all", set())
    assert (pairs, work.rows, work.iterations) == (0, 0, 0)

    Console().print(city.table)
    print(f"All {len(city.run.view('reach')):,} pairs agree with a search from scratch, after every tick.")


if __name__ == "__main__":
    main()
