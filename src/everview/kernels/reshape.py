"""Rows word by word: the words of a row laid out anew, and rows kept by tests of their words.

A **plan** has a line (how, argument) for every word of the result; **tests** have a line
(kind, word, other, constant, first word, NULL's first word or the like) each. Both are data, so that one kernel serves
all operators that do nothing else, and the compiled tick.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.dictionary import NULL_WORD
from everview.kernels.jit import inline, kernel, rows, rows_out

# How a word of the result is made of the word that the argument numbers, or of the argument itself.
WORD, CONSTANT, IS_VALUE, OR_ZERO, HIGH, LOW, INVERTED, NEGATED, BEFORE, AFTER = range(10)

# What a test asks of a word: a comparison with a constant or another word; or whether it is this word.
EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)
OTHER = 6  # added to a comparison: with the word numbered by the argument
OR_NEXT = 16  # added: it is enough that this test or the next one passes


@inline
def made(m, i, how, argument):
    """A word of the result."""
    if how == WORD:
        return m[i, argument]
    if how == CONSTANT:
        return argument
    word = m[i, argument]
    if how == INVERTED:
        return ~word
    # Unsigned, since these wrap around.
    if how == NEGATED:
        return np.int64(np.uint64(0) - np.uint64(word))
    if how == BEFORE:
        return np.int64(np.uint64(word) - np.uint64(1))
    if how == AFTER:
        return np.int64(np.uint64(word) + np.uint64(1))
    absent = word == NULL_WORD
    if how == IS_VALUE:
        return 0 if absent else 1
    if how == OR_ZERO:
        return 0 if absent else word
    if absent:
        return NULL_WORD
    return word >> 63 if how == HIGH else word ^ NULL_WORD


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


@inline
def _passes(m, i, tests, t):
    kind, x, y = tests[t, 0] & (OR_NEXT - 1), m[i, tests[t, 1]], tests[t, 2]
    if kind >= OTHER:
        kind -= OTHER
        y = m[i, y]
    if kind == EQUAL:
        return x == y
    if kind == NOT_EQUAL:
        return x != y
    if kind == LESS:
        return x < y
    if kind == LESS_EQUAL:
        return x <= y
    return x > y if kind == GREATER else x >= y


@kernel(rows_out, rows, rows)
def passing(m, tests):
    """The rows that pass all tests (kind, word, constant or other word); of a run of tests with `OR_NEXT`, any."""
    n, width = m.shape[0], m.shape[1]
    out = np.empty((n, width), np.int64)
    at = 0
    for i in range(n):
        kept, t = True, 0
        while kept and t < tests.shape[0]:
            kept = _passes(m, i, tests, t)
            while tests[t, 0] & OR_NEXT:
                t += 1
                kept = kept or _passes(m, i, tests, t)
            t += 1
        if kept:
            for c in range(width):
                out[at, c] = m[i, c]
            at += 1
    return out[:at]
