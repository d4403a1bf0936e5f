"""Arithmetic on natural numbers written in base 2^26 digits, least first: carry, scale, divide, round.

Every digit is an int64 in 0..2^26, so that a digit times 10, or a remainder with the next digit appended,
never leaves 64 bits.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import inline

BITS = 26
MASK = (1 << BITS) - 1
INFINITY = 0x7FF << 52  # bits, and code, of +inf
LEAST_EXPONENT = -1074  # of the least subnormal float64
POWER_DIGITS = 5  # hold 10^38


@inline
def negated(x):
    """-x modulo 2^64, which for `INT64_MIN` is itself."""
    return np.int64(np.uint64(0) - np.uint64(x))


@inline
def carry_into(dense, g, width, digits, low):
    """Write |sum| of row g into ``digits[low:]`` (each in 0..2^26) with zeros around; whether it is negative.

    A carry is at most 2^37 + 1, so nothing overflows, and two digits above the buckets hold the last one.
    """
    digits[:] = 0
    carry = np.int64(0)
    for k in range(width):
        x = dense[g, k]
        t = (x & MASK) + carry
        digits[low + k] = t & MASK
        carry = (x >> BITS) + (t >> BITS)
    negative = carry < 0
    if negative:
        borrow = np.int64(0)
        for k in range(low, low + width):
            t = -digits[k] - borrow
            digits[k] = t & MASK
            borrow = np.int64(1) if t < 0 else np.int64(0)
        carry = -carry - borrow
    digits[low + width] = carry & MASK
    digits[low + width + 1] = carry >> BITS
    return negative


@inline
def digit(digits, k):
    """The digit at position k, zero beyond the last."""
    return digits[k] if k < digits.size else np.int64(0)


@inline
def above(digits, k):
    """Whether a digit from position k on is not zero."""
    bits = np.int64(0)
    for j in range(k, digits.size):
        bits |= digits[j]
    return bits != 0


@inline
def below(digits, limit):
    """Whether the number in ``digits`` is less than that in ``limit``."""
    for k in range(max(digits.size, limit.size) - 1, -1, -1):
        x, y = digit(digits, k), digit(limit, k)
        if x != y:
            return x < y
    return False


@inline
def increment(digits):
    """Add one in place."""
    for k in range(digits.size):
        if digits[k] != MASK:
            digits[k] += 1
            return
        digits[k] = 0


@inline
def scale(digits, power):
    """Multiply the number in ``digits`` in place by 10^power, for which there must be room."""
    for _ in range(power):
        carry = np.int64(0)
        for k in range(digits.size):
            t = digits[k] * 10 + carry
            digits[k] = t & MASK
            carry = t >> BITS


@inline
def power_of_ten(power):
    digits = np.zeros(POWER_DIGITS, np.int64)
    digits[0] = 1
    scale(digits, power)
    return digits


@inline
def absolute(n):
    """|n| as unsigned, right for `INT64_MIN` too."""
    return np.uint64(negated(n)) if n < 0 else np.uint64(n)


@inline
def divide(digits, divisor):
    """Divide the number in ``digits`` in place by an unsigned divisor of at most 2^63; the remainder."""
    rest = np.uint64(0)
    top = digits.size - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if divisor < np.uint64(1 << 37):
        for k in range(top, -1, -1):
            t = (rest << np.uint64(BITS)) | np.uint64(digits[k])
            q = t // divisor
            digits[k] = np.int64(q)
            rest = t - q * divisor
        return rest
    for k in range(top, -1, -1):  # bit by bit: a remainder shifted by a whole digit would not fit
        q = np.int64(0)
        for b in range(BITS - 1, -1, -1):
            rest = (rest << np.uint64(1)) | np.uint64((digits[k] >> b) & 1)
            q <<= 1
            if rest >= divisor:
                rest -= divisor
                q |= 1
        digits[k] = q
    return rest


@inline
def half(digits, position):
    """Whether the bit at this position is set."""
    return (digits[position // BITS] >> (position % BITS)) & 1 == 1


@inline
def sticky(digits, position):
    """Whether any bit below this position is set."""
    k = position // BITS
    bits = digits[k] & ((1 << (position % BITS)) - 1)
    for j in range(k):
        bits |= digits[j]
    return bits != 0


@inline
def nearest(digits, unit, rest, divisor):
    """Bits of the float64 nearest to ``(digits + rest/divisor) · 2^unit``, ties to even.

    Takes either ``unit == LEAST_EXPONENT`` or a number so large that its 54 leading bits are in ``digits``.
    """
    top = digits.size - 1
    while top > 0 and digits[top] == 0:
        top -= 1
    length = top * BITS
    t = digits[top]
    while t > 0:
        length += 1
        t >>= 1
    cut = max(length - 53, 0)  # position of the last bit that is kept
    exponent = cut + unit - LEAST_EXPONENT
    if exponent > 2045:
        return np.int64(INFINITY)
    k = cut // BITS
    r = cut - k * BITS
    m = digits[k] >> r
    if k + 1 < digits.size:
        m |= digits[k + 1] << (BITS - r)
    if k + 2 < digits.size:
        m |= digits[k + 2] << (2 * BITS - r)
    if cut == 0:
        twice = rest << np.uint64(1)
        up = twice > divisor or (twice == divisor and m & 1 == 1)
    else:
        up = half(digits, cut - 1) and (m & 1 == 1 or rest > 0 or sticky(digits, cut - 1))
    bits = (exponent << 52) + m + (1 if up else 0)  # a carry out of the fraction is the next exponent
    return min(bits, np.int64(INFINITY))


@inline
def float_code(bits, negative):
    """The order-preserving code of a float of these magnitude bits; zero has no sign."""
    return ~bits if negative and bits != 0 else bits
