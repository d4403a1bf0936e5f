"""Arithmetic of compiled expressions on blocks of rows: integers, floats, conversions, wide decimals and dates.

Each kernel runs one instruction of `everview.kernels.word_code` over the ``n`` rows of a block; see
`everview.kernels.words` for slots and states. A result outside of the instruction's limits gets the state that the code
names: `FAILED`, or NULL for functions such as ``try_add``.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.calendar import end_day_of, months_later, part_of_date
from everview.kernels.fixed import NAN_CODE, flip
from everview.kernels.jit import i64, inline, kernel, rows_out, words
from everview.kernels.pointers import bits_of_float, float_of_bits
from everview.kernels.wide import (
    TOO_LARGE,
    below,
    magnitude,
    quotient,
    size,
    wide_difference,
    wide_less,
    wide_product,
    wide_sum,
)
from everview.kernels.word_code import (
    ADD_FLOATS,
    ADD_WIDE,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    CEIL_FLOAT,
    DIVIDE,
    DIVIDE_FLOATS,
    DIVIDE_WIDE,
    END_DAY_OF,
    FAILED,
    FLOAT_TO_SCALED,
    FLOOR_DIVIDE,
    FLOOR_FLOAT,
    FLOOR_MODULO,
    FROM_FLOAT,
    KNOWN,
    MODULO,
    MODULO_FLOATS,
    MULTIPLY_FLOATS,
    MULTIPLY_WIDE,
    NARROW,
    PART_OF_DATE,
    SCALED_TO_FLOAT,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SUBTRACT_FLOATS,
    SUBTRACT_WIDE,
    TO_FLOAT,
    TO_SINGLE,
    WIDEN,
)

LEAST = np.int64(-(2**63))
GREATEST = np.int64(2**63 - 1)
TOP = np.int64(-(2**63))  # the bit that is turned in the low word of a wide DECIMAL
EXACT = np.int64(2**53)  # up to here every integer is a float


@inline
def number(code):
    """The float that a word stands for."""
    return float_of_bits(flip(code))


@inline
def code_of(value):
    """The word that stands for a float; all NaNs have the same one, and so have both zeros."""
    if value != value:
        return NAN_CODE
    return np.int64(0) if value == 0.0 else flip(bits_of_float(value))


@inline
def met(slots, a, b, i):
    """The state of a result of two operands: failed if one is, else NULL if one is, else known."""
    s, t = slots[a, i], slots[b, i]
    return FAILED if (s | t) & FAILED else s & t


# -- integers


@inline
def _toward_zero(x, y):
    """Quotient and remainder of a division that rounds toward zero. The least integer over -1 is not allowed."""
    floor = x // y
    rest = x - floor * y
    if rest != 0 and (rest < 0) != (x < 0):
        return floor + 1, rest - y
    return floor, rest


@inline
def _integer(operation, x, y, bits):
    """The result of an operation on two integers, and whether it has none, as a division by zero."""
    if operation == BIT_AND:
        return x & y, False
    if operation == BIT_OR:
        return x | y, False
    if operation == BIT_XOR:
        return x ^ y, False
    if operation >= SHIFT_LEFT:
        by = y & (bits - 1)
        if operation == SHIFT_RIGHT:
            return x >> by, False
        if operation == SHIFT_LEFT:
            shifted = np.int64(np.uint64(x) << np.uint64(by))
        else:
            kept = np.uint64(x) << np.uint64(64 - bits) >> np.uint64(64 - bits)
            shifted = np.int64(kept >> np.uint64(by))
        return np.int64(np.uint64(shifted) << np.uint64(64 - bits)) >> (64 - bits), False
    if y == 0:
        return np.int64(0), True
    if y == -1:  # of the least integer the processor would stop
        if operation in (MODULO, FLOOR_MODULO):
            return np.int64(0), False
        return np.int64(np.uint64(0) - np.uint64(x)), x == LEAST
    if operation == FLOOR_DIVIDE:
        return x // y, False
    whole, rest = _toward_zero(x, y)
    if operation == DIVIDE:
        return whole, False
    if operation == MODULO:
        return rest, False
    if operation == FLOOR_MODULO:
        return rest + y if rest < 0 and y > 0 else rest, False
    # ROUND_DIVIDE, by a power of ten: halves away from zero.
    if rest >= y - rest or -rest >= y + rest:
        whole += 1 if x > 0 else -1
    return whole, False


@kernel(i64, i64, words, i64, words, rows_out)
def integers(n, code, at, constants, slots):
    """Quotients, remainders, bitwise operations and shifts of integers. A shift has bits in place of limits."""
    operation, target, a, b = code[at], 2 * code[at + 1], 2 * code[at + 2], 2 * code[at + 3]
    failure, bits = code[at + 5], np.int64(64)
    least, greatest = LEAST, GREATEST
    if operation >= SHIFT_LEFT:
        bits = code[at + 4]
    else:
        least, greatest = constants[code[at + 4]], constants[code[at + 4] + 1]
    for i in range(n):
        state = met(slots, a, b, i)
        slots[target, i] = state
        if state == KNOWN:
            result, failed = _integer(operation, slots[a + 1, i], slots[b + 1, i], bits)
            slots[target + 1, i] = result
            if failed or result < least or result > greatest:
                slots[target, i] = failure
    return 0


# -- floats


@inline
def _float(operation, x, y):
    if operation == ADD_FLOATS:
        return x + y
    if operation == SUBTRACT_FLOATS:
        return x - y
    if operation == MULTIPLY_FLOATS:
        return x * y
    if operation == DIVIDE_FLOATS:
        return x / y
    if operation == MODULO_FLOATS:
        return np.fmod(x, y)
    return np.sqrt(x)


@kernel(i64, i64, words, i64, rows_out)
def floats(n, code, at, slots):
    """Arithmetic of DOUBLE and FLOAT. A FLOAT is computed as a DOUBLE and rounded, which gives the nearest FLOAT."""
    operation, target, a, b = code[at], 2 * code[at + 1], 2 * code[at + 2], 2 * code[at + 3]
    single, failure = code[at + 4], code[at + 5]
    divides = operation in (DIVIDE_FLOATS, MODULO_FLOATS)
    for i in range(n):
        state = met(slots, a, b, i)
        slots[target, i] = state
        if state != KNOWN:
            continue
        x, y = number(slots[a + 1, i]), number(slots[b + 1, i])
        if divides and y == 0.0:
            slots[target, i] = failure
            continue
        result = _float(operation, x, y)
        slots[target + 1, i] = code_of(np.float64(np.float32(result)) if single else result)
    return 0


@inline
def _whole(value, least, greatest):
    """The integer of a float that is whole, and whether it is outside the limits.

    2^63 is taken for the greatest BIGINT, which is 2^63 - 1: no float is nearer to it.
    """
    if value == 2.0**63 and greatest == GREATEST:
        return GREATEST, False
    if not (value >= -(2.0**63) and value < 2.0**63):
        return np.int64(0), True
    integer = np.int64(value)
    return integer, integer < least or integer > greatest


@inline
def _scaled(value, unit, limit):
    """A float times a power of ten, rounded with halves away from zero; whether that is uncertain; whether too large.

    A float is converted as the shortest decimal that reads back as the same float. Close to a half that may round
    otherwise than the product of floats does: then the result is uncertain, and left to exact arithmetic.
    """
    large = value * unit
    size = abs(large)
    floor = np.floor(size)
    rest = size - floor
    if not (size < 2.0**51 and abs(rest - 0.5) > size * 1e-15 + 1e-12):
        return np.int64(0), True, True
    integer = np.int64(np.floor(size + 0.5))
    return (-integer if large < 0 else integer), False, integer > limit


@kernel(i64, i64, words, i64, words, rows_out)
def convert(n, code, at, constants, slots):
    """Conversions between integers, or decimals as scaled integers, and floats."""
    operation, target, a, given = code[at], 2 * code[at + 1], 2 * code[at + 2], code[at + 3]
    least, greatest, failure = LEAST, GREATEST, code[at + 5]
    if operation in (FROM_FLOAT, FLOAT_TO_SCALED):
        least, greatest = constants[code[at + 4]], constants[code[at + 4] + 1]
    unit = number(constants[given]) if operation in (SCALED_TO_FLOAT, FLOAT_TO_SCALED) else 1.0
    for i in range(n):
        slots[target, i] = slots[a, i]
        if slots[a, i] != KNOWN:
            continue
        word = slots[a + 1, i]
        if operation == TO_FLOAT:
            slots[target + 1, i] = code_of(np.float64(np.float32(word)) if given else np.float64(word))
        elif operation == SCALED_TO_FLOAT:
            slots[target + 1, i] = code_of(np.float64(word) / unit)
            if word > EXACT or word < -EXACT:  # twice rounded may be wrongly rounded
                slots[target, i] = FAILED
        elif operation == TO_SINGLE:
            slots[target + 1, i] = code_of(np.float64(np.float32(number(word))))
        elif operation == FLOAT_TO_SCALED:
            integer, unclear, beyond = _scaled(number(word), unit, greatest)
            slots[target + 1, i] = integer
            slots[target, i] = FAILED if unclear else failure if beyond else KNOWN
        else:
            value = number(word)
            if operation in (FLOOR_FLOAT, CEIL_FLOAT):
                value = 0.0 if value != value else np.floor(value) if operation == FLOOR_FLOAT else np.ceil(value)
            integer, beyond = _whole(np.trunc(value), least, greatest)
            slots[target + 1, i] = integer
            if beyond:
                slots[target, i] = failure
    return 0


# -- decimals of two words


@inline
def _rounded_quotient(h, w, k, v):
    """The quotient of two wide integers, rounded with halves away from zero."""
    x, y, negative = magnitude(h, w)
    p, q, other = magnitude(k, v)
    high, low, rest_high, rest_low = quotient(x, y, p, q)
    left_high, left_low = wide_difference(p, q, rest_high, rest_low)
    if not wide_less(rest_high, rest_low, left_high, left_low):
        high, low = wide_sum(high, low, np.int64(0), np.int64(1))
    return wide_difference(0, 0, high, low) if negative != other else (high, low)


@inline
def _cut_quotient(h, w, k, v):
    """The quotient of two wide integers, rounded toward zero."""
    x, y, negative = magnitude(h, w)
    p, q, other = magnitude(k, v)
    high, low, _, _ = quotient(x, y, p, q)
    return wide_difference(0, 0, high, low) if negative != other else (high, low)


@inline
def _wide(operation, h, w, k, v):
    """The two words of the result of an operation on wide integers, and whether it has none or may not fit."""
    if operation == ADD_WIDE:
        high, low = wide_sum(h, w, k, v)
        return high, low, False
    if operation == SUBTRACT_WIDE:
        high, low = wide_difference(h, w, k, v)
        return high, low, False
    if operation == MULTIPLY_WIDE:
        high, low = wide_product(h, w, k, v)
        return high, low, size(h, w) * size(k, v) > TOO_LARGE
    if k == 0 and v == 0:
        return np.int64(0), np.int64(0), True
    high, low = _rounded_quotient(h, w, k, v) if operation == DIVIDE_WIDE else _cut_quotient(h, w, k, v)
    return high, low, False


@kernel(i64, i64, words, i64, words, rows_out)
def wide_decimals(n, code, at, constants, slots):
    """Arithmetic of DECIMALs of two words, whose limit has two words, too; and conversions from one word and to one."""
    operation, target, a, b = code[at], 2 * code[at + 1], 2 * code[at + 2], 2 * code[at + 3]
    place, failure = code[at + 4], code[at + 5]
    for i in range(n):
        if operation == WIDEN:
            word = slots[a + 1, i]
            slots[target, i] = slots[target + 2, i] = slots[a, i]
            slots[target + 1, i], slots[target + 3, i] = word >> 63, word ^ TOP
            continue
        h, w = slots[a + 1, i], slots[a + 3, i] ^ TOP
        if operation == NARROW:
            fits = h == w >> 63 and constants[place] <= w <= constants[place + 1]
            slots[target, i] = failure if slots[a, i] == KNOWN and not fits else slots[a, i]
            slots[target + 1, i] = w
            continue
        state = met(slots, a, b, i)
        if state == KNOWN:
            high, low, failed = _wide(operation, h, w, slots[b + 1, i], slots[b + 3, i] ^ TOP)
            slots[target + 1, i], slots[target + 3, i] = high, low ^ TOP
            if failed or not below(high, low, constants[place], constants[place + 1]):
                state = failure
        slots[target, i] = slots[target + 2, i] = state
    return 0


# -- the calendar


@kernel(i64, i64, words, i64, words, rows_out)
def calendar(n, code, at, constants, slots):
    """Functions of dates: a part such as the year, the end of a period such as the month, and months added."""
    operation, target, a, given = code[at], 2 * code[at + 1], 2 * code[at + 2], code[at + 3]
    least, greatest, failure = constants[code[at + 4]], constants[code[at + 4] + 1], code[at + 5]
    for i in range(n):
        state, days = slots[a, i], slots[a + 1, i]
        if operation == PART_OF_DATE:
            slots[target, i] = state
            slots[target + 1, i] = part_of_date(days, given) if state == KNOWN else 0
            continue
        if operation == END_DAY_OF:
            result = end_day_of(days, given) if state == KNOWN else np.int64(0)
        else:
            state = met(slots, a, 2 * given, i)
            result = months_later(days, slots[2 * given + 1, i]) if state == KNOWN else np.int64(0)
        slots[target, i] = failure if state == KNOWN and (result < least or result > greatest) else state
        slots[target + 1, i] = result
    return 0
