"""What linear operators do to whole matrices: negate weights, keep some columns."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, kernel, rows, rows_out, words
from everview.kernels.rows import multiply


@kernel(rows_out, rows)
def negated(m):
    """The same rows with the sign of every weight flipped.

    A kernel, because NumPy 2.4 negates a column in place wrongly when rows are 64 bytes apart.
    """
    n, width = m.shape[0], m.shape[1] - 1
    out = np.empty(m.shape, np.int64)
    for i in range(n):
        out[i, :width] = m[i, :width]
        out[i, width] = multiply(m[i, width], -1)
    return out


@kernel(i64, rows_out, i64, i64)
def invert(m, start, end):
    """Turn the order of some words around, in place; a kernel for the same reason. How many rows there are."""
    for i in range(m.shape[0]):
        for c in range(start, end):
            m[i, c] = ~m[i, c]
    return m.shape[0]


@kernel(rows_out, rows, words)
def project(delta, columns):
    """``delta`` on ``columns``, in that order; nothing is sorted or summed."""
    n, weight = delta.shape[0], delta.shape[1] - 1
    width = columns.size
    out = np.empty((n, width + 1), np.int64)
    for i in range(n):
        for c in range(width):
            out[i, c] = delta[i, columns[c]]
        out[i, width] = delta[i, weight]
    return out
