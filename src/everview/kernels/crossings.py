"""Weights that cross zero: what distinct puts out."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, kernel, rows, rows_out, words
from everview.kernels.rows import add, batch, compare
from everview.kernels.sieve import sift, starts_in


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


@kernel(rows_out, rows, rows, i64, i64, i64, words)
def crossings_at(groups, table, past, columns, key, now):
    """The change of presence at a nested time, in every direction.

    ``Σ_S (−1)^|S| ([after ↾ t−S > 0] − [before ↾ t−S > 0])`` over the subsets S of coordinates stepped back by one.
    ``table`` is the spine after this time, of which the first ``past`` batches are closed epochs: the state before. One
    pass over the entries of each sorted group adds up the weights within all the bounds t−S.
    """
    n, depth = groups.shape[0], now.size
    width, corners = columns - 1 - depth, 1 << depth
    sums, found = np.zeros((n, 2 * corners), np.int64), np.empty(n, np.int64)
    sifted = sift(table, groups, n, key)
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        starts_in(table, b, m, groups, n, key, found, sifted)
        for i in range(n):
            j = found[i]
            while j < m.shape[0] and compare(m, j, groups, i, 0, key) == 0:
                for s in range(corners):
                    counts = True
                    for c in range(depth):
                        if m[j, width + c] > now[c] - ((s >> c) & 1):
                            counts = False
                    if counts:
                        sums[i, s] = add(sums[i, s], m[j, columns - 1])
                        if b < past:
                            sums[i, corners + s] = add(sums[i, corners + s], m[j, columns - 1])
                j += 1
    out = np.empty((n, key + 1), np.int64)
    at = 0
    for i in range(n):
        change = 0
        for s in range(corners):
            sign = 1
            for c in range(depth):
                if (s >> c) & 1:
                    sign = -sign
            change += sign * (int(sums[i, s] > 0) - int(sums[i, corners + s] > 0))
        if change != 0:
            out[at, :key] = groups[i, :key]
            out[at, key] = change
            at += 1
    return out[:at]
