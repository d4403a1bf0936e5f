"""Weights that cross zero: what distinct puts out."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import kernel, rows, rows_out, words
from everview.kernels.rows import add


@kernel(rows_out, rows, words)
def crossings(delta, before):
    """The rows whose weight becomes positive, with +1, or ceases to be, with −1."""
    n, width = delta.shape[0], delta.shape[1] - 1
    out = np.empty((n, width + 1), np.int64)
    at = 0
    for i in range(n):
        after = add(before[i], delta[i, width])
        change = int(after > 0) - int(before[i] > 0)
        if change != 0:
            out[at, :width] = delta[i, :width]
            out[at, width] = change
            at += 1
    return out[:at]
