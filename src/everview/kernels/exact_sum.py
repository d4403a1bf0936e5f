"""Exact sums: numbers spread over base 2^26 digits, so that adding is adding integers.

A number is ``Σ digit_k · 2^(26·k)`` in units of ``2^-1074`` for floats (the least subnormal) and of 1 for
integers and scaled decimals, with every digit of the number's own sign. A sum is, for each bucket k,
``Σ weight · digit_k``: an int64 that an ordinary Z-set keeps as a *weight*. So a sum is linear, independent
of order and of shards, and a deletion takes back exactly what the insertion brought.

Invariant: no bucket wraps (a product outside 64 bits raises `OverflowError`, as adding weights does), hence a
dense row of buckets determines the sum, and reading it carries once and rounds once.

Spreading turns values into (origin, bucket, weight·digit) entries; `accumulate` lays the entries of some
groups out as a dense matrix, one row a group; the other kernels read such a matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everview.kernels.digits import (
    BITS,
    INFINITY,
    LEAST_EXPONENT,
    MASK,
    POWER_DIGITS,
    above,
    absolute,
    below,
    carry_into,
    digit,
    divide,
    float_code,
    increment,
    nearest,
    negated,
    power_of_ten,
    scale,
)
from everview.kernels.jit import i64, inline, kernel, octets_out, pair, rows, rows_out, void, words, words_out
from everview.kernels.rows import add

INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1

INTEGER_BUCKETS = 3  # any int64
WIDE_BUCKETS = 5  # any DECIMAL of up to 38 digits
FLOAT_BUCKETS = 81  # any finite float64
NAN_BUCKET, INFINITY_BUCKET, MINUS_INFINITY_BUCKET = 81, 82, 83  # counters, after the digits
FLOAT_WIDTH = 84

FRACTION = (1 << 52) - 1
NAN = INFINITY | 1 << 51
GUARD_DIGITS = 5  # below the units of an integer: a quotient by any int64 then still has 54 bits

Words = NDArray[np.int64]
Entries = tuple[Words, Words, Words]  # origins (positions of the values), buckets, sums


# ---------------------------------------------------------------- spreading


@inline
def fits(d, weight):
    """Whether digit times weight stays in 64 bits; asked beforehand, as compiled overflow is undefined."""
    if -(1 << 37) < weight < (1 << 37):
        return True
    high = d * (weight >> BITS) + (d * (weight & MASK) >> BITS)
    return -(1 << 37) <= high < 1 << 37


@inline
def _emit(out, at, origin, bucket, weight, d):
    """Write an entry at column ``at``; the next free column, which is the same one if the entry is zero."""
    if not fits(d, weight):
        raise OverflowError("a sum left the range of 64 bits")
    out[0, at] = origin
    out[1, at] = bucket
    out[2, at] = d * weight
    return at + (1 if d != 0 and weight != 0 else 0)


@inline
def _special_bucket(magnitude, flip):
    if magnitude != INFINITY:
        return NAN_BUCKET
    return INFINITY_BUCKET if flip == 0 else MINUS_INFINITY_BUCKET


@inline
def float_digits(code):
    """The first bucket of a float64 code and its three digits; NULL has none, NaN and ±inf count 1 in their bucket."""
    if code == INT64_MIN:
        return 0, 0, 0, 0
    flip = code >> 63
    magnitude = code ^ flip
    if magnitude >= INFINITY:
        return _special_bucket(magnitude, flip), 1, 0, 0
    exponent = magnitude >> 52
    m = magnitude & FRACTION
    if exponent > 0:
        m |= 1 << 52
        exponent -= 1
    k = exponent // BITS
    r = exponent - k * BITS
    sign = 1 | flip
    return k, sign * ((m & (MASK >> r)) << r), sign * ((m >> (BITS - r)) & MASK), sign * (m >> (2 * BITS - r))


@inline
def integer_digits(v):
    """The three digits of an int64."""
    middle = (v + ((v >> 63) & MASK)) >> BITS  # towards zero: every digit has the sign of v
    high = (middle + ((middle >> 63) & MASK)) >> BITS
    return v - (middle << BITS), middle - (high << BITS), high


@inline
def wide_digits(high, low):
    """The five digits of a wide decimal's two words; NULL has none."""
    if high == INT64_MIN:
        return 0, 0, 0, 0, 0
    low ^= INT64_MIN
    sign = 1 | (high >> 63)
    if high < 0:
        low = negated(low)
        high = ~high + (1 if low == 0 else 0)
    middle = np.int64(np.uint64(low) >> np.uint64(2 * BITS))  # the topmost 12 bits
    return (
        sign * (low & MASK),
        sign * ((low >> BITS) & MASK),
        sign * ((middle | (high << 12)) & MASK),
        sign * ((high >> 14) & MASK),
        sign * (high >> 40),
    )


@kernel(i64, words, words, rows_out)
def put_floats(codes, weights, out):
    at = 0
    for i in range(codes.size):
        k, first, second, third = float_digits(codes[i])
        at = _emit(out, at, i, k, weights[i], first)
        at = _emit(out, at, i, k + 1, weights[i], second)
        at = _emit(out, at, i, k + 2, weights[i], third)
    return at


@kernel(i64, words, words, rows_out)
def put_integers(values, weights, out):
    at = 0
    for i in range(values.size):
        for k, d in enumerate(integer_digits(values[i])):
            at = _emit(out, at, i, k, weights[i], d)
    return at


@kernel(i64, words, words, words, rows_out)
def put_wide(highs, lows, weights, out):
    at = 0
    for i in range(highs.size):
        for k, d in enumerate(wide_digits(highs[i], lows[i])):
            at = _emit(out, at, i, k, weights[i], d)
    return at


@kernel(void, words, words, words, rows_out)
def _accumulate(groups, buckets, sums, dense):
    for i in range(groups.size):
        g, k = groups[i], buckets[i]
        dense[g, k] = add(dense[g, k], sums[i])


# The space of large results comes from NumPy, which asks for huge pages: four times faster to fill.


def _room(entries: int) -> Words:
    """Space for so many entries, and for one that is written and not kept."""
    return np.empty((3, entries + 1), np.int64)


def spread_floats(codes: Words, weights: Words) -> Entries:
    """Entries of float64 codes; NULL adds nothing, NaN and ±inf count in buckets of their own.

    A finite ``x = m · 2^q`` lies, with ``(k, r) = divmod(q + 1074, 26)``, in the three digits of ``m · 2^r``
    (at most 53 + 25 = 78 bits) from bucket k on.

    >>> one = np.array([1.5]).view(np.int64)
    >>> [column.tolist() for column in spread_floats(one, np.array([-2]))]  # 1.5 = 384 · 2^(26·41 - 1074)
    [[0], [41], [-768]]
    """
    out = _room(3 * codes.size)
    at = put_floats(codes, weights, out)
    return out[0, :at], out[1, :at], out[2, :at]


def spread_integers(values: Words, weights: Words) -> Entries:
    """Entries of int64 numbers, `INT64_MIN` included; give a NULL the weight 0.

    >>> [column.tolist() for column in spread_integers(np.array([7, -(1 << 26)]), np.array([3, 1]))]
    [[0, 1], [0, 1], [21, -1]]
    """
    out = _room(INTEGER_BUCKETS * values.size)
    at = put_integers(values, weights, out)
    return out[0, :at], out[1, :at], out[2, :at]


def spread_wide(highs: Words, lows: Words, weights: Words) -> Entries:
    """Entries of two-word decimals (signed high word, low word biased by 2^63); NULL is a high `INT64_MIN`.

    >>> [column.tolist() for column in spread_wide(np.array([0]), np.array([5 + INT64_MIN]), np.array([1]))]
    [[0], [0], [5]]
    """
    out = _room(WIDE_BUCKETS * highs.size)
    at = put_wide(highs, lows, weights, out)
    return out[0, :at], out[1, :at], out[2, :at]


def accumulate(groups: Words, buckets: Words, sums: Words, count: int, width: int) -> Words:
    """The dense buckets of groups 0..count: entry (group, bucket, sum) adds to ``[group, bucket]``.

    >>> accumulate(np.array([0, 1, 0]), np.array([2, 0, 2]), np.array([5, 1, 1]), 2, 3).tolist()
    [[0, 0, 6], [1, 0, 0]]
    """
    dense = np.zeros((count, width), np.int64)
    _accumulate(groups, buckets, sums, dense)
    return dense


# ---------------------------------------------------------------- reading


@inline
def _special(dense, g):
    """The code of a sum with NaN or ±inf in it, else NULL; a counter that is not zero is present."""
    plus = dense[g, INFINITY_BUCKET] != 0
    minus = dense[g, MINUS_INFINITY_BUCKET] != 0
    if dense[g, NAN_BUCKET] != 0 or (plus and minus):
        return np.int64(NAN)
    if plus:
        return np.int64(INFINITY)
    return ~np.int64(INFINITY) if minus else np.int64(INT64_MIN)


@inline
def _store_wide(digits, negative, limit, g, highs, lows, overflow):
    """Put ±digits into the two words of row g, or flag it when its magnitude reaches ``limit`` ≤ 10^38."""
    if not below(digits, limit):
        overflow[g] = 1
        highs[g] = 0
        lows[g] = INT64_MIN
        return
    low = digits[0] | (digits[1] << BITS) | (digit(digits, 2) << (2 * BITS))
    high = (digit(digits, 2) >> 12) | (digit(digits, 3) << 14) | (digit(digits, 4) << 40)
    if negative:
        low = negated(low)
        high = ~high + (1 if low == 0 else 0)
    highs[g] = high
    lows[g] = low ^ INT64_MIN


@inline
def _small_sum(dense, g):
    """The sum of row g as one word, and whether its digits are so few and small that it is less than 2^62."""
    width = dense.shape[1]
    for k in range(2, width):
        if dense[g, k] != 0:
            return np.int64(0), False
    low, high = dense[g, 0], dense[g, 1] if width > 1 else np.int64(0)
    small = -(1 << 61) < low < (1 << 61) and -(1 << 35) < high < (1 << 35)
    return low + high * (1 << BITS) if small else np.int64(0), small


@inline
def _small_power(power):
    """10^power, or the greatest word if it has none."""
    out = np.int64(1)
    if power > 18:
        return np.int64(INT64_MAX)
    for _ in range(power):
        out *= 10
    return out


@inline
def _store_small(value, g, highs, lows):
    """Put a number of one word into the two words of row g."""
    highs[g] = value >> 63
    lows[g] = value ^ INT64_MIN


@kernel(words_out, rows)
def round_floats(dense):
    """Each row's sum as a float64 code: exact, rounded once to nearest even."""
    out = np.empty(dense.shape[0], np.int64)
    digits = np.empty(FLOAT_BUCKETS + 2, np.int64)
    for g in range(dense.shape[0]):
        out[g] = _special(dense, g)
        if out[g] != INT64_MIN:
            continue
        negative = carry_into(dense, g, FLOAT_BUCKETS, digits, 0)
        out[g] = float_code(nearest(digits, LEAST_EXPONENT, np.uint64(0), np.uint64(1)), negative)
    return out


@kernel(words_out, rows, words)
def average_floats(dense, counts):
    """Each row's exact sum over its count, as a float64 code rounded once; NULL where the count is 0."""
    out = np.empty(dense.shape[0], np.int64)
    digits = np.empty(FLOAT_BUCKETS + 2, np.int64)
    for g in range(dense.shape[0]):
        if counts[g] == 0:
            out[g] = INT64_MIN
            continue
        special = _special(dense, g)
        if special != INT64_MIN:
            out[g] = ~special if counts[g] < 0 and special != NAN else special
            continue
        negative = carry_into(dense, g, FLOAT_BUCKETS, digits, 0)
        divisor = absolute(counts[g])
        rest = divide(digits, divisor)
        out[g] = float_code(nearest(digits, LEAST_EXPONENT, rest, divisor), negative != (counts[g] < 0))
    return out


@kernel(words_out, rows, words)
def average_integers(dense, counts):
    """Each row's exact integer sum over its count, as a float64 code rounded once; NULL where it is 0."""
    width = dense.shape[1]
    out = np.empty(dense.shape[0], np.int64)
    digits = np.empty(GUARD_DIGITS + width + 2, np.int64)
    for g in range(dense.shape[0]):
        if counts[g] == 0:
            out[g] = INT64_MIN
            continue
        negative = carry_into(dense, g, width, digits, GUARD_DIGITS)
        divisor = absolute(counts[g])
        rest = divide(digits, divisor)
        zero = rest == 0 and not above(digits, 0)
        bits = np.int64(0) if zero else nearest(digits, -GUARD_DIGITS * BITS, rest, divisor)
        out[g] = float_code(bits, negative != (counts[g] < 0))
    return out


@kernel(pair(words_out, octets_out), rows, i64, i64)
def finish_integers(dense, least, greatest):
    """Each row's integer sum, and 1 where it lies outside ``least..greatest`` (``least ≤ 0 ≤ greatest``)."""
    width = dense.shape[1]
    out = np.empty(dense.shape[0], np.int64)
    overflow = np.zeros(dense.shape[0], np.uint8)
    digits = np.empty(width + 2, np.int64)
    for g in range(dense.shape[0]):
        out[g], small = _small_sum(dense, g)
        if small:
            overflow[g] = 0 if least <= out[g] <= greatest else 1
            continue
        negative = carry_into(dense, g, width, digits, 0)
        bound = absolute(least) if negative else np.uint64(greatest)
        size = np.uint64(digit(digits, 0)) | (np.uint64(digit(digits, 1)) << np.uint64(BITS))
        size |= np.uint64(digit(digits, 2)) << np.uint64(2 * BITS)
        if digit(digits, 2) >= 1 << 12 or above(digits, 3) or size > bound:
            overflow[g] = 1
        out[g] = negated(np.int64(size)) if negative else np.int64(size)
    return out, overflow


@kernel(pair(words_out, words_out, octets_out), rows, i64)
def finish_decimals(dense, precision):
    """Each row's sum as the two words of a decimal, and 1 where it needs more than ``precision`` digits."""
    n, width = dense.shape
    highs, lows = np.empty(n, np.int64), np.empty(n, np.int64)
    overflow = np.zeros(n, np.uint8)
    digits = np.empty(width + 2, np.int64)
    limit, small_limit = power_of_ten(precision), _small_power(precision)
    for g in range(n):
        value, small = _small_sum(dense, g)
        if small and -small_limit < value < small_limit:
            _store_small(value, g, highs, lows)
            continue
        negative = carry_into(dense, g, width, digits, 0)
        _store_wide(digits, negative, limit, g, highs, lows, overflow)
    return highs, lows, overflow


@kernel(pair(words_out, words_out, octets_out), rows, words, i64, i64)
def average_decimals(dense, counts, power, precision):
    """Each row's ``sum · 10^power / count`` as the two words of a decimal, rounded once, half away from zero.

    ``power`` is the scale of the result less that of the summands. The flag is 1 where the result needs more
    than ``precision`` digits; a count of 0 gives NULL.
    """
    n, width = dense.shape
    highs, lows = np.empty(n, np.int64), np.empty(n, np.int64)
    overflow = np.zeros(n, np.uint8)
    digits = np.empty(width + 2 + POWER_DIGITS, np.int64)
    limit, small_limit, factor = power_of_ten(precision), _small_power(precision), _small_power(power)
    most = (1 << 62) // factor
    for g in range(n):
        if counts[g] == 0:
            highs[g] = INT64_MIN
            lows[g] = INT64_MIN
            continue
        value, small = _small_sum(dense, g)
        if small and -most < value < most and -(1 << 61) < counts[g] < 1 << 61:
            dividend, count = abs(value) * factor, abs(counts[g])
            quotient = dividend // count
            quotient += 1 if 2 * (dividend - quotient * count) >= count else 0
            if quotient < small_limit:
                _store_small(quotient if (value < 0) == (counts[g] < 0) else -quotient, g, highs, lows)
                continue
        negative = carry_into(dense, g, width, digits, 0)
        scale(digits, power)
        divisor = absolute(counts[g])
        rest = divide(digits, divisor)
        if (rest << np.uint64(1)) >= divisor:
            increment(digits)
        _store_wide(digits, negative != (counts[g] < 0), limit, g, highs, lows, overflow)
    return highs, lows, overflow
