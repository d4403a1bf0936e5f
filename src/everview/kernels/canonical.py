"""The canonical encoding, whole columns at a time: self-delimiting bytes, ordered as the values are.

A value is a tag byte (its kind) and:

- BOOLEAN, INTEGER, FLOAT, DATE, TIME, TIMESTAMP, DURATION: its word, big-endian with the sign bit turned;
- STRING, BINARY, SYMBOL, ID, VARIANT: its bytes with 0 written as ``0 255``, then ``0 0``;
- a registered atom: eight bytes of its kind, then its bytes likewise;
- DECIMAL: 2 for zero; else 3, the exponent and the digits of ``0.d₁d₂… · 10^e``; for a negative number 1 and
  the same turned around, byte by byte;
- ARRAY: 1 before every element, 0 at the end (MAP: the same over key, value, key, value, …);
- STRUCT: the number of fields, then each.

NULL is a tag alone, the least. This module writes; `everview.kernels.canonical_read` reads.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, inline, kernel, octets, octets_out, pair, words, words_out

NULL, BOOLEAN, INTEGER, FLOAT, DATE, TIME, TIMESTAMP, DURATION, DECIMAL = 0, 16, 24, 32, 40, 44, 48, 52, 56
STRING, BINARY, SYMBOL, ID, ARRAY, STRUCT, MAP, VARIANT, ATOM = 64, 72, 80, 88, 96, 104, 112, 120, 128

SIGN = np.uint64(1 << 63)
ESCAPE = np.uint8(255)
NEGATIVE, ZERO, POSITIVE = 1, 2, 3
EXPONENT_BIAS = 1 << 15
DIGITS = 40  # more than a 128-bit integer has

flat = pair(words_out, octets_out)


@inline
def is_null(valid, i):
    """Is row i NULL? Without `valid`, none is."""
    return len(valid) > 0 and valid[i] == 0


@inline
def _put_word(out, at, word):
    bits = np.uint64(word) ^ SIGN
    for b in range(8):
        out[at + b] = np.uint8((bits >> np.uint64(56 - 8 * b)) & np.uint64(255))


@inline
def _copy(out, at, data, start, end):
    for b in range(end - start):
        out[at + b] = data[start + b]
    return at + end - start


@kernel(flat, i64, words, octets)
def write_words(tag, values, valid):
    """Values of fixed width, given as their codes."""
    n = len(values)
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        offsets[i + 1] = offsets[i] + (1 if is_null(valid, i) else 9)
    out = np.empty(offsets[n], np.uint8)
    for i in range(n):
        if is_null(valid, i):
            out[offsets[i]] = NULL
        else:
            out[offsets[i]] = tag
            _put_word(out, offsets[i] + 1, values[i])
    return offsets, out


@kernel(flat, i64, i64, words, octets, octets)
def write_bytes(tag, kind, starts, data, valid):
    """Byte strings, escaped and ended; an atom has its kind before them."""
    n = len(starts) - 1
    prefix = 9 if tag == ATOM else 1
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        size = 1
        if not is_null(valid, i):
            size = prefix + starts[i + 1] - starts[i] + 2
            for b in range(starts[i], starts[i + 1]):
                size += data[b] == 0
        offsets[i + 1] = offsets[i] + size
    out = np.empty(offsets[n], np.uint8)
    for i in range(n):
        at = offsets[i]
        if is_null(valid, i):
            out[at] = NULL
            continue
        out[at] = tag
        if tag == ATOM:
            _put_word(out, at + 1, kind)
        at += prefix
        for b in range(starts[i], starts[i + 1]):
            out[at] = data[b]
            at += 1
            if data[b] == 0:
                out[at] = ESCAPE
                at += 1
        out[at] = 0
        out[at + 1] = 0
    return offsets, out


@inline
def _digits(low, high, digits):
    """The decimal digits of an unsigned 128-bit integer, last first; returns how many."""
    limbs = np.empty(4, np.uint64)
    half = np.uint64(0xFFFFFFFF)
    limbs[0], limbs[1] = high >> np.uint64(32), high & half
    limbs[2], limbs[3] = low >> np.uint64(32), low & half
    n = 0
    while limbs[0] | limbs[1] | limbs[2] | limbs[3]:
        rest = np.uint64(0)
        for k in range(4):
            now = (rest << np.uint64(32)) | limbs[k]
            limbs[k] = now // np.uint64(10)
            rest = now % np.uint64(10)
        digits[n] = np.uint8(rest)
        n += 1
    return n


@kernel(flat, i64, words, octets)
def write_decimals(scale, halves, valid):
    """128-bit integers, low half first, times ``10^-scale``."""
    n = len(halves) // 2
    digits = np.empty(DIGITS, np.uint8)
    offsets = np.zeros(n + 1, np.int64)
    out = np.empty(n * (DIGITS + 6), np.uint8)
    at = 0
    for i in range(n):
        low, high = np.uint64(halves[2 * i]), np.uint64(halves[2 * i + 1])
        if is_null(valid, i):
            out[at] = NULL
            at += 1
        elif low == 0 and high == 0:
            out[at], out[at + 1] = DECIMAL, ZERO
            at += 2
        else:
            negative = halves[2 * i + 1] < 0
            if negative:
                low = ~low + np.uint64(1)
                high = ~high + np.uint64(low == 0)
            size = _digits(low, high, digits)
            first = 0
            while digits[first] == 0:
                first += 1
            turn = np.uint8(255 if negative else 0)
            exponent = size - scale + EXPONENT_BIAS
            out[at], out[at + 1] = DECIMAL, NEGATIVE if negative else POSITIVE
            out[at + 2], out[at + 3] = np.uint8(exponent >> 8) ^ turn, np.uint8(exponent & 255) ^ turn
            at += 4
            for d in range(size - 1, first - 1, -1):
                out[at] = (digits[d] + np.uint8(1)) ^ turn
                at += 1
            out[at] = turn
            at += 1
        offsets[i + 1] = at
    return offsets, out[:at].copy()


@kernel(flat, i64, words, octets, words, octets)
def write_arrays(tag, lists, valid, offsets, data):
    """Arrays or maps of encoded elements or entries: array i has ``lists[i]`` to ``lists[i + 1]`` less ``lists[0]``."""
    n = len(lists) - 1
    base = lists[0]
    out_offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        first, last = lists[i] - base, lists[i + 1] - base
        size = 1 if is_null(valid, i) else 2 + last - first + offsets[last] - offsets[first]
        out_offsets[i + 1] = out_offsets[i] + size
    out = np.empty(out_offsets[n], np.uint8)
    for i in range(n):
        at = out_offsets[i]
        if is_null(valid, i):
            out[at] = NULL
            continue
        out[at] = tag
        at += 1
        for e in range(lists[i] - base, lists[i + 1] - base):
            out[at] = 1
            at = _copy(out, at + 1, data, offsets[e], offsets[e + 1])
        out[at] = 0
    return out_offsets, out


@kernel(pair(words_out, octets_out), i64, words, octets)
def open_structs(fields, sizes, valid):
    """Room for structs whose fields take `sizes` bytes, with their heads written: offsets and bytes."""
    n = len(sizes)
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        offsets[i + 1] = offsets[i] + (1 if is_null(valid, i) else 2 + sizes[i])
    out = np.empty(offsets[n], np.uint8)
    for i in range(n):
        if is_null(valid, i):
            out[offsets[i]] = NULL
        else:
            out[offsets[i]] = STRUCT
            out[offsets[i] + 1] = fields
    return offsets, out


@kernel(i64, octets_out, words_out, octets, words, octets)
def fill_structs(out, positions, valid, offsets, data):
    """Append one field's bytes to every struct that is not NULL, and move its position on."""
    for i in range(len(offsets) - 1):
        if not is_null(valid, i):
            positions[i] = _copy(out, positions[i], data, offsets[i], offsets[i + 1])
    return np.int64(0)


@kernel(flat, words, octets, octets)
def write_encoded(offsets, data, valid):
    """Values that are encoded already; NULL gets its tag."""
    n = len(offsets) - 1
    out_offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        size = 1 if is_null(valid, i) else offsets[i + 1] - offsets[i]
        out_offsets[i + 1] = out_offsets[i] + size
    out = np.empty(out_offsets[n], np.uint8)
    for i in range(n):
        if is_null(valid, i):
            out[out_offsets[i]] = NULL
        else:
            _copy(out, out_offsets[i], data, offsets[i], offsets[i + 1])
    return out_offsets, out
