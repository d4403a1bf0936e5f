"""Sorting column by column, and by numbers that several columns are packed into.

A range of rows is put in order of one word by a radix sort over only the bits that vary, then every run of equal words
is sorted by the next one. Short ranges are sorted by insertion.

Or the leading columns of a row are packed into one number of up to 63 bits, as many bits a column as its words need.
Rows are dealt by its first bits into buckets, and each bucket is sorted by the rest: by insertion or radix, and where
numbers are equal but rows may differ, column by column. If buckets are so many that they have a few rows each, the rows
are moved once. Every step keeps the order of equal rows.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, inline, kernel, pair, rows, rows_out, void, words, words_out

SHORT = 40  # below this, insertion beats clearing a histogram
MANY = 4096  # from here on, wider digits save passes
DEALT = 1 << 15  # rows; from here on, moving them once saves more than packing costs
BITS = 63  # of a packed number at most
ABSENT = -(1 << 63)  # the word of NULL, far from all others
SHARE = 3  # bits of the number of rows that do not number buckets: a bucket has about eight rows
MOST_BUCKETS = 16  # bits: more buckets than that are counted in memory that a processor's cache does not hold


@inline
def less(m, columns, i, j, first):
    for c in range(first, columns.size):
        x = m[i, columns[c]]
        y = m[j, columns[c]]
        if x != y:
            return x < y
    return False


@inline
def insertion(m, columns, order, lo, hi, first):
    """Put a few rows of ``order``, that agree before column ``first``, in order."""
    for i in range(lo + 1, hi):
        row = order[i]
        j = i
        while j > lo and less(m, columns, row, order[j - 1], first):
            order[j] = order[j - 1]
            j -= 1
        order[j] = row


@inline
def radix(keys, order, keys2, order2, lo, hi, least, span):
    """Stable order of ``keys[lo:hi]`` (and with them ``order``), all within ``least..least+span`` unsigned."""
    n = hi - lo
    bits = 8 if n < MANY else 11
    size = 1 << bits
    mask = np.uint64(size - 1)
    counts = np.empty(size, np.int64)
    shift = np.uint64(0)
    flipped = False
    while True:
        counts[:] = 0
        source, target = (keys2, keys) if flipped else (keys, keys2)
        sorder, torder = (order2, order) if flipped else (order, order2)
        for i in range(lo, hi):
            counts[((np.uint64(source[i]) - least) >> shift) & mask] += 1
        at = lo
        for d in range(size):
            c = counts[d]
            counts[d] = at
            at += c
        for i in range(lo, hi):
            d = ((np.uint64(source[i]) - least) >> shift) & mask
            p = counts[d]
            counts[d] = p + 1
            target[p] = source[i]
            torder[p] = sorder[i]
        flipped = not flipped
        shift += np.uint64(bits)
        if shift >= np.uint64(64) or (span >> shift) == np.uint64(0):
            break
    if flipped:
        keys[lo:hi] = keys2[lo:hi]
        order[lo:hi] = order2[lo:hi]


@inline
def sort_range(m, columns, order, keys, order2, keys2, start, end, after):
    """Put ``order[start:end]``, of rows that agree before column ``after``, in order; the other arrays are scratch."""
    stack = np.empty((columns.size * ((end - start) // SHORT + 2) + 2, 3), np.int64)
    top = 0
    if columns.size > after:
        stack[0, 0], stack[0, 1], stack[0, 2] = start, end, after
        top = 1
    while top > 0:
        top -= 1
        lo, hi, first = stack[top, 0], stack[top, 1], stack[top, 2]
        column = columns[first]
        smallest = largest = m[order[lo], column]
        for i in range(lo, hi):
            k = m[order[i], column]
            keys[i] = k
            smallest = min(smallest, k)
            largest = max(largest, k)
        if smallest != largest:
            span = np.uint64(largest) - np.uint64(smallest)
            radix(keys, order, keys2, order2, lo, hi, np.uint64(smallest), span)
        if first + 1 == columns.size:
            continue
        run = lo
        for i in range(lo + 1, hi + 1):
            if i < hi and keys[i] == keys[run]:
                continue
            if i - run > SHORT:
                stack[top, 0], stack[top, 1], stack[top, 2] = run, i, first + 1
                top += 1
            elif i - run > 1:
                insertion(m, columns, order, run, i, first + 1)
            run = i


@kernel(rows_out, rows, words, i64, i64)
def spans(m, columns, lo, hi):
    """For each column its least and its greatest word but `ABSENT`, and whether that is there, too."""
    out = np.empty((3, columns.size), np.int64)
    for c in range(columns.size):
        out[0, c], out[1, c], out[2, c] = (1 << 63) - 1, ABSENT, 0
    for i in range(lo, hi):
        for c in range(columns.size):
            word = m[i, columns[c]]
            if word == ABSENT:
                out[2, c] = 1
            else:
                out[0, c] = min(out[0, c], word)
                out[1, c] = max(out[1, c], word)
    return out


@kernel(void, rows, rows, words_out, words_out, i64, i64, i64)
def pack(m, packing, packed, counts, shift, lo, hi):
    """The packed number of each row, and how many of them begin with which bits."""
    for i in range(lo, hi):
        number = np.int64(0)
        for p in range(packing.shape[0]):
            word, skip = m[i, packing[p, 0]], packing[p, 2]
            if word == ABSENT and skip:
                value = np.uint64(0)
            else:
                value = np.uint64(word) - np.uint64(packing[p, 1]) + np.uint64(skip)
            number = (number << packing[p, 4]) | np.int64(value >> np.uint64(packing[p, 3]))
        packed[i] = number
        counts[number >> shift] += 1


@kernel(void, words, words_out, words_out, words_out, i64, i64, i64)
def deal(packed, at, keys, order, shift, lo, hi):
    """Put every number, and its row, into its bucket."""
    for i in range(lo, hi):
        bucket = packed[i] >> shift
        p = at[bucket]
        at[bucket] = p + 1
        keys[p] = packed[i]
        order[p] = i


@inline
def _short(keys, order, lo, hi):
    for i in range(lo + 1, hi):
        key, row = keys[i], order[i]
        j = i
        while j > lo and key < keys[j - 1]:
            keys[j], order[j] = keys[j - 1], order[j - 1]
            j -= 1
        keys[j], order[j] = key, row


@kernel(void, rows, words, i64, words_out, words_out, words_out, words_out, words, i64, i64)
def sort_buckets(m, columns, covered, keys, order, keys2, order2, bounds, first, last):
    """Sort some buckets: by their numbers, which hold the first ``covered`` columns, and then by the others."""
    for b in range(first, last):
        lo, hi = bounds[b], bounds[b + 1]
        if hi - lo <= SHORT:
            _short(keys, order, lo, hi)
        else:
            least = greatest = keys[lo]
            for i in range(lo, hi):
                least = min(least, keys[i])
                greatest = max(greatest, keys[i])
            if least != greatest:
                radix(keys, order, keys2, order2, lo, hi, np.uint64(least), np.uint64(greatest - least))
        if covered == columns.size:
            continue
        run = lo
        for i in range(lo + 1, hi + 1):
            if i < hi and keys[i] == keys[run]:
                continue
            if i - run > SHORT:
                sort_range(m, columns, order, keys, order2, keys2, run, i, covered)
            elif i - run > 1:
                insertion(m, columns, order, run, i, covered)
            run = i


@inline
def _bit_length(number):
    bits = 0
    while number != np.uint64(0):
        number >>= np.uint64(1)
        bits += 1
    return bits


@kernel(pair(rows_out, i64), words, rows, i64)
def packing_of(columns, found, room):
    """How rows are packed into ``room`` bits, (column, least word, whether NULL is there, bits left out, bits) a line.

    And how many of the columns the packed number holds whole. ``found`` are the `spans` of the rows.
    """
    lines, count, covered = np.empty((columns.size, 5), np.int64), 0, 0
    for c in range(columns.size):
        low, high, skip = found[0, c], found[1, c], found[2, c]
        span = np.uint64(0) if high < low else np.uint64(high) - np.uint64(low) + np.uint64(skip)
        bits = _bit_length(span)
        taken = min(bits, room)
        if taken > 0:
            lines[count, 0], lines[count, 1], lines[count, 2] = columns[c], low, skip
            lines[count, 3], lines[count, 4] = bits - taken, taken
            count += 1
        room -= taken
        if taken < bits:
            break
        covered += 1
    return lines[:count], covered


@inline
def order_by_columns(m, columns):
    """The order of the rows by the given columns, one after the other."""
    n = m.shape[0]
    order, keys = np.arange(n), np.empty(n, np.int64)
    sort_range(m, columns, order, keys, np.empty(n, np.int64), np.empty(n, np.int64), 0, n, 0)
    return order


@inline
def order_by_numbers(m, columns):
    """The order of the rows by the given columns, by numbers dealt into buckets of a few rows."""
    n, bits = m.shape[0], 0
    packing, covered = packing_of(columns, spans(m, columns, 0, n), BITS)
    for p in range(packing.shape[0]):
        bits += packing[p, 4]
    first_bits = min(bits, MOST_BUCKETS, max(0, _bit_length(np.uint64(n)) - SHARE))
    shift, buckets = bits - first_bits, 1 << first_bits
    packed, keys, order = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    bounds = np.zeros(buckets + 1, np.int64)
    pack(m, packing, packed, bounds[1:], shift, 0, n)
    at = np.empty(buckets, np.int64)
    for b in range(buckets):
        at[b] = bounds[b]
        bounds[b + 1] += bounds[b]
    deal(packed, at, keys, order, shift, 0, n)
    sort_buckets(m, columns, covered, keys, order, packed, np.empty(n, np.int64), bounds, 0, buckets)
    return order
