"""Reading a spine by key: join, membership, and the first or last rows of a group.

A spine is passed as a table, one line a batch, so that one call reads them all. Probes
come sorted by key; all are looked up in a batch before the next batch is read.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import past
from everview.kernels.jit import i64, inline, kernel, rows, rows_out, words, words_out
from everview.kernels.rows import add, batch, compare, multiply, within
from everview.kernels.sieve import sift, starts_in


@inline
def _bounds(groups, table, columns, key):
    """Where each sorted group begins and ends in each batch, and how many rows that is in all."""
    n, batches = groups.shape[0], table.shape[0]
    bounds, found = np.empty((batches, n, 2), np.int64), np.empty(n, np.int64)
    sifted, total = sift(table, groups, n, key), 0
    for b in range(batches):
        m = batch(table, b, columns)
        starts_in(table, b, m, groups, n, key, found, sifted)
        hi = 0
        for i in range(n):
            lo = found[i]
            if i == 0 or compare(groups, i, groups, i - 1, 0, key) != 0:
                hi = past(m, lo, groups, i, key)
            bounds[b, i, 0] = lo
            bounds[b, i, 1] = hi
            total += hi - lo
    return bounds, total


@kernel(rows_out, rows, rows, i64, i64, words)
def join(delta, table, columns, key, pick):
    """Every row of the sorted delta with every row of the spine that has its key; weights multiply.

    ``pick`` says where each word of a result comes from: word c of the delta's row, or word ~c of the spine's.
    """
    bounds, total = _bounds(delta, table, columns, key)
    dweight, sweight, width = delta.shape[1] - 1, columns - 1, pick.size
    out = np.empty((total, width + 1), np.int64)
    at = 0
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        for i in range(delta.shape[0]):
            for j in range(bounds[b, i, 0], bounds[b, i, 1]):
                for c in range(width):
                    p = pick[c]
                    out[at, c] = delta[i, p] if p >= 0 else m[j, ~p]
                out[at, width] = multiply(delta[i, dweight], m[j, sweight])
                at += 1
    return out


@kernel(words_out, rows, rows, i64, i64, words)
def weights(probes, table, columns, key, bound):
    """For each sorted probe, the sum of the weights of the spine's rows that begin with its ``key`` words.

    Entries that end in words of time count if their time is within the bound.
    """
    n, width = probes.shape[0], columns - 1 - bound.size
    out, found, sifted = np.zeros(n, np.int64), np.empty(n, np.int64), sift(table, probes, n, key)
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        starts_in(table, b, m, probes, n, key, found, sifted)
        for i in range(n):
            j = found[i]
            while j < m.shape[0] and compare(m, j, probes, i, 0, key) == 0:
                if within(m, j, width, bound):
                    out[i] = add(out[i], m[j, columns - 1])
                j += 1
    return out


@kernel(rows_out, rows, i64)
def keys(m, key):
    """The distinct first ``key`` words of a sorted matrix, each with weight one."""
    n = m.shape[0]
    out = np.empty((n, key + 1), np.int64)
    at = 0
    for i in range(n):
        if i == 0 or compare(m, i, m, i - 1, 0, key) != 0:
            out[at, :key] = m[i, :key]
            out[at, key] = 1
            at += 1
    return out[:at]


@kernel(i64, rows, i64)
def broken_key(m, key):
    """The first row of a batch with a negative weight; or else of those that share their key; -1 if there is none."""
    for i in range(m.shape[0]):
        if m[i, m.shape[1] - 1] < 0:
            return i
    for i in range(m.shape[0]):
        if m[i, m.shape[1] - 1] > 1 or (i > 0 and compare(m, i, m, i - 1, 0, key) == 0):
            return i
    return -1


@kernel(rows_out, rows, rows, i64, i64, words)
def group_rows(groups, table, columns, key, bound):
    """Every row of the spine in one of the sorted groups and within the bound, not consolidated, without time."""
    bounds, total = _bounds(groups, table, columns, key)
    width = columns - 1 - bound.size
    out = np.empty((total, width + 1), np.int64)
    at = 0
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        for i in range(groups.shape[0]):
            for j in range(bounds[b, i, 0], bounds[b, i, 1]):
                if within(m, j, width, bound):
                    out[at, :width] = m[j, :width]
                    out[at, width] = m[j, columns - 1]
                    at += 1
    return out[:at]


@kernel(rows_out, rows, rows, i64, i64, words)
def later_times(groups, table, columns, key, now):
    """(group, time, 1) for the join of ``now`` with the time of every entry of each sorted group, where it is later.

    Those are the times at which a group that changes now must be looked at again.
    """
    bounds, total = _bounds(groups, table, columns, key)
    depth = now.size
    width = columns - 1 - depth
    out = np.empty((total, key + depth + 1), np.int64)
    at = 0
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        for i in range(groups.shape[0]):
            for j in range(bounds[b, i, 0], bounds[b, i, 1]):
                if within(m, j, width, now):
                    continue
                out[at, :key] = groups[i, :key]
                for c in range(depth):
                    out[at, key + c] = max(now[c], m[j, width + c])
                out[at, key + depth] = 1
                at += 1
    return out[:at]


@kernel(rows_out, rows, rows, i64, i64, words, words)
def join_at(delta, table, columns, key, pick, now):
    """`join` with a spine of timed entries: each result ends in the join of ``now`` and its entry's time."""
    bounds, total = _bounds(delta, table, columns, key)
    depth, width = now.size, pick.size
    entry = columns - 1 - depth  # where the time of an entry begins
    out = np.empty((total, width + depth + 1), np.int64)
    at = 0
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        for i in range(delta.shape[0]):
            for j in range(bounds[b, i, 0], bounds[b, i, 1]):
                for c in range(width):
                    p = pick[c]
                    out[at, c] = delta[i, p] if p >= 0 else m[j, ~p]
                for c in range(depth):
                    out[at, width + c] = max(now[c], m[j, entry + c])
                out[at, width + depth] = multiply(delta[i, delta.shape[1] - 1], m[j, columns - 1])
                at += 1
    return out
