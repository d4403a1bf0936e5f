"""Sorting by packed numbers gives the order of sorting by columns: stable, for any words."""

from __future__ import annotations

import numpy as np
import pytest

from everview.kernels.dealing import DEALT
from everview.kernels.sort import arrange, is_batch, sort_order
from everview.types import NULL_WORD

ROWS = DEALT + 1_000
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


def _column(kind: str, random: np.random.Generator) -> np.ndarray:
    match kind:
        case "same":
            return np.full(ROWS, 7)
        case "few":
            return random.integers(0, 25, ROWS)
        case "counted":
            return random.integers(-50_000, 50_000, ROWS)
        case "hashed":
            return random.integers(LEAST, GREATEST, ROWS, endpoint=True)
        case "skewed":
            return np.where(random.random(ROWS) < 0.99, random.integers(0, 3, ROWS), random.integers(0, 1 << 40, ROWS))
        case "NULL":
            return np.full(ROWS, NULL_WORD)
        case _:
            return np.where(random.random(ROWS) < 0.1, NULL_WORD, random.integers(0, 9, ROWS))


@pytest.mark.parametrize(
    "kinds",
    [
        ("counted", "counted", "few"),
        ("few", "same", "few"),
        ("hashed", "hashed", "few"),
        ("few", "hashed", "nullable"),
        ("skewed", "skewed", "counted"),
        ("NULL", "nullable", "same"),
        ("same", "same", "same"),
    ],
)
def test_many_rows_are_in_the_order_of_their_columns(kinds: tuple[str, ...]) -> None:
    random = np.random.default_rng(5)
    m = np.column_stack([*(_column(kind, random) for kind in kinds), random.choice([-1, 1], ROWS)])
    for columns in ([0, 1, 2], [2, 0], [1]):
        expected = np.lexsort(m[:, columns[::-1]].T)
        assert (sort_order(m, np.array(columns)) == expected).all()
        assert is_batch(arrange(m, np.array(columns)))


def test_equal_rows_are_added_in_the_order_in_which_they_came() -> None:
    """A weight may pass through sums that only this order keeps within 64 bits."""
    random = np.random.default_rng(6)
    m = np.column_stack([*random.integers(0, 1 << 20, (2, ROWS)), np.ones(ROWS, np.int64)])
    m[[10, 20, 30]] = [[3, 4, GREATEST], [3, 4, -GREATEST], [3, 4, GREATEST]]
    batch = arrange(m, np.array([0, 1]))
    (weight,) = batch[(batch[:, 0] == 3) & (batch[:, 1] == 4), 2].tolist()
    assert weight == GREATEST
