"""The words of a multiway join: extenders, indexes, connectives, each held to its law and to exhaustive search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import SchemaError
from everview.multiway import (
    AndIndex,
    Arranged,
    IncrementalGenericJoin,
    IncrementalIndex,
    NotIndex,
    OrIndex,
    Pattern,
    PatternIndex,
    Variable,
    ZSetExtender,
    variables,
)
from everview.zset import IndexedZSet, ZSet
from theory.queries import (
    VALUES,
    VARIABLES,
    WEIGHTS,
    And,
    Not,
    Or,
    Query,
    State,
    Tick,
    answers,
    applied,
    composed,
    positive,
    streams,
)

A, B, C = ORDER = variables("a b c")
ROWS = st.lists(st.tuples(st.tuples(*[st.sampled_from(VALUES)] * 3), st.sampled_from(WEIGHTS)), max_size=8).map(ZSet.of)
EXTENSIONS = st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(WEIGHTS))).map(ZSet.of)


def index(query: Query, order: Sequence[Variable]) -> IncrementalIndex:
    match query:
        case Pattern():
            return PatternIndex(query, order)
        case And(parts):
            return AndIndex(*(index(part, order) for part in parts))
        case Or(parts):
            return OrIndex(*(index(part, order) for part in parts))
        case Not(part):
            return NotIndex(index(part, order))


# -- extenders


@given(ROWS, st.permutations(range(4)), EXTENSIONS, st.tuples(*[st.sampled_from(VALUES)] * 4))
def test_the_laws_of_an_extender(rows: ZSet, order: list[int], extensions: ZSet, bound: tuple[object, ...]) -> None:
    levels = (0, 2, 3)
    extender = Arranged(levels, rows).along(order)
    for place, level in enumerate(order):
        if level not in levels:
            continue
        prefix = bound[:place]
        proposed = extender.propose(prefix)
        assert extender.count(prefix) == len(proposed)
        assert extender.intersect(prefix, extensions) == extensions.equi_join(proposed)


@given(ROWS)
def test_a_relation_weighs_once_whatever_the_order_of_its_variables(rows: ZSet) -> None:
    for order in permutations(range(3)):
        extender = Arranged((0, 1, 2), rows).along(order)
        found = extender.propose(()).extend_leaves(lambda prefix, weight, e=extender: e.propose(prefix) * weight)
        trie = found.extend_leaves(lambda prefix, weight, e=extender: e.propose(prefix) * weight)
        by_level = ((tuple(path[order.index(level)] for level in range(3)), weight) for path, weight in trie)
        assert ZSet.of(by_level) == rows


@given(ROWS, ROWS)
def test_a_sum_of_states_is_the_state_of_the_sum(rows: ZSet, more: ZSet) -> None:
    before, change = Arranged((0, 1, 2), rows), Arranged((0, 1, 2), more)
    before.along((2, 0, 1))  # a trie that the sum takes over
    for order in ((2, 0, 1), (0, 1, 2)):
        one, two = (before + change).along(order), Arranged((0, 1, 2), rows + more).along(order)
        for value in VALUES:
            assert one.propose(()) == two.propose(())
            assert one.propose((value,)) == two.propose((value,))
            assert one.propose((value, value)) == two.propose((value, value))


def test_keys_whose_weights_cancel_are_proposed() -> None:
    extender = ZSetExtender(IndexedZSet({"a": {1: 1, 2: -1}}))
    assert extender.propose(()) == ZSet({"a": 1})
    assert extender.intersect((), ZSet({"a": 5, "b": 1})) == ZSet({"a": 5})


def test_an_extender_refuses_levels_that_are_not_its_own() -> None:
    with pytest.raises(SchemaError, match="participates_in_level"):
        Arranged((1, 2), ZSet({(1, 2): 1})).propose(())


# -- indexes


def test_an_index_shows_the_old_the_change_and_the_new() -> None:
    edges = PatternIndex(Pattern("E", A, B), ORDER)
    for delta, old, new in [({1: 1}, {}, {1: 1}), ({1: -1, 2: 2}, {1: 1}, {2: 2}), ({}, {2: 2}, {2: 2})]:
        edges.receive_delta({"E": ZSet({("x", value): weight for value, weight in delta.items()})})
        assert edges.delta.propose(("x",)) == ZSet(delta)
        assert edges.accumulated.propose(("x",)) == ZSet(old)
        assert edges.updated.propose(("x",)) == ZSet(new)
        edges.commit()
    edges.commit()
    assert edges.accumulated.propose(("x",)) == ZSet({2: 2})


def test_a_delta_that_is_not_committed_is_forgotten() -> None:
    edges = PatternIndex(Pattern("E", A, B), ORDER)
    edges.receive_delta({"E": ZSet({(1, 2): 1})})
    edges.receive_delta({"E": ZSet({(1, 3): 1})})
    edges.commit()
    assert edges.accumulated.propose((1,)) == ZSet({3: 1})


def test_constants_and_repeated_variables_select() -> None:
    loops = PatternIndex(Pattern("T", B, "x", B), ORDER)
    rows = [((1, "x", 1), 3), ((1, "x", True), 1), ((1, "y", 1), 1), ((2, "x", 2), -1)]
    loops.receive_delta({"T": ZSet.of(rows)})
    assert loops.levels == (1,)
    assert loops.delta.propose(("anything",)) == ZSet({1: 3, 2: -1})


# -- connectives


@given(st.sampled_from([VARIABLES[:n] for n in (1, 2, 3)]).flatmap(positive), streams())
def test_the_delta_of_a_composed_index_is_its_change(query: Query, stream: list[Tick]) -> None:
    order = tuple(sorted(_variables(query), key=lambda v: v.name))
    composite = index(query, order)
    state: State = {}
    for tick in stream:
        before, state = state, applied(state, tick)
        composite.receive_delta(tick)
        assert composite.delta.tuples == answers(query, order, state) - answers(query, order, before)
        composite.commit()
        assert composite.delta.tuples == ZSet()


@given(composed(), streams())
def test_joins_of_composed_indexes(query: tuple[list[Query], tuple[Variable, ...]], stream: list[Tick]) -> None:
    parts, order = query
    join = IncrementalGenericJoin([index(part, order) for part in parts], len(order))
    state: State = {}
    held = ZSet()
    for tick in stream:
        state = applied(state, tick)
        held += join.join(tick)
        assert held == answers(And(tuple(parts)), order, state)


def test_deleting_one_of_two_alternatives_deletes_nothing() -> None:
    either = index(Or((Pattern("R", A), Pattern("S", A))), (A,))
    join = IncrementalGenericJoin([either], 1)
    assert join.join({"R": ZSet({(1,): 1}), "S": ZSet({(1,): 2})}) == ZSet({(1,): 1})
    assert join.join({"R": ZSet({(1,): -1})}) == ZSet()
    assert join.join({"S": ZSet({(1,): -1})}) == ZSet()
    assert join.join({"S": ZSet({(1,): -1})}) == ZSet({(1,): -1})


def test_open_wedges() -> None:
    wedges = [Pattern("E", A, B), Pattern("E", B, C), Not(Pattern("E", A, C))]
    join = IncrementalGenericJoin([index(part, ORDER) for part in wedges], 3)
    assert join.join({"E": ZSet({(1, 2): 1, (2, 3): 1})}) == ZSet({(1, 2, 3): 1})
    assert join.join({"E": ZSet({(1, 3): 1})}) == ZSet({(1, 2, 3): -1})
    assert join.join({"E": ZSet({(1, 3): -1, (2, 4): 1})}) == ZSet({(1, 2, 3): 1, (1, 2, 4): 1})


def test_what_cannot_be_composed_is_refused() -> None:
    r, s = (PatternIndex(Pattern("R", *terms), ORDER) for terms in ((A, B), (B, C)))
    with pytest.raises(SchemaError, match="other alternatives"):
        OrIndex(r, s)
    with pytest.raises(SchemaError, match="negation"):
        OrIndex(NotIndex(r))
    with pytest.raises(SchemaError, match="negation"):
        NotIndex(NotIndex(r))
    with pytest.raises(SchemaError, match="proposes"):
        AndIndex(NotIndex(r), s)
    with pytest.raises(SchemaError, match="cannot propose"):
        NotIndex(r).accumulated.propose(())


def _variables(query: Query) -> set[Variable]:
    match query:
        case Pattern():
            return set(query.variables)
        case Not(part):
            return _variables(part)
        case And(parts) | Or(parts):
            return {variable for part in parts for variable in _variables(part)}
