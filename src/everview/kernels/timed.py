"""Rows with words of time: putting a time on, and telling what belongs to now."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import kernel, pair, rows, rows_out, words


@kernel(rows_out, rows, words)
def stamped(m, now):
    """The rows, each with the time ``now`` before its weight."""
    n, width, depth = m.shape[0], m.shape[1] - 1, now.size
    out = np.empty((n, width + depth + 1), np.int64)
    for i in range(n):
        out[i, :width] = m[i, :width]
        for c in range(depth):
            out[i, width + c] = now[c]
        out[i, width + depth] = m[i, width]
    return out


@kernel(pair(rows_out, rows_out), rows, words)
def split_now(m, now):
    """The rows of time ``now``, without it, and all others as they are."""
    n, depth = m.shape[0], now.size
    width = m.shape[1] - 1 - depth
    current = np.empty((n, width + 1), np.int64)
    later = np.empty(m.shape, np.int64)
    here = there = 0
    for i in range(n):
        same = True
        for c in range(depth):
            if m[i, width + c] != now[c]:
                same = False
                break
        if same:
            current[here, :width] = m[i, :width]
            current[here, width] = m[i, width + depth]
            here += 1
        else:
            later[there, :] = m[i, :]
            there += 1
    return current[:here], later[:there]
