"""A matrix of words as Arrow's message of a record batch, in one call: head and body, ready to be read without copying.

The head is a copy of one that Arrow has made for the same columns, with other numbers: those of rows, of NULLs and of
bytes. The body has the buffers of all columns, each beginning at a multiple of 64 bytes: which values are there, then
the values; of texts and bytes, their offsets come between.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]

from everview.kernels.arrow import BITS, DECIMAL, FLOAT32, FLOAT64, INT8, INT16, INT32, WIDE_DECIMAL
from everview.kernels.dictionary import find
from everview.kernels.fixed import NULL_WORD, flip
from everview.kernels.jit import inline, kernel, octets, offsets32, rows, words, words_out
from everview.kernels.pointers import float32_at, float_of_bits, int8_at, int16_at, int32_at, int64_at, uint8_at

BYTES = 9  # a form of values beside those in `arrow`: of any length
FORM, WORD, CHECKED, FLAGGED, KIND = range(5)  # what a line of a plan says of a column; NULL is looked for if CHECKED
LENGTH, NODES, BUFFERS, SIZE = range(4)  # where in the head, in words, the numbers stand
LONGEST = 2**31 - 1  # bytes that 32-bit offsets reach
LINE = 8  # words to which buffers are aligned


@inline
def _is_null(m, i, line):
    word = m[i, line[WORD]]
    return word == 0 if line[FLAGGED] else word == NULL_WORD


@inline
def _nulls(m, line):
    """The number of NULLs in a column."""
    count = 0
    if line[CHECKED]:
        for i in range(m.shape[0]):
            count += _is_null(m, i, line)
    return count


@inline
def _value_bytes(form, n):
    """The bytes of n values of a fixed width; of offsets, where the values have none."""
    if form == BITS:
        return (n + 7) >> 3
    if form in (DECIMAL, WIDE_DECIMAL):
        return 16 * n
    if form == INT8:
        return n
    if form == INT16:
        return 2 * n
    if form in (INT32, FLOAT32):
        return 4 * n
    return 4 * (n + 1) if form == BYTES else 8 * n


@inline
def _aligned(size):
    """The words from the beginning of a buffer to that of the next."""
    return (size + 8 * LINE - 1) // (8 * LINE) * LINE


@inline
def _located(m, line, entries, slots, codes, kinds, bounds):
    """Note the dictionary's entry of each value of a column; the bytes of all, or -1 if one is unknown."""
    total = 0
    for i in range(m.shape[0]):
        code = m[i, line[WORD]]
        entry = np.int64(-1)
        if code != NULL_WORD:
            entry = find(line[KIND], code, slots, codes, kinds)
            if entry < 0:
                return np.int64(-1)
            total += bounds[entry + 1] - bounds[entry]
        entries[i] = entry
    return total


@inline
def _put_validity(m, line, address):
    bits = carray(uint8_at(address), (m.shape[0] + 7) >> 3)
    bits[:] = 0
    for i in range(m.shape[0]):
        if not _is_null(m, i, line):
            bits[i >> 3] |= np.uint8(1 << (i & 7))


@inline
def _put_integers(m, line, out):
    column = line[WORD] + line[FLAGGED]
    for i in range(m.shape[0]):
        value = m[i, column]
        out[i] = 0 if line[CHECKED] and _is_null(m, i, line) else value


@inline
def _put_fixed(m, line, address):
    """Write the values of a column of fixed width."""
    n, word, form = m.shape[0], line[WORD], line[FORM]
    if form == INT8:
        _put_integers(m, line, carray(int8_at(address), n))
    elif form == INT16:
        _put_integers(m, line, carray(int16_at(address), n))
    elif form == INT32:
        _put_integers(m, line, carray(int32_at(address), n))
    elif form == FLOAT32:
        out = carray(float32_at(address), n)
        for i in range(n):
            out[i] = 0.0 if _is_null(m, i, line) else float_of_bits(flip(m[i, word]))
    elif form == FLOAT64:
        bits = carray(int64_at(address), n)
        for i in range(n):
            bits[i] = 0 if _is_null(m, i, line) else flip(m[i, word])
    elif form == BITS:
        flags = carray(uint8_at(address), (n + 7) >> 3)
        flags[:] = 0
        for i in range(n):
            if m[i, word] == 1:
                flags[i >> 3] |= np.uint8(1 << (i & 7))
    elif form in (DECIMAL, WIDE_DECIMAL):
        halves = carray(int64_at(address), 2 * n)
        for i in range(n):
            high = m[i, word]
            if high == NULL_WORD:
                low = high = 0
            elif form == WIDE_DECIMAL:
                low = m[i, word + 1] ^ NULL_WORD
            else:
                low, high = high, high >> 63
            halves[2 * i] = low
            halves[2 * i + 1] = high
    else:
        _put_integers(m, line, carray(int64_at(address), n))


@inline
def _put_bytes(entries, offsets_address, address, size, bounds, arena):
    """Write the values of a column of texts or bytes, and where each ends."""
    n = entries.size
    offsets, out = carray(int32_at(offsets_address), n + 1), carray(uint8_at(address), size)
    offsets[0] = at = 0
    for i in range(n):
        if entries[i] >= 0:
            for j in range(bounds[entries[i]], bounds[entries[i] + 1]):
                out[at] = arena[j]
                at += 1
        offsets[i + 1] = at


@kernel(words_out, rows, words, words, rows, offsets32, words, words, words, octets)
def message(m, head, places, plan, slots, codes, kinds, bounds, arena):
    """The message of the rows of a matrix; nothing if it has too many bytes, or a code that is unknown."""
    n, columns = m.shape[0], plan.shape[0]
    entries, sizes, nulls = np.empty((columns, n), np.int64), np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    body = 0
    for c in range(columns):
        line = plan[c]
        nulls[c] = _nulls(m, line)
        body += _aligned(_value_bytes(line[FORM], n)) + (_aligned((n + 7) >> 3) if nulls[c] else 0)
        if line[FORM] == BYTES:
            sizes[c] = _located(m, line, entries[c], slots, codes, kinds, bounds)
            if sizes[c] < 0 or sizes[c] > LONGEST:
                return np.empty(0, np.int64)
            body += _aligned(sizes[c])
    out = np.empty(head.size + body, np.int64)
    out[: head.size] = head
    out[places[LENGTH]] = n
    out[places[SIZE]] = 8 * body
    start, at, buffer = out.ctypes.data + 8 * head.size, 0, places[BUFFERS]
    for c in range(columns):
        line = plan[c]
        out[places[NODES] + 2 * c] = n
        out[places[NODES] + 2 * c + 1] = nulls[c]
        bits = (n + 7) >> 3 if nulls[c] else 0
        out[buffer], out[buffer + 1] = 8 * at, bits
        if nulls[c]:
            _put_validity(m, line, start + 8 * at)
            at += _aligned(bits)
        values = _value_bytes(line[FORM], n)
        out[buffer + 2], out[buffer + 3] = 8 * at, values
        buffer += 4
        first, at = start + 8 * at, at + _aligned(values)
        if line[FORM] == BYTES:
            _put_bytes(entries[c], first, start + 8 * at, sizes[c], bounds, arena)
            out[buffer], out[buffer + 1] = 8 * at, sizes[c]
            buffer += 2
            at += _aligned(sizes[c])
        else:
            _put_fixed(m, line, first)
    return out
