"""Columns of fixed width to words and back, in place in a row-major matrix.

Order-preserving and reversible: ``a < b`` exactly when ``code(a) < code(b)`` as signed words. NULL is the
least word; a nullable BIGINT is a flag word and the value.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import (
    doubles,
    i64,
    inline,
    kernel,
    octets,
    octets_out,
    pair,
    rows,
    rows_out,
    words,
    words_out,
)

NULL_WORD = np.int64(-(2**63))
LOW_BITS = np.int64(2**63 - 1)
NAN_CODE = np.int64(0x7FF8000000000000)


@inline
def is_valid(bitmap, start, i):
    """Bit ``start + i`` of an Arrow validity bitmap; no bitmap says that all are valid."""
    at = start + i
    return len(bitmap) == 0 or (bitmap[at >> 3] >> (at & 7)) & 1 == 1


@inline
def flip(bits):
    """The bits of a float, as a word that sorts as the float does; its own inverse."""
    return bits ^ LOW_BITS if bits < 0 else bits


@kernel(octets_out, octets, i64, i64)
def unpack_bits(bitmap, start, n):
    """Bits as bytes 0 and 1."""
    out = np.empty(n, np.uint8)
    for i in range(n):
        out[i] = (bitmap[(start + i) >> 3] >> ((start + i) & 7)) & 1
    return out


@kernel(pair(octets_out, i64), octets)
def pack_bits(flags):
    """Bytes 0 and 1 as a bitmap, with the number of zeros."""
    n = len(flags)
    out = np.zeros((n + 7) >> 3, np.uint8)
    zeros = np.int64(0)
    for i in range(n):
        if flags[i]:
            out[i >> 3] |= np.uint8(1 << (i & 7))
        else:
            zeros += 1
    return out, zeros


@kernel(i64, rows_out, i64, words, octets, i64)
def put_words(out, column, values, bitmap, start):
    """Values that are their own codes; returns the first row whose value is the code of NULL, or -1."""
    clash = np.int64(-1)
    for i in range(len(values)):
        if not is_valid(bitmap, start, i):
            out[i, column] = NULL_WORD
            continue
        out[i, column] = values[i]
        if values[i] == NULL_WORD and clash < 0:
            clash = i
    return clash


@kernel(i64, rows_out, i64, words, octets, i64)
def put_flagged(out, column, values, bitmap, start):
    """Nullable BIGINT: (1, value), and NULL is (0, 0)."""
    for i in range(len(values)):
        valid = is_valid(bitmap, start, i)
        out[i, column] = 1 if valid else 0
        out[i, column + 1] = values[i] if valid else 0
    return np.int64(-1)


@kernel(i64, rows_out, i64, doubles, octets, i64)
def put_doubles(out, column, values, bitmap, start):
    """Floats: -0.0 as 0.0, every NaN as the one that sorts last."""
    bits = values.view(np.int64)
    for i in range(len(values)):
        value = values[i]
        if not is_valid(bitmap, start, i):
            out[i, column] = NULL_WORD
        elif value != value:
            out[i, column] = NAN_CODE
        elif value == 0.0:
            out[i, column] = 0
        else:
            out[i, column] = flip(bits[i])
    return np.int64(-1)


@kernel(i64, rows_out, i64, words, octets, i64, i64)
def put_decimals(out, column, halves, bitmap, start, size):
    """128-bit integers, low half first, as one word or as (high, low with its top bit turned)."""
    for i in range(len(halves) // 2):
        valid = is_valid(bitmap, start, i)
        low, high = halves[2 * i], halves[2 * i + 1]
        if size == 1:
            out[i, column] = low if valid else NULL_WORD
        else:
            out[i, column] = high if valid else NULL_WORD
            out[i, column + 1] = low ^ NULL_WORD if valid else NULL_WORD
    return np.int64(-1)


@kernel(pair(words_out, octets_out), rows, i64)
def take_words(matrix, column):
    """The values of a column of words, and which are valid."""
    n = len(matrix)
    values, valid = np.empty(n, np.int64), np.empty(n, np.uint8)
    for i in range(n):
        valid[i] = matrix[i, column] != NULL_WORD
        values[i] = matrix[i, column] if valid[i] else 0
    return values, valid


@kernel(pair(words_out, octets_out), rows, i64)
def take_flagged(matrix, column):
    """The values of a nullable BIGINT, and which are valid."""
    n = len(matrix)
    values, valid = np.empty(n, np.int64), np.empty(n, np.uint8)
    for i in range(n):
        valid[i] = matrix[i, column] != 0
        values[i] = matrix[i, column + 1]
    return values, valid


@kernel(pair(words_out, octets_out), rows, i64, i64)
def take_decimals(matrix, column, size):
    """128-bit integers, low half first, and which are valid."""
    n = len(matrix)
    halves, valid = np.zeros(2 * n, np.int64), np.empty(n, np.uint8)
    for i in range(n):
        high = matrix[i, column]
        valid[i] = high != NULL_WORD
        if not valid[i]:
            continue
        if size == 1:
            halves[2 * i] = high
            halves[2 * i + 1] = high >> 63
        else:
            halves[2 * i] = matrix[i, column + 1] ^ NULL_WORD
            halves[2 * i + 1] = high
    return halves, valid
