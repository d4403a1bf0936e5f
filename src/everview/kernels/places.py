"""Places in a group: its rows in order, a row of weight w taking w places.

Rows come as `first_rows` gives them: group after group in the order of the groups, every weight positive.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, kernel, rows, words, words_out
from everview.kernels.rows import add, compare


@kernel(words_out, rows, rows, i64)
def spans(groups, found, key):
    """Where the rows of each sorted group begin, and at last where they all end."""
    n = groups.shape[0]
    out = np.empty(n + 1, np.int64)
    at = 0
    for i in range(n):
        out[i] = at
        while at < found.shape[0] and compare(found, at, groups, i, 0, key) == 0:
            at += 1
    out[n] = at
    return out


@kernel(words_out, words, words)
def totals(weights, starts):
    """How many places each group has."""
    n = starts.size - 1
    out = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(starts[i], starts[i + 1]):
            out[i] = add(out[i], weights[j])
    return out


@kernel(words_out, words, words, words)
def rows_at(weights, starts, places):
    """The row that takes a place of each group, counted from 0; -1 where the group has no such place."""
    n = places.size
    out = np.full(n, -1, np.int64)
    for i in range(n):
        left = places[i]
        for j in range(starts[i], starts[i + 1]):
            if left < weights[j]:
                out[i] = j
                break
            left -= weights[j]
    return out
