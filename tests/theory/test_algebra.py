"""The laws of times, frontiers and weights."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import SchemaError, WeightOverflow, WrongType
from everview.theory.algebra import AltNeu, Frontier, Time, alt, comparable, join_all, less_than, meet_all, neu, total
from everview.zset.weights import checked

times = st.builds(Time, st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))


@given(times, times, times)
def test_times_are_partially_ordered(a: Time, b: Time, c: Time) -> None:
    assert a <= a
    assert (a <= b and b <= a) == (a == b)
    if a <= b and b <= c:
        assert a <= c
    assert (a < b) == (a <= b and a != b) == less_than(a, b)
    assert (a >= b, a > b) == (b <= a, b < a)
    assert comparable(a, b) == (a <= b or a >= b)


@given(times, times)
def test_sorting_by_coordinates_extends_the_order(a: Time, b: Time) -> None:
    if a <= b:
        assert a.coordinates <= b.coordinates


@given(times, times, times)
def test_times_are_a_lattice(a: Time, b: Time, c: Time) -> None:
    assert a.join(b) == b.join(a)
    assert a.meet(b) == b.meet(a)
    assert a.join(b).join(c) == a.join(b.join(c)) == join_all(a, b, c)
    assert a.meet(b).meet(c) == a.meet(b.meet(c)) == meet_all(a, b, c)
    assert a.join(a) == a == a.meet(a)
    assert a.join(a.meet(b)) == a == a.meet(a.join(b))
    assert a.meet(b.join(c)) == a.meet(b).join(a.meet(c))
    assert (a <= b) == (a.join(b) == b) == (a.meet(b) == a)


@given(times, times, times)
def test_bounds_are_the_closest(a: Time, b: Time, c: Time) -> None:
    assert (a <= c and b <= c) == (a.join(b) <= c)
    assert (c <= a and c <= b) == (c <= a.meet(b))


@given(times)
def test_a_scope_is_left_as_it_was_entered(time: Time) -> None:
    assert time.enter().leave() == time
    assert time.enter().iterations == (*time.iterations, 0)
    assert time < time.next_iteration()
    assert time.enter().next_iteration().leave() == time


def test_the_order_of_the_notes() -> None:
    assert Time(0, 0) <= Time(0, 1) <= Time(1, 1)
    assert not comparable(Time(0, 2), Time(1, 1))
    assert not comparable(Time(1, 1), Time(2, 0))
    assert Time(0, 13).join(Time(11, 0)) == Time(11, 13)


def test_times_as_values() -> None:
    time = Time(3, 1)
    assert (time.epoch, time.iterations, list(time), len(time)) == (3, (1,), [3, 1], 2)
    assert len({time, Time(3, 1), Time(3)}) == 2
    assert pickle.loads(pickle.dumps(time)) == time


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Time(0) <= Time(0, 0),
        lambda: Time(0).join(Time(0, 0)),
        lambda: Time(0).leave(),
        lambda: Time(-1),
        lambda: Time(0, -1),
    ],
)
def test_mistakes_with_times(mistake) -> None:
    with pytest.raises(SchemaError):
        mistake()


moments = st.lists(st.builds(Time, st.integers(0, 5), st.integers(0, 5)), max_size=8)
everything = [Time(a, b) for a, b in product(range(6), range(6))]


@given(moments)
def test_a_frontier_is_an_antichain_with_the_same_future(inserted: list[Time]) -> None:
    frontier = Frontier.of(inserted)
    assert all(a == b or not comparable(a, b) for a, b in product(frontier, frontier))
    assert all(element in inserted for element in frontier)
    for time in everything:
        assert frontier.less_equal(time) == any(a <= time for a in inserted)
        assert frontier.less_than(time) == any(a < time for a in inserted)


@given(moments, st.randoms(use_true_random=False))
def test_a_frontier_does_not_depend_on_order(inserted: list[Time], rng) -> None:
    frontier = Frontier.of(inserted)
    shuffled = Frontier.of(rng.sample(inserted, len(inserted)))
    assert frontier == shuffled
    assert hash(frontier) == hash(shuffled)
    assert Frontier.of([*inserted, *inserted]) == frontier
    assert Frontier.of(frontier) == frontier


def test_dominated_moments_are_dropped() -> None:
    frontier = Frontier.of([Time(1, 1), Time(0, 2), Time(2, 2)])
    assert set(frontier) == {Time(1, 1), Time(0, 2)}
    assert list(frontier.insert(Time(0, 0))) == [Time(0, 0)]
    assert frontier.insert(Time(5, 5)) is frontier
    assert len(Frontier[Time]()) == 0
    assert not Frontier[Time]().less_equal(Time(9, 9))


def test_weights() -> None:
    assert checked(2**63 - 1) == 2**63 - 1
    assert checked(-(2**63)) == -(2**63)
    assert type(checked(np.int64(3))) is int
    assert total(0, range(5)) == 10
    for beyond in (2**63, -(2**63) - 1):
        with pytest.raises(WeightOverflow):
            checked(beyond)
    for no_integer in (1.0, "1", None):
        with pytest.raises(WrongType):
            checked(no_integer)


# -- two moments to every time

ordered = st.builds(Time, st.integers(0, 4))
partial = st.builds(Time, st.integers(0, 2), st.integers(0, 2))
Moment = AltNeu[Time]


def moments_of(of: st.SearchStrategy[Time]) -> st.SearchStrategy[tuple[Moment, Moment, Moment]]:
    return st.tuples(*[st.builds(AltNeu, of, st.booleans())] * 3)


@given(st.one_of(moments_of(ordered), moments_of(partial), moments_of(moments_of(partial).map(lambda ms: ms[0]))))
def test_moments_are_a_lattice_whatever_the_times(three: tuple[Moment, Moment, Moment]) -> None:
    a, b, c = three
    assert a <= a
    assert (a <= b and b <= a) == (a == b)
    assert not (a <= b and b <= c) or a <= c
    assert (a < b, a >= b, a > b) == (a <= b and a != b, b <= a, b < a)
    assert (a.join(b), a.meet(b)) == (b.join(a), b.meet(a))
    assert a.join(b).join(c) == a.join(b.join(c))
    assert a.meet(b).meet(c) == a.meet(b.meet(c))
    assert a.join(a) == a == a.meet(a)
    assert a.join(a.meet(b)) == a == a.meet(a.join(b))
    assert (a <= b) == (a.join(b) == b) == (a.meet(b) == a)
    assert (a <= c and b <= c) == (a.join(b) <= c)
    assert (c <= a and c <= b) == (c <= a.meet(b))


@given(moments_of(ordered))
def test_of_ordered_times_moments_are_ordered_and_distributive(three: tuple[Moment, Moment, Moment]) -> None:
    a, b, c = three
    assert comparable(a, b)
    assert a.meet(b.join(c)) == a.meet(b).join(a.meet(c))
    assert a.join(b.meet(c)) == a.join(b).meet(a.join(c))
    s, t = a.time, b.time
    assert alt(s).join(alt(t)) == alt(s.join(t))
    assert neu(s).join(neu(t)) == neu(s.join(t))
    assert alt(s).meet(alt(t)) == alt(s.meet(t))
    assert neu(s).meet(neu(t)) == neu(s.meet(t))


@given(partial, partial)
def test_alt_keeps_joins_and_neu_keeps_meets(s: Time, t: Time) -> None:
    """The other two ways hold for comparable times alone."""
    assert alt(s).join(alt(t)) == alt(s.join(t))
    assert neu(s).meet(neu(t)) == neu(s.meet(t))
    assert (neu(s).join(neu(t)) == neu(s.join(t))) == comparable(s, t)
    assert (alt(s).meet(alt(t)) == alt(s.meet(t))) == comparable(s, t)


def test_of_incomparable_times_moments_are_not_distributive() -> None:
    s, t = Time(0, 1), Time(1, 0)
    assert neu(s).meet(alt(s).join(alt(t))) == neu(s)
    assert neu(s).meet(alt(s)).join(neu(s).meet(alt(t))) == alt(s)


def test_moments_as_values() -> None:
    assert alt(Time(3)) < neu(Time(3)) < alt(Time(4))
    assert not comparable(neu(Time(0, 1)), alt(Time(1, 0)))
    assert neu(Time(3)).join(alt(Time(3))) == neu(Time(3))
    assert len({alt(Time(3)), AltNeu(Time(3)), neu(Time(3))}) == 2
    assert pickle.loads(pickle.dumps(neu(Time(3)))) == neu(Time(3))
    assert repr([alt(Time(3)), neu(Time(3, 1))]) == "[alt(Time(3)), neu(Time(3, 1))]"
