"""A trace: what was before the tick, what is after it, and that a tick that is abandoned has not been."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.codes.dictionary import Dictionary
from everview.traces.order import value_order
from everview.traces.trace import Trace
from everview.types import Schema
from traces.matrices import Matrix, spines, weights_of

HALF = 2**62


@given(epochs=st.lists(st.tuples(spines(2, max_batches=4), st.booleans()), max_size=6))
def test_before_after_close_and_abandon(epochs: list[tuple[list[Matrix], bool]]) -> None:
    trace, closed = Trace(3), []
    for batches, abandon in epochs:
        for count, batch in enumerate(batches, 1):
            trace.push(batch)
            assert weights_of([trace.before.consolidated()]) == weights_of(closed)
            assert weights_of([trace.after.consolidated()]) == weights_of([*closed, *batches[:count]])
        if abandon:
            trace.abandon()
            continue
        whole = trace.sum()
        assert weights_of([] if whole is None else [whole]) == weights_of(batches)
        trace.close()
        closed += batches
    assert weights_of([trace.before.consolidated()]) == weights_of(closed)
    assert weights_of([trace.after.consolidated()]) == weights_of(closed)


def test_a_view_taken_before_the_tick_closes_stays_before_it() -> None:
    trace = Trace(2)
    before = trace.before
    trace.push(np.array([[7, 1]]))
    trace.close()
    assert (len(before), len(trace.before)) == (0, 1)


def row(value: int, weight: int) -> Matrix:
    return np.array([[value, weight]])


@pytest.mark.parametrize(
    "pushed",
    [
        [[row(7, HALF)], [row(7, HALF)]],
        [[row(7, HALF), row(7, HALF)]],
        [[row(7, -HALF)], [row(7, -HALF), row(7, -1)]],
        [[row(7, 2**63 - 1)], [row(7, 1)]],
        [[row(7, -(2**63))], [row(7, -1)]],
    ],
)
def test_a_weight_beyond_64_bits_is_refused_before_the_tick_counts(pushed: list[list[Matrix]]) -> None:
    trace = Trace(2)
    *epochs, (*first, last) = pushed
    for batches in epochs:
        for batch in batches:
            trace.push(batch)
        trace.close()
    before = trace.before.consolidated()
    for batch in first:
        trace.push(batch)
    with pytest.raises(OverflowError):
        trace.push(last)
    trace.abandon()
    assert np.array_equal(trace.before.consolidated(), before)
    trace.push(row(8, 1))
    trace.close()
    assert weights_of([trace.before.consolidated()])[(8,)] == 1


def test_weights_at_the_bound_are_weights() -> None:
    trace = Trace(2)
    for weight in (2**63 - 1, -(2**63 - 1), -(2**63), 2**62, 2**62):
        trace.push(row(7, weight))
        trace.close()
    assert trace.before.consolidated().shape == (0, 2)


def test_a_trace_by_value_refuses_a_weight_beyond_64_bits() -> None:
    """Its rows are not in the order of their words, which is how a weight is looked up elsewhere."""
    dictionary = Dictionary()
    codes = sorted(dictionary.intern_values(64, [bytes([c]) for c in range(97, 117)]))
    trace = Trace(2, value_order(Schema.parse("text STRING"), ((0, 0),), dictionary))
    for code in codes:
        trace.push(row(code, HALF))
        trace.close()
    for code in codes:
        with pytest.raises(OverflowError):
            trace.push(row(code, HALF))
        trace.abandon()


def test_neighbours_that_add_up_beyond_64_bits_while_all_together_do_not() -> None:
    """The row was at −1.5·2^62, then at 0, then at 1.5·2^62; the last two changes come to 3·2^62 by themselves."""
    trace = Trace(2)
    large = np.stack([np.arange(5000), np.ones(5000, np.int64)], axis=1)
    large[7, 1] = -3 * 2**61
    trace.push(large)
    trace.close()
    for _ in range(2):
        trace.push(row(7, 3 * 2**61))
        trace.close()
    assert weights_of([trace.before.consolidated()])[(7,)] == 3 * 2**61
