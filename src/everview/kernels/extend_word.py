"""`extend` for a variable of one word: values are proposed and looked up in chunks.

The index with the fewest rows for a prefix proposes some hundred values at a time. Each of the other indexes is
searched for all of them, batch by batch, and those that it lacks are dropped.

If the variable is the index's last word, its weights count, and weights are linear: batches propose one after the
other, and a value that two of them hold is followed twice. Else only existence counts, which is not: values are merged
across batches, and each is proposed once.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import pass_word, reach_word
from everview.kernels.jit import i64, kernel, pasted, rows, rows_out, words
from everview.kernels.rows import add, batch, multiply, unowned

CHUNK = 1024  # values proposed at once
FIRST = 128  # and at first: a prefix may have little in common
FEW = 3  # of a batch with this many times fewer rows than there are values, the rows are looked up instead
DENSE = 32  # rows a value up to which rows are passed four at a time, instead of galloping

BATCH, BEGIN, HERE, STOP = range(4)  # a run: rows of a batch that have a prefix's key, and how far it was followed


@pasted
def _least(table, runs, first, past, columns, at):
    """The least value that some runs stand on, and whether there is one."""
    value, found = 0, False
    for s in range(first, past):
        if runs[s, HERE] < runs[s, STOP]:
            word = batch(table, runs[s, BATCH], columns)[runs[s, HERE], at]
            if not found or word < value:
                value, found = word, True
    return value, found


@pasted
def _propose(table, runs, first, past, columns, at, room, values, weights):
    """The next different values of some runs, merged, at most so many; how many there are."""
    count = 0
    while count < room:
        value, found = _least(table, runs, first, past, columns, at)
        if not found:
            break
        for s in range(first, past):
            m = batch(table, runs[s, BATCH], columns)
            if runs[s, HERE] < runs[s, STOP] and m[runs[s, HERE], at] == value:
                runs[s, HERE] = pass_word(m, runs[s, HERE], runs[s, STOP], at, value)
        values[count], weights[count] = value, 1
        count += 1
    return count


@pasted
def _propose_rows(table, runs, s, columns, at, room, values, weights):
    """The next values of one run, of which each row has another, at most so many, with weights; how many there are."""
    m, here = batch(table, runs[s, BATCH], columns), runs[s, HERE]
    count = min(room, runs[s, STOP] - here)
    for k in range(count):
        values[k], weights[k] = m[here + k, at], m[here + k, columns - 1]
    runs[s, HERE] = here + count
    return count


@pasted
def _look_up_rows(m, here, stop, columns, at, last, values, count, totals):
    """`_look_up` of a few rows: each is searched for among the values."""
    k = 0
    while here < stop and m[here, at] <= values[count - 1]:
        word, step = m[here, at], 1
        while k + step < count and values[k + step] <= word:
            k += step
            step <<= 1
        while step > 1:
            step >>= 1
            if k + step < count and values[k + step] <= word:
                k += step
        if values[k] == word:
            totals[k] = add(totals[k], m[here, columns - 1]) if last else 1
        here += 1
    return here


@pasted
def _look_up_dense(m, here, stop, columns, at, last, values, count, totals):
    """`_look_up` where there are not many more rows than values: few branches depend on what is read."""
    k = 0
    while k < count and here + 4 <= stop:
        value = values[k]
        for row in range(here, here + 4):
            if m[row, at] == value:
                totals[k] = add(totals[k], m[row, columns - 1]) if last else 1
        below = m[here + 3, at] < value
        here += 4 if below else 0
        k += 0 if below else 1
    while k < count and here < stop:
        word, value = m[here, at], values[k]
        if word == value:
            totals[k] = add(totals[k], m[here, columns - 1]) if last else 1
        here += 1 if word < value else 0
        k += 1 if value <= word else 0
    return here


@pasted
def _look_up(m, here, stop, columns, at, last, values, count, totals):
    """Add the weights of the values that are among some rows, or set one; a row before which all rows are done with."""
    length = stop - here
    if length * FEW < count:
        return _look_up_rows(m, here, stop, columns, at, last, values, count, totals)
    if length < count * DENSE:
        return _look_up_dense(m, here, stop, columns, at, last, values, count, totals)
    for k in range(count):
        here = reach_word(m, here, stop, at, values[k])
        if here == stop:
            break
        if m[here, at] == values[k]:
            totals[k] = add(totals[k], m[here, columns - 1]) if last else 1
    return here


@pasted
def _kept(values, weights, totals, count):
    """Values that an index has, with its weights multiplied; how many there are."""
    kept = 0
    for k in range(count):
        if totals[k] != 0:
            values[kept] = values[k]
            weights[kept] = multiply(weights[k], totals[k])
            kept += 1
    return kept


@pasted
def _leap(table, runs, first, past, columns, keys, best, lo, hi):
    """Let the proposing runs go on to the first value that all others may have; False if there is none."""
    target, known = 0, False
    for j in range(columns.size):
        if j == best:
            continue
        value, found = _least(table, runs, first[j], past[j], columns[j], keys[j])
        if not found:
            return False
        if not known or value > target:
            target, known = value, True
    if known:
        for s in range(lo, hi):
            m = batch(table, runs[s, BATCH], columns[best])
            runs[s, HERE] = reach_word(m, runs[s, HERE], runs[s, STOP], keys[best], target)
    return True


@pasted
def _is_over(runs, lo, hi):
    """Whether some runs have no more rows."""
    for s in range(lo, hi):  # noqa: SIM110, generators do not compile
        if runs[s, HERE] < runs[s, STOP]:
            return False
    return True


@pasted
def _runs_of(spots, i, slots, runs, first, past):
    """The runs of a prefix, index by index; which index has the fewest rows, and how many those are."""
    used, best, least = 0, 0, -1
    for j in range(slots.size - 1):
        first[j] = used
        total = 0
        for s in range(slots[j], slots[j + 1]):
            lo, hi = spots[i, 3 * s + 1], spots[i, 3 * s + 2]
            if lo < hi:
                runs[used, BATCH], runs[used, BEGIN], runs[used, STOP] = spots[i, 3 * s], lo, hi
                used += 1
                total += hi - lo
        past[j] = used
        if least < 0 or total < least:
            best, least = j, total
    return best, least


@pasted
def _met(table, runs, first, past, columns, keys, last, best, values, weights, totals, count):
    """Proposed values that all other indexes have, with their weights multiplied; how many there are."""
    for j in range(columns.size):
        if j == best:
            continue
        for k in range(count):
            totals[k] = 0
        for s in range(first[j], past[j]):
            m, here, stop = batch(table, runs[s, BATCH], columns[j]), runs[s, HERE], runs[s, STOP]
            if here < stop:
                runs[s, HERE] = _look_up(m, here, stop, columns[j], keys[j], last[j], values, count, totals)
        count = _kept(values, weights, totals, count)
        if count == 0:
            break
    return count


@kernel(rows_out, rows, rows, words, rows, words, words, words, i64, i64)
def extend_word(prefixes, spots, slots, table, columns, keys, last, capacity, summed):
    """`everview.kernels.extend.extend` for a variable of one word; a value may come several times, for its weights."""
    n, p, extenders = prefixes.shape[0], prefixes.shape[1] - 1, slots.size - 1
    bound = p if summed else p + 1
    out = np.empty((n if summed else capacity, bound + 1), np.int64)
    chunk, of_prefix = np.empty((3, CHUNK), np.int64), np.empty((slots[extenders], 4), np.int64)
    of_index = np.empty((2, extenders), np.int64)
    values, weights, totals = unowned(chunk[0]), unowned(chunk[1]), unowned(chunk[2])
    runs, first, past = unowned(of_prefix), unowned(of_index[0]), unowned(of_index[1])
    table, spots, slots = unowned(table), unowned(spots), unowned(slots)
    columns, keys, last = unowned(columns), unowned(keys), unowned(last)
    at = 0
    for i in range(n):
        best, least = _runs_of(spots, i, slots, runs, first, past)
        if least == 0:
            continue
        sum_, begun, lo = 0, at, first[best]
        while lo < past[best]:
            hi, room = lo + 1 if last[best] else past[best], FIRST
            for s in range(past[extenders - 1]):
                runs[s, HERE] = runs[s, BEGIN]
            while True:
                if last[best]:
                    count = _propose_rows(table, runs, lo, columns[best], keys[best], room, values, weights)
                else:
                    count = _propose(table, runs, lo, hi, columns[best], keys[best], room, values, weights)
                count = _met(table, runs, first, past, columns, keys, last, best, values, weights, totals, count)
                for k in range(count):
                    weight = multiply(prefixes[i, p], weights[k])
                    if summed:
                        sum_ = add(sum_, weight)
                        continue
                    out[at, p] = values[k]
                    out[at, bound] = weight
                    at += 1
                room = min(CHUNK, 2 * room)
                if _is_over(runs, lo, hi) or not _leap(table, runs, first, past, columns, keys, best, lo, hi):
                    break
            lo = hi
        if sum_ != 0:
            out[at, p] = sum_
            at += 1
        for row in range(begun, at):
            for c in range(p):
                out[row, c] = prefixes[i, c]
    chunk[0, 0] = of_prefix[0, 0] = of_index[0, 0] = at  # they are needed until here
    return out[:at]
