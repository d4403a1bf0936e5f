"""Linear aggregates: what rows add to the places of their groups, and the results of groups before and after.

Slots, the quantities that are added up, are those of `everview.kernels.contributions`. A **call** is a line (kind,
first place, end of its places, place of its count, first word of its result, how NULL is written, and three arguments):
a result that is read off the places; or, for the least and greatest value, off the words of the rows at an end of the
group in an order, whose number is in place of the count, and the arguments say how its words are made. Both are data,
made by `everview.operators.aggregate`.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import exact_sum
from everview.kernels.contributions import FLOAT, add_up, count_groups, places_of
from everview.kernels.dictionary import NULL_WORD
from everview.kernels.digits import BITS
from everview.kernels.jit import inline, kernel, rows, rows_out, words
from everview.kernels.probe import keys
from everview.kernels.reshape import made
from everview.kernels.rows import add, compare
from everview.kernels.sort import arrange, sort_order
from everview.kernels.tally import tally

SLOT = 5  # words of a slot, as `everview.kernels.contributions` has them
FLOAT_DIGITS = 3  # of one number that are not zero
SMALL = 1 << 60, 1 << (60 - BITS), 1 << (60 - 2 * BITS)  # digits below these add up to less than a word holds
ANY_WORD = 19  # decimal digits, with which a decimal holds any word

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


@inline
def _places(slots):
    """How many places some slots have, and how many entries a row makes at most."""
    places, entries = 0, 0
    for s in range(slots.shape[0]):
        kind, width = slots[s, 0], places_of(slots[s, 0])
        places = max(places, slots[s, 4] + width)
        entries += FLOAT_DIGITS if kind == FLOAT else width
    return places, entries


@kernel(rows_out, rows, words, rows)
def weigh(delta, group, slots):
    """Rows as entries (group, place) whose weights are what the rows contribute, as a batch."""
    n, (places, entries) = delta.shape[0], _places(slots)
    order = sort_order(delta, group)
    room = min(places * count_groups(delta, group, order, 0, n), entries * n)
    out = np.empty((room, group.size + 2), np.int64)
    return out[: add_up(delta, group, order, slots, np.zeros(places, np.int64), out, 0, n)]


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
def _finish_small(out, dense, call):
    """Write sums whose digits are so small that they add up to one word; False if there may be others among them."""
    first, wide = call[1], call[0] == SUM_DECIMAL and call[7] == 2
    if call[2] - first != exact_sum.INTEGER_BUCKETS or (call[0] == SUM_DECIMAL and call[6] < ANY_WORD):
        return False
    for i in range(dense.shape[0]):
        low, middle, high = dense[i, first], dense[i, first + 1], dense[i, first + 2]
        if not (-SMALL[0] < low < SMALL[0] and -SMALL[1] < middle < SMALL[1] and -SMALL[2] < high < SMALL[2]):
            return False
        total = low + (middle << BITS) + (high << 2 * BITS)
        _write(out, i, call, total ^ NULL_WORD if wide else total, total >> 63, dense[i, call[3]] == 0)
    return True


@inline
def finish(out, dense, call):
    """Write the results of a call; whether all are in range."""
    n = dense.shape[0]
    if call[0] == COUNT:
        for i in range(n):
            out[i, call[4]] = dense[i, call[3]]
        return True
    if call[0] in (SUM_INTEGER, SUM_DECIMAL) and _finish_small(out, dense, call):
        return True
    counts = dense[:, call[3]].copy()
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
    i = 0
    for j in range(delta.shape[0]):  # each of its groups is among the groups
        while compare(delta, j, groups, i, 0, key) != 0:
            i += 1
        place = delta[j, key]
        dense[n + i, place] = add(dense[n + i, place], delta[j, columns - 1])
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
    """Some rows; most often all of them are wanted."""
    if numbers.size == dense.shape[0]:
        return dense
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
