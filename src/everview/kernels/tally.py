"""Aggregates over a spine: the weights of a group's entries laid out densely, and old rows replaced by new."""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import DENSE, seek
from everview.kernels.jit import i64, kernel, rows, rows_out, void, words
from everview.kernels.rows import add, batch, compare, within
from everview.kernels.sieve import is_sifted, sift, starts_in


@kernel(rows_out, rows, words, words, words, words, i64)
def weighed(delta, group, origins, places, sums, base):
    """One row (group words of the origin, base + place) a sum, with the sum as its weight."""
    n, width = origins.size, group.size
    out = np.empty((n, width + 2), np.int64)
    for i in range(n):
        for c in range(width):
            out[i, c] = delta[origins[i], group[c]]
        out[i, width] = base + places[i]
        out[i, width + 1] = sums[i]
    return out


@kernel(void, rows_out, rows, rows, i64, i64, words)
def tally(dense, groups, table, columns, key, bound):
    """Add every entry (group, place) of the spine within the bound to ``dense[group, place]``. Groups are sorted."""
    n, found = groups.shape[0], np.empty(0, np.int64)
    sifted = sift(table, groups, n, key)
    for b in range(table.shape[0]):
        m, at = batch(table, b, columns), 0
        apart = m.shape[0] >= DENSE * n or is_sifted(table, b, sifted)
        if apart:
            found = found if found.size > 0 else np.empty(n, np.int64)
            starts_in(table, b, m, groups, n, key, found, sifted)
        for i in range(n):
            at = found[i] if apart else seek(m, at, groups, i, key)
            while at < m.shape[0] and compare(m, at, groups, i, 0, key) == 0:
                if within(m, at, key + 1, bound):
                    place = m[at, key]
                    dense[i, place] = add(dense[i, place], m[at, columns - 1])
                at += 1


@kernel(void, rows_out, rows, rows, i64, i64, i64)
def align(out, groups, found, key, start, stop):
    """Copy words ``start..stop`` of each found row beside its group; both are sorted, one row a group."""
    j = 0
    for i in range(groups.shape[0]):
        if j < found.shape[0] and compare(found, j, groups, i, 0, key) == 0:
            out[i, :] = found[j, start:stop]
            j += 1
