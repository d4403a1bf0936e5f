"""Timed Z-sets and the reference trace."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import SchemaError
from everview.theory.algebra import Time
from everview.zset import NO_VALUE, IndexedZSet, ReferenceTrace, TimedZSet, ZSet

times = st.builds(Time, st.integers(0, 3), st.integers(0, 3))
weights = st.integers(-2, 2)
triples = st.lists(st.tuples(st.integers(0, 4), times, weights), max_size=12)
timed = triples.map(TimedZSet.of)
changes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), times, weights), max_size=12)


@given(timed, timed, timed)
def test_timed_z_sets_are_a_commutative_group(a: TimedZSet, b: TimedZSet, c: TimedZSet) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + TimedZSet() == a
    assert a + -a == TimedZSet()
    assert (a + b) - b == a
    assert hash(a + b) == hash(b + a)
    assert pickle.loads(pickle.dumps(a)) == a


@given(triples, times)
def test_a_collection_is_the_sum_of_its_changes(changes, time: Time) -> None:
    a = TimedZSet.of(changes)
    assert a.at(time) == ZSet.of((e, w) for e, t, w in changes if t == time)
    assert a.up_to(time) == ZSet.of((e, w) for e, t, w in changes if t <= time)
    assert a.consolidate() == ZSet.of((e, w) for e, _, w in changes) == a.up_to((3, 3))


@given(timed)
def test_triples_come_by_element_then_by_time(a: TimedZSet) -> None:
    listed = [(element, time.coordinates) for element, time, _ in a]
    assert listed == sorted(set(listed))
    assert len(a) == len(listed)
    assert a.times() == sorted({time for _, time, _ in a}, key=lambda time: time.coordinates)


@given(timed, times)
def test_operators_are_lifted_to_every_moment(a: TimedZSet, time: Time) -> None:
    assert a.lift(ZSet.distinct).at(time) == a.at(time).distinct()
    assert a.map(lambda x: x // 2).at(time) == a.at(time).map(lambda x: x // 2)
    assert a.filter(lambda x: x > 1).at(time) == a.at(time).filter(lambda x: x > 1)
    assert (-a).at(time) == -a.at(time)


def test_index_with_of_the_notes_keeps_times() -> None:
    edges = TimedZSet.of([((0, 1, 1), 0, 1), ((1, 2, 1), 1, 1), ((1, 3, 2), 1, -1)])
    assert list(edges.index_with(lambda edge: edge[0])) == [
        ((0, (0, 1, 1)), Time(0), 1),
        ((1, (1, 2, 1)), Time(1), 1),
        ((1, (1, 3, 2)), Time(1), -1),
    ]


def test_times_of_different_depth_do_not_mix() -> None:
    with pytest.raises(SchemaError):
        TimedZSet.of([("a", 0, 1), ("a", (0, 0), 1)])
    with pytest.raises(SchemaError):
        TimedZSet.of([("a", 0, 1)]) + TimedZSet.of([("a", (0, 0), 1)])
    with pytest.raises(SchemaError):
        TimedZSet.of([("a", 0, 1)]).up_to((0, 0))


@given(changes, times)
def test_a_trace_sums_its_changes(listed, time: Time) -> None:
    trace = ReferenceTrace.of(listed)
    assert trace.up_to(time).flatten() == ZSet.of(((k, v), w) for k, v, t, w in listed if t <= time)
    assert trace.consolidate() == ZSet.of(((k, v), w) for k, v, _, w in listed)
    assert pickle.loads(pickle.dumps(trace)) == trace


@given(changes)
def test_a_trace_is_read_by_key_then_by_value_then_by_time(listed) -> None:
    trace = ReferenceTrace.of(listed)
    rows = [(k, v, t.coordinates) for k, v, t, _ in trace]
    assert rows == sorted(set(rows))
    assert list(trace) == [
        (key, value, time, weight)
        for key in trace.keys()  # noqa: SIM118
        for value in trace.values(key)
        for time, weight in trace.times(key, value)
    ]


@given(changes, changes)
def test_inserting_adds(first, second) -> None:
    batch = TimedZSet.of(((k, v), t, w) for k, v, t, w in second)
    assert ReferenceTrace.of(first).insert_indexed(batch) == ReferenceTrace.of([*first, *second])


def test_the_trace_of_the_notes() -> None:
    """The batches of the distinct trace's example, inserted one after another."""
    b00 = TimedZSet.of([(0, (0, 0), 1), (2, (0, 0), 1), (3, (0, 0), -1)])
    b01 = TimedZSet.of([(5, (0, 1), 1)])
    b10 = TimedZSet.of([(5, (1, 0), 1)])
    trace = ReferenceTrace().insert(b00).insert(b01).insert(b10)
    assert trace.keys() == [0, 2, 3, 5]
    assert trace.times(5) == [(Time(0, 1), 1), (Time(1, 0), 1)]
    assert trace.values(5) == [NO_VALUE]
    assert trace.times(4) == []
    assert trace.up_to((0, 1)) == IndexedZSet({k: {NO_VALUE: w} for k, w in [(0, 1), (2, 1), (3, -1), (5, 1)]})


def test_appending_at_a_moment() -> None:
    trace = ReferenceTrace().append(IndexedZSet({"k": {"v": 2}}), at=(0, 1)).append(ZSet({"x": 1}), at=(1, 0))
    assert list(trace) == [("k", "v", Time(0, 1), 2), ("x", NO_VALUE, Time(1, 0), 1)]


def test_frozen_and_displayed() -> None:
    trace = ReferenceTrace.of([("<k>", 1, 0, 1)])
    with pytest.raises(AttributeError):
        trace._index = TimedZSet()
    with pytest.raises(AttributeError):
        TimedZSet()._moments = {}
    assert "&lt;k&gt;" in trace._repr_html_()
    assert "<th>time</th>" in TimedZSet.of([("a", 0, 1)])._repr_html_()
