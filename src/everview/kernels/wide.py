"""Integers of 128 bits, as DECIMALs of more than 18 digits are: a signed high word and an unsigned low one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from everview.kernels.jit import inline

TWO_64 = 2.0**64
# A product that comes out above this as a float has more than 38 digits, and one below it fits into 127 bits.
TOO_LARGE = 1.2e38


def _of_pairs(instruction):
    """An operation on two 128-bit integers, modulo 2^128, which the processor does in a few steps."""

    @intrinsic
    def operation(typingctx, high, low, other_high, other_low):
        result = types.UniTuple(types.int64, 2)

        def codegen(context, builder, sig, args):
            word = args[0].type
            both = type(word)(128)

            def joined(h, low_half):
                shifted = builder.shl(builder.sext(h, both), both(64))
                return builder.or_(shifted, builder.zext(low_half, both))

            value = getattr(builder, instruction)(joined(args[0], args[1]), joined(args[2], args[3]))
            parts = (
                builder.trunc(builder.lshr(value, both(64)), word),
                builder.trunc(value, word),
            )
            return context.make_tuple(builder, sig.return_type, parts)

        return result(types.int64, types.int64, types.int64, types.int64), codegen

    return operation


wide_sum: Any = _of_pairs("add")
wide_difference: Any = _of_pairs("sub")
wide_product: Any = _of_pairs("mul")


@inline
def wide_less(high, low, other_high, other_low):
    return high < other_high or (high == other_high and np.uint64(low) < np.uint64(other_low))


@inline
def magnitude(high, low):
    """The value without its sign, and whether it is negative."""
    if high >= 0:
        return high, low, False
    h, w = wide_difference(0, 0, high, low)
    return h, w, True


@inline
def size(high, low):
    """The nearest float to the value without its sign, or one beside it."""
    h, w, _ = magnitude(high, low)
    return np.float64(h) * TWO_64 + np.float64(np.uint64(w))


@inline
def below(high, low, limit_high, limit_low):
    """Whether a value is less than a limit, and more than its negative."""
    h, w, _ = magnitude(high, low)
    return h >= 0 and wide_less(h, w, limit_high, limit_low)


@inline
def quotient(high, low, by_high, by_low):
    """The quotient and the remainder of two values above zero: (high, low, rest_high, rest_low)."""
    if high == 0 and by_high == 0 and low >= 0 and by_low > 0:
        whole = low // by_low
        return np.int64(0), whole, np.int64(0), low - whole * by_low
    rest_high, rest_low = np.int64(0), np.int64(0)
    whole_high, whole_low = np.int64(0), np.int64(0)
    for k in range(128):
        word = high if k < 64 else low
        bit = np.int64((np.uint64(word) >> np.uint64(63 - (k & 63))) & np.uint64(1))
        rest_high = np.int64((np.uint64(rest_high) << np.uint64(1)) | (np.uint64(rest_low) >> np.uint64(63)))
        rest_low = np.int64((np.uint64(rest_low) << np.uint64(1)) | np.uint64(bit))
        whole_high = np.int64((np.uint64(whole_high) << np.uint64(1)) | (np.uint64(whole_low) >> np.uint64(63)))
        whole_low = np.int64(np.uint64(whole_low) << np.uint64(1))
        if not wide_less(rest_high, rest_low, by_high, by_low):
            rest_high, rest_low = wide_difference(rest_high, rest_low, by_high, by_low)
            whole_low = np.int64(np.uint64(whole_low) | np.uint64(1))
    return whole_high, whole_low, rest_high, rest_low
