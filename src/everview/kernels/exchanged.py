"""The change from the old results of some groups to the new ones, where most rows are the same in both."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, inline, kernel, rows, rows_out
from everview.kernels.rows import compare, multiply


@kernel(rows_out, rows, rows, i64)
def exchanged(old, new, key):
    """The rows of ``new``, and those of ``old`` with negated weights, without the rows that cancel at a group's ends.

    A group is the rows with the same first ``key`` words. Its rows lie together, and groups have the same order in both
    matrices. The rows with which a group begins in both, and those with which it ends in both, are left out.
    """
    n, m, width = old.shape[0], new.shape[0], old.shape[1]
    out = np.empty((n + m, width), np.int64)
    count = 0
    i = 0
    j = 0
    while i < n or j < m:
        order = 1 if i == n else -1 if j == m else compare(old, i, new, j, 0, key)
        i_end = _end_of_group(old, i, key) if order <= 0 else i
        j_end = _end_of_group(new, j, key) if order >= 0 else j
        a, b = i, j
        while a < i_end and b < j_end and compare(old, a, new, b, key, width) == 0:
            a += 1
            b += 1
        i, j = i_end, j_end
        while i_end > a and j_end > b and compare(old, i_end - 1, new, j_end - 1, key, width) == 0:
            i_end -= 1
            j_end -= 1
        for r in range(a, i_end):
            out[count] = old[r]
            out[count, width - 1] = multiply(old[r, width - 1], -1)
            count += 1
        for r in range(b, j_end):
            out[count] = new[r]
            count += 1
    return out[:count].copy()


@inline
def _end_of_group(m, i, key):
    """The number of the row behind the last one of row i's group."""
    end = i + 1
    while end < m.shape[0] and compare(m, i, m, end, 0, key) == 0:
        end += 1
    return end
