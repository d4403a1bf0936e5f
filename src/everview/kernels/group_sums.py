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
from everview.kernels.large import PART, Matrix, Words, between_groups, sort_order
from everview.kernels.merge import merge
from everview.kernels.rows import add
from everview.kernels.sums import COUNTED, INTEGER, NO_NULL, TRUE, WIDE
from everview.kernels.threads import each, ranges

LINE = 5  # words of a slot
UNEVEN = 2  # times an even share: a larger part is worth cutting a group in two


@inline
def _put(dense, place, d, weight):
    if d == 0:
        return
    if not fits(d, weight):
        raise OverflowError("a sum left the range of 64 bits")
    dense[place] = add(dense[place], d * weight)


@inline
def _contribute(dense, m, row, slots):
    """Add what a row contributes to each slot."""
    weight = m[row, m.shape[1] - 1]
    for s in range(slots.shape[0]):
        kind, first, last, null, place = slots[s, 0], slots[s, 1], slots[s, 2], slots[s, 3], slots[s, 4]
        if null != NO_NULL and m[row, first] == null:
            continue
        if kind == COUNTED:
            dense[place] = add(dense[place], weight)
        elif kind == TRUE:
            if m[row, first] == 1:
                dense[place] = add(dense[place], weight)
        elif kind == INTEGER:
            low, middle, high = integer_digits(m[row, last])
            _put(dense, place, low, weight)
            _put(dense, place + 1, middle, weight)
            _put(dense, place + 2, high, weight)
        elif kind == WIDE:
            for k, d in enumerate(wide_digits(m[row, first], m[row, last])):
                _put(dense, place + k, d, weight)
        else:
            k, low, middle, high = float_digits(m[row, first])
            _put(dense, place + k, low, weight)
            _put(dense, place + k + 1, middle, weight)
            _put(dense, place + k + 2, high, weight)


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
        if not _same(m, order[i], order[i - 1], group):
            count += 1
    return count


@kernel(i64, rows, words, words, rows, words_out, rows_out, i64, i64)
def _add_up(m, group, order, slots, dense, out, lo, hi):
    """Write the entries of the groups of ``order[lo:hi]``; how many there are. ``dense`` is zero, and left so."""
    at, width = 0, group.size
    for i in range(lo, hi):
        row = order[i]
        _contribute(dense, m, row, slots)
        if i + 1 < hi and _same(m, row, order[i + 1], group):
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
        out = np.empty((room, group.size + 2), np.int64)
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
