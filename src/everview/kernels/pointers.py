"""Memory by its address, as values of a type, and floats by their bits: for kernels that read and write buffers."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from everview.kernels.rows import pointer_to

int8_at: Any = pointer_to(types.int8)
int16_at: Any = pointer_to(types.int16)
int32_at: Any = pointer_to(types.int32)
int64_at: Any = pointer_to(types.int64)
uint8_at: Any = pointer_to(types.uint8)
float32_at: Any = pointer_to(types.float32)
float64_at: Any = pointer_to(types.float64)


def _same_bits(result, argument):
    """A function that takes the bits of one type for another."""

    @intrinsic
    def same_bits(typingctx, value):
        def codegen(context, builder, sig, args):
            return builder.bitcast(args[0], context.get_value_type(sig.return_type))

        return result(argument), codegen

    return same_bits


float_of_bits: Any = _same_bits(types.float64, types.int64)
bits_of_float: Any = _same_bits(types.int64, types.float64)
