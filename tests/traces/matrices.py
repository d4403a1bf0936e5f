"""Small random matrices, and what views of them must say, by brute force over dictionaries."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Matrix = NDArray[np.int64]
Row = tuple[int, ...]
EXTREMES = (-(2**63), 2**63 - 1)


def batch_of(weights: dict[Row, int] | Counter[Row], width: int, place: Callable[[Row], Any] | None = None) -> Matrix:
    """A batch: sorted (by ``place``, if given), consolidated."""
    rows = sorted((row for row, w in weights.items() if w), key=place)
    return np.array([[*row, weights[row]] for row in rows], np.int64).reshape(len(rows), width + 1)


def weights_of(batches: Iterable[Matrix]) -> Counter[Row]:
    """What batches come to."""
    total: Counter[Row] = Counter()
    for batch in batches:
        for *row, w in batch.tolist():
            total[tuple(row)] += w
    return Counter({row: w for row, w in total.items() if w})


def spines(width: int, max_batches: int = 5, max_size: int = 12) -> st.SearchStrategy[list[Matrix]]:
    """A few batches whose rows meet, and cancel."""
    sizes = st.lists(st.integers(0, max_size), max_size=max_batches)
    return st.builds(lambda s, seed: _spine(random.Random(seed), width, s), sizes, st.integers(0, 2**32 - 1))


def _spine(chance: random.Random, width: int, sizes: Sequence[int]) -> list[Matrix]:
    return [batch_of(_weights(chance, width, size), width) for size in sizes]


def _weights(chance: random.Random, width: int, size: int) -> Counter[Row]:
    domain = (0, 1, 2, chance.choice((-1, *EXTREMES)))
    found: Counter[Row] = Counter()
    for _ in range(size):
        found[tuple(chance.choice(domain) for _ in range(width))] += chance.choice((1, 1, 2, -1, -2))
    return found


def probes(width: int, max_size: int = 8) -> st.SearchStrategy[Matrix]:
    """A sorted delta, perhaps of keys that are nowhere."""
    return spines(width, max_batches=1, max_size=max_size).map(lambda b: b[0] if b else batch_of({}, width))
