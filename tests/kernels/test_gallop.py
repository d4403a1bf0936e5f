"""Searching for many keys side by side finds what one search after the other does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everview.kernels.probe import weights
from everview.traces.view import NO_BOUND, Batches


@st.composite
def searches(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """A batch of distinct rows, sorted probes, sometimes few for its size, and how many words are a key."""
    key = draw(st.integers(0, 4))
    ends = st.sampled_from([-(2**63), 2**63 - 1])
    numbers = st.integers(-3, 3) | ends
    size = draw(st.sampled_from([5, 40, 400]))
    rows = draw(st.sets(st.tuples(*[numbers] * 5), max_size=size))
    probes = draw(st.lists(st.tuples(*[numbers] * key), max_size=draw(st.sampled_from([1, 2, 90]))))
    batch = np.array([(*row, 1) for row in sorted(rows)], np.int64).reshape(-1, 6)
    return batch, np.array(sorted(probes), np.int64).reshape(len(probes), key), key


@given(searches())
def test_every_probe_finds_its_rows(search: tuple[np.ndarray, np.ndarray, int]) -> None:
    batch, probes, key = search
    rows = [tuple(row[:key]) for row in batch.tolist()]
    wanted = [rows.count(tuple(probe)) for probe in probes.tolist()]
    with_weights = np.column_stack([probes, np.ones(len(probes), np.int64)])
    assert weights(with_weights, Batches(6, [batch]).table, 6, key, NO_BOUND).tolist() == wanted


def test_few_probes_among_many_rows() -> None:
    batch = np.array([(a, b, c, 1) for a in range(20) for b in range(0, 60, 3) for c in range(0, 9, 2)], np.int64)
    rows = [tuple(row) for row in batch.tolist()]
    probes = np.array(
        [(-1, 0, 0, 1), (3, 9, 4, 1), (3, 9, 4, 1), (3, 10, 4, 1), (19, 57, 8, 1), (20, 0, 0, 1)], np.int64
    )
    for key in (0, 1, 2, 3):
        firsts = [row[:key] for row in rows]
        wanted = [firsts.count(tuple(probe)) for probe in probes[:, :key].tolist()]
        assert weights(probes, Batches(4, [batch]).table, 4, key, NO_BOUND).tolist() == wanted
