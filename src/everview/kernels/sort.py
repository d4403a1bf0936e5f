"""Sorting and consolidation: from weighted rows in any order to a batch.

How rows are put in order is said in `everview.kernels.dealing`.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.dealing import DEALT, SHORT, insertion, less, order_by_columns, order_by_numbers
from everview.kernels.jit import boolean, inline, kernel, rows, rows_out, words, words_out
from everview.kernels.ordering import by_values, compare_in
from everview.kernels.rows import add, prefetch

AHEAD = 16  # rows that are asked for before they are read, where they are not read in order


@kernel(boolean, rows)
def is_batch(m):
    """Whether the rows are sorted, distinct and of nonzero weight."""
    n, width = m.shape[0], m.shape[1] - 1
    for i in range(n):
        if m[i, width] == 0:
            return False
    for i in range(1, n):
        before = False
        for c in range(width):
            if m[i - 1, c] != m[i, c]:
                before = m[i - 1, c] < m[i, c]
                break
        if not before:
            return False
    return True


@kernel(words_out, rows, words)
def sort_order(m, columns):
    """The order of the rows of ``m`` by the given columns; rows equal in all of them keep their order."""
    n = m.shape[0]
    order = np.arange(n)
    if n <= SHORT:
        insertion(m, columns, order, 0, n, 0)
        return order
    if n < DEALT or columns.size == 1:
        return order_by_columns(m, columns)
    return order_by_numbers(m, columns)


@inline
def _in_order(delta, columns):
    """Whether the rows are sorted by the given columns, equal ones next to each other."""
    for i in range(1, delta.shape[0]):  # noqa: SIM110, generators do not compile
        if less(delta, columns, i, i - 1, 0):
            return False
    return True


@inline
def arrange_into(out, delta, columns):
    """`arrange` into a matrix with room for all rows; returns how many there are."""
    n, weight = delta.shape[0], delta.shape[1] - 1
    width = columns.size
    order = np.empty(0, np.int64) if _in_order(delta, columns) else sort_order(delta, columns)
    at = -1
    for i in range(n):
        row = order[i] if order.size > 0 else i
        if i + AHEAD < order.size:
            prefetch(delta, order[i + AHEAD])
        same = at >= 0
        if same:
            for c in range(width):
                if out[at, c] != delta[row, columns[c]]:
                    same = False
                    break
        if same:
            out[at, width] = add(out[at, width], delta[row, weight])
            continue
        if at < 0 or out[at, width] != 0:
            at += 1
        for c in range(width):
            out[at, c] = delta[row, columns[c]]
        out[at, width] = delta[row, weight]
    if at >= 0 and out[at, width] == 0:
        at -= 1
    return at + 1


@kernel(rows_out, rows, words)
def arrange(delta, columns):
    """The batch of ``delta`` projected on ``columns``, in that order: sorted, equal rows summed, zeros gone."""
    out = np.empty((delta.shape[0], columns.size + 1), np.int64)
    return out[: arrange_into(out, delta, columns)]


@kernel(rows_out, rows, *by_values)
def sorted_by_value(m, order, slots, codes, kinds, bounds, arena):
    """The rows of a batch put in order by value: a merge sort of ever longer runs."""
    ordering = (order, slots, codes, kinds, bounds, arena)
    n, width = m.shape[0], m.shape[1] - 1
    here, there = np.arange(n), np.empty(n, np.int64)
    run = 1
    while run < n:
        for lo in range(0, n, 2 * run):
            i, mid, hi = lo, min(lo + run, n), min(lo + 2 * run, n)
            j = mid
            for at in range(lo, hi):
                if j == hi or (i < mid and compare_in(m, here[i], m, here[j], 0, width, ordering) <= 0):
                    there[at] = here[i]
                    i += 1
                else:
                    there[at] = here[j]
                    j += 1
        here, there = there, here
        run *= 2
    out = np.empty(m.shape, np.int64)
    for i in range(n):
        out[i, :] = m[here[i], :]
    return out
