"""Where the keys of prefixes lie in the batches of an index: the first half of extending them by a variable.

A spot is three words: a batch, and the rows from which to which it has the key. A search in a large batch waits for
memory at almost every step, so some keys are searched for side by side: their waits overlap.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import pass_word, past, reach_word, seek
from everview.kernels.jit import i64, inline, kernel, rows, rows_out, void, words
from everview.kernels.rows import batch, compare, prefetch
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
