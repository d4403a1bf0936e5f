"""Shortest paths: `min` inside the loop, and what happens when a road is closed.

Each iteration keeps the least time to each town and spreads it along one more road. When a road goes, towns beyond it
get longer times or none. None of them is fooled by neighbours that were themselves reached over the closed road: what
an iteration says rests on the iteration before, and the first one knows the start only.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

import everview as ev

Road = tuple[str, str, int]
ROADS: list[Road] = [
    ("Alm", "Birk", 4),
    ("Alm", "Cole", 1),
    ("Cole", "Birk", 2),
    ("Birk", "Dunn", 5),
    ("Dunn", "Esk", 3),
    ("Esk", "Dunn", 3),
    ("Cole", "Esk", 12),
]


def plus(town: pa.Array, so_far: pa.Array, minutes: pa.Array) -> tuple[pa.Array, pa.Array]:
    return town, pc.add(so_far, minutes)


def distances() -> ev.Circuit:
    circuit = ev.Circuit()
    road = circuit.source("road", "a STRING NOT NULL, b STRING NOT NULL, minutes BIGINT NOT NULL")
    start = circuit.source("start", "town STRING NOT NULL, minutes BIGINT NOT NULL")

    loop = circuit.child("distances")
    so_far, again = loop.feedback(start.schema)
    onward = so_far.join(
        loop.enter(road), on=("town", "a"), select=["right.b", "left.minutes as so_far", "right.minutes"]
    ).map(plus, start.schema)
    least = (loop.enter(start) + onward).aggregate(["town"], minutes=("min", "minutes"))
    again(least)

    far = loop.leave(least)
    far.sink("distance")
    far.top(1, "minutes desc").sink("farthest")  # a view of the recursive view
    return circuit


def dijkstra(start: str, roads: Iterable[Road]) -> dict[str, int]:
    """The same in plain Python, from scratch."""
    onward: dict[str, list[tuple[str, int]]] = {}
    for a, b, minutes in roads:
        onward.setdefault(a, []).append((b, minutes))
    found, waiting = dict[str, int](), [(0, start)]
    while waiting:
        so_far, town = heapq.heappop(waiting)
        if town not in found:
            found[town] = so_far
            for b, minutes in onward.get(town, ()):
                heapq.heappush(waiting, (so_far + minutes, b))
    return found


def tick(run: ev.Embedded, title: str, changes: dict[str, list[tuple[tuple[object, ...], int]]]) -> ev.ZSet:
    """Apply changes and show what they did to the distances."""
    out = run.tick(changes)["distance"].to_zset()
    print(title)
    for (town, minutes), weight in sorted(out, key=lambda change: (change[0][0], change[1])):
        print(f"  {'+' if weight > 0 else '-'} {town:<5} {minutes:>3} min")
    if not out:
        print("  nothing changes")
    return out


def by_hand() -> None:
    run = ev.Embedded(distances())
    tick(run, "All roads, from Alm", {"start": [(("Alm", 0), +1)], "road": [(road, +1) for road in ROADS]})
    assert dict(run.view("distance").rows()) == {"Alm": 0, "Cole": 1, "Birk": 3, "Dunn": 8, "Esk": 11}
    assert run.view("farthest").rows() == [("Esk", 11)]

    out = tick(run, "The road from Alm to Birk gets slower", {"road": [(ROADS[0], -1), (("Alm", "Birk", 9), +1)]})
    assert out == ev.ZSet(), "nobody takes it"

    out = tick(run, "Closed: Cole to Birk", {"road": [(("Cole", "Birk", 2), -1)]})
    assert out["Birk", 9] == 1, "the slow road, after all"
    assert out["Esk", 13] == 1, "the long road is shorter now"

    out = tick(run, "Closed: Alm to Birk", {"road": [(("Alm", "Birk", 9), -1)]})
    assert out == ev.ZSet({("Birk", 9): -1, ("Dunn", 14): -1, ("Dunn", 16): 1}), "Dunn from the other side"

    out = tick(run, "Closed: Cole to Esk", {"road": [(("Cole", "Esk", 12), -1)]})
    assert out == ev.ZSet({("Dunn", 16): -1, ("Esk", 13): -1}), "they still have each other, but nobody gets there"

    out = tick(run, "Start from Dunn as well", {"start": [(("Dunn", 0), +1)]})
    assert out == ev.ZSet({("Dunn", 0): 1, ("Esk", 3): 1})


def at_random(ticks: int = 60) -> None:
    """Roads that come, go and change: after every tick the view is what Dijkstra finds."""
    chosen, roads = random.Random(5), set[Road]()
    towns = [f"T{n}" for n in range(12)]
    run = ev.Embedded(distances())
    run.tick({"start": [(("T0", 0), +1)]})
    for _ in range(ticks):
        drawn = [(*chosen.choices(towns, k=2), chosen.randrange(1, 9)) for _ in range(chosen.randrange(6))]
        gone = {road for road in sorted(roads) if chosen.random() < 0.1}
        new = set(drawn) - roads
        run.tick({"road": [(road, -1) for road in gone] + [(road, +1) for road in new]})
        roads = (roads - gone) | new
        assert dict(run.view("distance").rows()) == dijkstra("T0", roads)
    print(f"{ticks} ticks of random roads agree with Dijkstra; {len(roads)} roads at the end.")


if __name__ == "__main__":
    by_hand()
    at_random()
