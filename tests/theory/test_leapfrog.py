"""Leapfrog: its iterators, its order, and both of its descents against exhaustive search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import SchemaError, WeightOverflow, WrongType
from everview.kernels.leapfrog import Walk
from everview.multiway import Leapfrog, Pattern, Scan, SortedKeys, Variable, common_keys, natural_order, variables
from everview.types import Id, Symbol, register_atom
from everview.zset import IndexedZSet, ZSet
from theory.queries import ARITIES, WORDS, And, State, Tick, answers, applied, joins, streams, ticks

A, B, C = ORDER = variables("a b c")
TRIANGLE = Pattern("E", A, B), Pattern("E", A, C), Pattern("E", B, C)
Join = tuple[list[Pattern], tuple[Variable, ...]]
Bindings = list[tuple[tuple[Any, ...], int]]


# -- the order of keys


@dataclass(frozen=True)
class Shade:
    level: int


ASCENDING = [
    False, True, -3, 1, 2**70, -math.inf, -1.5, -0.0, 1.0, math.nan, "", "Z", "a", "é", "\uffff", "😀",
    Symbol("A"), Symbol("a"), Id(b"\x00"), Id("a"), Id(b"\xff"),
]  # fmt: skip


@given(st.permutations(ASCENDING))
def test_the_natural_order_of_keys(keys: list[Any]) -> None:
    iterator = SortedKeys(keys)
    for expected in ASCENDING:
        iterator.seek_ge(expected)
        assert natural_order(iterator.key()) == natural_order(expected)
        assert type(iterator.key()) is type(expected)
        iterator.next()
    assert iterator.at_end()


@given(st.lists(st.text()))
def test_strings_are_ordered_by_their_bytes(texts: list[str]) -> None:
    by_bytes = sorted(texts, key=lambda text: text.encode("utf-8", "surrogatepass"))
    assert sorted(texts, key=natural_order) == by_bytes


def test_one_integer_float_and_boolean_are_three_keys_and_zero_is_one() -> None:
    keys = [SortedKeys([True, 0.0, math.nan]), SortedKeys([1, -0.0, 1.0, math.nan])]
    assert [repr(key) for key in common_keys(keys)] in (["0.0", "nan"], ["-0.0", "nan"])


def test_a_registered_type_is_ordered_by_its_bytes() -> None:
    register_atom("SHADE", Shade, lambda s: bytes([255 - s.level]), lambda raw: Shade(255 - raw[0]))
    assert sorted([Shade(1), "x", Shade(2), Id("a")], key=natural_order) == ["x", Id("a"), Shade(2), Shade(1)]


def test_another_order_may_be_fixed() -> None:
    join = Leapfrog(
        [Scan(Pattern("R", A), [(1,), (3,)]), Scan(Pattern("S", A), [(3,), (2,), (1,)])], (A,), key=lambda k: -k
    )
    assert list(join.enumerate()) == [((3,), 1), ((1,), 1)]


# -- iterators


def test_an_iterator_that_ended_stays_at_its_end() -> None:
    keys = SortedKeys([1])
    keys.seek_ge(0)
    assert (keys.key(), keys.at_end()) == (1, False)
    keys.next()
    keys.seek_ge(0)
    keys.next()
    assert keys.at_end()
    with pytest.raises(SchemaError, match="no key at the end"):
        keys.key()


@given(st.lists(st.sets(st.integers(0, 12)), min_size=1, max_size=4))
def test_common_keys_are_the_intersection(sets: list[set[int]]) -> None:
    assert list(common_keys([SortedKeys(keys) for keys in sets])) == sorted(set.intersection(*sets))


def test_the_largest_key_after_one_round_is_not_yet_common() -> None:
    assert list(common_keys([SortedKeys([1, 5]), SortedKeys([2, 6])])) == []
    assert list(common_keys([SortedKeys([1, 5]), SortedKeys([])])) == []


def test_iterators_of_an_atom_under_a_prefix() -> None:
    join = Leapfrog([Scan(Pattern("A", A, B), [(1, 2)]), Scan(Pattern("B", B, C), [(2, 9), (2, 3), (4, 5)])], ORDER)
    keys = join.make_iter(1, 2, (2,))
    found = []
    while not keys.at_end():
        found.append(keys.key())
        keys.next()
    assert found == [3, 9]
    assert join.make_iter(1, 2, (7,)).at_end()
    with pytest.raises(SchemaError, match="level 0"):
        join.make_iter(1, 0, ())


# -- all bindings


def held(ticks: list[Tick]) -> tuple[State, dict[str, ZSet]]:
    state: State = {}
    relations = {name: ZSet() for name in ARITIES}
    for tick in ticks:
        state = applied(state, tick)
        relations |= {name: relations[name] + rows for name, rows in tick.items()}
    return state, relations


def in_words(rows: ZSet, arity: int) -> np.ndarray[Any, Any]:
    return np.array([[*row, weight] for row, weight in rows], np.int64).reshape(-1, arity + 1)


def checked(found: Bindings, order: tuple[Variable, ...]) -> ZSet:
    """What was found, once each and in order."""
    places = [tuple(map(natural_order, binding)) for binding, _ in found]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    assert all(len(binding) == len(order) for binding, _ in found)
    return ZSet.of(found)


@given(joins(), streams())
def test_enumeration_finds_every_binding_once_in_order(query: Join, stream: list[Tick]) -> None:
    patterns, order = query
    state, relations = held(stream)
    join = Leapfrog([Scan(pattern, relations[pattern.relation]) for pattern in patterns], order)
    assert checked(list(join.enumerate()), order) == answers(And(tuple(patterns)), order, state)


@given(joins(WORDS), streams(WORDS))
def test_the_compiled_walk_finds_the_same(query: Join, stream: list[Tick]) -> None:
    patterns, order = query
    state, relations = held(stream)
    words = {name: in_words(rows, ARITIES[name]) for name, rows in relations.items()}
    join = Leapfrog([Scan(pattern, words[pattern.relation]) for pattern in patterns], order)
    expected = answers(And(tuple(patterns)), order, state, WORDS)
    assert checked(list(join.enumerate()), order) == expected
    assert join.count() == len(expected) == sum(len(matrix) for matrix in join.matrices())


def test_rows_may_come_as_tuples_as_a_trie_or_as_words() -> None:
    edges = [(2, 3), (1, 3), (1, 2)]
    forms: list[Any] = [
        edges,
        ZSet(dict.fromkeys(edges, 1)),
        IndexedZSet({1: {2: 1, 3: 1}, 2: {3: 1}}),
        np.array([[2, 3, 2], [1, 3, 1], [1, 2, 1], [2, 3, -1]]),
    ]
    for form in forms:
        assert list(Leapfrog([Scan(p, form) for p in TRIANGLE], ORDER).enumerate()) == [((1, 2, 3), 1)]
    mixed = [Scan(pattern, form) for pattern, form in zip(TRIANGLE, forms[1:], strict=True)]
    assert list(Leapfrog(mixed, ORDER).enumerate()) == [((1, 2, 3), 1)]


# -- what one tuple completes


def test_a_tuple_whose_variables_are_no_prefix_of_the_order() -> None:
    scans = [Scan(Pattern("A", A, B), [(1, 2), (4, 2), (5, 6)]), Scan(Pattern("B", B, C), [])]
    assert list(Leapfrog(scans, ORDER).probe(1, (2, 3))) == [((1, 2, 3), 1), ((4, 2, 3), 1)]


@pytest.mark.parametrize("values", [None, WORDS], ids=["values", "words"])
@given(data=st.data())
def test_probes_sequenced_by_atom_add_up_to_the_change(values: tuple[Any, ...] | None, data: st.DataObject) -> None:
    domain = {} if values is None else {"values": values}
    patterns, order = data.draw(joins(**domain))
    before_state, before = held(data.draw(streams(**domain)))
    tick = data.draw(ticks(**domain))
    after = {name: rows + tick.get(name, ZSet()) for name, rows in before.items()}

    def scan(atom: int, state: dict[str, ZSet]) -> Scan:
        rows = state[patterns[atom].relation]
        return Scan(patterns[atom], rows if values is None else in_words(rows, ARITIES[patterns[atom].relation]))

    change: Bindings = []
    for i, pattern in enumerate(patterns):
        join = Leapfrog([scan(j, after if j < i else before) for j in range(len(patterns))], order)
        for row, weight in tick.get(pattern.relation, ZSet()):
            change += [(binding, weight * found) for binding, found in join.probe(i, row)]
    query = And(tuple(patterns))
    expected = answers(query, order, applied(before_state, tick), **domain) - answers(
        query, order, before_state, **domain
    )
    assert ZSet.of(change) == expected


# -- compiled, in known numbers


def edges(pairs: Any) -> np.ndarray[Any, Any]:
    """A sorted batch of the pairs, smaller end first."""
    return np.array([[*pair, 1] for pair in sorted({tuple(sorted(pair)) for pair in pairs})], np.int64)


GRAPHS: dict[str, tuple[Any, int]] = {
    "complete": (combinations(range(100), 2), 161_700),
    "bipartite": (product(range(100), range(100, 200)), 0),
    "star": (product([0], range(1, 1000)), 0),
    "star and ring": ({*product([0], range(1, 1000)), *((i, (i + 1) % 1000) for i in range(1000))}, 998),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_triangles_of_known_graphs(graph: str) -> None:
    pairs, expected = GRAPHS[graph]
    batch = edges(pairs)
    join = Leapfrog([Scan(pattern, batch) for pattern in TRIANGLE], ORDER)
    assert join.count() == expected
    found = np.concatenate([*join.matrices(), np.empty((0, 4), np.int64)])
    assert len(found) == len(np.unique(found, axis=0)) == expected
    assert (found[:, 3] == 1).all()


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_a_walk_goes_on_where_it_stopped(most: int) -> None:
    batch = edges(combinations(range(9), 2))
    walk = Walk.over([batch, batch, batch], [(0, 1), (0, 2), (1, 2)], 3)
    portions = []
    while len(portion := walk.bindings(most)):
        assert len(portion) <= most
        portions += portion[:, :3].tolist()
    assert portions == [list(triple) for triple in combinations(range(9), 3)]
    assert walk.count() == 0


def test_weights_are_multiplied_and_checked() -> None:
    heavy = np.array([[1, 2**31]])
    scans = [Scan(Pattern("R", A), heavy), Scan(Pattern("R", B), np.array([[4, -(2**31)]]))]
    assert list(Leapfrog(scans, (A, B)).enumerate()) == [((1, 4), -(2**62))]
    too_heavy = Leapfrog([*scans, Scan(Pattern("R", C), heavy)], ORDER)
    with pytest.raises(WeightOverflow):
        list(too_heavy.enumerate())
    values = [Scan(Pattern("R", v), ZSet({(1,): 2**31})) for v in ORDER]
    with pytest.raises(WeightOverflow):
        list(Leapfrog(values, ORDER).enumerate())


def test_what_does_not_fit_is_refused() -> None:
    words = Leapfrog([Scan(Pattern("E", A, B), np.array([[1, 2, 1]]))], (A, B))
    with pytest.raises(WrongType, match="words"):
        list(words.probe(0, ("x", 2)))
    with pytest.raises(SchemaError, match="matrix"):
        list(words.probe(0, (1, 2, 3)))
    with pytest.raises(SchemaError, match="no atom"):
        Leapfrog([Scan(Pattern("E", A, B), [])], ORDER)
    with pytest.raises(SchemaError, match="does not bind"):
        Leapfrog([Scan(Pattern("E", A, B), [])], (A,))
    with pytest.raises(SchemaError, match="batches"):
        Leapfrog([Scan(Pattern("E", A, B), [])], (A, B)).matrices()
