"""Programs of the literature: where random facts come from, and what the views mean, in plain Python over sets."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from recursion.extremes import dijkstra, least_labels

Row = tuple[Any, ...]
Facts = Mapping[str, set[Row]]
Draw = Callable[[random.Random, int], Row]
FOLDER = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Program:
    """A file of rules; how to draw a row of every table, of so many different values; and what its views hold."""

    name: str
    draw: Mapping[str, Draw]
    meaning: Callable[[Facts], dict[str, set[Row]]]

    @cached_property
    def text(self) -> str:
        return (FOLDER / f"{self.name}.dl").read_text()

    def __str__(self) -> str:
        return self.name


def numbers(count: int) -> Draw:
    return lambda rng, n: tuple(rng.randrange(n) for _ in range(count))


def weighted(rng: random.Random, n: int) -> Row:
    return rng.randrange(n), rng.randrange(n), rng.randrange(5)


def closed(start: set[Row], step: Callable[[set[Row]], set[Row]]) -> set[Row]:
    """The least set that has the start and all that follows from it."""
    while not (more := step(start)) <= start:
        start = start | more
    return start


# -- meanings


def transitive_closure(of: Facts) -> dict[str, set[Row]]:
    edge = of["edge"]
    return {"path": closed(set(edge), lambda path: {(x, z) for x, y in path for w, z in edge if y == w})}


def same_generation(of: Facts) -> dict[str, set[Row]]:
    parent = of["parent"]
    siblings = {(x, y) for x, p in parent for y, q in parent if p == q and x != y}

    def cousins(same: set[Row]) -> set[Row]:
        return {(x, y) for x, a in parent for y, b in parent if (a, b) in same}

    return {"same": closed(siblings, cousins)}


def points_to(of: Facts) -> dict[str, set[Row]]:
    def onward(points: set[Row]) -> set[Row]:
        found = {(v, o) for v, w in of["assign"] for x, o in points if x == w}
        found |= {(v, o) for v, w in of["load"] for x, p in points if x == w for y, o in points if y == p}
        return found | {(p, o) for v, w in of["store"] for x, p in points if x == v for y, o in points if y == w}

    points = closed(set(of["new"]), onward)
    return {"points": points, "alias": {(v, w) for v, o in points for w, p in points if o == p and v < w}}


def dyck(of: Facts) -> dict[str, set[Row]]:
    def around(inner: set[Row]) -> set[Row]:
        pairs = {(x, w) for x, y, k in of["open"] for z, w, j in of["close"] if j == k and (y == z or (y, z) in inner)}
        return pairs | {(x, z) for x, y in inner for w, z in inner if y == w}

    return {"balanced": closed(set(), around)}


def ontology(of: Facts) -> dict[str, set[Row]]:
    classes = {c for pair in of["told"] for c in pair} | {c for a, _, b in of["has"] for c in (a, b)}

    def more(facts: set[Row]) -> set[Row]:
        is_, some = {f[1:] for f in facts if f[0] == "is"}, {f[1:] for f in facts if f[0] == "some"}
        found = {("is", x, d) for x, c in is_ for e, d in of["told"] if c == e}
        found |= {("is", x, c) for x, a in is_ for b, d, c in of["both"] if a == b and (x, d) in is_}
        found |= {("is", x, c) for x, r, y in some for s, b, c in of["having"] if r == s and (y, b) in is_}
        found |= {("some", x, r, b) for x, a in is_ for c, r, b in of["has"] if a == c}
        return found | {("some", x, s, b) for x, r, b in some for q, s in of["below"] if q == r}

    facts = closed({("is", c, c) for c in classes}, more)
    return {"is": {f[1:] for f in facts if f[0] == "is"}, "some": {f[1:] for f in facts if f[0] == "some"}}


def game(of: Facts) -> dict[str, set[Row]]:
    positions = {x for pair in of["move"] for x in pair}
    after = {x: {b for a, b in of["move"] if a == x} for x in positions}
    lost = {x for x in positions if not after[x]}
    for _ in range(2):
        won = {x for x in positions if after[x] & lost}
        lost = {x for x in positions if after[x] <= won}
    return {"lost4": {(x,) for x in lost}, "won5": {(x,) for x in positions if after[x] & lost}}


def bill_of_materials(of: Facts) -> dict[str, set[Row]]:
    needs = transitive_closure({"edge": of["part"]})["path"]
    bill: set[Row] = set()
    for whole in {w for w, _ in of["part"]}:
        pieces = {p for w, p in needs if w == whole}
        prices = [(p, c) for p, c in of["cost"] if p in pieces]
        if prices:
            bill.add((whole, len(pieces), sum(c for _, c in prices), max(c for _, c in prices)))
    priced = {p for p, _ in of["cost"]}
    return {"needs": needs, "bill": bill, "unpriced": {(w, p) for w, p in needs if p not in priced}}


def rdfs(of: Facts) -> dict[str, set[Row]]:
    def follows(known: set[Row]) -> set[Row]:
        by = {p: {(s, o) for s, q, o in known if q == p} for p in {p for _, p, _ in known}}
        found = {(x, "type", c) for p, c in by.get("domain", ()) for x, _ in by.get(p, ())}
        found |= {(y, "type", c) for p, c in by.get("range", ()) for _, y in by.get(p, ())}
        found |= {(x, q, y) for p, q in by.get("subPropertyOf", ()) for x, y in by.get(p, ())}
        found |= {(x, "type", d) for c, d in by.get("subClassOf", ()) for x, e in by.get("type", ()) if c == e}
        for order in ("subPropertyOf", "subClassOf"):
            pairs = by.get(order, set())
            found |= {(a, order, d) for a, b in pairs for c, d in pairs if b == c}
        return found

    return {"triple": closed(set(of["given"]), follows)}


def triple(rng: random.Random, n: int) -> Row:
    """Of few names, so that properties are talked about, too."""
    names = ["a", "b", "knows", "likes", "Person", "Thing"]
    said = rng.choice(["type", "subClassOf", "subPropertyOf", "domain", "range", "knows", "likes"])
    return rng.choice(names), said, rng.choice(names)


def components(of: Facts) -> dict[str, set[Row]]:
    labels = least_labels([(a, b, 0) for a, b in of["edge"]], ())
    return {"label": set(labels.items()), "components": {(len(set(labels.values())),)}}


def shortest_paths(of: Facts) -> dict[str, set[Row]]:
    return {"distance": set(dijkstra(sorted(of["edge"]), [x for (x,) in of["root"]]).items())}


PROGRAMS = (
    Program("transitive_closure", {"edge": numbers(2)}, transitive_closure),
    Program("same_generation", {"parent": numbers(2)}, same_generation),
    Program("points_to", dict.fromkeys(("new", "assign", "load", "store"), numbers(2)), points_to),
    Program("dyck", dict.fromkeys(("open", "close"), lambda rng, n: (*numbers(2)(rng, n), rng.randrange(2))), dyck),
    Program(
        "ontology",
        {**dict.fromkeys(("told", "below"), numbers(2)), **dict.fromkeys(("both", "has", "having"), numbers(3))},
        ontology,
    ),
    Program("game", {"move": numbers(2)}, game),
    Program("bill_of_materials", {"part": numbers(2), "cost": numbers(2)}, bill_of_materials),
    Program("rdfs", {"given": triple}, rdfs),
    Program("components", {"edge": numbers(2)}, components),
    Program("shortest_paths", {"edge": weighted, "root": numbers(1)}, shortest_paths),
)
