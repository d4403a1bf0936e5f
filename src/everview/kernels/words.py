"""An interpreter of compiled expressions: it computes projections and filters on the words of a delta's rows.

The code is that of `everview.kernels.word_code`. Every instruction reads and writes *slots*: a slot has for each row a
state (`KNOWN`, `NULL` or `FAILED`) and a word, in two lines of a matrix. Rows are worked on in blocks, one instruction
over the whole block, so that decoding an instruction costs little for a row.

`word_rows` stops at a row whose result is `FAILED`, such as that of a division by zero, and returns ``-1 - row``. The
caller then evaluates the expression in its vectorised way, which raises the error.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, kernel, rows, rows_out, words, words_out
from everview.kernels.rows import difference_and_overflow, product_and_overflow, sum_and_overflow
from everview.kernels.word_code import (
    ADD,
    AFTER_CONSTANTS,
    AFTER_STORES,
    AFTER_VALUES,
    AND,
    CALENDAR,
    CHOOSING,
    COALESCE,
    COMPARE,
    COMPARING,
    CONSTANT,
    CONVERTING,
    EQUAL,
    FAILED,
    FLOATS,
    GREATER,
    GUARD,
    HEAD,
    INTEGERS,
    IS_NULL,
    KEEP,
    KNOWN,
    LESS,
    LOAD,
    LOAD_FLAGGED,
    LOAD_PLAIN,
    MISSING,
    NULL,
    OR,
    SELECT,
    SLOTS,
    STORE,
    STORE_FLAGGED,
    STRIDE,
    SUBTRACT,
    SUMS,
    VERDICT,
    WIDE,
)
from everview.kernels.word_numbers import calendar, convert, floats, integers, wide_decimals

NULL_WORD = np.int64(-(2**63))
BLOCK = 256  # rows at a time; the slots of a dozen instructions stay in the first cache


@kernel(i64, rows, i64, i64, words, i64, words, rows_out)
def read(delta, first, n, code, at, constants, slots):
    """Fill a slot for ``n`` rows: with the words of a column, from row ``first`` on, with a constant, or with NULL."""
    operation, target, source = code[at], code[at + 1], code[at + 2]
    state, word = 2 * target, 2 * target + 1
    if operation == CONSTANT:
        for i in range(n):
            slots[state, i] = KNOWN
            slots[word, i] = constants[source]
    elif operation == MISSING:
        for i in range(n):
            slots[state, i] = NULL
            slots[word, i] = 0
    elif operation == LOAD:
        for i in range(n):
            found = delta[first + i, source]
            slots[state, i] = NULL if found == NULL_WORD else KNOWN
            slots[word, i] = found
    elif operation == LOAD_PLAIN:
        for i in range(n):
            slots[state, i] = KNOWN
            slots[word, i] = delta[first + i, source]
    elif operation == LOAD_FLAGGED:
        for i in range(n):
            slots[state, i] = delta[first + i, source] != 0
            slots[word, i] = delta[first + i, source + 1]
    else:
        for i in range(n):
            slots[state, i] = NULL if delta[first + i, source] == NULL_WORD else KNOWN
            slots[word, i] = delta[first + i, source + 1]
    return 0


@kernel(i64, i64, words, i64, words, rows_out)
def choose(n, code, at, constants, slots):
    """AND and OR with NULL, CASE, COALESCE, IS NULL, membership in a list, and a value guarded by another's failure."""
    operation, target, a, b, c = code[at], 2 * code[at + 1], 2 * code[at + 2], 2 * code[at + 3], 2 * code[at + 4]
    if operation in (AND, OR):
        ends = np.int64(operation == OR)  # the verdict after which nothing else matters
        for i in range(n):
            x, y = slots[a, i], slots[b, i]
            first, second = (x == KNOWN) & (slots[a + 1, i] == ends), (y == KNOWN) & (slots[b + 1, i] == ends)
            slots[target, i] = KNOWN if first else FAILED if (x | y) & FAILED else KNOWN if second else x & y
            slots[target + 1, i] = ends if first | second else 1 - ends
    elif operation == SELECT:
        for i in range(n):
            holds = (slots[a, i] == KNOWN) & (slots[a + 1, i] != 0)
            taken, other = slots[b, i], slots[c, i]
            slots[target, i] = FAILED if slots[a, i] == FAILED else taken if holds else other
            taken, other = slots[b + 1, i], slots[c + 1, i]
            slots[target + 1, i] = taken if holds else other
    elif operation == COALESCE:
        for i in range(n):
            missing = slots[a, i] == NULL
            own, other = slots[a, i], slots[b, i]
            slots[target, i] = other if missing else own
            own, other = slots[a + 1, i], slots[b + 1, i]
            slots[target + 1, i] = other if missing else own
    elif operation == GUARD:
        for i in range(n):
            slots[target, i] = FAILED if slots[b, i] == FAILED else slots[a, i]
            slots[target + 1, i] = slots[a + 1, i]
    elif operation == IS_NULL:
        for i in range(n):
            slots[target, i] = FAILED if slots[a, i] == FAILED else KNOWN
            slots[target + 1, i] = slots[a, i] == NULL
    else:
        start, stop = code[at + 3], code[at + 3] + code[at + 4]
        for i in range(n):
            word, low, high = slots[a + 1, i], start, stop
            while low < high:
                middle = (low + high) // 2
                if constants[middle] < word:
                    low = middle + 1
                else:
                    high = middle
            slots[target, i] = slots[a, i]
            slots[target + 1, i] = low < stop and constants[low] == word
    return 0


@kernel(i64, i64, words, i64, rows_out)
def compare(n, code, at, slots):
    """Comparisons: whether the order of two words, or of two pairs of words, is among the accepted ones."""
    target, a, b, accepted = 2 * code[at + 1], 2 * code[at + 2], 2 * code[at + 3], code[at + 4]
    if code[at] == COMPARE:
        for i in range(n):
            x, y = slots[a + 1, i], slots[b + 1, i]
            order = LESS if x < y else EQUAL if x == y else GREATER
            s, t = slots[a, i], slots[b, i]
            slots[target, i] = FAILED if (s | t) & FAILED else s & t
            slots[target + 1, i] = (accepted & order) != 0
    else:
        for i in range(n):
            x, y = slots[a + 1, i], slots[b + 1, i]
            if x == y:
                x, y = slots[a + 3, i], slots[b + 3, i]
            order = LESS if x < y else EQUAL if x == y else GREATER
            s, t = slots[a, i], slots[b, i]
            slots[target, i] = FAILED if (s | t) & FAILED else s & t
            slots[target + 1, i] = (accepted & order) != 0
    return 0


@kernel(i64, i64, words, i64, words, rows_out)
def add(n, code, at, constants, slots):
    """Sums, differences and products of integers; outside of the limits they fail, or are NULL, as the code says."""
    operation, target, a, b = code[at], 2 * code[at + 1], 2 * code[at + 2], 2 * code[at + 3]
    least, greatest, failure = constants[code[at + 4]], constants[code[at + 4] + 1], code[at + 5]
    for i in range(n):
        x, y = slots[a + 1, i], slots[b + 1, i]
        if operation == ADD:
            result, over = sum_and_overflow(x, y)
        elif operation == SUBTRACT:
            result, over = difference_and_overflow(x, y)
        else:
            result, over = product_and_overflow(x, y)
        s, t = slots[a, i], slots[b, i]
        state = FAILED if (s | t) & FAILED else s & t
        beyond = over or result < least or result > greatest
        slots[target, i] = failure if state == KNOWN and beyond else state
        slots[target + 1, i] = result
    return 0


@kernel(i64, rows, i64, i64, words, i64, i64, words, rows_out)
def run(delta, first, n, code, start, stop, constants, slots):
    """Run the instructions from ``start`` to ``stop`` of the code over a block of rows."""
    for at in range(start, stop, STRIDE):
        operation = code[at]
        if operation < CHOOSING:
            read(delta, first, n, code, at, constants, slots)
        elif operation < COMPARING:
            choose(n, code, at, constants, slots)
        elif operation < SUMS:
            compare(n, code, at, slots)
        elif operation < INTEGERS:
            add(n, code, at, constants, slots)
        elif operation < FLOATS:
            integers(n, code, at, constants, slots)
        elif operation < CONVERTING:
            floats(n, code, at, slots)
        elif operation < WIDE:
            convert(n, code, at, constants, slots)
        elif operation < CALENDAR:
            wide_decimals(n, code, at, constants, slots)
        else:
            calendar(n, code, at, constants, slots)
    return 0


@kernel(i64, rows, i64, words, i64, words, i64, rows_out, i64)
def keep(delta, first, code, at, chosen, n, out, start):
    """Copy columns of the chosen rows; of all rows if none were left out."""
    column, source, count = code[at + 1], code[at + 2], code[at + 3]
    if chosen.size == n:
        for k in range(n):
            for c in range(count):
                out[start + k, column + c] = delta[first + k, source + c]
        return 0
    for k in range(n):
        for c in range(count):
            out[start + k, column + c] = delta[first + chosen[k], source + c]
    return 0


@kernel(i64, i64, words, i64, rows, words, i64, rows_out, i64)
def store(first, code, at, slots, chosen, n, out, start):
    """Fill a column of the result from the chosen rows of a block; the first row that has no word there, or -1."""
    operation, column, allowed = code[at], code[at + 1], code[at + 3]
    state, word = 2 * code[at + 2], 2 * code[at + 2] + 1
    for k in range(n):
        i = chosen[k]
        found, value = slots[state, i], slots[word, i]
        if found == FAILED or (found == NULL and allowed == 0):
            return first + i
        if operation == STORE_FLAGGED:
            out[start + k, column] = found
            out[start + k, column + 1] = value if found == KNOWN else 0
            continue
        if operation == STORE and found == KNOWN and value == NULL_WORD:
            return first + i
        out[start + k, column] = value if found == KNOWN else NULL_WORD
    return -1


@kernel(i64, words, rows, i64, words_out)
def choose_rows(code, slots, n, chosen):
    """Write the numbers of the rows of a block that a filter keeps; returns how many.

    Without a filter all rows are kept. If the condition of a row failed, the result is ``-1 - row``.
    """
    verdict = 2 * code[VERDICT]
    if verdict < 0:
        for i in range(n):
            chosen[i] = i
        return n
    kept = np.int64(0)
    for i in range(n):
        if slots[verdict, i] == FAILED:
            return -1 - i
        chosen[kept] = i
        kept += np.int64((slots[verdict, i] == KNOWN) & (slots[verdict + 1, i] != 0))
    return kept


@kernel(i64, rows, words, words, rows_out)
def word_rows(delta, code, constants, out):
    """Write the projected rows that the filter of the code keeps, with their weights, into ``out``.

    Returns how many there are, or ``-1 - row`` of the first row found whose result failed.
    """
    count, weight, last = delta.shape[0], delta.shape[1] - 1, out.shape[1] - 1
    slots = np.empty((2 * code[SLOTS], min(count, BLOCK)), np.int64)
    chosen = np.empty(min(count, BLOCK), np.int64)
    written = np.int64(0)
    for first in range(0, count, BLOCK):
        n = min(BLOCK, count - first)
        run(delta, first, n, code, HEAD if first == 0 else code[AFTER_CONSTANTS], code[AFTER_VALUES], constants, slots)
        kept = choose_rows(code, slots, n, chosen)
        if kept < 0:
            return kept - first
        for at in range(code[AFTER_VALUES], code[AFTER_STORES], STRIDE):
            if code[at] == KEEP:
                keep(delta, first, code, at, chosen[:n], kept, out, written)
                continue
            failed = store(first, code, at, slots, chosen, kept, out, written)
            if failed >= 0:
                return -1 - failed
        for k in range(kept):
            out[written + k, last] = delta[first + chosen[k], weight]
        written += kept
    return written
