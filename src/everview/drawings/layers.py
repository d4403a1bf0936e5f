"""The layers of a graph: every arrow leads to a later layer, and neighbours stand near each other in theirs.

The method is Sugiyama's: arrows that close a cycle are turned, each node is put one layer after the last one before it,
an arrow over several layers gets a joint in each, and sweeps over the layers sort nodes by the mean place of their
neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

Edge = tuple[int, int]
SWEEPS: Final = 8


@dataclass
class Layers:
    """Nodes, and joints of long arrows with higher numbers, layer by layer, in their order within it."""

    layers: list[list[int]]
    joints: dict[Edge, list[int]] = field(default_factory=dict[Edge, list[int]])  # from the first layer to the last
    before: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    after: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def link(self, source: int, target: int) -> None:
        """Note that two nodes of neighbouring layers are joined."""
        self.after.setdefault(source, []).append(target)
        self.before.setdefault(target, []).append(source)


def layers_of(count: int, edges: Collection[Edge]) -> Layers:
    """The layers of a graph of so many nodes.

    >>> layers_of(4, [(0, 1), (1, 2), (0, 2), (2, 1), (3, 2)]).layers
    [[0], [1, 4, 3], [2]]
    """
    forward = list(dict.fromkeys(_forward(count, edges)))
    rank = _ranks(count, forward)
    drawn = Layers([[] for _ in range(max(rank, default=-1) + 1)])
    for node in range(count):
        drawn.layers[rank[node]].append(node)
    joint = count
    for source, target in forward:
        last = source
        steps = list[int]()
        for layer in range(rank[source] + 1, rank[target]):
            drawn.layers[layer].append(joint)
            drawn.link(last, joint)
            last = joint
            steps.append(joint)
            joint += 1
        drawn.link(last, target)
        drawn.joints[source, target] = steps
    _sort(drawn)
    return drawn


def _forward(count: int, edges: Collection[Edge]) -> Iterator[Edge]:
    """The arrows without self-loops, and with the backward arrow of each cycle reversed."""
    following: dict[int, list[int]] = {}
    for source, target in edges:
        if source != target:
            following.setdefault(source, []).append(target)
    done, open_ = set[int](), set[int]()
    for start in _starts_first(count, edges):
        waiting = [(start, iter(following.get(start, ())))] if start not in done else []
        open_.update(node for node, _ in waiting)
        while waiting:
            node, targets = waiting[-1]
            target = next(targets, None)
            if target is None:
                waiting.pop()
                open_.discard(node)
                done.add(node)
            elif target in open_:
                yield target, node
            else:
                yield node, target
                if target not in done:
                    open_.add(target)
                    waiting.append((target, iter(following.get(target, ()))))


def _starts_first(count: int, edges: Collection[Edge]) -> list[int]:
    """All nodes, those that nothing leads to before the others."""
    reached = {target for source, target in edges if source != target}
    return sorted(range(count), key=lambda node: (node in reached, node))


def _ranks(count: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of each node: after all its predecessors; a node without any stands close to its successors."""
    after: dict[int, list[int]] = {}
    waits = [0] * count
    for source, target in edges:
        after.setdefault(source, []).append(target)
        waits[target] += 1
    first = [node for node in range(count) if not waits[node]]
    rank, ready = [0] * count, list(first)
    while ready:
        node = ready.pop()
        for target in after.get(node, ()):
            rank[target] = max(rank[target], rank[node] + 1)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    for node in first:
        rank[node] = min((rank[target] for target in after.get(node, ())), default=1) - 1
    return rank


def _sort(drawn: Layers) -> None:
    """Sort each layer by its neighbours' places, forwards and backwards in turn."""
    for sweep in range(SWEEPS):
        backwards = sweep % 2 == 1
        neighbours = drawn.after if backwards else drawn.before
        layers = drawn.layers[::-1] if backwards else drawn.layers
        for fixed, layer in itertools.pairwise(layers):
            place = {node: float(place_in_layer) for place_in_layer, node in enumerate(fixed)}
            means = dict[int, float]()
            for place_in_layer, node in enumerate(layer):
                known = [place[other] for other in neighbours.get(node, ()) if other in place]
                means[node] = sum(known) / len(known) if known else float(place_in_layer)
            layer.sort(key=lambda node: means[node])
