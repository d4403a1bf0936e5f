"""Recursion through the least or the greatest value of a group, as plans: shortest and widest paths, components.

Each has its meaning in plain Python beside it: Dijkstra's algorithm, its widest-path sister, and flood filling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Join, Project, Recursive, Reference, Scan, Union
from everview.plan.typing import call
from everview.scalars.expressions import AggregateCall, Column, Expression, Literal
from everview.types import BIGINT, Schema

EDGE = Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL, w BIGINT NOT NULL")
ROOT = Schema.parse("node BIGINT NOT NULL")
FOUND = Schema.parse("node BIGINT NOT NULL, value BIGINT NOT NULL")
WIDE = 1 << 40  # wider than any edge

Edges = Iterable[tuple[int, int, int]]
Found = dict[int, int]


def _extreme(function: str, rows: Plan) -> Plan:
    """The best value of each node."""
    node, value = rows.columns
    best = AggregateCall(function, (value,), False, None, (), BIGINT, False)
    return Aggregate(rows, (node,), (best,), ("node", "value"))


def _onward(known: Reference, value: Callable[[Expression, Expression], Expression]) -> Plan:
    """From a node that is known along an edge, with what the edge makes of the value."""
    edge = Scan("edge", EDGE)
    met = Join(known, edge, "inner", call("equal", known.column(0), Column(2, "a", BIGINT, False)))
    joined = met.columns
    return Project(met, (joined[3], value(joined[1], joined[4])), ("node", "value"))


def _from_root(value: int) -> Plan:
    root = Scan("root", ROOT)
    return Project(root, (root.column(0), Literal(value, BIGINT)), ("node", "value"))


def _fixed(function: str, start: Plan, step: Callable[[Reference], Plan]) -> Plan:
    known = Reference("best", FOUND)
    return Recursive((("best", _extreme(function, Union((start, step(known))))),), known)


def shortest() -> Plan:
    """How far each node is from a root."""
    return _fixed("min", _from_root(0), lambda known: _onward(known, lambda value, w: call("add", value, w)))


def widest() -> Plan:
    """How wide the widest path from a root is, at its narrowest edge."""
    return _fixed("max", _from_root(WIDE), lambda known: _onward(known, lambda value, w: call("least", value, w)))


def components() -> Plan:
    """The least node from which each can be reached, along or against the edges."""
    edge = Scan("edge", EDGE)
    a, b = edge.column(0), edge.column(1)
    zero = Literal(0, BIGINT)
    there, back = Project(edge, (a, b, zero), ("a", "b", "w")), Project(edge, (b, a, zero), ("a", "b", "w"))
    both = Union((there, back))
    start = Project(both, (both.column(0), both.column(0)), ("node", "value"))
    known = Reference("best", FOUND)
    met = Join(known, both, "inner", call("equal", known.column(0), Column(2, "a", BIGINT, False)))
    step = Project(met, (met.columns[3], met.columns[1]), ("node", "value"))
    return Recursive((("best", _extreme("min", Union((start, step)))),), known)


# -- what they mean


def dijkstra(edges: Edges, roots: Iterable[int]) -> Found:
    edges = list(edges)
    found, heap = Found(), [(0, root) for root in roots]
    while heap:
        far, node = heappop(heap)
        if node not in found:
            found[node] = far
            for _, b, w in (e for e in edges if e[0] == node):
                heappush(heap, (far + w, b))
    return found


def widest_paths(edges: Edges, roots: Iterable[int]) -> Found:
    edges = list(edges)
    found, heap = Found(), [(-WIDE, root) for root in roots]
    while heap:
        width, node = heappop(heap)
        if node not in found:
            found[node] = -width
            for _, b, w in (e for e in edges if e[0] == node):
                heappush(heap, (-min(-width, w), b))
    return found


def least_labels(edges: Edges, roots: Iterable[int]) -> Found:
    edges = list(edges)
    beside: dict[int, set[int]] = {}
    for a, b, _ in edges:
        beside.setdefault(a, set()).add(b)
        beside.setdefault(b, set()).add(a)
    found: Found = {}
    for start in sorted(beside):
        waiting = [] if start in found else [start]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found[node] = start
                waiting += beside[node]
    return found


@dataclass(frozen=True)
class Case:
    name: str
    plan: Plan
    meaning: Callable[[Edges, Iterable[int]], Found]


CASES = (
    Case("shortest paths", shortest(), dijkstra),
    Case("widest paths", widest(), widest_paths),
    Case("components", components(), least_labels),
)
