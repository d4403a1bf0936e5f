"""Linear aggregates: what rows add to the places of their groups, and the results of groups before and after.

A **slot** is a line (kind, first word of the field, last word, word of NULL or `NO_NULL`, base): a quantity that is
added up in the places from ``base`` on. A **call** is a line (kind, first place, end of its places, place of its count,
first word of its result, how NULL is written, and three arguments): a result that is read off the places; or, for the
least and greatest value, off the words of the rows at an end of the group in an order, whose number is in place of the
count, and the arguments say how its words are made. Both are data, made by `everview.operators.aggregate`.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import exact_sum
from everview.kernels.dictionary import NULL_WORD
from everview.kernels.exact_sum import fits, float_digits, integer_digits, wide_digits
from everview.kernels.jit import inline, kernel, rows, rows_out, words
from everview.kernels.probe import keys
from everview.kernels.reshape import made
from everview.kernels.rows import add, compare, prefetch, unowned
from everview.kernels.sort import arrange, sort_order
from everview.kernels.tally import tally

# Kinds of slots.
COUNTED, TRUE, INTEGER, WIDE, FLOAT = range(5)
NO_NULL = 1  # in place of NULL's first word, which is 0 or the least

# Kinds of calls.
(
    COUNT,
    SUM_INTEGER,
    SUM_DECIMAL,
    SUM_FLOAT,
    MEAN_INTEGER,
    MEAN_FLOAT,
    MEAN_DECIMAL,
    ALL_TRUE,
    ANY_TRUE,
    LEAST_OF,
    GREATEST_OF,
) = range(11)

# How NULL is written where there was no value to aggregate.
NEVER, FLAGGED, LEAST = range(3)

NO_BOUND = np.empty(0, np.int64)

BLOCK = 256  # rows of a group that are gone through slot by slot, so that they stay in a processor's cache
SMALL = 1 << 20  # weights below it, times digits, cannot leave 54 bits in a block
ROOMY = 1 << 62  # sums below it have room for a block of those
AHEAD = 16  # rows that are asked for before they are read, where they are not read in order


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
def _places(kind):
    """The number of places of a slot."""
    if kind == FLOAT:
        return exact_sum.FLOAT_WIDTH
    if kind == WIDE:
        return exact_sum.WIDE_BUCKETS
    return exact_sum.INTEGER_BUCKETS if kind == INTEGER else 1


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
    if kind == FLOAT or not _has_room(dense, place, _places(kind)):
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
def add_up(m, group, order, slots, dense, out, lo, hi):
    """Write the entries of the groups of ``order[lo:hi]``; how many there are. ``dense`` is zero, and left so."""
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
            if small:
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


@kernel(rows_out, rows, words, rows)
def weigh(delta, group, slots):
    """Rows as entries (group, place) whose weights are what the rows contribute, as a batch.

    Rows are put in order of their groups, the digits of a group are added up in a dense row, and entries are made of
    those that are not zero: an entry for every digit of every row would be many times the delta, and all to be sorted.
    """
    n, places, most = delta.shape[0], 0, 0
    for s in range(slots.shape[0]):
        width = _places(slots[s, 0])
        places = max(places, slots[s, 4] + width)
        most += min(width, exact_sum.WIDE_BUCKETS)
    if n == 0:
        return np.empty((0, group.size + 2), np.int64)
    order, dense = sort_order(delta, group), np.zeros(places, np.int64)
    room = min(places * count_groups(delta, group, order, 0, n), most * n)
    out = np.empty((room, group.size + 2), np.int64)
    return out[: add_up(delta, group, order, slots, dense, out, 0, n)]


@inline
def _write(out, i, call, low, high, absent):
    """A result's words, from the word of its value (two for wide decimals), or NULL."""
    at, null = call[4], call[5]
    if null == FLAGGED:
        out[i, at] = 0 if absent else 1
        out[i, at + 1] = 0 if absent else low
    elif call[0] in (SUM_DECIMAL, MEAN_DECIMAL) and call[7] == 2:
        out[i, at] = NULL_WORD if absent and null == LEAST else high
        out[i, at + 1] = NULL_WORD if absent and null == LEAST else low
    else:
        out[i, at] = NULL_WORD if absent and null == LEAST else low


@inline
def finish(out, dense, call):
    """Write the results of a call; whether all are in range."""
    n = dense.shape[0]
    counts = dense[:, call[3]].copy()
    if call[0] == COUNT:
        for i in range(n):
            out[i, call[4]] = counts[i]
        return True
    digits = dense[:, call[1] : call[2]].copy()
    fine = True
    if call[0] == SUM_INTEGER:
        values, over = exact_sum.finish_integers(digits, exact_sum.INT64_MIN, exact_sum.INT64_MAX)
        for i in range(n):
            fine &= over[i] == 0
            _write(out, i, call, values[i], 0, counts[i] == 0)
    elif call[0] == SUM_DECIMAL or call[0] == MEAN_DECIMAL:
        if call[0] == SUM_DECIMAL:
            highs, lows, over = exact_sum.finish_decimals(digits, call[6])
        else:
            highs, lows, over = exact_sum.average_decimals(digits, counts, call[8], call[6])
        for i in range(n):
            fine &= over[i] == 0
            low = lows[i] if call[7] == 2 else lows[i] ^ NULL_WORD
            _write(out, i, call, low, highs[i], counts[i] == 0)
    elif call[0] == ALL_TRUE or call[0] == ANY_TRUE:
        for i in range(n):
            trues, falses = digits[i, 0], counts[i] - digits[i, 0]
            truth = trues > 0 if call[0] == ANY_TRUE else falses <= 0
            out[i, call[4]] = (1 if truth else 0) if trues > 0 or falses > 0 else NULL_WORD
    else:
        if call[0] == SUM_FLOAT:
            codes = exact_sum.round_floats(digits)
        elif call[0] == MEAN_FLOAT:
            codes = exact_sum.average_floats(digits, counts)
        else:
            codes = exact_sum.average_integers(digits, counts)
        for i in range(n):
            _write(out, i, call, codes[i], 0, counts[i] == 0)
    return fine


@inline
def add_groups(groups, delta, key):
    """The groups with those of one batch more, sorted, once each."""
    if delta.shape[0] == 0:
        return groups
    more = keys(delta, key)
    if groups.shape[0] == 0:
        return more
    parts = np.empty((groups.shape[0] + more.shape[0], key + 1), np.int64)
    parts[: groups.shape[0]] = groups
    parts[groups.shape[0] :] = more
    groups = arrange(parts, np.arange(key))
    groups[:, key] = 1
    return groups


@inline
def states_of(groups, delta, table, columns, key, places):
    """What was added up for each group before, then for each group after a batch is added to the spine."""
    n = groups.shape[0]
    dense = np.zeros((2 * n, places), np.int64)
    tally(dense[:n], groups, table, columns, key, NO_BOUND)
    dense[n:] = dense[:n]
    if delta.shape[0] > 0:
        added = np.empty((1, 2), np.int64)
        added[0, 0], added[0, 1] = delta.ctypes.data, delta.shape[0]
        tally(dense[n:], groups, added, columns, key, NO_BOUND)
    return dense


@inline
def there(dense):
    """The numbers of the states in which a group is there."""
    n = dense.shape[0]
    numbers = np.empty(n, np.int64)
    at = 0
    for i in range(n):
        if dense[i, 0] > 0:
            numbers[at] = i
            at += 1
    return numbers[:at]


@inline
def chosen(dense, numbers):
    """Some rows."""
    out = np.empty((numbers.size, dense.shape[1]), np.int64)
    for i in range(numbers.size):
        for c in range(dense.shape[1]):
            out[i, c] = dense[numbers[i], c]
    return out


@inline
def begun(groups, numbers, key, width):
    """Result rows with their groups and weights: taken back for a state before, given for one after."""
    n = groups.shape[0]
    out = np.empty((numbers.size, width + 1), np.int64)
    for i in range(numbers.size):
        for c in range(key):
            out[i, c] = groups[numbers[i] % n, c]
        out[i, width] = -1 if numbers[i] < n else 1
    return out


@inline
def put_ends(out, numbers, ends, groups, first, key, call):
    """Write the value at an end of each group; ``first`` is the number of the first state of ``ends``' kind."""
    j, at, n = 0, call[4], groups.shape[0]
    for i in range(numbers.size):
        group = numbers[i] - first
        if group < 0 or group >= n:
            continue
        while j < ends.shape[0] and compare(ends, j, groups, group, 0, key) < 0:
            j += 1
        found = j < ends.shape[0] and compare(ends, j, groups, group, 0, key) == 0
        for c in range(call[2] - call[1]):
            if found:
                out[i, at + c] = made(ends, j, call[6 + c], call[1] + c)
            else:
                out[i, at + c] = NULL_WORD if call[5] == LEAST else 0
