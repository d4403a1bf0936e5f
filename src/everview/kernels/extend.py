"""Extending prefixes by one variable: the inner step of every worst-case optimal join.

A prefix is a row of bound words and a weight. Each extender is an index whose key the prefix binds and whose next
words are the variable. `find` says where each prefix's key lies in every batch of every extender; `extend` proposes
values from the extender with the fewest rows and leaps through the others. Existence is not linear, so a value that
several batches hold is proposed once; weights are summed over batches where an extender's last words are bound.

Spots are rows of (batch, begin, end), three words a slot; the slots of one extender lie side by side, and as many are
used as the shard of the key has batches.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import compare_value, reach
from everview.kernels.jit import i64, inline, kernel, pair, rows, rows_out, void, words, words_out
from everview.kernels.rows import add, batch, multiply


@inline
def _total(spots, i, slots, j):
    total = 0
    for s in range(slots[j], slots[j + 1]):
        total += spots[i, 3 * s + 2] - spots[i, 3 * s + 1]
    return total


@inline
def _smallest(spots, i, slots):
    """The extender with the fewest rows for a prefix, and how many those are."""
    best, least = 0, _total(spots, i, slots, 0)
    for j in range(1, slots.size - 1):
        total = _total(spots, i, slots, j)
        if total < least:
            best, least = j, total
    return best, least


@kernel(words_out, rows, words)
def proposals(spots, slots):
    """How many rows each prefix's smallest extender has: at most so many values are proposed for it."""
    out = np.empty(spots.shape[0], np.int64)
    for i in range(spots.shape[0]):
        out[i] = _smallest(spots, i, slots)[1]
    return out


@inline
def _least(table, batches, columns, here, end, first, last, at, value):
    """The least value that the slots stand on, into ``value``; whether there is one."""
    found = False
    for s in range(first, last):
        if here[s] < end[s]:
            m = batch(table, batches[s], columns)
            if not found or compare_value(m, here[s], at, value) < 0:
                for c in range(value.size):
                    value[c] = m[here[s], at + c]
                found = True
    return found


@kernel(rows_out, rows, rows, words, rows, words, words, words, i64, i64, i64)
def extend(prefixes, spots, slots, table, columns, keys, last, width, capacity, summed):
    """Prefixes extended by each value common to all extenders, with the weights of extenders bound to their last word.

    ``columns`` and ``keys`` are the columns of each extender's batches and how many of them are bound; the variable's
    ``width`` words follow. There is room for ``capacity`` rows: the sum of `proposals`. If ``summed``, a prefix stays
    as it is, once, with the sum of the weights. Leapfrog: a value that one extender lacks is overtaken by the next
    that it has.
    """
    n, p, extenders = prefixes.shape[0], prefixes.shape[1] - 1, slots.size - 1
    here = np.zeros(slots[extenders], np.int64)
    end = np.zeros(slots[extenders], np.int64)
    batches = np.zeros(slots[extenders], np.int64)
    totals = np.ones(extenders, np.int64)
    value = np.empty(width, np.int64)
    target = np.empty(width, np.int64)
    bound = p if summed else p + width
    out = np.empty((n if summed else capacity, bound + 1), np.int64)
    at = 0
    for i in range(n):
        best, least = _smallest(spots, i, slots)
        if least == 0:
            continue
        sum_ = 0
        for s in range(slots[extenders]):
            batches[s], here[s], end[s] = spots[i, 3 * s], spots[i, 3 * s + 1], spots[i, 3 * s + 2]
        first, past = slots[best], slots[best + 1]
        key, wide = keys[best], columns[best]
        while _least(table, batches, wide, here, end, first, past, key, value):
            there, ended, leap = True, False, False
            for j in range(extenders):
                if j == best:
                    continue
                present, total, more = False, 0, False
                for s in range(slots[j], slots[j + 1]):
                    if here[s] >= end[s]:
                        continue
                    m = batch(table, batches[s], columns[j])
                    here[s] = row = reach(m, here[s], end[s], keys[j], value, 0)
                    if row >= end[s]:
                        continue
                    if compare_value(m, row, keys[j], value) == 0:
                        present = True
                        if last[j]:
                            total = add(total, m[row, columns[j] - 1])
                    elif not present and (not more or compare_value(m, row, keys[j], target) < 0):
                        for c in range(width):
                            target[c] = m[row, keys[j] + c]
                        more = True
                if last[j]:
                    totals[j] = total
                if not present:
                    there, ended, leap = False, not more, more
                    break
                if last[j] and total == 0:
                    there = False
                    break
            if ended:
                break
            if leap:
                for s in range(first, past):
                    if here[s] < end[s]:
                        here[s] = reach(batch(table, batches[s], wide), here[s], end[s], key, target, 0)
                continue
            total = 0
            for s in range(first, past):
                if here[s] < end[s]:
                    m = batch(table, batches[s], wide)
                    if compare_value(m, here[s], key, value) == 0:
                        if last[best]:
                            total = add(total, m[here[s], wide - 1])
                        here[s] = reach(m, here[s], end[s], key, value, 1)
            if last[best]:
                totals[best] = total
                there = there and total != 0
            if not there:
                continue
            weight = prefixes[i, p]
            for j in range(extenders):
                if last[j]:
                    weight = multiply(weight, totals[j])
            if summed:
                sum_ = add(sum_, weight)
                continue
            out[at, :p] = prefixes[i, :p]
            for c in range(width):
                out[at, p + c] = value[c]
            out[at, bound] = weight
            at += 1
        if sum_ != 0:
            out[at, :p] = prefixes[i, :p]
            out[at, p] = sum_
            at += 1
    return out[:at]


@kernel(rows_out, rows, rows, words, rows, i64)
def weigh(prefixes, spots, slots, table, columns):
    """Each prefix that a relation bound by it holds, its weight multiplied by the relation's."""
    n, p = prefixes.shape[0], prefixes.shape[1] - 1
    out = np.empty(prefixes.shape, np.int64)
    at = 0
    for i in range(n):
        total = 0
        for s in range(slots[0], slots[1]):
            if spots[i, 3 * s + 1] < spots[i, 3 * s + 2]:
                m = batch(table, spots[i, 3 * s], columns)
                for row in range(spots[i, 3 * s + 1], spots[i, 3 * s + 2]):
                    total = add(total, m[row, columns - 1])
        if total != 0:
            out[at, :p] = prefixes[i, :p]
            out[at, p] = multiply(prefixes[i, p], total)
            at += 1
    return out[:at]


@kernel(rows_out, rows, rows, words, rows, i64, i64)
def meet(prefixes, spots, slots, table, columns, depth):
    """`weigh` for timed entries: each prefix with each entry of its row, at the join of their times.

    Prefixes begin with their times, entries end in theirs.
    """
    n, p = prefixes.shape[0], prefixes.shape[1] - 1
    total = 0
    for i in range(n):
        total += _total(spots, i, slots, 0)
    out = np.empty((total, p + 1), np.int64)
    at = 0
    for i in range(n):
        for s in range(slots[0], slots[1]):
            if spots[i, 3 * s + 1] == spots[i, 3 * s + 2]:
                continue
            m = batch(table, spots[i, 3 * s], columns)
            for row in range(spots[i, 3 * s + 1], spots[i, 3 * s + 2]):
                out[at, :p] = prefixes[i, :p]
                for c in range(depth):
                    out[at, c] = max(prefixes[i, c], m[row, columns - 1 - depth + c])
                out[at, p] = multiply(prefixes[i, p], m[row, columns - 1])
                at += 1
    return out


@inline
def _part(length, piece, pieces):
    """Where a piece of so many begins: ``length · piece / pieces``, without leaving 64 bits."""
    return (length // pieces) * piece + (length % pieces) * piece // pieces


@kernel(pair(rows_out, rows_out), rows, rows, words, rows, words, words, i64, words)
def divide(prefixes, spots, slots, table, columns, keys, width, pieces):
    """Prefixes repeated once for each of their pieces, with the proposed values divided evenly among the pieces."""
    n, total = prefixes.shape[0], pieces.sum()
    out = np.empty((total, prefixes.shape[1]), np.int64)
    where = np.empty((total, spots.shape[1]), np.int64)
    at = 0
    for i in range(n):
        for piece in range(pieces[i]):
            out[at, :] = prefixes[i, :]
            where[at, :] = spots[i, :]
            _narrow(where, at, slots, table, columns, keys, width, piece, pieces[i])
            at += 1
    return out, where


@kernel(void, rows_out, words, rows, words, words, i64, words, words)
def narrow(spots, slots, table, columns, keys, width, piece, pieces):
    """Keep of each prefix's values the piece that is its."""
    for i in range(spots.shape[0]):
        if pieces[i] > 1:
            _narrow(spots, i, slots, table, columns, keys, width, piece[i], pieces[i])


@inline
def _narrow(spots, i, slots, table, columns, keys, width, piece, pieces):
    """Cut by values of the largest batch of the smallest extender, so that everyone cuts alike."""
    best, least = _smallest(spots, i, slots)
    if least == 0 or pieces < 2:
        return
    largest = slots[best]
    for s in range(slots[best], slots[best + 1]):
        if spots[i, 3 * s + 2] - spots[i, 3 * s + 1] > spots[i, 3 * largest + 2] - spots[i, 3 * largest + 1]:
            largest = s
    begin, length = spots[i, 3 * largest + 1], spots[i, 3 * largest + 2] - spots[i, 3 * largest + 1]
    m = batch(table, spots[i, 3 * largest], columns[best])
    lower, upper = begin + _part(length, piece, pieces), begin + _part(length, piece + 1, pieces)
    least_value, most = np.empty(width, np.int64), np.empty(width, np.int64)
    for c in range(width):
        least_value[c] = m[lower, keys[best] + c] if lower < begin + length else 0
        most[c] = m[upper, keys[best] + c] if upper < begin + length else 0
    for j in range(slots.size - 1):
        for s in range(slots[j], slots[j + 1]):
            lo, hi = spots[i, 3 * s + 1], spots[i, 3 * s + 2]
            if lo == hi:
                continue
            other = batch(table, spots[i, 3 * s], columns[j])
            if upper < begin + length:
                spots[i, 3 * s + 2] = reach(other, lo, hi, keys[j], most, 0)
            if piece > 0:
                spots[i, 3 * s + 1] = min(reach(other, lo, hi, keys[j], least_value, 0), spots[i, 3 * s + 2])
