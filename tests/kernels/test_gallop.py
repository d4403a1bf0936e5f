"""Searching for many keys side by side finds what one search after the other does."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
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


GROWTH = {
    "counted up": lambda random, n: np.arange(n) * 3 + 7,
    "like hashes": lambda random, n: random.integers(-(2**63), 2**63 - 1, n),
    "ever faster": lambda random, n: (1.004 ** np.arange(n)).astype(np.int64),
    "in two heaps": lambda random, n: np.where(random.random(n) < 0.5, random.integers(0, 50, n), 2**62 - np.arange(n)),
    "from end to end": lambda random, n: random.choice([-(2**63), 0, 2**63 - 1], n),
    "far from zero": lambda random, n: 2**62 + random.integers(0, 300, n),
    "further yet": lambda random, n: 2**63 - 1 - random.integers(0, 5_000, n),
    "all the same": lambda random, n: np.full(n, 5),
}


@settings(max_examples=40)
@given(st.sampled_from(sorted(GROWTH)), st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([1, 3, 100, 200]))
def test_places_are_guessed_among_many_rows(growth: str, seed: int, key: int, count: int) -> None:
    random = np.random.default_rng(seed)
    first = GROWTH[growth](random, 6_000)
    rows = np.unique(np.column_stack([first, random.integers(0, 40, (6_000, 2))]), axis=0)
    probes = random.permutation(rows)[:count].copy()
    probes[::3, random.integers(0, 3)] ^= 1
    probes[::7, 0] = random.choice([-(2**63), 2**63 - 1])
    probes = probes[np.lexsort(probes.T[::-1])]
    known = Counter(map(tuple, rows[:, :key].tolist()))
    batch, given_ = (np.column_stack([m, np.ones(len(m), np.int64)]) for m in (rows, probes))
    wanted = [known[tuple(probe)] for probe in probes[:, :key].tolist()]
    assert weights(given_, Batches(4, [batch]).table, 4, key, NO_BOUND).tolist() == wanted
