"""Rows that are exchanged: with what they replace, they are what is new; and rows that stay are left out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everview.kernels.exchanged import exchanged
from everview.kernels.sort import arrange

WORDS = np.arange(2)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 2)), max_size=12)


def _matrix(rows: list[tuple[int, int, int]]) -> np.ndarray:
    """By groups, and in a group in the order that was drawn."""
    return np.array(sorted(rows, key=lambda row: row[0]), np.int64).reshape(-1, 3)


@given(ROWS, ROWS)
def test_they_are_the_difference(old: list[tuple[int, int, int]], new: list[tuple[int, int, int]]) -> None:
    before, after = _matrix(old), _matrix(new)
    lost = before.copy()
    lost[:, -1] *= -1
    expected = arrange(np.concatenate([lost, after]), WORDS)
    assert np.array_equal(arrange(exchanged(before, after, 1), WORDS), expected)


def test_rows_that_stay_are_left_out() -> None:
    before = _matrix([(0, 1, 1), (0, 2, 1), (0, 4, 1), (1, 1, 1), (3, 1, 1)])
    after = _matrix([(0, 1, 1), (0, 3, 1), (0, 4, 1), (1, 1, 1), (2, 5, 1)])
    assert exchanged(before, after, 1).tolist() == [[0, 2, -1], [0, 3, 1], [2, 5, 1], [3, 1, -1]]
