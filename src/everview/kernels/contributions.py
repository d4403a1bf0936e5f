"""Contributions of rows to the sums of their groups, added up before entries are made of them.

An entry (group, place) of every digit of every value would be many times the rows, and mostly of the same few groups.
So rows are put in order of their groups, the digits of a group are added up in a dense row, and entries are made of the
digits that are not zero: the same entries, bit for bit.

A **slot** is a line (kind, first word of the field, last word, word of NULL or `NO_NULL`, base): a quantity that is
added up in the places from ``base`` on. Of products, the last word is that of the other field.

Counts and sums are part of the machine. Squares, products and bits, which few programs ask for, are compiled only
where `add_up` is told that there may be some among the slots: by `ALL_KINDS` instead of `SUMS_ALONE`, tuples whose
lengths are known when a kernel is compiled.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from everview.kernels import exact_sum, quotients
from everview.kernels.exact_sum import fits, float_digits, integer_digits, wide_digits
from everview.kernels.jit import inline
from everview.kernels.rows import add, prefetch, unowned

# Kinds of slots.
COUNTED, TRUE, INTEGER, WIDE, FLOAT, INTEGER_SQUARE, WIDE_SQUARE, FLOAT_SQUARE, FLOAT_PRODUCT, BIT = range(10)
BITS = 64
SUMS_ALONE, ALL_KINDS = (), (True,)  # which kinds there may be
NO_NULL = 1  # in place of NULL's first word, which is 0 or the least

FLOAT_DIGITS = 3  # of one number
AHEAD = 16  # rows that are asked for before they are read, where they are not read in order
BLOCK = 256  # rows of a group that are gone through slot by slot, so that they stay in a processor's cache
SMALL = 1 << 20  # weights below it, times digits, cannot leave 54 bits in a block
ROOMY = 1 << 62  # sums below it have room for a block of those


@inline
def _put(dense, place, d, weight):
    if d == 0:
        return
    if not fits(d, weight):
        raise OverflowError("a sum left the range of 64 bits")
    dense[place] = add(dense[place], d * weight)


@inline
def _contribute(dense, m, order, start, end, slots, s):
    """Add what the rows ``order[start:end]`` contribute to a slot."""
    kind, first, last, null, place = slots[s, 0], slots[s, 1], slots[s, 2], slots[s, 3], slots[s, 4]
    weight = m.shape[1] - 1
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
def _digits_of(kind, m, row, first, last, buckets, digits):
    """Write the digits of a number that are not zero, and their buckets; how many there are."""
    count = 0
    if kind == INTEGER_SQUARE:
        for k, d in enumerate(integer_digits(m[row, last])):
            buckets[count], digits[count] = k, d
            count += 1 if d != 0 else 0
    elif kind == WIDE_SQUARE:
        for k, d in enumerate(wide_digits(m[row, first], m[row, last])):
            buckets[count], digits[count] = k, d
            count += 1 if d != 0 else 0
    else:
        base, low, middle, high = float_digits(m[row, first])
        for k, d in enumerate((low, middle, high)):
            buckets[count], digits[count] = base + k, d
            count += 1 if d != 0 else 0
    return count


@inline
def contribute_more(dense, m, order, start, end, slots, s):
    """Add what the rows ``order[start:end]`` contribute to a slot of squares, products or bits."""
    kind, first, last, null, place = slots[s, 0], slots[s, 1], slots[s, 2], slots[s, 3], slots[s, 4]
    weight = m.shape[1] - 1
    buckets, digits = np.empty(exact_sum.WIDE_BUCKETS + 1, np.int64), np.empty(exact_sum.WIDE_BUCKETS + 1, np.int64)
    others, other_digits = np.empty(4, np.int64), np.empty(4, np.int64)
    product = np.empty(quotients.MOST_DIGITS, np.int64)
    for i in range(start, end):
        row = order[i]
        if null != NO_NULL and m[row, first] == null:
            continue
        if kind == BIT:
            for b in range(BITS):
                if (m[row, last] >> b) & 1 == 1:
                    dense[place + b] = add(dense[place + b], m[row, weight])
            continue
        count, base, size = _digits_of(kind, m, row, first, last, buckets, digits), 0, 0
        if kind == FLOAT_PRODUCT:
            more = _digits_of(kind, m, row, last, last, others, other_digits)
            if count > 0 and more > 0:
                base, size = quotients.product_of(buckets, digits, 0, count, others, other_digits, 0, more, product)
        elif count > 0:
            base, size = quotients.square_of(buckets, digits, 0, count, product)
        for k in range(size):
            _put(dense, place + base + k, product[k], m[row, weight])


def contribute_others(dense, m, order, start, end, slots, s, kinds):
    """`contribute_more`, if there are such kinds of slots."""
    raise NotImplementedError("compiled only")


@overload(contribute_others, inline="never")
def _contribute_others(dense, m, order, start, end, slots, s, kinds):
    if len(kinds) == 0:
        return lambda dense, m, order, start, end, slots, s, kinds: None
    return lambda dense, m, order, start, end, slots, s, kinds: contribute_more(dense, m, order, start, end, slots, s)


@inline
def places_of(kind):
    """The number of places of a slot of a kind."""
    if kind == FLOAT:
        return exact_sum.FLOAT_WIDTH
    if kind == WIDE:
        return exact_sum.WIDE_BUCKETS
    if kind == INTEGER_SQUARE:
        return quotients.INTEGER_SQUARES
    if kind == WIDE_SQUARE:
        return quotients.WIDE_SQUARES
    if kind in (FLOAT_SQUARE, FLOAT_PRODUCT):
        return quotients.FLOAT_SQUARES
    if kind == BIT:
        return BITS
    return exact_sum.INTEGER_BUCKETS if kind == INTEGER else 1


@inline
def entries_of(kind):
    """The number of entries that a row makes at most in a slot of a kind."""
    if kind == FLOAT:
        return FLOAT_DIGITS
    return quotients.FLOAT_DIGITS if kind in (FLOAT_SQUARE, FLOAT_PRODUCT) else places_of(kind)


@inline
def _has_room(dense, place, count):
    """Whether the digits of a block of rows with small weights cannot take these places out of range."""
    for k in range(place, place + count):  # noqa: SIM110, generators do not compile
        if not -ROOMY < dense[k] < ROOMY:
            return False
    return True


@inline
def _contribute_small(dense, m, order, start, end, slots, s):
    """`_contribute` of at most a block of rows with small weights: added up in the processor, and looked at once."""
    kind, first, last, null, place = slots[s, 0], slots[s, 1], slots[s, 2], slots[s, 3], slots[s, 4]
    weight = m.shape[1] - 1
    if kind == FLOAT or not _has_room(dense, place, places_of(kind)):
        _contribute(dense, m, order, start, end, slots, s)
        return
    a, b, c, d, e = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(start, end):
        row = order[i]
        if null != NO_NULL and m[row, first] == null:
            continue
        w = m[row, weight]
        if kind == COUNTED:
            a += w
        elif kind == TRUE:
            a += w if m[row, first] == 1 else 0
        elif kind == INTEGER:
            low, middle, high = integer_digits(m[row, last])
            a, b, c = a + low * w, b + middle * w, c + high * w
        else:
            first_, second, third, fourth, fifth = wide_digits(m[row, first], m[row, last])
            a, b, c, d, e = a + first_ * w, b + second * w, c + third * w, d + fourth * w, e + fifth * w
    dense[place] += a
    if kind in (INTEGER, WIDE):
        dense[place + 1] += b
        dense[place + 2] += c
    if kind == WIDE:
        dense[place + 3] += d
        dense[place + 4] += e


@inline
def _same(m, i, j, group):
    for c in range(group.size):  # noqa: SIM110, generators do not compile
        if m[i, group[c]] != m[j, group[c]]:
            return False
    return True


@inline
def count_groups(m, group, order, lo, hi):
    """The number of groups of the rows ``order[lo:hi]``, which are some, and in order of their groups."""
    count = 1
    for i in range(lo + 1, hi):
        if i + AHEAD < hi:
            prefetch(m, order[i + AHEAD])
        if not _same(m, order[i], order[i - 1], group):
            count += 1
    return count


@inline
def add_up(m, group, order, slots, dense, out, lo, hi, kinds):
    """Write the entries of the groups of ``order[lo:hi]``; how many there are. ``dense`` is zero, and left so.

    ``kinds`` is `ALL_KINDS`, or `SUMS_ALONE` if all slots are counts and sums.
    """
    at, width, start, weight = 0, group.size, lo, m.shape[1] - 1
    # Uncounted, because there is a call for each slot of each group.
    m, group, order, slots = unowned(m), unowned(group), unowned(order), unowned(slots)
    dense, out = unowned(dense), unowned(out)
    while start < hi:
        row, end = order[start], start + 1
        small = -SMALL < m[row, weight] < SMALL
        while end < hi and end < start + BLOCK and _same(m, row, order[end], group):
            if end + AHEAD < hi:
                prefetch(m, order[end + AHEAD])
            small &= -SMALL < m[order[end], weight] < SMALL
            end += 1
        for s in range(slots.shape[0]):
            if slots[s, 0] > FLOAT:
                contribute_others(dense, m, order, start, end, slots, s, kinds)
            elif small:
                _contribute_small(dense, m, order, start, end, slots, s)
            else:
                _contribute(dense, m, order, start, end, slots, s)
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
