"""Sums of many rows by group: what rows contribute is added up before entries are made of it.

`Weigh` makes an entry (group, place) of every digit of every value, and sorts them all. Of a large delta that is many
times the delta, and mostly the same few groups. Here rows are put in order of their groups, the digits of a group are
added up in a dense row, and entries are made of the digits that are not zero: the same entries, bit for bit.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np

from everview.kernels.exact_sum import fits, float_digits, integer_digits, wide_digits
from everview.kernels.jit import i64, inline, kernel, rows, rows_out, words, words_out
from everview.kernels.large import AHEAD, PART, Matrix, Words, between_groups, sort_order, space
from everview.kernels.merge import merge
from everview.kernels.rows import add, prefetch
from everview.kernels.sums import COUNTED, INTEGER, NO_NULL, TRUE, WIDE
from everview.kernels.threads import each, ranges

LINE = 5  # words of a slot
BLOCK = 256  # rows of a group that are gone through slot by slot, so that they stay in a processor's cache
UNEVEN = 2  # times an even share: a larger part is worth cutting a group in two


@inline
def _put(dense, place, d, weight):
    if d == 0:
        return
    if not fits(d, weight):
        raise OverflowError("a sum left the range of 64 bits")
    dense[place] = add(dense[place], d * weight)


@inline
def _contribute(dense, m, order, start, end, slot):
    """Add what the rows ``order[start:end]`` contribute to a slot."""
    kind, first, last, null, place, weight = slot[0], slot[1], slot[2], slot[3], slot[4], m.shape[1] - 1
    if kind in (COUNTED, TRUE):
        for i in range(start, end):
            row = order[i]
            if (null == NO_NULL or m[row, first] != null) and (kind == COUNTED or m[row, first] == 1):
                dense[place] = add(dense[place], m[row, weight])
    elif kind == INTEGER:
        for i in range(start, end):
            row = order[i]
            if null == NO_NULL or m[row, first] != null:
                low, middle, high = integer_digits(m[row, last])
                _put(dense, place, low, m[row, weight])
                _put(dense, place + 1, middle, m[row, weight])
                _put(dense, place + 2, high, m[row, weight])
    elif kind == WIDE:
        for i in range(start, end):
            row = order[i]
            for k, d in enumerate(wide_digits(m[row, first], m[row, last])):
                _put(dense, place + k, d, m[row, weight])
    else:
        for i in range(start, end):
            row = order[i]
            k, low, middle, high = float_digits(m[row, first])
            _put(dense, place + k, low, m[row, weight])
            _put(dense, place + k + 1, middle, m[row, weight])
            _put(dense, place + k + 2, high, m[row, weight])


@inline
def _same(m, i, j, group):
    for c in range(group.size):  # noqa: SIM110, generators do not compile
        if m[i, group[c]] != m[j, group[c]]:
            return False
    return True


@kernel(i64, rows, words, words, i64, i64)
def _count_groups(m, group, order, lo, hi):
    count = 1
    for i in range(lo + 1, hi):
        if i + AHEAD < hi:
            prefetch(m, order[i + AHEAD])
        if not _same(m, order[i], order[i - 1], group):
            count += 1
    return count


@kernel(i64, rows, words, words, rows, words_out, rows_out, i64, i64)
def _add_up(m, group, order, slots, dense, out, lo, hi):
    """Write the entries of the groups of ``order[lo:hi]``; how many there are. ``dense`` is zero, and left so."""
    at, width, start = 0, group.size, lo
    while start < hi:
        row, end = order[start], start + 1
        while end < hi and end < start + BLOCK and _same(m, row, order[end], group):
            if end + AHEAD < hi:
                prefetch(m, order[end + AHEAD])
            end += 1
        for s in range(slots.shape[0]):
            _contribute(dense, m, order, start, end, slots[s])
        start = end
        if end < hi and _same(m, row, order[end], group):
            continue
        for place in range(dense.size):
            if dense[place] != 0:
                for c in range(width):
                    out[at, c] = m[row, group[c]]
                out[at, width] = place
                out[at, width + 1] = dense[place]
                dense[place] = 0
                at += 1
    return at


def group_sums(delta: Matrix, group: Words, slots: Matrix, places: int, entries: int) -> Matrix:
    """The entries (group words, place) of a delta as a batch; a row has at most so many ``entries``.

    `OverflowError` if the digits of a few rows leave 64 bits.
    """
    order = sort_order(delta, group)

    def added_up(part: tuple[int, int]) -> Matrix:
        lo, hi = part
        room = min(places * _count_groups(delta, group, order, lo, hi), entries * (hi - lo))
        out = space(room, group.size + 2)
        count = _add_up(delta, group, order, slots, np.zeros(places, np.int64), out, lo, hi)
        return out[:count]

    found = each(added_up, _parts(delta, group, order))
    if all(_apart(a, b) for a, b in pairwise(found)):
        return np.concatenate(found)
    return reduce(merge, found)


def _parts(delta: Matrix, group: Words, order: Words) -> list[tuple[int, int]]:
    """Ranges of rows in order, between groups if no group is too large for that."""
    cuts, even = between_groups(delta, group, order), ranges(delta.shape[0], PART)
    return cuts if max(hi - lo for lo, hi in cuts) <= UNEVEN * (even[0][1] - even[0][0]) else even


def _apart(a: Matrix, b: Matrix) -> bool:
    """Whether no group is in two batches that follow one another."""
    return not (len(a) and len(b)) or bool((a[-1, :-2] != b[0, :-2]).any())
