"""Large deltas: the answers of dividing, packing and dealing are those of going through rows one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.kernels import large, linear, sort
from everview.kernels.threads import at_most

NULL = -(1 << 63)
HIGHEST = (1 << 63) - 1
EXTREMES = [NULL, NULL + 1, -1, 0, 1, HIGHEST]
SIZES = [large.LARGE - 1, large.LARGE, large.MANY - 1, large.MANY, large.MANY + large.LARGE + 7]


@pytest.fixture(autouse=True, scope="module")
def soon_large() -> Iterator[None]:
    """Small deltas count as large ones, and parts and buckets are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "LARGE", 2)
        patch.setattr(large, "MANY", 2)
        patch.setattr(large, "PART", 3)
        patch.setattr(large, "BUCKET", 4)
        yield


@st.composite
def deltas(draw: st.DrawFn) -> np.ndarray:
    words = st.one_of(st.sampled_from(EXTREMES), st.integers(-3, 3), st.integers(NULL, HIGHEST))
    narrow = st.integers(0, 2)
    columns = [draw(st.sampled_from([words, narrow])) for _ in range(draw(st.integers(0, 4)))]
    rows = draw(st.lists(st.tuples(*columns, st.integers(-2, 2)), max_size=60))
    return np.array(rows, np.int64).reshape(len(rows), len(columns) + 1)


def chosen(delta: np.ndarray) -> st.SearchStrategy[list[int]]:
    width = delta.shape[1] - 1
    return st.lists(st.integers(0, width - 1), max_size=width + 1) if width else st.just([])


def reference(delta: np.ndarray, columns: list[int]) -> list[tuple[int, ...]]:
    summed: dict[tuple[int, ...], int] = {}
    for row in delta.tolist():
        key = tuple(row[c] for c in columns)
        summed[key] = summed.get(key, 0) + row[-1]
    return [(*key, weight) for key, weight in sorted(summed.items()) if weight]


@given(st.data(), st.integers(1, 3))
def test_a_batch_of_a_large_delta(data: st.DataObject, threads: int) -> None:
    delta = data.draw(deltas())
    columns = data.draw(chosen(delta))
    with at_most(threads):
        found = large.arrange(delta, np.array(columns, np.int64))
    assert found.shape[1] == len(columns) + 1
    assert list(map(tuple, found.tolist())) == reference(delta, columns)


@given(st.data(), st.integers(1, 3))
def test_the_order_of_a_large_delta(data: st.DataObject, threads: int) -> None:
    delta = data.draw(deltas())
    columns = data.draw(chosen(delta))
    with at_most(threads):
        found = large.sort_order(delta, np.array(columns, np.int64))
    rows = delta.tolist()
    assert found.tolist() == sorted(range(len(rows)), key=lambda i: [rows[i][c] for c in columns])


@given(st.data(), st.integers(1, 3))
def test_columns_and_rows_of_a_large_delta(data: st.DataObject, threads: int) -> None:
    delta = data.draw(deltas())
    columns = data.draw(chosen(delta))
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(delta), max_size=len(delta))), np.bool_)
    with at_most(threads):
        projected, selected = large.project(delta, np.array(columns, np.int64)), large.select(delta, kept)
    assert projected.tolist() == delta[:, [*columns, -1]].tolist()
    assert selected.tolist() == delta[kept].tolist()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("greatest", [1, 1000, HIGHEST])
def test_around_the_size_that_counts_as_large(rows: int, threads: int, greatest: int) -> None:
    random = np.random.default_rng([rows, greatest % 1009])
    delta = random.integers(-greatest, greatest, (rows, 5), endpoint=True)
    delta[:, -1] = random.integers(-1, 2, rows)
    delta[:: random.integers(2, 9), 1] = NULL
    delta[rows // 3 : rows // 2, 0] = 7  # many rows of one bucket
    kept = random.random(rows) < 0.5
    with pytest.MonkeyPatch.context() as patch, at_most(threads):
        for name, value in {"LARGE": 1 << 15, "MANY": 1 << 18, "PART": 1 << 14, "BUCKET": 1 << 12}.items():
            patch.setattr(large, name, value)
        for columns in (np.arange(4), np.array([1, 0]), np.array([3, 1, 1])):
            assert np.array_equal(large.arrange(delta, columns), sort.arrange(delta, columns))
            assert np.array_equal(large.sort_order(delta, columns), sort.sort_order(delta, columns))
            assert np.array_equal(large.project(delta, columns), linear.project(delta, columns))
        assert np.array_equal(large.select(delta, kept), delta[kept])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_weight_beyond_64_bits(threads: int) -> None:
    delta = np.array([[1, HIGHEST], [2, 1], [1, 1], [0, 5]])
    with at_most(threads), pytest.raises(OverflowError, match="a weight left the range of 64 bits"):
        large.arrange(delta, np.arange(1))


@given(st.lists(st.tuples(deltas(), st.booleans()), min_size=2, max_size=4))
def test_sorts_that_share_their_memory(several: list[tuple[np.ndarray, bool]]) -> None:
    with large.one_scratch():
        orders = [large.sort_order(delta, np.arange(delta.shape[1] - 1)) for delta, _ in several]
        batches = [large.arrange(delta, np.arange(delta.shape[1] - 1)) for delta, _ in several]
    for (delta, _), order, batch in zip(several, orders, batches, strict=True):
        columns = list(range(delta.shape[1] - 1))
        assert delta[order][:, :-1].tolist() == sorted(delta[:, :-1].tolist())
        assert list(map(tuple, batch.tolist())) == reference(delta, columns)
