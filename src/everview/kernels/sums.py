"""Linear aggregates: what rows add to the places of their groups, and the results of groups before and after.

Slots, the quantities that are added up, are those of `everview.kernels.contributions`. A **call** is a line (kind,
first place, end of its places, place of its count, first word of its result, how NULL is written, and three arguments):
a result that is read off the places; or, for the least and greatest value, off the words of the rows at an end of the
group in an order, whose number is in place of the count, and the arguments say how its words are made. The arguments of
sums are their least value or the number of their decimal digits, the number of their words, and their greatest value or
the power of ten to multiply with. Both are data, made by `everview.operators.aggregate`.

Kinds of calls from `VARIANCE` on are not the machine's, but those of `everview.kernels.deviations`.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from everview.kernels import exact_sum, levels
from everview.kernels import registers as register
from everview.kernels.contributions import SUMS_ALONE, add_up, count_groups, entries_of, places_of
from everview.kernels.dictionary import NULL_WORD
from everview.kernels.digits import BITS
from everview.kernels.ends import first_rows, last_rows
from everview.kernels.instructions import END, FROM, NO_BOUND, NONE, OUT, START, TO, X, Y, Z, lines_of, table_of
from everview.kernels.jit import inline, kernel, rows, rows_out, words
from everview.kernels.probe import keys
from everview.kernels.reshape import made
from everview.kernels.rows import add, compare
from everview.kernels.sort import arrange, sort_order
from everview.kernels.tally import tally

SLOT = 5  # words of a slot, as `everview.kernels.contributions` has them
CALL = 9  # words of a call
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
    VARIANCE,
    COVARIANCE,
    MEAN_SCALED,
    ALL_BITS,
    ANY_BITS,
    ODD_BITS,
) = range(17)

# How NULL is written where there was no value to aggregate.
NEVER, FLAGGED, LEAST = range(3)
HOW = 3  # the bits that say so
TRIED = 4  # and one more: a result that is out of range is NULL, and no error


@inline
def _places(slots):
    """How many places some slots have, and how many entries a row makes at most."""
    places, entries = 0, 0
    for s in range(slots.shape[0]):
        places = max(places, slots[s, 4] + places_of(slots[s, 0]))
        entries += entries_of(slots[s, 0])
    return places, entries


@inline
def weighed(delta, group, slots, kinds):
    """The batch of entries (group, place) whose weights are what the rows contribute; ``kinds`` as in `add_up`."""
    n, (places, entries) = delta.shape[0], _places(slots)
    order = sort_order(delta, group)
    room = min(places * count_groups(delta, group, order, 0, n), entries * n)
    out = np.empty((room, group.size + 2), np.int64)
    return out[: add_up(delta, group, order, slots, np.zeros(places, np.int64), out, 0, n, kinds)]


@kernel(rows_out, rows, words, rows)
def weigh(delta, group, slots):
    """`weighed` by counts and sums."""
    return weighed(delta, group, slots, SUMS_ALONE)


@inline
def write(out, i, call, low, high, absent):
    """A result's words, from the word of its value (two for wide decimals), or NULL."""
    at, null = call[4], call[5] & HOW
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
    """Write sums of one word each; False, whatever was written, if a sum may need more."""
    first, wide = call[1], call[0] == SUM_DECIMAL and call[7] == 2
    if call[2] - first != exact_sum.INTEGER_BUCKETS or (call[0] == SUM_DECIMAL and call[6] < ANY_WORD):
        return False
    if call[0] == SUM_INTEGER and call[8] != exact_sum.INT64_MAX:
        return False
    for i in range(dense.shape[0]):
        low, middle, high = dense[i, first], dense[i, first + 1], dense[i, first + 2]
        if not (-SMALL[0] < low < SMALL[0] and -SMALL[1] < middle < SMALL[1] and -SMALL[2] < high < SMALL[2]):
            return False
        total = low + (middle << BITS) + (high << 2 * BITS)
        write(out, i, call, total ^ NULL_WORD if wide else total, total >> 63, dense[i, call[3]] == 0)
    return True


@inline
def finish(out, dense, call):
    """Write the results of a call; whether all are in range, or NULL if they are not."""
    n = dense.shape[0]
    if call[0] == COUNT:
        for i in range(n):
            out[i, call[4]] = dense[i, call[3]]
        return True
    if call[0] in (SUM_INTEGER, SUM_DECIMAL) and _finish_small(out, dense, call):
        return True
    counts = dense[:, call[3]].copy()
    digits = dense[:, call[1] : call[2]].copy()
    fine, tried = True, call[5] & TRIED != 0
    if call[0] == SUM_INTEGER:
        values, over = exact_sum.finish_integers(digits, call[6], call[8])
        for i in range(n):
            fine &= tried or over[i] == 0
            write(out, i, call, values[i], 0, counts[i] == 0 or over[i] != 0)
    elif call[0] == SUM_DECIMAL or call[0] == MEAN_DECIMAL:
        if call[0] == SUM_DECIMAL:
            highs, lows, over = exact_sum.finish_decimals(digits, call[6])
        else:
            highs, lows, over = exact_sum.average_decimals(digits, counts, call[8], call[6])
        for i in range(n):
            fine &= tried or over[i] == 0
            low = lows[i] if call[7] == 2 else lows[i] ^ NULL_WORD
            write(out, i, call, low, highs[i], counts[i] == 0 or over[i] != 0)
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
            write(out, i, call, codes[i], 0, counts[i] == 0)
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


@inline
def ends_in_words(kind, groups, table, ordered, key):
    """The row at an end of each group of a trace that is ordered by words."""
    if kind == LEAST_OF:
        return first_rows(groups, table, ordered[levels.COLUMNS], key, 0, 1, NO_BOUND)
    return last_rows(groups, table, ordered[levels.COLUMNS], key, NO_BOUND)


def finish_kinds(out, dense, call, kinds):
    """Write the results of a call that reads the places; whether all are in range, or NULL if they are not."""
    raise NotImplementedError("compiled only")


@overload(finish_kinds, inline="never")
def _finish_kinds(out, dense, call, kinds):
    if len(kinds) == 0:
        return lambda out, dense, call, kinds: finish(out, dense, call)
    from everview.kernels.deviations import finish_any  # which is made of this module

    return lambda out, dense, call, kinds: finish_any(out, dense, call)


def ends_of_kinds(kind, groups, table, ordered, key, registers, kinds):
    """The row at an end of each group of a trace."""
    raise NotImplementedError("compiled only")


@overload(ends_of_kinds, inline="never")
def _ends_of_kinds(kind, groups, table, ordered, key, registers, kinds):
    if len(kinds) == 0:
        return lambda kind, groups, table, ordered, key, registers, kinds: ends_in_words(
            kind, groups, table, ordered, key
        )
    from everview.kernels.deviations import ends_in_any_order

    return lambda kind, groups, table, ordered, key, registers, kinds: ends_in_any_order(
        kind, groups, table, ordered, key, registers
    )


@inline
def aggregate(line, constants, registers, ledgers, kinds):
    """The change of the results of the groups that changes touch, not consolidated; False if one is out of range.

    The inputs are entries and then rows in some orders; each has a trace, too. With `SUMS_ALONE` there are no calls but
    those of the machine, and with `ALL_KINDS` also those of `everview.kernels.deviations`.
    """
    inputs, reads = constants[line[FROM] : line[TO]], lines_of(constants, line[END], line[FROM], 2)
    calls = lines_of(constants, line[START], line[END], CALL)
    key, places, width = line[X], line[Y], line[Z]
    groups = np.empty((0, key + 1), np.int64)
    for i in range(inputs.size):
        groups = add_groups(groups, register.shown(registers, inputs[i]), key)
    trace = levels.ledger_at(ledgers[reads[0, 0]])
    delta, table = register.shown(registers, inputs[0]), table_of(trace, registers, NONE)
    dense = states_of(groups, delta, table, trace[levels.COLUMNS], key, places)
    numbers = there(dense)
    dense, out = chosen(dense, numbers), begun(groups, numbers, key, width)
    for c in range(calls.shape[0]):
        call = calls[c]
        if call[0] not in (LEAST_OF, GREATEST_OF):
            if not finish_kinds(out, dense, call, kinds):
                return False
            continue
        ordered = levels.ledger_at(ledgers[reads[call[3], 0]])
        for state in range(2):
            table = table_of(ordered, registers, inputs[call[3]] if state == 1 else NONE)
            found = ends_of_kinds(call[0], groups, table, ordered, key, registers, kinds)
            put_ends(out, numbers, found, groups, state * groups.shape[0], key, call)
    register.put(registers, line[OUT], out)
    return True
