"""Sieves: lookups by key in a spine that has one find what brute force does, whatever it has merged or forgotten."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.kernels import levels, sieve
from everview.kernels.admit import KEYED, admit
from everview.kernels.rows import SIEVE
from everview.kernels.sieve import entered, is_worn, new_sieve
from everview.traces import spine as policy
from everview.traces.spine import Spine
from traces.matrices import Matrix, Row, batch_of, probes, spines, weights_of

WIDTH = 3
policies = st.fixed_dictionaries({"FUEL": st.sampled_from([1, 4, 36]), "SMALL": st.sampled_from([1, 4, 512])})


def sums(total: Counter[Row], wanted: list[Row]) -> list[int]:
    return [sum(w for row, w in total.items() if row[: len(key)] == key) for key in wanted]


def check_lookups(spine: Spine, total: Counter[Row], asked: Matrix) -> None:
    """Every read by key, with keys shorter and longer than those of the sieve."""
    for key in range(1, WIDTH + 1):
        wanted = [tuple(row[:key]) for row in asked.tolist()]
        assert spine.momentary.weights(asked, key).tolist() == sums(total, wanted)
        groups = asked[[i for i, row in enumerate(wanted) if i == 0 or row != wanted[i - 1]]]
        rows = weights_of([spine.momentary.group_rows(groups, key)])
        keys = {tuple(row[:key]) for row in groups.tolist()}
        assert rows == Counter({row: w for row, w in total.items() if row[:key] in keys})
        ones = np.column_stack([groups[:, :WIDTH], np.ones(len(groups), np.int64)])
        assert weights_of([spine.momentary.join(ones, key, ~np.arange(WIDTH))]) == rows


@given(
    batches=spines(WIDTH, max_batches=20, max_size=12),
    asked=st.lists(probes(WIDTH), min_size=1, max_size=4),
    key=st.integers(1, WIDTH),
    full=st.sampled_from([1, 8, 1024]),
    how=policies,
)
def test_lookups_find_every_row(
    batches: list[Matrix], asked: list[Matrix], key: int, full: int, how: dict[str, int]
) -> None:
    spine = Spine(WIDTH + 1, key=key, ratio=2)
    spine.ledger[levels.LIMIT] = full
    with patch.multiple(policy, LARGE=1, **how), patch.multiple(sieve, LEAST=1, APART=0):
        for count, batch in enumerate(batches, 1):
            spine.append(batch)
            check_lookups(spine, weights_of(batches[:count]), asked[count % len(asked)])
        spine.settle()
        check_lookups(spine, weights_of(batches), asked[0])


def test_a_sieve_says_no_to_most_keys_that_are_not_there() -> None:
    numbers = np.random.default_rng(1).permutation(40_000)
    known, unknown = np.sort(numbers[:20_000]), np.sort(numbers[20_000:])
    ones = np.ones(20_000, np.int64)
    made = new_sieve(1, 20_000)
    entered(made, np.column_stack([known, ones]))
    # A batch that has all keys shows which of them pass: of those that do not, nothing is found.
    everything = np.column_stack([np.arange(40_000), np.ones(40_000, np.int64)])
    spine = Spine(2, key=1)
    spine.append(everything)
    table = spine.table.copy()
    table[0, SIEVE] = made.ctypes.data
    where = table.ctypes.data, len(table)
    out = np.empty((20_000, 2), np.int64)
    assert admit(out[:1_000], np.column_stack([known, -ones])[:1_000], np.arange(1), *where, 1, KEYED) == 1_000
    passed = [
        admit(out[:1], np.array([[number, 1]]), np.arange(1), *where, 1, KEYED) < 0
        for number in unknown[:2_000].tolist()
    ]
    assert sum(passed) < 60


def test_batches_beside_a_large_one_have_a_sieve_once_keys_are_looked_up() -> None:
    def rows(first: int, count: int) -> Matrix:
        return np.column_stack([np.arange(first, first + count), np.ones(count, np.int64)])

    spine = Spine(2, key=1)
    spine.append(rows(0, 40_000))
    spine.append(rows(50_000, 600))
    assert spine.ledger[levels.NEWER] == 0
    assert spine.table[:, SIEVE].tolist() == [0, 0]
    spine.append(rows(60_000, 600))
    spine.append(rows(70_000, 10))
    assert [line > 0 for line in spine.table[:, SIEVE].tolist()] == [False, True, True, True][: len(spine.table)]
    before = spine.nbytes
    spine.compact()
    assert spine.nbytes < before + 8 * 2 * len(spine)
    assert spine.momentary.weights(rows(69_999, 11), 1).tolist() == [0, *[1] * 10]


def test_a_sieve_of_keys_that_are_gone_is_worn() -> None:
    made = new_sieve(1, 10_000)
    entered(made, batch_of({(number,): 1 for number in range(9_000)}, 1))
    assert (is_worn(made, 9_000), is_worn(made, 100)) == (False, True)
    entered(made, batch_of({(number,): 1 for number in range(9_000)}, 1))
    assert is_worn(made, 18_000)


@pytest.mark.parametrize("key", [1, 2])
def test_a_new_sieve_knows_the_levels(key: int) -> None:
    """Levels that stay while a sieve is made, or made anew, are found afterwards."""
    spine, rows = Spine(3, key=key), np.array([[number, number, 1] for number in range(30_000)])
    spine.append(rows)
    spine.append(rows[:5] * [1, 1, -1])
    assert spine.momentary.weights(rows[:6], key).tolist() == [0, 0, 0, 0, 0, 1]
    spine.append(rows[10_000:10_700] * [1, 1, -1])
    assert spine.ledger[levels.NEWER] != 0
    assert spine.momentary.weights(rows[:6], key).tolist() == [0, 0, 0, 0, 0, 1]
    assert spine.momentary.weights(rows[9_999:10_701], key).tolist() == [1, *[0] * 700, 1]
