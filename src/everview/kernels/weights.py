"""Weights of a batch as a whole: how large they are."""

from __future__ import annotations

from everview.kernels.jit import i64, kernel, rows

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
