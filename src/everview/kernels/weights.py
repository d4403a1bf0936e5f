"""Weights of a batch as a whole: how large they are, and whether sums with others stay in range."""

from __future__ import annotations

from everview.kernels.jit import i64, kernel, rows, void, words
from everview.kernels.rows import add

LARGEST = (1 << 63) - 1


@kernel(i64, rows)
def largest_weight(m):
    """The largest absolute weight."""
    n, width = m.shape[0], m.shape[1] - 1
    largest = 0
    for i in range(n):
        w = m[i, width]
        if w < -LARGEST:
            return LARGEST
        largest = max(largest, abs(w))
    return largest


@kernel(void, rows, words)
def check_sums(m, others):
    """Raise `OverflowError` if a row's weight and the one beside it do not add up in 64 bits."""
    for i in range(m.shape[0]):
        add(m[i, m.shape[1] - 1], others[i])
