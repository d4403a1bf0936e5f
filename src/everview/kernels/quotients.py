"""Exact quotients as floats: a long integer over several divisors, rounded once.

On the way a result is ``fraction · 2^exponent`` with a fraction in [1, 4) and an even exponent (or zero), so that a
root can be taken, and a power of two multiplied with, within the range of floats.

Numbers are base 2^26 digits, least first (see `digits`). Squares are spread like the numbers themselves, into
twice as many buckets: with ``x = Σ d_i · B^i`` is ``x² = Σ d_i · d_j · B^(i+j)``, carried once.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from everview.kernels.digits import BITS, MASK, absolute, carry_into, divide, half, sticky
from everview.kernels.exact_sum import FLOAT_BUCKETS, FLOAT_WIDTH, INTEGER_BUCKETS, WIDE_BUCKETS, Entries
from everview.kernels.fixed import NAN_CODE, NULL_WORD
from everview.kernels.jit import boolean, doubles_out, i64, inline, kernel, pair, rows, rows_out, words, words_out
from everview.kernels.rows import multiply
from everview.kernels.word_numbers import code_of

Words = NDArray[np.int64]

INTEGER_SQUARES = 2 * INTEGER_BUCKETS
WIDE_SQUARES = 2 * WIDE_BUCKETS
FLOAT_SQUARES = 2 * FLOAT_BUCKETS
FLOAT_UNIT = -2 * 1074  # of the squares of floats, as a power of two
FLOAT_DIGITS = 6  # of one square
MOST_DIGITS = WIDE_SQUARES  # of any square

TENS = 18  # 10^18 is the greatest power of ten below 2^63
# Zero digits put below a number N before it is divided by d, so that a remainder never decides how the quotient is
# rounded: cut off, N · 2^G / d ends in half a unit only if it does so exactly, once G ≥ 2 · log2(d) + 54.
DIVISOR_GUARD = 6  # for every divisor below 2^63
GUARD = 3


# ---------------------------------------------------------------- squares


@inline
def square_of(buckets, digits, start, end, out):
    """Write the digits of the square of a number, whose own digits are those from ``start`` to ``end``, least first.

    Returns the bucket of the first digit written, and how many there are: none of a float that is not finite.
    """
    low = buckets[start]
    size = 0 if low >= FLOAT_BUCKETS else 2 * (buckets[end - 1] - low + 1)
    out[:size] = 0
    if size:
        for a in range(start, end):
            for b in range(start, end):
                out[buckets[a] + buckets[b] - 2 * low] += digits[a] * digits[b]
    carry = np.int64(0)
    for k in range(size):
        t = out[k] + carry
        carry = t >> BITS
        out[k] = t & MASK
    return 2 * low, size


@inline
def product_of(buckets, digits, start, end, others, other_digits, first, last, out):
    """`square_of` for the product of two floats; all digits but the last are at least zero, which has the sign."""
    low, base = buckets[start], others[first]
    if low >= FLOAT_BUCKETS or base >= FLOAT_BUCKETS:
        return low + base, 0
    out[:FLOAT_DIGITS] = 0
    for a in range(start, end):
        for b in range(first, last):
            out[buckets[a] - low + others[b] - base] += digits[a] * other_digits[b]
    carry = np.int64(0)
    for k in range(FLOAT_DIGITS):
        t = out[k] + carry
        carry = t >> BITS
        out[k] = t & MASK if k + 1 < FLOAT_DIGITS else t
    return low + base, FLOAT_DIGITS


@kernel(i64, words, words, words, words, rows_out)
def _spread_squares(origins, buckets, digits, weights, out):
    """The entries of one number stand together, its buckets ascending."""
    square = np.empty(MOST_DIGITS, np.int64)
    at = i = 0
    while i < origins.size:
        end = i + 1
        while end < origins.size and origins[end] == origins[i]:
            end += 1
        first, size = square_of(buckets, digits, i, end, square)
        for k in range(size):
            if square[k] != 0:
                out[0, at] = origins[i]
                out[1, at] = first + k
                out[2, at] = multiply(square[k], weights[origins[i]])
                at += 1
        i = end
    return at


def spread_squares(entries: Entries, weights: Words, digits: int) -> Entries:
    """Entries of the squares of numbers, given those of the numbers, each once; a square has so many digits.

    >>> three = np.array([0]), np.array([41]), np.array([-3])  # -3 · B^41
    >>> [column.tolist() for column in spread_squares(three, np.array([2]), FLOAT_DIGITS)]
    [[0], [82], [18]]
    """
    out = np.empty((3, digits * weights.size), np.int64)
    at = _spread_squares(*entries, weights, out)
    return out[0, :at], out[1, :at], out[2, :at]


@kernel(i64, words, words, words, words, words, words, words, rows_out)
def _spread_products(origins, buckets, digits, others, other_buckets, other_digits, weights, out):
    """Both sides as in `_spread_squares`, by origin; a number without entries is zero."""
    product = np.empty(FLOAT_DIGITS, np.int64)
    at = i = j = 0
    while i < origins.size and j < others.size:
        if origins[i] < others[j]:
            i += 1
            continue
        if others[j] < origins[i]:
            j += 1
            continue
        row = origins[i]
        end, last = i, j
        while end < origins.size and origins[end] == row:
            end += 1
        while last < others.size and others[last] == row:
            last += 1
        low, size = product_of(buckets, digits, i, end, other_buckets, other_digits, j, last, product)
        for k in range(size):
            if product[k] != 0:
                out[0, at] = row
                out[1, at] = low + k
                out[2, at] = multiply(product[k], weights[row])
                at += 1
        i, j = end, last
    return at


def spread_products(entries: Entries, others: Entries, weights: Words) -> Entries:
    """Entries of the products of floats, given those of both sides, each once.

    >>> three, two = ((np.array([0]), np.array([41]), np.array([n])) for n in (-3, 2))
    >>> [column.tolist() for column in spread_products(three, two, np.array([5]))]
    [[0, 0, 0, 0, 0, 0], [82, 83, 84, 85, 86, 87], [335544290, 335544315, 335544315, 335544315, 335544315, -5]]
    """
    out = np.empty((3, FLOAT_DIGITS * weights.size), np.int64)
    at = _spread_products(*entries, *others, weights, out)
    return out[0, :at], out[1, :at], out[2, :at]


# ---------------------------------------------------------------- long integers


@inline
def _lowest(digits):
    """The position of the lowest digit that is not zero; the length, if there is none."""
    for k in range(digits.size):
        if digits[k] != 0:
            return k
    return digits.size


@inline
def _length(digits):
    """One more than the position of the highest digit that is not zero."""
    k = digits.size
    while k > 0 and digits[k - 1] == 0:
        k -= 1
    return k


@inline
def _product(a, b, out):
    """``out = a · b``, for which there must be room."""
    out[:] = 0
    first, last = _lowest(b), _length(b)
    for i in range(_lowest(a), _length(a)):
        carry = np.int64(0)
        for j in range(first, last):
            t = out[i + j] + a[i] * b[j] + carry
            out[i + j] = t & MASK
            carry = t >> BITS
        out[i + last] += carry  # the first to reach this digit, which is zero so far


@inline
def _subtract(a, b):
    """``a = |a − b|``; whether b was the greater."""
    negative = False
    for k in range(a.size - 1, -1, -1):
        if a[k] != b[k]:
            negative = a[k] < b[k]
            break
    borrow = np.int64(0)
    for k in range(a.size):
        t = (b[k] - a[k] if negative else a[k] - b[k]) - borrow
        a[k] = t & MASK
        borrow = np.int64(1) if t < 0 else np.int64(0)
    return negative


@inline
def _add(a, b):
    """``a = a + b``, for which there must be room."""
    carry = np.int64(0)
    for k in range(a.size):
        t = a[k] + b[k] + carry
        a[k] = t & MASK
        carry = t >> BITS


@inline
def _over_tens(digits, power):
    """Divide in place by 10^power."""
    while power > 0:
        step = min(power, TENS)
        divisor = np.int64(1)
        for _ in range(step):
            divisor *= 10
        divide(digits, np.uint64(divisor))
        power -= step


@inline
def _tens(power):
    """How many divisors `_over_tens` takes."""
    return (power + TENS - 1) // TENS


@inline
def _rounded(digits, unit):
    """The fraction and the even exponent nearest to ``digits · 2^unit``, ties to even; of at least 54 bits."""
    top = _length(digits) - 1
    length = top * BITS
    t = digits[top]
    while t > 0:
        length += 1
        t >>= 1
    cut = length - 53
    k, r = cut // BITS, cut % BITS
    m = digits[k] >> r
    if k + 1 < digits.size:
        m |= digits[k + 1] << (BITS - r)
    if k + 2 < digits.size:
        m |= digits[k + 2] << (2 * BITS - r)
    if half(digits, cut - 1) and (m & 1 == 1 or sticky(digits, cut - 1)):
        m += 1
    exponent = unit + length - 1
    odd = exponent & 1
    return np.float64(m) / 2.0 ** (52 - odd), exponent - odd


# ---------------------------------------------------------------- quotients


@inline
def _code(fraction, exponent):
    """The code of the float ``fraction · 2^exponent``."""
    return code_of(math.ldexp(fraction, exponent))


@inline
def _is_special(dense, g):
    """Whether one of the floats that were added up is not finite."""
    for k in range(FLOAT_BUCKETS, dense.shape[1]):  # noqa: SIM110, generators do not compile
        if dense[g, k] != 0:
            return True
    return False


@inline
def _over_counts(left, n, lost, powers, number):
    """The fraction and exponent of ``left / (n · (n − lost) · 10^powers)``; ``number`` has room for the quotient."""
    low, high = _lowest(left), _length(left)
    if low >= high:
        return 0.0, np.int64(0)
    guard = GUARD + DIVISOR_GUARD * (2 + _tens(powers))
    quotient = number[: guard + high - low]
    quotient[:guard] = 0
    quotient[guard:] = left[low:high]
    divide(quotient, np.uint64(n))
    divide(quotient, np.uint64(n - lost))
    _over_tens(quotient, powers)
    return _rounded(quotient, BITS * (low - guard))


@kernel(words_out, rows, rows, words, i64, i64, boolean)
def variances(sums, squares, counts, lost, scale, root):
    """Each row's ``(n · Σx² − (Σx)²) / (n · (n − lost) · 10^(2·scale))``, or its root, as a float's code.

    NULL unless n is greater than ``lost``; NaN if a float is not finite, and for the root of what is negative.
    """
    n, powers = counts.size, 2 * scale
    floats = sums.shape[1] == FLOAT_WIDTH
    width, unit = (FLOAT_BUCKETS, FLOAT_UNIT) if floats else (sums.shape[1], 0)
    out = np.empty(n, np.int64)
    total = np.empty(width + 2, np.int64)
    square = np.empty(squares.shape[1] + 2, np.int64)
    count = np.empty(3, np.int64)
    room = max(2 * total.size, square.size + count.size) + 1
    left, right = np.empty(room, np.int64), np.empty(room, np.int64)
    number = np.empty(GUARD + DIVISOR_GUARD * (2 + _tens(powers)) + room, np.int64)
    for g in range(n):
        if counts[g] <= lost or (floats and _is_special(sums, g)):
            out[g] = NULL_WORD if counts[g] <= lost else NAN_CODE
            continue
        carry_into(sums, g, width, total, 0)
        negative = carry_into(squares, g, squares.shape[1], square, 0)
        for k in range(3):
            count[k] = (counts[g] >> (k * BITS)) & MASK
        _product(square, count, left)
        _product(total, total, right)
        if negative:
            _add(left, right)
        else:
            negative = _subtract(left, right)
        fraction, exponent = _over_counts(left, counts[g], lost, powers, number)
        exponent += unit
        if root:
            fraction, exponent = math.sqrt(fraction), exponent // 2
            if negative and fraction > 0.0:
                out[g] = NAN_CODE
                continue
        out[g] = _code(-fraction if negative else fraction, exponent)
    return out


@kernel(words_out, rows, rows, rows, words, i64)
def covariances(firsts, seconds, products, counts, lost):
    """Each row's ``(n · Σxy − Σx · Σy) / (n · (n − lost))`` of floats, as a float's code.

    NULL unless n is greater than ``lost``; NaN if a float is not finite.
    """
    n = counts.size
    out = np.empty(n, np.int64)
    a, b = np.empty(FLOAT_BUCKETS + 2, np.int64), np.empty(FLOAT_BUCKETS + 2, np.int64)
    product = np.empty(products.shape[1] + 2, np.int64)
    count = np.empty(3, np.int64)
    room = max(a.size + b.size, product.size + count.size) + 1
    left, right = np.empty(room, np.int64), np.empty(room, np.int64)
    number = np.empty(GUARD + DIVISOR_GUARD * 2 + room, np.int64)
    for g in range(n):
        if counts[g] <= lost or _is_special(firsts, g) or _is_special(seconds, g):
            out[g] = NULL_WORD if counts[g] <= lost else NAN_CODE
            continue
        opposite = carry_into(firsts, g, FLOAT_BUCKETS, a, 0) != carry_into(seconds, g, FLOAT_BUCKETS, b, 0)
        negative = carry_into(products, g, products.shape[1], product, 0)
        for k in range(3):
            count[k] = (counts[g] >> (k * BITS)) & MASK
        _product(product, count, left)
        _product(a, b, right)
        if negative != opposite:
            _add(left, right)
        elif _subtract(left, right):
            negative = not negative
        fraction, exponent = _over_counts(left, counts[g], lost, 0, number)
        out[g] = _code(-fraction if negative else fraction, exponent + FLOAT_UNIT)
    return out


@kernel(words_out, rows, words, i64)
def averages(dense, counts, scale):
    """Each row's ``sum / (count · 10^scale)`` as a float's code; NULL where the count is 0."""
    n, width = dense.shape
    out = np.empty(n, np.int64)
    guard = GUARD + DIVISOR_GUARD * (1 + _tens(scale))
    number = np.empty(guard + width + 2, np.int64)
    for g in range(n):
        out[g] = NULL_WORD if counts[g] == 0 else 0
        if counts[g] == 0:
            continue
        negative = carry_into(dense, g, width, number, guard)
        if _length(number) == 0:
            continue
        divide(number, absolute(counts[g]))
        _over_tens(number, scale)
        fraction, exponent = _rounded(number, -BITS * guard)
        out[g] = _code(-fraction if negative != (counts[g] < 0) else fraction, exponent)
    return out


@kernel(pair(doubles_out, words_out), rows, i64)
def decimals(dense, scale):
    """Each row's ``sum / 10^scale``."""
    n, width = dense.shape
    fractions, exponents = np.zeros(n, np.float64), np.zeros(n, np.int64)
    guard = GUARD + DIVISOR_GUARD * _tens(scale)
    number = np.empty(guard + width + 2, np.int64)
    for g in range(n):
        negative = carry_into(dense, g, width, number, guard)
        if _length(number) == 0:
            continue
        _over_tens(number, scale)
        fraction, exponents[g] = _rounded(number, -BITS * guard)
        fractions[g] = -fraction if negative else fraction
    return fractions, exponents
