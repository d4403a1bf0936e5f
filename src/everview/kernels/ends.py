"""The two ends of a group in a spine: its first rows from some place on, and its last.

The batches of the spine are walked together from an end of the group; rows that cancel across them are passed over.
Entries may end in words of time: then a row's entries are summed over the times that lie within a bound.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import past, seek
from everview.kernels.jit import i64, inline, kernel, rows, rows_out, words
from everview.kernels.ordering import by_values, compare_in
from everview.kernels.rows import add, batch, compare, within


@inline
def least_batch(table, columns, at, ends, key, width, ordering):
    """The batch whose next row is the least, or -1 when all are at their end."""
    best = -1
    for b in range(table.shape[0]):
        if at[b] >= ends[b]:
            continue
        if best < 0:
            best = b
            continue
        m, least = batch(table, b, columns), batch(table, best, columns)
        if compare_in(m, at[b], least, at[best], key, width, ordering) < 0:
            best = b
    return best


@inline
def greatest_batch(table, columns, starts, at, key, width, ordering):
    """The batch whose last unread row is the greatest, or -1 when all are read."""
    best = -1
    for b in range(table.shape[0]):
        if at[b] <= starts[b]:
            continue
        if best < 0:
            best = b
            continue
        m, greatest = batch(table, b, columns), batch(table, best, columns)
        if compare_in(m, at[b] - 1, greatest, at[best] - 1, key, width, ordering) > 0:
            best = b
    return best


@inline
def sum_forward(table, columns, at, ends, best, row, width, bound):
    """The summed weight within the bound of the least row, moving every batch past it."""
    m = batch(table, best, columns)
    total = 0
    for b in range(table.shape[0]):
        other = batch(table, b, columns)
        while at[b] < ends[b] and compare(other, at[b], m, row, 0, width) == 0:
            if within(other, at[b], width, bound):
                total = add(total, other[at[b], columns - 1])
            at[b] += 1
    return total


@inline
def sum_backward(table, columns, starts, at, best, row, width, bound):
    """The summed weight within the bound of the greatest row, moving every batch before it."""
    m = batch(table, best, columns)
    total = 0
    for b in range(table.shape[0]):
        other = batch(table, b, columns)
        while at[b] > starts[b] and compare(other, at[b] - 1, m, row, 0, width) == 0:
            if within(other, at[b] - 1, width, bound):
                total = add(total, other[at[b] - 1, columns - 1])
            at[b] -= 1
    return total


@inline
def _first_rows(groups, table, columns, key, skip, limit, bound, ordering):
    n, batches, width = groups.shape[0], table.shape[0], columns - 1 - bound.size
    found = np.zeros(batches, np.int64)
    at = np.empty(batches, np.int64)
    ends = np.empty(batches, np.int64)
    out = np.empty((max(4, n), width + 1), np.int64)
    filled = 0
    for i in range(n):
        for b in range(batches):
            m = batch(table, b, columns)
            at[b] = seek(m, found[b], groups, i, key)
            ends[b] = past(m, at[b], groups, i, key)
            found[b] = ends[b]
        place = 0
        while place < skip + limit:
            best = least_batch(table, columns, at, ends, key, width, ordering)
            if best < 0:
                break
            row = at[best]
            total = sum_forward(table, columns, at, ends, best, row, width, bound)
            if total <= 0:
                continue
            inside = min(skip + limit - place, total) - max(0, min(total, skip - place))
            place += min(total, skip + limit - place)
            if inside <= 0:
                continue
            if filled == out.shape[0]:
                bigger = np.empty((2 * filled, width + 1), np.int64)
                bigger[:filled] = out
                out = bigger
            out[filled, :width] = batch(table, best, columns)[row, :width]
            out[filled, width] = inside
            filled += 1
    return out[:filled]


@inline
def _last_rows(groups, table, columns, key, bound, ordering):
    n, batches, width = groups.shape[0], table.shape[0], columns - 1 - bound.size
    starts = np.empty(batches, np.int64)
    found = np.zeros(batches, np.int64)
    at = np.empty(batches, np.int64)
    out = np.empty((n, width + 1), np.int64)
    filled = 0
    for i in range(n):
        for b in range(batches):
            m = batch(table, b, columns)
            starts[b] = seek(m, found[b], groups, i, key)
            at[b] = past(m, starts[b], groups, i, key)
            found[b] = at[b]
        while True:
            best = greatest_batch(table, columns, starts, at, key, width, ordering)
            if best < 0:
                break
            row = at[best] - 1
            total = sum_backward(table, columns, starts, at, best, row, width, bound)
            if total > 0:
                out[filled, :width] = batch(table, best, columns)[row, :width]
                out[filled, width] = total
                filled += 1
                break
    return out[:filled]


@kernel(rows_out, rows, rows, i64, i64, i64, i64, words)
def first_rows(groups, table, columns, key, skip, limit, bound):
    """Of each sorted group, the rows of positive weight from place ``skip`` on, at most ``limit`` of them.

    A row of weight w takes w places; a row that straddles a bound keeps the places inside.
    """
    return _first_rows(groups, table, columns, key, skip, limit, bound, ())


@kernel(rows_out, rows, rows, i64, i64, i64, i64, words, *by_values)
def first_rows_by_value(groups, table, columns, key, skip, limit, bound, order, slots, codes, kinds, bounds, arena):
    """`first_rows` of a spine that is ordered by value."""
    ordering = (order, slots, codes, kinds, bounds, arena)
    return _first_rows(groups, table, columns, key, skip, limit, bound, ordering)


@kernel(rows_out, rows, rows, i64, i64, words)
def last_rows(groups, table, columns, key, bound):
    """Of each sorted group, its greatest row of positive weight."""
    return _last_rows(groups, table, columns, key, bound, ())


@kernel(rows_out, rows, rows, i64, i64, words, *by_values)
def last_rows_by_value(groups, table, columns, key, bound, order, slots, codes, kinds, bounds, arena):
    """`last_rows` of a spine that is ordered by value."""
    return _last_rows(groups, table, columns, key, bound, (order, slots, codes, kinds, bounds, arena))
