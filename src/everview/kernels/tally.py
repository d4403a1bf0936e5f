"""Aggregates over a spine: the weights of a group's entries laid out densely, and old rows replaced by new."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import kernel, octets, rows, rows_out, void, words, i64
from everview.kernels.probe import seek
from everview.kernels.rows import add, batch, compare


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


@kernel(void, rows_out, rows, rows, i64, i64)
def tally(dense, groups, table, columns, key):
    """Add every entry (group, place) of the spine to ``dense[group, place]``. Groups are sorted."""
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        at = 0
        for i in range(groups.shape[0]):
            at = seek(m, at, groups, i, key)
            while at < m.shape[0] and compare(m, at, groups, i, 0, key) == 0:
                place = m[at, key]
                dense[i, place] = add(dense[i, place], m[at, key + 1])
                at += 1


@kernel(void, rows_out, rows, rows, i64, i64, i64)
def align(out, groups, found, key, start, stop):
    """Copy words ``start..stop`` of each found row beside its group; both are sorted, one row a group."""
    j = 0
    for i in range(groups.shape[0]):
        if j < found.shape[0] and compare(found, j, groups, i, 0, key) == 0:
            out[i, :] = found[j, start:stop]
            j += 1


@kernel(rows_out, rows, octets, octets, rows, rows, i64)
def replaced(groups, was, now, old, new, key):
    """Retract each group's old row and assert its new one, where they differ."""
    n, width = groups.shape[0], old.shape[1]
    out = np.empty((2 * n, key + width + 1), np.int64)
    at = 0
    for i in range(n):
        if was[i] and now[i]:
            same = True
            for c in range(width):
                if old[i, c] != new[i, c]:
                    same = False
                    break
            if same:
                continue
        if was[i]:
            out[at, :key] = groups[i, :key]
            out[at, key : key + width] = old[i, :]
            out[at, key + width] = -1
            at += 1
        if now[i]:
            out[at, :key] = groups[i, :key]
            out[at, key : key + width] = new[i, :]
            out[at, key + width] = 1
            at += 1
    return out[:at]
