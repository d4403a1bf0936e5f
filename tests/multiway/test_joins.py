"""Multiway joins of streams: known answers, exhaustive search, what is kept, and bounded memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.circuit import Circuit, incrementalize
from everview.circuit.incrementalize import explain
from everview.errors import CircuitError, EverviewError, SchemaError, WrongArity
from everview.multiway import Atom, Is, Statistics, join
from everview.operators import extending, multijoin
from everview.runtimes.embedded import Embedded
from everview.zset import ZSet

Edge = tuple[int, int]
EDGE = "src BIGINT NOT NULL, dst BIGINT NOT NULL"
Shape = Sequence[tuple[Any, ...]]

SHAPES: dict[str, Shape] = {
    "triangle": (("a", "b"), ("b", "c"), ("a", "c")),
    "four-cycle": (("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")),
    "4-clique": (("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")),
    "5-clique": tuple(combinations("abcde", 2)),
    "bow-tie": (("a", "b"), ("b", "c"), ("a", "c"), ("a", "d"), ("d", "e"), ("a", "e")),
    "lollipop": (("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e")),
    "path to a constant": (("a", "b"), ("b", "c"), ("c", Is(3))),
    "path from a loop": (("a", "a"), ("a", "b"), ("b", None)),
    "two parts": (("a", "b"), ("b", "a"), ("c", "d")),
    "given": (("a", "b"), (Is(1), Is(2))),
}


def query(shape: Shape, **options: Any) -> Circuit:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    join([Atom(edge, terms) for terms in shape], **options).sink("found")
    return circuit


def count(edges: Iterable[Edge], shape: Shape = SHAPES["triangle"]) -> int:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    join([Atom(edge, terms) for terms in shape], select=()).aggregate(n="count").sink("n")
    rows = np.array(sorted(edges), np.int64)
    run = Embedded(circuit)
    run.tick({"edge": pa.table({"src": rows[:, 0], "dst": rows[:, 1]})})
    return dict(run.view("n").contents().to_zset()).popitem()[0][0] if len(run.view("n")) else 0


def searched(edges: Counter[Edge], shape: Shape) -> ZSet:
    """Every combination of edges, one for each atom, that agrees on all variables."""
    names = list(dict.fromkeys(term for terms in shape for term in terms if isinstance(term, str)))
    found: list[tuple[dict[str, int], int]] = [({}, 1)]
    for terms in shape:
        found = [
            (bound, v * w)
            for before, v in found
            for edge, w in edges.items()
            if (bound := _bound(before, terms, edge)) is not None
        ]
    return ZSet.of([(tuple(bound[name] for name in names), w) for bound, w in found])


def _bound(before: dict[str, int], terms: Sequence[Any], edge: Edge) -> dict[str, int] | None:
    bound = dict(before)
    for term, value in zip(terms, edge, strict=True):
        if isinstance(term, Is) and term.value != value:
            return None
        if isinstance(term, str) and bound.setdefault(term, value) != value:
            return None
    return bound


def ordered(edges: Iterable[Edge]) -> set[Edge]:
    return {(min(edge), max(edge)) for edge in edges}


# -- known answers


def test_triangles_of_a_complete_graph() -> None:
    assert count(combinations(range(100), 2)) == 161_700


def test_a_bipartite_graph_has_none() -> None:
    assert count(product(range(100), range(100, 200))) == 0


def test_a_star_has_none() -> None:
    assert count((0, i) for i in range(1, 1000)) == 0


def test_a_star_and_a_ring() -> None:
    star, ring = {(0, i) for i in range(1, 1000)}, {(i, (i + 1) % 1000) for i in range(1000)}
    assert count(ordered(star | ring)) == 998


@pytest.mark.parametrize(("shape", "n", "expected"), [("4-clique", 20, 4845), ("5-clique", 15, 3003)])
def test_cliques_of_a_complete_graph(shape: str, n: int, expected: int) -> None:
    assert count(combinations(range(n), 2), SHAPES[shape]) == expected


# -- exhaustive search


def churn(rng: random.Random, nodes: int, ticks: int, weights: Sequence[int]) -> Iterator[list[tuple[Edge, int]]]:
    for _ in range(ticks):
        size = rng.choice([0, 1, 1, 2, 5, 12])
        yield [((rng.randrange(nodes), rng.randrange(nodes)), rng.choice(weights)) for _ in range(size)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shards", [1, 3])
def test_every_tick_agrees_with_exhaustive_search(shape: str, shards: int) -> None:
    rng = random.Random(shape)
    nodes = 4 if len(SHAPES[shape]) > 4 else 5
    run, edges = Embedded(query(SHAPES[shape]), shards=shards), Counter[Edge]()
    for tick in churn(rng, nodes, 12, [1, 1, 2, -1, 3]):
        run.tick({"edge": tick})
        for edge, weight in tick:
            edges[edge] += weight
        held = Counter({edge: w for edge, w in edges.items() if w})
        if len(held) ** len(SHAPES[shape]) < 10**9:
            assert run.view("found").contents().to_zset() == searched(held, SHAPES[shape])


@pytest.mark.parametrize("order", [None, *map("".join, [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])])
def test_an_order_that_is_asked_for_changes_nothing(order: str | None) -> None:
    rng = random.Random(order)
    shape = SHAPES["triangle"]
    run, edges = Embedded(query(shape, order=order and list(order))), Counter[Edge]()
    for tick in churn(rng, 6, 10, [1, 1, -1]):
        run.tick({"edge": tick})
        for edge, weight in tick:
            edges[edge] += weight
        assert run.view("found").contents().to_zset() == searched(edges, shape)


@pytest.mark.parametrize("last", [(1, 2), (2, 3), (1, 3)])
def test_one_edge_closes_a_triangle_and_opens_it(last: Edge) -> None:
    """Whichever atom the edge is of: a level in which nothing has changed must not end the search."""
    run = Embedded(query(SHAPES["triangle"]))
    run.tick({"edge": [(edge, 1) for edge in {(1, 2), (2, 3), (1, 3)} - {last}]})
    assert run.tick({"edge": [(last, 1)]})["found"].to_zset() == ZSet({(1, 2, 3): 1})
    assert run.tick({"edge": [(last, -1)]})["found"].to_zset() == ZSet({(1, 2, 3): -1})


def test_three_edges_of_one_tick_are_one_triangle() -> None:
    run = Embedded(query(SHAPES["triangle"]))
    assert run.tick({"edge": [((1, 2), 1), ((2, 3), 1), ((1, 3), 1)]})["found"].to_zset() == ZSet({(1, 2, 3): 1})


def test_weights_multiply_once_a_relation() -> None:
    run = Embedded(query(SHAPES["triangle"]))
    run.tick({"edge": [((1, 2), 2), ((2, 3), -1), ((1, 3), 3)]})
    assert run.view("found").contents().to_zset() == ZSet({(1, 2, 3): -6})


def test_a_prefix_whose_weights_cancel_is_not_absent() -> None:
    """(1, 2) and (1, 3) weigh nothing together; both still bind."""
    run = Embedded(query((("a", "b"), ("a", "c"))))
    run.tick({"edge": [((1, 2), 1), ((1, 3), -1)]})
    assert run.view("found").contents().to_zset() == ZSet({(1, 2, 2): 1, (1, 2, 3): -1, (1, 3, 2): -1, (1, 3, 3): 1})


RELATIONS = "a BIGINT, b STRING", "b STRING NOT NULL, c DECIMAL(24, 2)", "c DECIMAL(20, 2), a BIGINT NOT NULL"


@given(seed=st.integers(0, 2**32), shards=st.sampled_from([1, 4]))
@settings(max_examples=15)
def test_columns_of_several_words_and_types(seed: int, shards: int) -> None:
    """NULL, text, and decimals of two words: variables are wider than a word, and types meet in a common one."""
    rng = random.Random(seed)
    circuit = Circuit()
    streams = [circuit.source(f"r{i}", schema) for i, schema in enumerate(RELATIONS)]
    join([Atom(s, tuple(s.schema.names)) for s in streams]).sink("found")
    run = Embedded(circuit, shards=shards)
    values = {"a": [None, 0, 1, -7], "b": ["", "x", "yy"], "c": [None, "1.00", "-2.50", "99999999999999999.99"]}
    held: list[Counter[tuple[Any, ...]]] = [Counter() for _ in streams]
    for _ in range(5):
        tick: dict[str, list[Any]] = {}
        for i, stream in enumerate(streams):
            for _ in range(rng.randrange(6)):
                row = tuple(
                    rng.choice([v for v in values[f.name] if f.nullable or v is not None]) for f in stream.schema.fields
                )
                weight = rng.choice([1, 1, 2, -1])
                tick.setdefault(f"r{i}", []).append((row, weight))
                held[i][row] += weight
        run.tick(tick)
        expected = Counter[tuple[Any, ...]]()
        for (a, b), u in held[0].items():
            for (b2, c), v in held[1].items():
                for (c2, a2), w in held[2].items():
                    if (a, b, c) == (a2, b2, c2):
                        expected[a, b, c] += u * v * w
        found = {(a, b, None if c is None else str(c)): w for (a, b, c), w in run.view("found").contents().to_zset()}
        assert found == {row: w for row, w in expected.items() if w}


def test_one_atom() -> None:
    run = Embedded(query((("x", "x"),), select=("x",)))
    run.tick({"edge": [((1, 2), 1), ((3, 3), 2)]})
    assert run.view("found").contents().to_zset() == ZSet({(3,): 2})
    run = Embedded(query((("y", "x"),), select=("x", "y")))
    run.tick({"edge": [((1, 2), 1)]})
    assert run.view("found").contents().to_zset() == ZSet({(2, 1): 1})


def test_a_variable_three_times_in_an_atom() -> None:
    circuit = Circuit()
    r = circuit.source("r", "a BIGINT NOT NULL, b BIGINT NOT NULL, c BIGINT")
    join([Atom(r, ("x", "x", "x")), Atom(r, ("x", None, "y"))]).sink("found")
    run = Embedded(circuit)
    run.tick({"r": [((1, 1, 1), 1), ((2, 2, None), 1), ((1, 3, 4), 2)]})
    assert run.view("found").contents().to_zset() == ZSet({(1, 1): 1, (1, 4): 2})


# -- what is kept


def test_only_indexes_of_the_inputs_are_kept() -> None:
    """Two sorted copies of the edges serve all three atoms; the view keeps its contents, and nothing else is kept."""
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    shape = SHAPES["triangle"]
    join([Atom(edge, terms) for terms in shape], select=()).aggregate(n="count").sink("n", keep=False)
    run = Embedded(circuit)
    edges = list(combinations(range(30), 2))
    run.tick({"edge": [(e, 1) for e in edges]})
    sizes = sorted(len(trace.before) for trace, _, _ in run.state)
    assert sizes[-2:] == [len(edges), len(edges)]
    assert sum(sizes[:-2]) <= 1  # the count
    run.tick({"edge": [(e, -1) for e in edges]})
    assert all(len(trace.before.consolidated()) == 0 for trace, _, _ in run.state)


def test_indexes_that_are_there_are_shared() -> None:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    edge.join(edge, ("dst", "src"), select=["left.src", "right.dst"]).sink("two steps", keep=False)
    before = sum(line.split()[1].startswith("Arrange") for line in str(incrementalize(circuit)).splitlines())
    join([Atom(edge, terms) for terms in SHAPES["4-clique"]]).sink("cliques", keep=False)
    after = sum(line.split()[1].startswith("Arrange") for line in str(incrementalize(circuit)).splitlines())
    assert (before, after) == (2, 2)


# -- bounded memory


@pytest.mark.parametrize("shards", [1, 3])
def test_an_enormous_tick_works_in_slices(shards: int) -> None:
    """However small the slices and however few proposals at once, a hub's included, nothing is lost or doubled."""
    rng = random.Random(0)
    edges = ordered((0, i) for i in range(1, 200)) | ordered(
        (rng.randrange(200), rng.randrange(200)) for _ in range(2000)
    )
    edges = {(a, b) for a, b in edges if a != b}
    expected = Embedded(query(SHAPES["4-clique"]))
    whole = expected.tick({"edge": [(e, 1) for e in sorted(edges)]})["found"].to_zset()
    assert len(whole) > 100
    seen: list[int] = []
    extended = extending.Extending._extended

    def watched(self: Any, prefixes: Any, spots: Any, level: Any, capacity: int, **options: Any) -> Any:
        seen.append(capacity)
        return extended(self, prefixes, spots, level, capacity, **options)

    with (
        patch.multiple(extending, SLICE=7, MOST=50, HEAVY=8),
        patch.object(extending.Extending, "_extended", watched),
        patch.multiple(multijoin, MOST=50, HEAVY=8, FEW=100, AT_ONCE=50),
    ):
        run = Embedded(query(SHAPES["4-clique"]), shards=shards)
        assert run.tick({"edge": [(e, 1) for e in sorted(edges)]})["found"].to_zset() == whole
        assert run.tick({"edge": [(e, -1) for e in sorted(edges)]})["found"].to_zset() == -whole
    assert max(seen) <= 50


# -- mistakes


def test_mistakes() -> None:
    circuit = Circuit()
    edge = circuit.source("edge", EDGE)
    named = circuit.source("named", "id BIGINT NOT NULL, name STRING")
    with pytest.raises(CircuitError, match="no atoms"):
        join([])
    with pytest.raises(WrongArity, match="atom 2 has 3 terms for 2 columns"):
        join([Atom(edge, ("a", "b")), Atom(edge, ("a", "b", "c"))])
    with pytest.raises(SchemaError, match="variable b"):
        join([Atom(edge, ("a", "b")), Atom(named, ("a", "b"))])
    with pytest.raises(EverviewError, match='variable "z"'):
        join([Atom(edge, ("a", "b"))], select=("z",))
    with pytest.raises(SchemaError, match="does not name each variable once"):
        join([Atom(edge, ("a", "b")), Atom(edge, ("b", "c"))], order=("a", "b"))
    with pytest.raises(EverviewError, match='variable "z"'):
        join([Atom(edge, ("a", "b")), Atom(edge, ("b", "c"))], order=("a", "b", "z"))
    with pytest.raises(EverviewError, match="BIGINT"):
        join([Atom(edge, ("a", Is("many")))])
    other = Circuit().source("edge", EDGE)
    with pytest.raises(CircuitError, match="another circuit"):
        join([Atom(edge, ("a", "b")), Atom(other, ("b", "c"))])


def test_a_weight_that_leaves_64_bits_fails_the_tick() -> None:
    run = Embedded(query((("a", "b"), ("b", "c"))))
    run.tick({"edge": [((1, 2), 1)]})
    with pytest.raises(EverviewError, match="64 bits"):
        run.tick({"edge": [((3, 4), 1 << 40), ((4, 5), 1 << 40)]})
    assert len(run.view("found").contents()) == 0
    assert run.tick({"edge": [((2, 9), 1)]})["found"].to_zset() == ZSet({(1, 2, 9): 1})


# -- choosing


def test_the_order_follows_what_is_known_of_the_relations() -> None:
    """From a row of r, c is bound before d if few values of c go with b, and d before c if few values of d do."""

    def bound(few: str) -> str:
        circuit = Circuit()
        r = circuit.source("r", "a BIGINT NOT NULL, b BIGINT NOT NULL")
        s = circuit.source("s", "b BIGINT NOT NULL, c BIGINT NOT NULL")
        t = circuit.source("t", "b BIGINT NOT NULL, d BIGINT NOT NULL")
        u = circuit.source("u", "c BIGINT NOT NULL, d BIGINT NOT NULL")
        thin, fat = Statistics(1e5, (1e5, 1e5)), Statistics(1e7, (1e3, 1e5))
        atoms = [
            Atom(r, ("a", "b"), thin),
            Atom(s, ("b", "c"), thin if few == "c" else fat),
            Atom(t, ("b", "d"), thin if few == "d" else fat),
            Atom(u, ("c", "d"), fat),
        ]
        join(atoms).sink("found")
        return next(line for line in explain(circuit).splitlines() if "change of atom 1 (a, b)" in line)

    assert "binds c, d;" in bound("c")
    assert "binds d, c;" in bound("d")


def test_reasons_are_told() -> None:
    circuit = query(SHAPES["triangle"])
    told = explain(circuit)
    assert "change of atom 1 (a, b): binds c; about 10 proposals a row, of relations not seen yet; 1 new index" in told
    assert "change of atom 3 (a, c): binds b" in told
    assert "indexes that are there" in told
    assert "the order that was asked for" in explain(query(SHAPES["triangle"], order=("b", "a", "c")))


def test_statistics_of_a_relation() -> None:
    run = Embedded(query((("a", "b"), ("b", "c"))))
    run.tick({"edge": [((1, 2), 1), ((1, 3), 2), ((1, 4), 1), ((2, 4), 1)]})
    circuit = Circuit()
    circuit.source("edge", EDGE).sink("edges")
    edges = Embedded(circuit)
    edges.tick({"edge": [((1, 2), 1), ((1, 3), 2), ((1, 4), 1), ((2, 4), 1)]})
    assert Statistics.of(edges.view("edges").contents()) == Statistics(4, (2, 3), (3, 2))
