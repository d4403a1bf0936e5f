"""Pairs that a kernel reads from Python's own list: all of them, or none."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.kernels.admit import KEYED
from everview.kernels.pairs import INT, READS, TUPLE, UNREAD, admit_pairs, read_pairs

words = st.integers(-(2**63), 2**63 - 1)
Row = namedtuple("Row", "a b")  # a subclass of tuple


class Whole(int):
    """A number with a type of its own."""


def read(pairs: list[Any], rows: int, columns: int) -> np.ndarray[Any, Any] | None:
    out = np.empty((rows, columns + 1), np.int64)
    return out if read_pairs(out, id(pairs), TUPLE, INT) else None


def test_this_interpreter_is_read() -> None:
    assert READS


@given(st.lists(st.tuples(st.tuples(words, words), words), max_size=60))
def test_all_words_are_read(pairs: list[tuple[tuple[int, int], int]]) -> None:
    found = read(pairs, len(pairs), 2)
    assert found is not None
    assert found.tolist() == [[*row, weight] for row, weight in pairs]


OTHER_PAIRS: list[Any] = [
    *(None, 1, (), [(1, 2), 1], ((1, 2),), ((1, 2), 1, 1), ([1, 2], 1), ((1,), 1), ((1, 2, 3), 1), (Row(1, 2), 1)),
    *(((1, True), 1), ((1, None), 1), ((1, 2.0), 1), ((1, "2"), 1), ((1, Whole(2)), 1), ((1, np.int64(2)), 1)),
    *(((1, 2**63), 1), ((-(2**63) - 1, 1), 1), ((1, 10**40), 1), ((1, 2), 2**63), ((1, 2), True), ((1, 2), None)),
]


@pytest.mark.parametrize("other", OTHER_PAIRS, ids=repr)
@pytest.mark.parametrize("before", [0, 3])
def test_anything_else_ends_the_call(other: Any, before: int) -> None:
    pairs = [((1, 2), 1)] * before + [other]
    assert read(pairs, len(pairs), 2) is None
    out, empty = np.empty((len(pairs), 3), np.int64), np.empty((0, 3), np.int64)
    table = np.arange(2), empty.ctypes.data, 0, 1, KEYED
    assert admit_pairs(out, id(pairs), TUPLE, INT, *table) == UNREAD


def test_a_list_of_another_length_is_not_read() -> None:
    pairs = [((1, 2), 1)] * 3
    assert read(pairs, 2, 2) is None
    assert read(pairs, 4, 2) is None
