"""The row in force at a time: of each group of a spine, the nearest present row before, after, or around a moment.

Rows begin with the words of a group, then one word of time; probes and spines agree in these. A row counts if its
weights, summed over the batches, are positive; what cancels is passed over. Of several rows at one time the last one
in the order of the spine stands for all.

``way`` has the bits `BACK` and `AHEAD`; with both, the nearer one wins, and the one before at equal distance. A
``reach`` is the largest distance, as an unsigned number, so that -1 is none. ``nulls`` says how a time is absent:
never (0), by its own word (1), or by a flag in the word before it (2), which then belongs to the group.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.dictionary import NULL_WORD
from everview.kernels.ends import greatest_batch, least_batch, sum_backward, sum_forward
from everview.kernels.gallop import past, seek
from everview.kernels.jit import boolean, i64, inline, kernel, rows, rows_out, words
from everview.kernels.ordering import by_values
from everview.kernels.rows import batch, compare

BACK, AHEAD = 1, 2
LEAST, GREATEST = -(2**63), 2**63 - 1


@inline
def _absent(m, i, group, nulls):
    """Whether the time of row i is NULL."""
    return (nulls == 1 and m[i, group] == NULL_WORD) or (nulls == 2 and m[i, group - 1] == 0)


@inline
def _apart(early, late):
    """The distance of two times, which may be larger than a signed word."""
    return np.uint64(late) - np.uint64(early)


@inline
def _last_present(table, columns, floor, at, group, nulls, t, reach, ordering):
    """(batch, row) of the last present row from ``floor`` to ``at``; -1 if none is within reach of t."""
    while True:
        best = greatest_batch(table, columns, floor, at, group, columns - 1, ordering)
        if best < 0:
            return -1, 0
        row = at[best] - 1
        m = batch(table, best, columns)
        if _absent(m, row, group, nulls) or _apart(m[row, group], t) > np.uint64(reach):
            return -1, 0
        if sum_backward(table, columns, floor, at, best, row, columns - 1, _no_bound()) > 0:
            return best, row


@inline
def _first_present(table, columns, at, ends, group, t, reach, ordering):
    """(batch, row) of the first present row from ``at`` on, moving past it; -1 if none is within reach of t."""
    while True:
        best = least_batch(table, columns, at, ends, group, columns - 1, ordering)
        if best < 0:
            return -1, 0
        row = at[best]
        if _apart(t, batch(table, best, columns)[row, group]) > np.uint64(reach):
            return -1, 0
        if sum_forward(table, columns, at, ends, best, row, columns - 1, _no_bound()) > 0:
            return best, row


@inline
def _last_at(table, columns, best, row, floor, at, group, ordering):
    """The last present row at the time of a present one, before which none is from ``floor`` on."""
    found = batch(table, best, columns)
    for b in range(table.shape[0]):
        at[b] = past(batch(table, b, columns), floor[b], found, row, group + 1)
    while True:
        last = greatest_batch(table, columns, floor, at, group, columns - 1, ordering)
        place = at[last] - 1
        if sum_backward(table, columns, floor, at, last, place, columns - 1, _no_bound()) > 0:
            return last, place


@inline
def _no_bound():
    return np.empty(0, np.int64)


@inline
def _begins(m, i, group, nulls):
    """Whether row i is the first of its group that has a time."""
    return i == 0 or compare(m, i, m, i - 1, 0, group) != 0 or _absent(m, i - 1, group, nulls)


@inline
def _enter(table, columns, probes, i, group, starts, ends):
    """Move on to where the group of a probe begins and ends in every batch."""
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        starts[b] = seek(m, ends[b], probes, i, group)
        ends[b] = past(m, starts[b], probes, i, group)


@inline
def _advance(table, columns, probes, i, group, at, beyond):
    """Move every position on to the first row at the probe's time, or beyond it."""
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        at[b] = past(m, at[b], probes, i, group + 1) if beyond else seek(m, at[b], probes, i, group + 1)


@inline
def _in_force(probes, table, columns, group, nulls, way, strict, reach, ordering):
    n, batches, width = probes.shape[0], table.shape[0], columns - 1
    starts, ends = np.zeros(batches, np.int64), np.zeros(batches, np.int64)
    behind, floor = np.zeros(batches, np.int64), np.zeros(batches, np.int64)
    ahead, at = np.zeros(batches, np.int64), np.zeros(batches, np.int64)
    out = np.zeros((n, columns), np.int64)
    back = after = -1  # the batches of the rows found before and after, -1 for none
    back_row = after_row = 0
    for i in range(n):
        if _absent(probes, i, group, nulls):
            continue
        t = probes[i, group]
        if _begins(probes, i, group, nulls):
            _enter(table, columns, probes, i, group, starts, ends)
            behind[:] = starts
            ahead[:] = starts
            back = after = -1
        # Probes come in order of time, so no entry is walked over twice: what lies between the last probe and the row
        # found for it has been seen not to be present.
        if way & BACK:
            floor[:] = behind
            _advance(table, columns, probes, i, group, behind, not strict)
            at[:] = behind
            found, row = _last_present(table, columns, floor, at, group, nulls, t, reach, ordering)
            if found >= 0:
                back, back_row = found, row
        if way & AHEAD:
            if after >= 0:
                later = batch(table, after, columns)[after_row, group]
                if later < t or (strict and later == t):
                    after = -1
            if after < 0:
                _advance(table, columns, probes, i, group, ahead, strict)
                floor[:] = ahead
                after, after_row = _first_present(table, columns, ahead, ends, group, t, reach, ordering)
                if after >= 0:
                    after, after_row = _last_at(table, columns, after, after_row, floor, at, group, ordering)
        chosen, row = back, back_row
        if after >= 0:
            late = _apart(t, batch(table, after, columns)[after_row, group])
            if back < 0 or late < _apart(batch(table, back, columns)[back_row, group], t):
                chosen, row = after, after_row
        if chosen < 0:
            continue
        m = batch(table, chosen, columns)
        when = m[row, group]
        if (_apart(when, t) if when <= t else _apart(t, when)) > np.uint64(reach):
            continue
        out[i, :width] = m[row, :width]
        out[i, width] = 1
    return out


@kernel(rows_out, rows, rows, i64, i64, i64, i64, boolean, i64)
def in_force(probes, table, columns, group, nulls, way, strict, reach):
    """For each sorted probe the row in force at its time, with weight one; all zeros where there is none.

    Those of the probe's own time count unless ``strict``.
    """
    return _in_force(probes, table, columns, group, nulls, way, strict, reach, ())


@kernel(rows_out, rows, rows, i64, i64, i64, i64, boolean, i64, *by_values)
def in_force_by_value(
    probes, table, columns, group, nulls, way, strict, reach, order, slots, codes, kinds, bounds, arena
):
    """`in_force` of a spine that is ordered by value."""
    ordering = (order, slots, codes, kinds, bounds, arena)
    return _in_force(probes, table, columns, group, nulls, way, strict, reach, ordering)


@inline
def _later(t, reach):
    """``t + reach``, or the greatest time."""
    return GREATEST if _apart(t, GREATEST) <= np.uint64(reach) else t + reach


@inline
def _earlier(t, reach):
    """``t - reach``, or the least time."""
    return LEAST if _apart(LEAST, t) <= np.uint64(reach) else t - reach


@inline
def _spans(changed, table, columns, group, nulls, way, strict, reach, ordering):
    n, batches = changed.shape[0], table.shape[0]
    starts, ends = np.zeros(batches, np.int64), np.zeros(batches, np.int64)
    ahead, floor, at = np.zeros(batches, np.int64), np.zeros(batches, np.int64), np.zeros(batches, np.int64)
    out = np.empty((n, group + 3), np.int64)
    filled = 0
    following = LEAST  # the next present time that was found; not after the changed one if there is none
    for i in range(n):
        if _absent(changed, i, group, nulls):
            continue
        t = changed[i, group]
        if _begins(changed, i, group, nulls):
            _enter(table, columns, changed, i, group, starts, ends)
            ahead[:] = starts
            floor[:] = starts
            following = LEAST
        # Strictly before or after its time, a row is never in force at it.
        lo = t + 1 if strict and t < GREATEST else t
        hi = t - 1 if strict and t > LEAST else t
        if way & BACK:
            hi = _later(t, reach)
            if following <= t:
                _advance(table, columns, changed, i, group, ahead, True)
                found, row = _first_present(table, columns, ahead, ends, group, t, reach, ordering)
                if found >= 0:
                    following = batch(table, found, columns)[row, group]
            if following > t:
                hi = min(hi, following if strict else following - 1)
        if way & AHEAD:
            lo = _earlier(t, reach)
            for b in range(batches):
                at[b] = seek(batch(table, b, columns), floor[b], changed, i, group + 1)
            found, row = _last_present(table, columns, floor, at, group, nulls, t, reach, ordering)
            if found >= 0:
                preceding = batch(table, found, columns)[row, group]
                lo = max(lo, preceding if strict else preceding + 1)
            # What lies before this changed time is in its own span, so the next one's need not look there.
            _advance(table, columns, changed, i, group, floor, True)
        if filled and compare(out, filled - 1, changed, i, 0, group) == 0:
            if out[filled - 1, group + 1] == GREATEST:
                continue
            lo = max(lo, out[filled - 1, group + 1] + 1)
        if lo > hi:
            continue
        out[filled, :group] = changed[i, :group]
        out[filled, group] = lo
        out[filled, group + 1] = hi
        out[filled, group + 2] = 1
        filled += 1
    return out[:filled]


@kernel(rows_out, rows, rows, i64, i64, i64, i64, boolean, i64)
def spans(changed, table, columns, group, nulls, way, strict, reach):
    """(group, from, to, 1): the times at which the rows of some changed times are, were, or will be in force.

    They reach from each changed time, sorted and different, to the present ones beside it; they do not overlap.
    """
    return _spans(changed, table, columns, group, nulls, way, strict, reach, ())


@kernel(rows_out, rows, rows, i64, i64, i64, i64, boolean, i64, *by_values)
def spans_by_value(
    changed, table, columns, group, nulls, way, strict, reach, order, slots, codes, kinds, bounds, arena
):
    """`spans` of a spine that is ordered by value."""
    ordering = (order, slots, codes, kinds, bounds, arena)
    return _spans(changed, table, columns, group, nulls, way, strict, reach, ordering)


@kernel(rows_out, rows, rows, i64, i64)
def within_spans(spans, table, columns, group):
    """Every row of the spine whose time is within one of the sorted spans of its group, not consolidated."""
    n, batches = spans.shape[0], table.shape[0]
    bounds = np.empty((batches, n, 2), np.int64)
    ends = np.empty((n, group + 2), np.int64)
    ends[:, :group] = spans[:, :group]
    ends[:, group] = spans[:, group + 1]
    total = 0
    for b in range(batches):
        m = batch(table, b, columns)
        at = 0
        for i in range(n):
            bounds[b, i, 0] = seek(m, at, spans, i, group + 1)
            at = past(m, bounds[b, i, 0], ends, i, group + 1)
            bounds[b, i, 1] = at
            total += at - bounds[b, i, 0]
    out = np.empty((total, columns), np.int64)
    filled = 0
    for b in range(batches):
        m = batch(table, b, columns)
        for i in range(n):
            for j in range(bounds[b, i, 0], bounds[b, i, 1]):
                out[filled, :] = m[j, :]
                filled += 1
    return out


@kernel(rows_out, rows, rows, words, words, i64, boolean)
def beside(left, found, pick, absent, presence, outer):
    """Each left row with the row found for it, and the left row's weight.

    ``pick`` takes word c of the left row, word ~c of the one found, or for ``presence`` whether there is one. Without
    one, an ``outer`` row has the words of ``absent`` where it would have those of the one found; others are left out.
    """
    n, width = left.shape[0], pick.size
    out = np.empty((n, width + 1), np.int64)
    filled = 0
    for i in range(n):
        there = found[i, found.shape[1] - 1] > 0
        if not there and not outer:
            continue
        for c in range(width):
            p = pick[c]
            if p >= 0:
                out[filled, c] = left[i, p]
            elif p == presence:
                out[filled, c] = int(there)
            else:
                out[filled, c] = found[i, ~p] if there else absent[c]
        out[filled, width] = left[i, left.shape[1] - 1]
        filled += 1
    return out[:filled]
