"""Components: who is connected at all, and who can reach each other both ways.

- ``component``: connected components, by one loop. A node's label is the least node that reaches it when roads are
  taken in both directions.
- ``strong``: strongly connected components, by loops inside a loop. The inner ones label nodes along the roads; the
  outer one cuts the roads whose ends are labelled differently, until there is nothing left to cut.

Both are views over the same roads and follow the same ticks.
"""

from __future__ import annotations

import random

import everview as ev
from everview.circuit import Stream

Edge = tuple[int, int]
Groups = dict[int, int]  # the least member of the component of each node
ROAD = "a BIGINT NOT NULL, b BIGINT NOT NULL"
LABEL = "node BIGINT NOT NULL, label BIGINT NOT NULL"


def labelled(circuit: ev.Circuit, nodes: Stream, links: Stream) -> Stream:
    """Each node with the least node that reaches it along the links; a loop of its own, wherever it stands."""
    loop = circuit.child("label")
    label, again = loop.feedback(LABEL)
    own = loop.enter(nodes).select(node="node", label="node")
    spread = label.join(loop.enter(links), on=("node", "a"), select=["right.b as node", "left.label"])
    least = (own + spread).aggregate(["node"], label=("min", "label"))
    again(least)
    return loop.leave(least)


def turned(links: Stream) -> Stream:
    return links.select(a="b", b="a")


def alike(circuit: ev.Circuit, nodes: Stream, links: Stream) -> Stream:
    """The links whose ends have the same label."""
    labels = labelled(circuit, nodes, links)
    ends = links.join(labels, on=("a", "node"), select=["a", "b", "right.label as mine"])
    return ends.join(labels, on=[("b", "node"), ("mine", "label")], select=["a", "b"])


def components() -> ev.Circuit:
    circuit = ev.Circuit()
    road = circuit.source("road", ROAD)
    nodes = (road.select(node="a") + road.select(node="b")).distinct()

    labelled(circuit, nodes, road + turned(road)).sink("component")

    outer = circuit.child("trim")
    every, towns = outer.enter(road), outer.enter(nodes)
    # The state of the loop is what has been cut: it begins with nothing, and what is cut stays cut.
    cut, again = outer.feedback(ROAD)
    forwards = alike(outer, towns, every - cut)
    both_ways = turned(alike(outer, towns, turned(forwards)))
    gone = (every - both_ways).distinct()
    again(gone)
    inside = outer.leave(every - gone)
    labelled(circuit, nodes, inside).sink("strong")
    return circuit


# -- the same in plain Python


def reach(roads: set[Edge]) -> dict[int, set[int]]:
    """The nodes that can be reached from each node, itself included."""
    found = {node: {node} for road in roads for node in road}
    changed = True
    while changed:
        changed = False
        for a, b in roads:
            if not found[b] <= found[a]:
                found[a] |= found[b]
                changed = True
    return found


def by_reach(roads: set[Edge]) -> tuple[Groups, Groups]:
    around, forwards = reach(roads | {(b, a) for a, b in roads}), reach(roads)
    connected = {node: min(found) for node, found in around.items()}
    strong = {node: min(b for b in found if node in forwards[b]) for node, found in forwards.items()}
    return connected, strong


class Map:
    """Roads, their views, and what plain Python says of them."""

    def __init__(self) -> None:
        self.roads: set[Edge] = set()
        self.run = ev.Embedded(components())

    def tick(self, *, add: set[Edge] = frozenset(), remove: set[Edge] = frozenset()) -> dict[str, ev.ZSet]:
        self.roads = (self.roads - remove) | add
        changes = [(road, +1) for road in add] + [(road, -1) for road in remove]
        out = self.run.tick({"road": changes})
        assert (self.groups("component"), self.groups("strong")) == by_reach(self.roads)
        return {name: changes.to_zset() for name, changes in out.items()}

    def groups(self, view: str) -> Groups:
        return dict(self.run.view(view).rows())

    def show(self, title: str) -> None:
        print(title)
        for view in ("component", "strong"):
            members: dict[int, list[int]] = {}
            for node, label in sorted(self.groups(view).items()):
                members.setdefault(label, []).append(node)
            print(f"  {view:<10}", *members.values())


def by_hand() -> None:
    map_ = Map()
    map_.tick(add={(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (7, 8)})
    map_.show("A ring, a way to a pair, and two nodes apart")
    assert map_.groups("strong") == {1: 1, 2: 1, 3: 1, 4: 4, 5: 4, 7: 7, 8: 8}

    out = map_.tick(add={(5, 2)})
    map_.show("A way back makes one of ring and pair")
    assert out["component"] == ev.ZSet(), "they were connected before"
    assert out["strong"] == ev.ZSet({(4, 4): -1, (4, 1): 1, (5, 4): -1, (5, 1): 1})

    map_.tick(remove={(2, 3)})
    map_.show("Without the road from 2 to 3 nothing of it is left but the pair")
    assert map_.groups("strong") == {1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 7: 7, 8: 8}

    out = map_.tick(add={(2, 7)})
    assert out["component"] == ev.ZSet({(7, 7): -1, (7, 1): 1, (8, 7): -1, (8, 1): 1})

    map_.tick(remove={(3, 1), (3, 4), (5, 2)})
    map_.show("3 has no road left, and the rest, joined meanwhile, falls in two")
    assert map_.groups("component") == {1: 1, 2: 1, 4: 4, 5: 4, 7: 1, 8: 1}


def at_random(ticks: int = 25) -> None:
    chosen, map_ = random.Random(11), Map()
    changed = 0
    for _ in range(ticks):
        add = {(chosen.randrange(12), chosen.randrange(12)) for _ in range(chosen.randrange(4))} - map_.roads
        remove = {road for road in map_.roads if chosen.random() < 0.12}
        changed += sum(len(changes) for changes in map_.tick(add=add, remove=remove).values())
    print(f"{ticks} ticks of random roads, {changed} rows changed; both views agree with plain Python after each.")


if __name__ == "__main__":
    by_hand()
    at_random()
