"""Rows word by word: the words of a row turned around and back, by a plan of a line (how, word) for each of them."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import inline, kernel, rows, rows_out

# How a word of the result is made of the word that the plan names.
WORD, INVERTED, NEGATED, BEFORE, AFTER = range(5)


@inline
def made(m, i, how, argument):
    """A word of the result."""
    word = m[i, argument]
    if how == WORD:
        return word
    if how == INVERTED:
        return ~word
    # Unsigned, since these wrap around.
    if how == NEGATED:
        return np.int64(np.uint64(0) - np.uint64(word))
    if how == BEFORE:
        return np.int64(np.uint64(word) - np.uint64(1))
    return np.int64(np.uint64(word) + np.uint64(1))


@kernel(rows_out, rows, rows)
def reshape(m, plan):
    """Every row laid out by the plan, with its weight."""
    n, width, weight = m.shape[0], plan.shape[0], m.shape[1] - 1
    out = np.empty((n, width + 1), np.int64)
    for i in range(n):
        for c in range(width):
            out[i, c] = made(m, i, plan[c, 0], plan[c, 1])
        out[i, width] = m[i, weight]
    return out
