"""Rows kept by the sign of a weight found elsewhere."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import kernel, rows, rows_out, words


@kernel(rows_out, rows, words)
def where_positive(m, weights):
    """The rows beside a positive weight."""
    out = np.empty(m.shape, np.int64)
    at = 0
    for i in range(m.shape[0]):
        if weights[i] > 0:
            out[at, :] = m[i, :]
            at += 1
    return out[:at]
