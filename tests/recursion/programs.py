"""Recursive programs as circuits, each with its meaning in plain Python and a generator of input rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from everview.circuit import Circuit, Stream
from everview.multiway import Atom, join
from everview.operators.functions import Function

Row = tuple[Any, ...]
Facts = dict[str, set[Row]]
EDGE = "a BIGINT NOT NULL, b BIGINT NOT NULL"


@dataclass(frozen=True)
class Program:
    """A circuit to build, what its views hold for given facts, and where random facts come from."""

    name: str
    build: Callable[[], Circuit]
    meaning: Callable[[Facts], dict[str, set[Row]]]
    draw: dict[str, Callable[[random.Random, int], Row]]


def fixed_point(start: set[Row], step: Callable[[set[Row]], set[Row]]) -> set[Row]:
    while True:
        following = step(start)
        if following == start:
            return start
        start = following


def pair(rng: random.Random, n: int) -> Row:
    return rng.randrange(n), rng.randrange(n)


def node(rng: random.Random, n: int) -> Row:
    return (rng.randrange(n),)


# -- transitive closure


def closure() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    loop = circuit.child("closure")
    inner = loop.enter(edge)
    path, again = loop.feedback(EDGE)
    paths = (inner + path.join(inner, ("b", "a"), select=["left.a", "right.b"])).distinct()
    again(paths)
    loop.leave(paths).sink("path")
    return circuit


def closure_of(edges: set[Row]) -> set[Row]:
    return fixed_point(set(edges), lambda p: p | {(a, d) for a, b in p for c, d in edges if b == c})


def nonlinear_closure() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    loop = circuit.child("closure")
    path, again = loop.feedback(EDGE)
    paths = (loop.enter(edge) + path.join(path, ("b", "a"), select=["left.a", "right.b"])).distinct()
    again(paths)
    loop.leave(paths).sink("path")
    return circuit


# -- same generation


def same_generation() -> Circuit:
    circuit = Circuit()
    parent = circuit.source("parent", "child BIGINT NOT NULL, parent BIGINT NOT NULL")
    siblings = parent.join(parent, "parent", select=["left.child as a", "right.child as b"])
    loop = circuit.child("generation")
    up = loop.enter(parent)
    same, again = loop.feedback(EDGE)
    cousins = same.join(up, ("a", "parent"), select=["left.b", "right.child as x"])
    cousins = cousins.join(up, ("b", "parent"), select=["left.x as a", "right.child as b"])
    generation = (loop.enter(siblings) + cousins).distinct()
    again(generation)
    loop.leave(generation).sink("same")
    return circuit


def same_generation_of(facts: Facts) -> dict[str, set[Row]]:
    parent = facts["parent"]
    siblings = {(a, b) for a, p in parent for b, q in parent if p == q}

    def step(same: set[Row]) -> set[Row]:
        return siblings | {(a, b) for x, y in same for a, p in parent for b, q in parent if (p, q) == (x, y)}

    return {"same": fixed_point(siblings, step)}


# -- connected components: the least label that reaches a node


def components() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    both = edge + edge.select(a="b", b="a")
    nodes = both.select(node="a", label="a").distinct()
    loop = circuit.child("components")
    links, start = loop.enter(both), loop.enter(nodes)
    label, again = loop.feedback("node BIGINT NOT NULL, label BIGINT NOT NULL")
    spread = label.join(links, ("node", "a"), select=["right.b as node", "left.label"])
    least = (start + spread).aggregate(["node"], label=("min", "label"))
    again(least)
    loop.leave(least).sink("component")
    return circuit


def components_of(facts: Facts) -> dict[str, set[Row]]:
    both = facts["edge"] | {(b, a) for a, b in facts["edge"]}
    label = {a: a for a, _ in both}
    changed = True
    while changed:
        changed = False
        for a, b in both:
            if label[a] < label[b]:
                label[b], changed = label[a], True
    return {"component": set(label.items())}


# -- shortest paths from node 0, by min in the loop


def shortest_paths() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE + ", cost BIGINT NOT NULL")
    root = circuit.source("root", "node BIGINT NOT NULL, cost BIGINT NOT NULL")
    loop = circuit.child("distances")
    links, start = loop.enter(edge), loop.enter(root)
    far, again = loop.feedback(root.schema)
    onward = far.join(links, ("node", "a"), select=["right.b as node", "left.cost as so_far", "right.cost"])
    onward = onward.map(_add_costs, root.schema)
    least = (start + onward).aggregate(["node"], cost=("min", "cost"))
    again(least)
    loop.leave(least).sink("distance")
    return circuit


def _add_costs(node: Any, so_far: Any, cost: Any) -> Any:
    import pyarrow.compute as pc

    return node, pc.add(so_far, cost)


def shortest_paths_of(facts: Facts) -> dict[str, set[Row]]:
    far: dict[int, int] = {}
    waiting = list(facts["root"])
    while waiting:
        at, cost = waiting.pop()
        if at not in far or cost < far[at]:
            far[at] = cost
            waiting += [(b, cost + c) for a, b, c in facts["edge"] if a == at]
    return {"distance": set(far.items())}


# -- mutual recursion: paths of even and odd length


def even_and_odd() -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    loop = circuit.child("parity")
    inner = loop.enter(edge)
    even, even_again = loop.feedback(EDGE)
    odd, odd_again = loop.feedback(EDGE)
    odds = (inner + even.join(inner, ("b", "a"), select=["left.a", "right.b"])).distinct()
    evens = odd.join(inner, ("b", "a"), select=["left.a", "right.b"]).distinct()
    even_again(evens)
    odd_again(odds)
    loop.leave(odds).sink("odd")
    loop.leave(evens).sink("even")
    return circuit


def even_and_odd_of(facts: Facts) -> dict[str, set[Row]]:
    edges = facts["edge"]
    odd, even = set(edges), set[Row]()
    while True:
        more_even = {(a, d) for a, b in odd for c, d in edges if b == c}
        more_odd = edges | {(a, d) for a, b in even for c, d in edges if b == c}
        if (more_even, more_odd) == (even, odd):
            return {"odd": odd, "even": even}
        even, odd = more_even, more_odd


# -- Andersen's points-to analysis


def points_to() -> Circuit:
    circuit = Circuit()
    names = ("new", "assign", "load", "store")
    facts = {name: circuit.source(name, "x BIGINT NOT NULL, y BIGINT NOT NULL") for name in names}
    loop = circuit.child("points to")
    new, assign, load, store = (loop.enter(facts[name]) for name in names)
    points, again = loop.feedback(new.schema)
    copied = assign.join(points, ("y", "x"), select=["left.x", "right.y"])
    # x = *y: whatever the targets of y point to;  *x = y: the targets of x point to whatever y does
    loaded = load.join(points, ("y", "x"), select=["left.x", "right.y as t"])
    loaded = loaded.join(points, ("t", "x"), select=["left.x", "right.y"])
    stored = store.join(points, ("y", "x"), select=["left.x", "right.y as v"])
    stored = stored.join(points, ("x", "x"), select=["right.y as x", "left.v as y"])
    found = new.plus(copied, loaded, stored).distinct()
    again(found)
    loop.leave(found).sink("points_to")
    return circuit


def points_to_of(facts: Facts) -> dict[str, set[Row]]:
    def step(points: set[Row]) -> set[Row]:
        copied = {(x, t) for x, y in facts["assign"] for z, t in points if y == z}
        loaded = {(x, v) for x, y in facts["load"] for z, t in points for u, v in points if y == z and t == u}
        stored = {(t, v) for x, y in facts["store"] for z, t in points for u, v in points if x == z and y == u}
        return facts["new"] | copied | loaded | stored

    return {"points_to": fixed_point(set(facts["new"]), step)}


# -- strongly connected components: recursion inside recursion


def strong_components() -> Circuit:
    """Keep the edges inside a component: again and again those whose ends share a label, forwards and backwards.

    The outer loop trims edges; each of its steps labels nodes by the least node that reaches them, along the edges that
    are left and against them.
    """
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    outer = circuit.child("trim")
    every = outer.enter(edge)
    # The loop's state is the edges that were cut: it starts empty, and what is cut stays cut.
    cut, again = outer.feedback(EDGE)
    left = every - cut
    forwards = _same_label(outer, left)
    backwards = _same_label(outer, forwards.select(a="b", b="a")).select(a="b", b="a")
    gone = (every - backwards).distinct()
    again(gone)
    kept = outer.leave(every - gone)
    kept.distinct().sink("inside")
    return circuit


def _same_label(circuit: Circuit, edges: Stream) -> Stream:
    """The edges whose ends are labelled alike, where a node's label is the least node that reaches it."""
    nodes = (edges.select(node="a") + edges.select(node="b")).distinct()
    loop = circuit.child("label")
    links = loop.enter(edges)
    start = loop.enter(nodes).select(node="node", label="node")
    label, again = loop.feedback("node BIGINT NOT NULL, label BIGINT NOT NULL")
    spread = label.join(links, ("node", "a"), select=["right.b as node", "left.label"])
    least = (start + spread).aggregate(["node"], label=("min", "label"))
    again(least)
    labels = loop.leave(least)
    ends = edges.join(labels, ("a", "node"), select=["left.a", "left.b", "right.label as mine"])
    return ends.join(labels, [("b", "node"), ("mine", "label")], select=["left.a", "left.b"])


def strong_components_of(facts: Facts) -> dict[str, set[Row]]:
    edges = facts["edge"]
    reaches = closure_of(edges)
    return {"inside": {(a, b) for a, b in edges if a == b or (b, a) in reaches}}


# -- k-core: peel nodes of small degree until none is left


def core(k: int = 2) -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    both = (edge + edge.select(a="b", b="a")).distinct()
    loop = circuit.child("peel")
    every = loop.enter(both)
    # The state is the nodes peeled so far: it only grows.
    peeled, again = loop.feedback("node BIGINT NOT NULL")
    left = every.antijoin(peeled, ("a", "node")).antijoin(peeled, ("b", "node"))
    at_least = Function(f"at least {k}", lambda a, n: _at_least(n, k), "columns")
    strong = left.aggregate(["a"], n="count").filter(at_least)
    gone = every.select(node="a").distinct() - strong.select(node="a")
    again(gone)
    loop.leave(every.antijoin(gone, ("a", "node")).antijoin(gone, ("b", "node"))).sink("core")
    return circuit


def _at_least(n: Any, k: int) -> Any:
    import pyarrow.compute as pc

    return pc.greater_equal(n, k)


def core_of(facts: Facts, k: int = 2) -> dict[str, set[Row]]:
    left = facts["edge"] | {(b, a) for a, b in facts["edge"]}
    while True:
        degree: dict[int, int] = {}
        for a, _ in left:
            degree[a] = degree.get(a, 0) + 1
        kept = {(a, b) for a, b in left if degree[a] >= k and degree.get(b, 0) >= k}
        if kept == left:
            return {"core": kept}
        left = kept


# -- k-truss: what is left when edges in too few triangles go, again and again


def truss(k: int = 3) -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    both = (edge + edge.select(a="b", b="a")).distinct()
    loop = circuit.child("peel")
    every = loop.enter(both)
    gone, again = loop.feedback(EDGE)  # the edges peeled so far: they only grow
    left = every - gone
    triangles = join([Atom(left, ("a", "b")), Atom(left, ("b", "c")), Atom(left, ("c", "a"))], select=("a", "b"))
    strong = triangles.aggregate(["a", "b"], n="count").filter(Function(f"{k - 2}", _support(k), "columns"))
    peeled = every - strong.select("a", "b")
    again(peeled)
    loop.leave(every - peeled).sink("truss")
    return circuit


def _support(k: int) -> Callable[..., Any]:
    return lambda a, b, n: _at_least(n, k - 2)


def truss_of(facts: Facts, k: int = 3) -> dict[str, set[Row]]:
    left = facts["edge"] | {(b, a) for a, b in facts["edge"]}
    nodes = {a for a, _ in left}
    while True:
        kept = {(a, b) for a, b in left if sum((b, c) in left and (c, a) in left for c in nodes) >= k - 2}
        if kept == left:
            return {"truss": kept}
        left = kept


# -- points-to again, each rule one multiway join


def multiway_points_to() -> Circuit:
    circuit = Circuit()
    sources = {name: circuit.source(name, EDGE) for name in ("new", "assign", "load", "store")}
    loop = circuit.child("points to")
    inner = {name: loop.enter(source) for name, source in sources.items()}
    points, again = loop.feedback(EDGE)
    assigned = join([Atom(inner["assign"], ("x", "y")), Atom(points, ("y", "o"))], select=("x", "o"))
    loaded = join(
        [
            *(Atom(inner["load"], ("x", "y")), Atom(points, ("y", "p")), Atom(inner["store"], ("z", "w"))),
            *(Atom(points, ("z", "p")), Atom(points, ("w", "o"))),
        ],
        select=("x", "o"),
    )
    found = inner["new"].plus(assigned.select(a="x", b="o"), loaded.select(a="x", b="o")).distinct()
    again(found)
    loop.leave(found).sink("points")
    return circuit


def multiway_points_to_of(facts: Facts) -> dict[str, set[Row]]:
    def step(points: set[Row]) -> set[Row]:
        assigned = {(x, o) for x, y in facts["assign"] for v, o in points if v == y}
        loaded = {
            (x, o)
            for x, y in facts["load"]
            for z, w in facts["store"]
            if any((y, p) in points for q, p in points if q == z)
            for v, o in points
            if v == w
        }
        return points | assigned | loaded

    return {"points": fixed_point(set(facts["new"]), step)}


def weighted(rng: random.Random, n: int) -> Row:
    return rng.randrange(n), rng.randrange(n), rng.randrange(1, 5)


def rooted(rng: random.Random, n: int) -> Row:
    return rng.randrange(n), 0


def parent(rng: random.Random, n: int) -> Row:
    child = rng.randrange(1, n + 1)
    return child, rng.randrange(child)


PROGRAMS = (
    Program("closure", closure, lambda f: {"path": closure_of(f["edge"])}, {"edge": pair}),
    Program("non-linear closure", nonlinear_closure, lambda f: {"path": closure_of(f["edge"])}, {"edge": pair}),
    Program("same generation", same_generation, same_generation_of, {"parent": parent}),
    Program("components", components, components_of, {"edge": pair}),
    Program("shortest paths", shortest_paths, shortest_paths_of, {"edge": weighted, "root": rooted}),
    Program("even and odd", even_and_odd, even_and_odd_of, {"edge": pair}),
    Program("points to", points_to, points_to_of, dict.fromkeys(("new", "assign", "load", "store"), pair)),
    Program("strong components", strong_components, strong_components_of, {"edge": pair}),
    Program("2-core", core, core_of, {"edge": pair}),
    Program("3-truss", truss, truss_of, {"edge": pair}),
    Program(
        "points to, multiway",
        multiway_points_to,
        multiway_points_to_of,
        dict.fromkeys(("new", "assign", "load", "store"), pair),
    ),
)
