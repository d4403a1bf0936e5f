"""The two ends of a group in a spine: its first rows from some place on, and its last.

The batches of the spine are walked together from an end of the group; rows that cancel across them are passed over.
Entries may end in words of time: then a row's entries are summed over the times that lie within a bound.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import past
from everview.kernels.jit import i64, inline, kernel, rows, rows_out, words
from everview.kernels.ordering import by_values, compare_in, plain_first
from everview.kernels.rows import add, batch, compare, within
from everview.kernels.sieve import sift, starts_in


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
def line_up(table, columns, at, line, first, b, key, width, plain, ordering):
    """Put a batch in its place in a line of batches, ordered by their next rows, that begins at ``first``.

    The batch that gave the last row gives the next one, or nearly: most rows cost one or two comparisons, and those,
    where the first words are ``plain``, no more than two numbers.
    """
    m, place = batch(table, b, columns), first - 1
    while place + 1 < line.size:
        other = line[place + 1]
        o = batch(table, other, columns)
        if plain and m[at[b], key] != o[at[other], key]:
            if m[at[b], key] < o[at[other], key]:
                break
        elif compare_in(m, at[b], o, at[other], key, width, ordering) <= 0:
            break
        line[place] = other
        place += 1
    line[place] = b
    return first - 1


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
def sum_here(m, at, end, other, row, width, bound):
    """The summed weight within the bound of a row in one batch, and the place past it."""
    total = 0
    while at < end and compare(m, at, other, row, 0, width) == 0:
        if within(m, at, width, bound):
            total = add(total, m[at, m.shape[1] - 1])
        at += 1
    return total, at


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
def begin_all(groups, table, columns, key):
    """Where each sorted group begins in each batch of a spine, a line a group."""
    n, batches = groups.shape[0], table.shape[0]
    begins, found = np.empty((n, batches), np.int64), np.empty(n, np.int64)
    sifted = sift(table, groups, n, key)
    for b in range(batches):
        starts_in(table, b, batch(table, b, columns), groups, n, key, found, sifted)
        for i in range(n):
            begins[i, b] = found[i]
    return begins


@inline
def _first_rows(groups, table, columns, key, skip, limit, bound, ordering):
    n, batches, width = groups.shape[0], table.shape[0], columns - 1 - bound.size
    begins = begin_all(groups, table, columns, key)
    at = np.empty(batches, np.int64)
    ends = np.empty(batches, np.int64)
    line = np.empty(batches, np.int64)
    plain = plain_first(key, width, ordering)
    out = np.empty((max(4, n), width + 1), np.int64)
    filled = 0
    for i in range(n):
        first = batches
        for b in range(batches):
            m = batch(table, b, columns)
            at[b] = begins[i, b]
            ends[b] = past(m, at[b], groups, i, key)
            if at[b] < ends[b]:
                first = line_up(table, columns, at, line, first, b, key, width, plain, ordering)
        place = 0
        while place < skip + limit and first < batches:
            best, start, total = line[first], first, 0
            least, row = batch(table, best, columns), at[best]
            while first < batches:
                b = line[first]
                part, after = sum_here(batch(table, b, columns), at[b], ends[b], least, row, width, bound)
                if after == at[b]:
                    break
                total, at[b] = add(total, part), after
                first += 1
            for taken in range(first - 1, start - 1, -1):
                b = line[taken]
                if at[b] < ends[b]:
                    first = line_up(table, columns, at, line, first, b, key, width, plain, ordering)
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
            out[filled, :width] = least[row, :width]
            out[filled, width] = inside
            filled += 1
    return out[:filled]


@inline
def _last_rows(groups, table, columns, key, bound, ordering):
    n, batches, width = groups.shape[0], table.shape[0], columns - 1 - bound.size
    begins = begin_all(groups, table, columns, key)
    at = np.empty(batches, np.int64)
    out = np.empty((n, width + 1), np.int64)
    filled = 0
    for i in range(n):
        for b in range(batches):
            at[b] = past(batch(table, b, columns), begins[i, b], groups, i, key)
        while True:
            best = greatest_batch(table, columns, begins[i], at, key, width, ordering)
            if best < 0:
                break
            row = at[best] - 1
            total = sum_backward(table, columns, begins[i], at, best, row, width, bound)
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
