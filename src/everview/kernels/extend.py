"""Extending prefixes by one variable: the inner step of every worst-case optimal join.

A prefix is a row of bound words and a weight. Each extender is an index whose key the prefix binds and whose next
words are the variable. `find` says where each prefix's key lies in every batch of every extender; `extend` proposes
values from the extender with the fewest rows and leaps through the others. Existence is not linear, so a value that
several batches hold is proposed once; weights are summed over batches where an extender's last words are bound.

Spots are rows of (batch, begin, end), three words a slot; the slots of one extender lie side by side, and as many are
used as the shard of the key has batches. A search in a large batch waits for memory at almost every step, so some keys
are searched for side by side: their waits overlap.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import compare_value, pass_word, past, reach, reach_word, seek
from everview.kernels.jit import i64, inline, kernel, pair, rows, rows_out, void, words, words_out
from everview.kernels.rows import add, batch, compare, multiply, prefetch
from everview.kernels.shard import shard_of
from everview.kernels.sort import sort_order

LANES = 32  # keys that are searched for side by side
SPARSE = 64  # rows a key from which on that pays


@inline
def _side_by_side(m, lo, hi, keys, first, end, bounds):
    """Where some keys begin in rows ``lo`` to ``hi``: a search by halves, all of them a step at a time."""
    for k in range(first, end):
        bounds[k, 0] = lo
    length = hi - lo
    if length == 0:
        return
    while length > 1:
        half = length >> 1
        for k in range(first, end):
            prefetch(m, bounds[k, 0] + half - 1)
        for k in range(first, end):
            if m[bounds[k, 0] + half - 1, 0] < keys[k, 0]:
                bounds[k, 0] += half
        length -= half
    for k in range(first, end):
        if m[bounds[k, 0], 0] < keys[k, 0]:
            bounds[k, 0] += 1


@inline
def _bounds_of_words(m, keys, count, bounds):
    """Where ascending keys of one word begin and end in a batch."""
    n, lo = m.shape[0], 0
    apart = n // max(1, count)
    if apart < SPARSE:
        for k in range(count):
            bounds[k, 0] = reach_word(m, lo, n, 0, keys[k, 0], max(1, apart))
            bounds[k, 1] = lo = pass_word(m, bounds[k, 0], n, 0, keys[k, 0])
        return
    for first in range(0, count, LANES):
        end = min(count, first + LANES)
        hi = pass_word(m, lo, n, 0, keys[end - 1, 0], apart * (end - first))
        _side_by_side(m, lo, hi, keys, first, end, bounds)
        for k in range(first, end):
            bounds[k, 1] = pass_word(m, bounds[k, 0], hi, 0, keys[k, 0])
        lo = hi


@inline
def _bounds(m, keys, count, width, bounds):
    """Where ascending keys begin and end in a batch."""
    if width == 1:
        _bounds_of_words(m, keys, count, bounds)
        return
    lo, apart = 0, max(1, m.shape[0] // max(1, count))
    for k in range(count):
        bounds[k, 0] = seek(m, lo, keys, k, width, apart)
        bounds[k, 1] = lo = past(m, bounds[k, 0], keys, k, width)


@inline
def _distinct(prefixes, key, keys, number):
    """The different keys of prefixes, ascending, and which of them each prefix has; how many there are."""
    order, count = sort_order(prefixes, key), 0
    for x in range(order.size):
        i = order[x]
        for c in range(key.size):
            keys[count, c] = prefixes[i, key[c]]
        if count == 0 or compare(keys, count, keys, count - 1, 0, key.size) != 0:
            count += 1
        number[i] = count - 1
    return count


@kernel(void, rows, words, rows, words, i64, words, rows_out, i64)
def find(prefixes, key, table, starts, columns, route, spots, slot):
    """Where the key of each prefix lies in the batches of one index, from ``slot`` on.

    The index's batches lie shard by shard in the table, from ``starts``; the words of a prefix in ``route`` tell the
    shard, and without any all shards are searched. Keys are looked up in their order.
    """
    n, shards = prefixes.shape[0], starts.size - 1
    routed = shards > 1 and route.size > 0
    keys = np.empty((n + 1, key.size), np.int64)
    number = np.empty(n, np.int64)
    count = _distinct(prefixes, key, keys, number)
    mine, place, owner = keys, np.arange(count), np.zeros(count, np.int64)
    if routed:
        mine = np.empty((n, key.size), np.int64)
        for i in range(n):
            owner[number[i]] = shard_of(prefixes, i, route, shards)
    bounds = np.empty((count, 2), np.int64)
    for shard in range(shards):
        looked_up = count
        if routed:
            looked_up = 0
            for k in range(count):
                if owner[k] == shard:
                    mine[looked_up, :] = keys[k, :]
                    place[k] = looked_up
                    looked_up += 1
        for b in range(starts[shard], starts[shard + 1]):
            _bounds(batch(table, b, columns), mine, looked_up, key.size, bounds)
            at = 3 * (slot + b - starts[shard if routed else 0])
            for i in range(n):
                k = number[i]
                if routed and owner[k] != shard:
                    continue
                spots[i, at] = b
                spots[i, at + 1] = bounds[place[k], 0]
                spots[i, at + 2] = bounds[place[k], 1]


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
