"""Sorting and consolidation: from weighted rows in any order to a batch.

Rows are sorted column by column: a range of rows is put in order of one word by a radix sort over only the
bits that vary, then every run of equal words is sorted by the next one. Short ranges are sorted by insertion.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import boolean, inline, kernel, rows, rows_out, words, words_out
from everview.kernels.ordering import by_values, compare_in
from everview.kernels.rows import add

SHORT = 40  # below this, insertion beats clearing a histogram
MANY = 4096  # from here on, wider digits save passes


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


@inline
def _less(m, columns, i, j, first):
    for c in range(first, columns.size):
        x = m[i, columns[c]]
        y = m[j, columns[c]]
        if x != y:
            return x < y
    return False


@inline
def insertion(m, columns, order, lo, hi, first):
    """Put a few rows of ``order``, that agree before column ``first``, in order."""
    for i in range(lo + 1, hi):
        row = order[i]
        j = i
        while j > lo and _less(m, columns, row, order[j - 1], first):
            order[j] = order[j - 1]
            j -= 1
        order[j] = row


@inline
def radix(keys, order, keys2, order2, lo, hi, least, span):
    """Stable order of ``keys[lo:hi]`` (and with them ``order``), all within ``least..least+span`` unsigned."""
    n = hi - lo
    bits = 8 if n < MANY else 11
    size = 1 << bits
    mask = np.uint64(size - 1)
    counts = np.empty(size, np.int64)
    shift = np.uint64(0)
    flipped = False
    while True:
        counts[:] = 0
        source, target = (keys2, keys) if flipped else (keys, keys2)
        sorder, torder = (order2, order) if flipped else (order, order2)
        for i in range(lo, hi):
            counts[((np.uint64(source[i]) - least) >> shift) & mask] += 1
        at = lo
        for d in range(size):
            c = counts[d]
            counts[d] = at
            at += c
        for i in range(lo, hi):
            d = ((np.uint64(source[i]) - least) >> shift) & mask
            p = counts[d]
            counts[d] = p + 1
            target[p] = source[i]
            torder[p] = sorder[i]
        flipped = not flipped
        shift += np.uint64(bits)
        if shift >= np.uint64(64) or (span >> shift) == np.uint64(0):
            break
    if flipped:
        keys[lo:hi] = keys2[lo:hi]
        order[lo:hi] = order2[lo:hi]


@inline
def sort_range(m, columns, order, keys, order2, keys2, start, end, after):
    """Put ``order[start:end]``, of rows that agree before column ``after``, in order; the other arrays are scratch."""
    stack = np.empty((columns.size * ((end - start) // SHORT + 2) + 2, 3), np.int64)
    top = 0
    if columns.size > after:
        stack[0, 0], stack[0, 1], stack[0, 2] = start, end, after
        top = 1
    while top > 0:
        top -= 1
        lo, hi, first = stack[top, 0], stack[top, 1], stack[top, 2]
        column = columns[first]
        smallest = largest = m[order[lo], column]
        for i in range(lo, hi):
            k = m[order[i], column]
            keys[i] = k
            smallest = min(smallest, k)
            largest = max(largest, k)
        if smallest != largest:
            span = np.uint64(largest) - np.uint64(smallest)
            radix(keys, order, keys2, order2, lo, hi, np.uint64(smallest), span)
        if first + 1 == columns.size:
            continue
        run = lo
        for i in range(lo + 1, hi + 1):
            if i < hi and keys[i] == keys[run]:
                continue
            if i - run > SHORT:
                stack[top, 0], stack[top, 1], stack[top, 2] = run, i, first + 1
                top += 1
            elif i - run > 1:
                insertion(m, columns, order, run, i, first + 1)
            run = i


@kernel(words_out, rows, words)
def sort_order(m, columns):
    """The order of the rows of ``m`` by the given columns; rows equal in all of them keep their order."""
    n = m.shape[0]
    order = np.arange(n)
    if n <= SHORT:
        insertion(m, columns, order, 0, n, 0)
        return order
    keys = np.empty(n, np.int64)
    keys2 = np.empty(n, np.int64)
    order2 = np.empty(n, np.int64)
    sort_range(m, columns, order, keys, order2, keys2, 0, n, 0)
    return order


@inline
def _in_order(delta, columns):
    """Whether the rows are sorted by the given columns, equal ones next to each other."""
    for i in range(1, delta.shape[0]):  # noqa: SIM110, generators do not compile
        if _less(delta, columns, i, i - 1, 0):
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
