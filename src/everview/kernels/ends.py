"""The two ends of a group in a spine: its first rows from some place on, and its last.

The batches of the spine are walked together from an end of the group; rows that cancel across them are passed over.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, inline, kernel, rows, rows_out
from everview.kernels.ordering import by_values, compare_in
from everview.kernels.probe import past, seek
from everview.kernels.rows import add, batch, compare


@inline
def _least(table, columns, at, ends, key, ordering):
    """The batch whose next row is the least, or -1 when all are at their end."""
    best = -1
    for b in range(table.shape[0]):
        if at[b] >= ends[b]:
            continue
        if best < 0:
            best = b
            continue
        m, least = batch(table, b, columns), batch(table, best, columns)
        if compare_in(m, at[b], least, at[best], key, columns - 1, ordering) < 0:
            best = b
    return best


@inline
def _greatest(table, columns, starts, at, key, ordering):
    """The batch whose last unread row is the greatest, or -1 when all are read."""
    best = -1
    for b in range(table.shape[0]):
        if at[b] <= starts[b]:
            continue
        if best < 0:
            best = b
            continue
        m, greatest = batch(table, b, columns), batch(table, best, columns)
        if compare_in(m, at[b] - 1, greatest, at[best] - 1, key, columns - 1, ordering) > 0:
            best = b
    return best


@inline
def _sum_forward(table, columns, at, ends, best):
    """The summed weight of the least row, moving every batch past it."""
    m = batch(table, best, columns)
    row = at[best]
    total = 0
    for b in range(table.shape[0]):
        if at[b] < ends[b]:
            other = batch(table, b, columns)
            if compare(other, at[b], m, row, 0, columns - 1) == 0:
                total = add(total, other[at[b], columns - 1])
                if b != best:
                    at[b] += 1
    at[best] += 1
    return total


@inline
def _sum_backward(table, columns, starts, at, best):
    m = batch(table, best, columns)
    row = at[best] - 1
    total = 0
    for b in range(table.shape[0]):
        if at[b] > starts[b]:
            other = batch(table, b, columns)
            if compare(other, at[b] - 1, m, row, 0, columns - 1) == 0:
                total = add(total, other[at[b] - 1, columns - 1])
                if b != best:
                    at[b] -= 1
    at[best] -= 1
    return total


@inline
def _first_rows(groups, table, columns, key, skip, limit, ordering):
    n, batches, weight = groups.shape[0], table.shape[0], columns - 1
    found = np.zeros(batches, np.int64)
    at = np.empty(batches, np.int64)
    ends = np.empty(batches, np.int64)
    out = np.empty((max(4, n), columns), np.int64)
    filled = 0
    for i in range(n):
        for b in range(batches):
            m = batch(table, b, columns)
            at[b] = seek(m, found[b], groups, i, key)
            ends[b] = past(m, at[b], groups, i, key)
            found[b] = ends[b]
        place = 0
        while place < skip + limit:
            best = _least(table, columns, at, ends, key, ordering)
            if best < 0:
                break
            row = at[best]
            total = _sum_forward(table, columns, at, ends, best)
            if total <= 0:
                continue
            inside = min(skip + limit - place, total) - max(0, min(total, skip - place))
            place += min(total, skip + limit - place)
            if inside <= 0:
                continue
            if filled == out.shape[0]:
                bigger = np.empty((2 * filled, columns), np.int64)
                bigger[:filled] = out
                out = bigger
            out[filled, :] = batch(table, best, columns)[row, :]
            out[filled, weight] = inside
            filled += 1
    return out[:filled]


@inline
def _last_rows(groups, table, columns, key, ordering):
    n, batches = groups.shape[0], table.shape[0]
    starts = np.empty(batches, np.int64)
    found = np.zeros(batches, np.int64)
    at = np.empty(batches, np.int64)
    out = np.empty((n, columns), np.int64)
    filled = 0
    for i in range(n):
        for b in range(batches):
            m = batch(table, b, columns)
            starts[b] = seek(m, found[b], groups, i, key)
            at[b] = past(m, starts[b], groups, i, key)
            found[b] = at[b]
        while True:
            best = _greatest(table, columns, starts, at, key, ordering)
            if best < 0:
                break
            row = at[best] - 1
            total = _sum_backward(table, columns, starts, at, best)
            if total > 0:
                out[filled, :] = batch(table, best, columns)[row, :]
                out[filled, columns - 1] = total
                filled += 1
                break
    return out[:filled]


@kernel(rows_out, rows, rows, i64, i64, i64, i64)
def first_rows(groups, table, columns, key, skip, limit):
    """Of each sorted group, the rows of positive weight from place ``skip`` on, at most ``limit`` of them.

    A row of weight w takes w places; a row that straddles a bound keeps the places inside.
    """
    return _first_rows(groups, table, columns, key, skip, limit, ())


@kernel(rows_out, rows, rows, i64, i64, i64, i64, *by_values)
def first_rows_by_value(
    groups, table, columns, key, skip, limit, order, slots, codes, kinds, bounds, arena
):
    """`first_rows` of a spine that is ordered by value."""
    return _first_rows(groups, table, columns, key, skip, limit, (order, slots, codes, kinds, bounds, arena))


@kernel(rows_out, rows, rows, i64, i64)
def last_rows(groups, table, columns, key):
    """Of each sorted group, its greatest row of positive weight."""
    return _last_rows(groups, table, columns, key, ())


@kernel(rows_out, rows, rows, i64, i64, *by_values)
def last_rows_by_value(groups, table, columns, key, order, slots, codes, kinds, bounds, arena):
    """`last_rows` of a spine that is ordered by value."""
    return _last_rows(groups, table, columns, key, (order, slots, codes, kinds, bounds, arena))
