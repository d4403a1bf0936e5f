"""What every kernel needs to know about a row: how two compare, and how weights add and multiply.

Rows are compared word by word, signed; a weight that leaves 64 bits raises `OverflowError`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numba.core import types
from numba.extending import intrinsic

from everview.kernels.jit import inline

CACHE_LINE = 64
PREFETCHED = 3  # lines of a row

# The words of a line of a spine's table, one line a batch: its address, its rows, and the address of the sieve that
# knows its keys, or 0.
BATCH, BATCH_ROWS, SIEVE = range(3)
LINE = 3


@inline
def compare(a, i, b, j, lo, hi):
    """Sign of the comparison of words ``lo..hi`` of row i of a and row j of b."""
    for c in range(lo, hi):
        x = a[i, c]
        y = b[j, c]
        if x != y:
            return -1 if x < y else 1
    return 0


@inline
def within(m, i, width, bound):
    """Whether the time of row i, the words after the first ``width``, is at most the bound in every coordinate."""
    for c in range(bound.size):  # noqa: SIM110, generators do not compile
        if m[i, width + c] > bound[c]:
            return False
    return True


def _checked(instruction):
    """An addition or multiplication with the processor's own word on whether it overflowed.

    Looking at the result afterwards would not do: the compiler takes signed overflow for impossible.
    """

    @intrinsic
    def operation(typingctx, x, y):
        result = types.Tuple((types.int64, types.boolean))

        def codegen(context, builder, sig, args):
            both = getattr(builder, instruction)(args[0], args[1])
            parts = builder.extract_value(both, 0), builder.extract_value(both, 1)
            return context.make_tuple(builder, sig.return_type, parts)

        return result(types.int64, types.int64), codegen

    return operation


sum_and_overflow: Any = _checked("sadd_with_overflow")
difference_and_overflow: Any = _checked("ssub_with_overflow")
product_and_overflow: Any = _checked("smul_with_overflow")


@inline
def add(x, y):
    """The sum of two weights, checked."""
    s, over = sum_and_overflow(x, y)
    if over:
        raise OverflowError("a weight left the range of 64 bits")
    return s


@inline
def multiply(x, y):
    """The product of two weights, checked."""
    p, over = product_and_overflow(x, y)
    if over:
        raise OverflowError("a weight left the range of 64 bits")
    return p


def pointer_to(kind):
    """A function that takes an integer address for a pointer, so that one kernel reads any number of arrays."""

    @intrinsic
    def pointer(typingctx, address):
        def codegen(context, builder, sig, args):
            return builder.inttoptr(args[0], context.get_value_type(types.CPointer(kind)))

        return types.CPointer(kind)(types.int64), codegen

    return pointer


as_pointer: Any = pointer_to(types.int64)


@inline
def unowned(m):
    """The same array for the innermost loops: whoever uses it does not count as an owner of the memory.

    The array itself must be used once more after the last use of this one, or its memory is freed before.
    """
    return carray(as_pointer(m.ctypes.data), m.shape)


@intrinsic
def _prefetch(typingctx, m, row):
    """Ask the processor for the memory of a row, which is read soon."""
    signature = types.void(m, types.int64)

    def codegen(context, builder, sig, args):
        matrix = context.make_array(sig.args[0])(context, builder, args[0])
        start = builder.mul(args[1], builder.extract_value(matrix.strides, 0))
        line = context.get_constant(types.int64, CACHE_LINE)
        size = builder.extract_value(matrix.strides, 0)
        address = builder.ptrtoint(matrix.data, start.type)
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        first = builder.add(address, start)
        for number in range(PREFETCHED):
            offset = builder.mul(line, line.type(number))
            ahead = builder.select(builder.icmp_signed("<", offset, size), offset, line.type(0))
            builder.call(function, [builder.inttoptr(builder.add(first, ahead), byte), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return signature, codegen


prefetch: Any = _prefetch


@inline
def batch(table, b, columns):
    """The matrix of batch ``b`` of a spine's table."""
    return carray(as_pointer(table[b, 0]), (table[b, 1], columns))
