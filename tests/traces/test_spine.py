"""A spine is the sum of what was appended, under every policy of merging, and keeps few batches."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.codes.dictionary import Dictionary
from everview.kernels import levels
from everview.kernels.merge import merge_some
from everview.kernels.sort import is_batch
from everview.traces import slots
from everview.traces import spine as policy
from everview.traces.order import DESCENDING, NULL_MOVED, value_order
from everview.traces.spine import Spine
from everview.traces.trace import Trace
from everview.types import NULL_WORD, Schema
from traces.matrices import Matrix, batch_of, spines, weights_of

# The constants of the module, and the ratio of a spine.
policies = st.fixed_dictionaries(
    {
        "FUEL": st.sampled_from([1, 2, 36]),
        "SHARE": st.sampled_from([1, 30, 4096]),
        "SMALL": st.sampled_from([1, 8, 512]),
    }
)
ratios = st.sampled_from([2, 8, 64])


@given(batches=spines(2, max_batches=30, max_size=20), ratio=ratios, how=policies)
def test_a_spine_is_the_sum_of_its_batches(batches: list[Matrix], ratio: int, how: dict[str, int]) -> None:
    spine = Spine(3, ratio=ratio)
    seen = []
    with patch.multiple(policy, **how):
        for count, batch in enumerate(batches, 1):
            spine.append(batch)
            seen.append((spine.view, weights_of(batches[:count])))
        assert all(is_batch(b) and len(b) for b in spine.batches)
        assert len(spine) == sum(map(len, spine.batches)) >= len(weights_of(batches))
        assert spine.nbytes >= len(spine) * 3 * 8
        spine.settle()
        settled = spine.view
        spine.compact()
    # A view that a reader took stays as it was while the spine goes on.
    for view, expected in [*seen, (settled, weights_of(batches)), (spine.view, weights_of(batches))]:
        found = view.consolidated()
        assert is_batch(found)
        assert weights_of([found]) == expected
    assert len(spine.batches) <= 1
    assert len(spine) == len(weights_of(batches))


@pytest.mark.parametrize("ratio", [2, 8, 64])
@pytest.mark.parametrize("sizes", ["single rows", "growing", "shrinking", "random", "large then small"])
def test_batches_stay_few_and_merging_keeps_pace(ratio: int, sizes: str) -> None:
    chance = random.Random(0)
    many = {
        "single rows": [1] * 3000,
        "growing": [2**i for i in range(14)],
        "shrinking": [2**i for i in range(13, -1, -1)],
        "random": [chance.randint(1, 100) for _ in range(400)],
        "large then small": [20_000, *[3] * 1000],
    }[sizes]
    spine, held = Spine(2, ratio=ratio), 0
    with patch.multiple(policy, FUEL=4 * (ratio + 1)):
        for size in many:
            rows = np.arange(held, held + size)
            spine.append(np.stack([rows, np.ones(size, np.int64)], axis=1))
            held += size
            assert len(spine.batches) <= 2 * math.log(held, ratio) + 4 + math.log2(levels.FULL)
    assert len(spine) == held
    assert np.array_equal(spine.view.consolidated()[:, 0], np.arange(held))


def test_no_append_waits_for_a_whole_merge() -> None:
    """Whatever lies waiting, an append merges in proportion to its size and to that of the levels."""
    spine, fuels = Spine(2), list[int]()

    def watched(*arguments: Any) -> Any:
        fuels.append(arguments[-1])
        return merge_some(*arguments)

    with patch.object(slots, "merge_some", watched):
        for at in range(3_000):
            rows = np.arange(at * 20, at * 20 + (5_000 if at % 1_000 == 500 else 20))
            fuels.clear()
            spine.append(np.stack([rows, np.ones(len(rows), np.int64)], axis=1))
            assert all(fuel <= policy.FUEL * (len(rows) + levels.FULL) for fuel in fuels)


def test_small_appends_pay_in_shares_for_what_they_owe_together() -> None:
    """Of many small appends none merges more than a share, and merging is done before levels are full again."""
    spine, fuels = Spine(2), list[int]()

    def watched(*arguments: Any) -> Any:
        fuels.append(arguments[-1])
        return merge_some(*arguments)

    owing = Counter[bool]()
    with patch.object(slots, "merge_some", watched):
        for at in range(4_000):
            rows = np.arange(at * 10, at * 10 + 10)
            before = len(fuels)
            spine.append(np.stack([rows, np.ones(10, np.int64)], axis=1))
            spine.tend()  # as at the end of an epoch
            assert sum(fuels[before:]) <= 2 * policy.SHARE, "two merges, each a share"
            owing[spine.owes > 0] += 1
    assert len(fuels) > 50
    assert set(fuels) == {0, policy.SHARE}, "a merge begins where levels become a batch"
    assert 0 < owing[True] < owing[False] / 10
    assert len(spine.batches) <= 10


def test_large_appends_pay_at_once() -> None:
    spine = Spine(2)
    for at in range(60):
        rows = np.arange(at * 500, at * 500 + 500)
        spine.append(np.stack([rows, np.ones(500, np.int64)], axis=1))
        assert not spine.owes


def test_what_cancels_is_merged_away() -> None:
    rows = np.stack([np.arange(100), np.ones(100, np.int64)], axis=1)
    spine = Spine(2)
    for _ in range(4):
        spine.append(rows)
        spine.append(rows * [1, -1])
    assert len(spine) == 0
    assert spine.batches == ()
    spine.append(rows)
    assert len(spine.view) == 100


def test_nothing_is_no_batch() -> None:
    spine = Spine(3)
    spine.append(np.empty((0, 3), np.int64))
    spine.settle()
    spine.compact()
    assert (len(spine), spine.batches, spine.nbytes) == (0, (), 0)
    assert spine.view.consolidated().shape == (0, 3)


def test_batches_of_another_width_are_refused() -> None:
    with pytest.raises(AssertionError, match="one width"):
        Spine(3).append(np.ones((1, 2), np.int64))


def test_a_sum_of_weights_beyond_64_bits_raises() -> None:
    trace = Trace(2)
    trace.push(np.array([[7, 2**62]]))
    trace.close()
    with pytest.raises(OverflowError, match="64 bits"):
        trace.push(np.array([[7, 2**62]]))
    trace.push(np.array([[7, -(2**62)], [8, 2**62]]))
    trace.close()
    assert trace.before.consolidated().tolist() == [[8, 2**62]]


@given(batches=spines(2, max_batches=8), ratio=ratios, how=policies)
def test_a_merged_batch_stands_for_all_it_was_made_of(batches: list[Matrix], ratio: int, how: dict[str, int]) -> None:
    spine = Spine(3, ratio=ratio)
    present = {i for i, batch in enumerate(batches) if len(batch)}
    with patch.multiple(policy, **how):
        for i, batch in enumerate(batches):
            spine.append(batch, (i,))
        spine.compact()
    merged = {i for held in spine.merges() for i in held.ids}
    gone = set(spine.gone())
    assert merged | gone <= present
    assert not merged & gone
    if len(present) > 1 and len(spine):
        assert merged | gone == present
    assert spine.gone() == (), "asked once"


@given(batches=spines(2, max_batches=8))
def test_a_restored_spine_is_the_same(batches: list[Matrix]) -> None:
    stored = [(batch, (i,)) for i, batch in enumerate(batches) if len(batch)]
    spine = Spine(3)
    spine.append(np.array([[7, 7, 1]]))  # of before
    spine.restore(stored)
    assert weights_of(spine.batches) == weights_of(batches)


TEXTS = ["", "a", "ab", "b", "ä", "z", "\uffff", "\U0001f600"]


@pytest.mark.parametrize("mode", [0, DESCENDING, NULL_MOVED, DESCENDING | NULL_MOVED])
def test_a_spine_by_value_is_in_the_order_of_the_values(mode: int) -> None:
    """Batches, merges slow and whole, and their results follow the texts, not the codes."""
    schema = Schema.parse("key BIGINT NOT NULL, text STRING")
    dictionary = Dictionary()
    codes = dict(
        zip([None, *TEXTS], [NULL_WORD, *dictionary.intern_values(64, [t.encode() for t in TEXTS])], strict=True)
    )
    text_of = {code: text for text, code in codes.items()}

    def place(row: tuple[int, ...]) -> tuple[int, int]:
        order = sorted(TEXTS, key=str.encode, reverse=bool(mode & DESCENDING))
        null_first = bool(mode & DESCENDING) == bool(mode & NULL_MOVED)
        text = text_of[row[1]]
        return row[0], (-1 if null_first else len(order)) if text is None else order.index(text)

    chance = random.Random(mode)
    spine = Spine(3, value_order(schema, ((1, mode),), dictionary), ratio=2)
    batches = []
    with patch.multiple(policy, FUEL=1, SMALL=3):
        for _ in range(40):
            rows = Counter((chance.randrange(3), chance.choice(list(text_of))) for _ in range(4))
            signed = {row: w * chance.choice([1, -1]) for row, w in rows.items()}
            batches.append(batch_of(signed, 2, place))
            spine.append(batches[-1])
            assert weights_of([spine.view.consolidated()]) == weights_of(batches)
            for batch in (*spine.batches, spine.view.consolidated()):
                found = [place(tuple(row)) for row in batch[:, :2].tolist()]
                assert found == sorted(set(found))
