"""How the first rows of a group change when a batch is added to a spine: one walk through both states at once.

The batches are walked together, the change among them, and every row is weighed without the change and with it. The
walk ends where both states have all their places, or where nothing of the change is left and both have taken as many:
from there on they are the same.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import levels
from everview.kernels import registers as register
from everview.kernels.ends import begin_all, line_up
from everview.kernels.gallop import past
from everview.kernels.instructions import END, LEFT, START, X, Y, Z, lines_of, table_of
from everview.kernels.jit import i64, inline, kernel, rows, rows_out
from everview.kernels.ordering import by_values, plain_first
from everview.kernels.probe import keys
from everview.kernels.reshape import reshape
from everview.kernels.rows import add, batch, compare


@inline
def _inside(place, weight, skip, end):
    """How many places between ``skip`` and ``end`` a row takes that begins at ``place``; none of the sums overflows."""
    return max(0, min(weight, end - place) - max(0, min(weight, skip - place))) if weight > 0 else 0


@inline
def _after(place, weight, end):
    return place + min(weight, end - place) if weight > 0 else place


@inline
def _change(groups, table, columns, key, skip, limit, ordering):
    n, batches, width, end = groups.shape[0], table.shape[0], columns - 1, skip + limit
    change = batches - 1
    begins = begin_all(groups, table, columns, key)
    at = np.empty(batches, np.int64)
    ends = np.empty(batches, np.int64)
    line = np.empty(batches, np.int64)
    plain = plain_first(key, width, ordering)
    out = np.empty((max(4, n), columns), np.int64)
    filled = 0
    for i in range(n):
        first = batches
        for b in range(batches):
            m = batch(table, b, columns)
            at[b] = begins[i, b]
            ends[b] = past(m, at[b], groups, i, key)
            if at[b] < ends[b]:
                first = line_up(table, columns, at, line, first, b, key, width, plain, ordering)
        old = new = 0
        while first < batches and (old < end or new < end):
            if old == new and at[change] >= ends[change]:
                break
            start, before, added = first, 0, 0
            least, row = batch(table, line[first], columns), at[line[first]]
            while first < batches:
                b = line[first]
                m = batch(table, b, columns)
                if first > start and compare(m, at[b], least, row, key, width) != 0:
                    break
                if b == change:
                    added = m[at[b], width]
                else:
                    before = add(before, m[at[b], width])
                at[b] += 1  # a batch has a row once
                first += 1
            for taken in range(first - 1, start - 1, -1):
                b = line[taken]
                if at[b] < ends[b]:
                    first = line_up(table, columns, at, line, first, b, key, width, plain, ordering)
            after = add(before, added)
            weight = _inside(new, after, skip, end) - _inside(old, before, skip, end)
            old, new = _after(old, before, end), _after(new, after, end)
            if weight == 0:
                continue
            if filled == out.shape[0]:
                bigger = np.empty((2 * filled, columns), np.int64)
                bigger[:filled] = out
                out = bigger
            out[filled, :width] = least[row, :width]
            out[filled, width] = weight
            filled += 1
    return out[:filled]


@kernel(rows_out, rows, rows, i64, i64, i64, i64)
def first_rows_change(groups, table, columns, key, skip, limit):
    """The change of `first_rows` of each sorted group by the last batch of a spine."""
    return _change(groups, table, columns, key, skip, limit, ())


@kernel(rows_out, rows, rows, i64, i64, i64, i64, *by_values)
def first_rows_change_by_value(groups, table, columns, key, skip, limit, order, slots, codes, kinds, bounds, arena):
    """`first_rows_change` of a spine that is ordered by value."""
    return _change(groups, table, columns, key, skip, limit, (order, slots, codes, kinds, bounds, arena))


@inline
def top(line, constants, registers, trace, ordering):
    """The instruction: the change of the first rows of the groups that a register's rows touch.

    The constants say how words that were turned around for the order are turned back; none, if none were.
    """
    delta = register.shown(registers, line[LEFT])
    groups, table = keys(delta, line[X]), table_of(trace, registers, line[LEFT])
    changed = _change(groups, table, trace[levels.COLUMNS], line[X], line[Y], line[Z], ordering)
    if line[START] == line[END]:
        return changed
    return reshape(changed, lines_of(constants, line[START], line[END], 2))
