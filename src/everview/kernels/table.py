"""The table of a spine: one line a batch, so that a single call reads any number of them."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import kernel, rows, rows_out
from everview.kernels.rows import LINE, SIEVE


@kernel(rows_out, rows, rows)
def with_batch(table, m):
    """The table with one more line. Whoever keeps it must keep the batch, too."""
    n = table.shape[0]
    out = np.empty((n + 1, LINE), np.int64)
    out[:n] = table
    out[n, 0] = m.ctypes.data
    out[n, 1] = m.shape[0]
    out[n, SIEVE] = 0
    return out
