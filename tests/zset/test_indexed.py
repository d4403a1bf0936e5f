"""Indexed Z-sets and result tries."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import SchemaError, WeightOverflow
from everview.zset import IndexedZSet, ZSet

keys = st.integers(0, 3)
weights = st.integers(-2, 2)


def tries(depth: int) -> st.SearchStrategy[IndexedZSet]:
    return st.lists(st.tuples(st.tuples(*[keys] * depth), weights), max_size=12).map(IndexedZSet.of)


@given(tries(3), tries(3), tries(3))
def test_indexed_z_sets_are_a_commutative_group(a: IndexedZSet, b: IndexedZSet, c: IndexedZSet) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + IndexedZSet() == a
    assert a + -a == IndexedZSet()
    assert (a + b) - b == a
    assert a * 3 == a + a + a
    assert hash(a + b) == hash(b + a)
    assert pickle.loads(pickle.dumps(a)) == a


@given(tries(3), tries(3))
def test_a_trie_is_its_paths(a: IndexedZSet, b: IndexedZSet) -> None:
    assert IndexedZSet.of(a) == a
    assert a.flatten() + b.flatten() == (a + b).flatten()
    assert [path for path, _ in a] == sorted(path for path, _ in a)
    assert len(a) == len(list(a)) == len(a.flatten())
    assert a.keys() == [key for key, _ in a.as_zset_view()]
    assert all(a[key] for key in a.keys())  # noqa: SIM118


@given(tries(3), st.lists(keys, max_size=2))
def test_a_prefix_leads_to_the_paths_that_have_it(a: IndexedZSet, prefix: list[int]) -> None:
    below = a.get_by_prefix(prefix)
    entries = [(path, w) if isinstance(below, IndexedZSet) else ((path,), w) for path, w in below]
    assert entries == [(path[len(prefix) :], w) for path, w in a if path[: len(prefix)] == tuple(prefix)]


@given(tries(2), tries(2), tries(2))
def test_joins_are_bilinear(a: IndexedZSet, b: IndexedZSet, c: IndexedZSet) -> None:
    def pair(key: int, left: int, right: int) -> tuple[int, int, int]:
        return key, left, right

    assert (a + b).join(c, pair) == a.join(c, pair) + b.join(c, pair)
    assert c.join(a + b, pair) == c.join(a, pair) + c.join(b, pair)


@given(tries(2), tries(2))
def test_extending_leaves_is_linear_if_the_extension_is(a: IndexedZSet, b: IndexedZSet) -> None:
    def successors(path: tuple[int, ...], weight: int) -> ZSet:
        return ZSet({path[-1] + 1: weight, path[0]: 2 * weight})

    assert (a + b).extend_leaves(successors) == a.extend_leaves(successors) + b.extend_leaves(successors)


def test_extending_a_z_set_twice() -> None:
    first = ZSet({"a": 2}).extend_leaves(lambda prefix, weight: ZSet({prefix[0] + "b": weight, "c": 1}))
    second = first.extend_leaves(lambda prefix, weight: ZSet({len(prefix): weight}) if weight > 1 else ZSet())
    assert first == IndexedZSet({"a": {"ab": 2, "c": 1}})
    assert second == IndexedZSet({"a": {"ab": {2: 2}}})
    assert second.depth == 3


def test_a_prefix_of_weight_zero_is_not_an_absent_prefix() -> None:
    a = IndexedZSet({"hub": {"x": 1, "y": -1}})
    assert a.as_zset_view() == ZSet({"hub": 1})
    assert (a + IndexedZSet({"hub": {"x": -1, "y": 1}})).as_zset_view() == ZSet()


def test_keys_are_told_apart_by_type() -> None:
    a = IndexedZSet.of([((1, "x"), 1), ((True, "x"), 1), ((1.0, "x"), 1)])
    assert len(a.keys()) == 3
    assert a.get_by_prefix((True,)) == ZSet({"x": 1})


def test_index_with_of_the_notes() -> None:
    edges = ZSet({(0, 1, 1): 1, (1, 2, 1): 1, (1, 3, 2): -1})
    indexed = edges.index_with(lambda edge: edge[0])
    assert list(indexed) == [((0, (0, 1, 1)), 1), ((1, (1, 2, 1)), 1), ((1, (1, 3, 2)), -1)]


def test_joins_of_deeper_tries_pair_the_rests_of_paths() -> None:
    a = IndexedZSet({"k": {"x": {1: 2}}})
    b = IndexedZSet({"k": {"v": 3}})
    assert a.join(b, lambda key, left, right: (key, left, right)) == ZSet({("k", ("x", 1), "v"): 6})


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: IndexedZSet({"a": 1}),
        lambda: IndexedZSet({"a": {"b": 1}, "c": {"d": {"e": 1}}}),
        lambda: IndexedZSet.of([((), 1)]),
        lambda: IndexedZSet({"a": {"b": 1}}) + IndexedZSet({"a": {"b": {"c": 1}}}),
        lambda: IndexedZSet({"a": {"b": 1}}).get_by_prefix(("a", "b")),
        lambda: IndexedZSet({"a": {"b": 1}}).get_by_prefix(("z", "b")),
    ],
)
def test_mistakes(mistake) -> None:
    with pytest.raises(SchemaError):
        mistake()


def test_weights_are_checked() -> None:
    with pytest.raises(WeightOverflow):
        IndexedZSet({"a": {"b": 2**62}}) * 2
    with pytest.raises(WeightOverflow):
        IndexedZSet({"a": {"b": 2**62}}).join(IndexedZSet({"a": {"b": 4}}), lambda *values: values)


def test_frozen_and_displayed() -> None:
    a = IndexedZSet({"<a>": {"b": {"c": 1}}})
    with pytest.raises(AttributeError):
        a._children = {}
    assert "&lt;a&gt;" in a._repr_html_()
    assert "<th>key 2</th>" in a._repr_html_()
    assert repr(IndexedZSet()) == "IndexedZSet({})"
