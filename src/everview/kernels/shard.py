"""Which shard a row belongs to: a hash of its key's words, the same in every process."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, inline, kernel, pair, rows, rows_out, words, words_out


@inline
def _mix(h):
    """The finalizer of SplitMix64: every bit of the input moves every bit of the output."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@inline
def shard_of(m, i, columns, shards):
    h = np.uint64(0x9E3779B97F4A7C15)
    for c in range(columns.size):
        h = _mix(h ^ np.uint64(m[i, columns[c]])) + np.uint64(0x9E3779B97F4A7C15)
    return np.int64(h % np.uint64(shards))


@kernel(pair(rows_out, words_out), rows, words, i64)
def split(m, columns, shards):
    """The rows of m shard by shard, each in its old order, and where each shard begins."""
    n = m.shape[0]
    shard = np.empty(n, np.int64)
    bounds = np.zeros(shards + 1, np.int64)
    for i in range(n):
        shard[i] = shard_of(m, i, columns, shards)
        bounds[shard[i] + 1] += 1
    for s in range(shards):
        bounds[s + 1] += bounds[s]
    at = bounds[:-1].copy()
    out = np.empty(m.shape, np.int64)
    for i in range(n):
        out[at[shard[i]], :] = m[i, :]
        at[shard[i]] += 1
    return out, bounds
