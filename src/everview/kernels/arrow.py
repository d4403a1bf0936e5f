"""Arrow's record batches to words, by the addresses of their buffers: all fixed-width columns in one call.

A record batch comes by Arrow's C data interface, as the address of a struct ``ArrowArray``, whose members are words:
length, number of NULLs, offset, numbers of buffers and of children, and the addresses of these. What needs a closer
look (a NULL or a number that the column does not take, memory that is not aligned) is left to the caller.
"""

from __future__ import annotations

from numba import carray  # pyright: ignore[reportPrivateImportUsage]

from everview.kernels.fixed import NAN_CODE, NULL_WORD, flip
from everview.kernels.jit import i64, inline, kernel, rows, rows_out
from everview.kernels.pointers import (
    bits_of_float,
    float32_at,
    float64_at,
    int8_at,
    int16_at,
    int32_at,
    int64_at,
    uint8_at,
)

# How the values of a column stand in its buffer.
INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BITS, DECIMAL, WIDE_DECIMAL = range(9)
# What a line of a plan says: which child, how its values stand, the first word of a row that is theirs, whether they
# may be NULL, whether a word before the value says so, and the least and greatest number.
CHILD, FORM, WORD, NULLABLE, FLAGGED, LEAST, GREATEST = range(7)


@inline
def _absent(bitmap, i):
    """Whether value i is NULL; without a bitmap none is."""
    return bitmap.size > 0 and (bitmap[i >> 3] >> (i & 7)) & 1 == 0


@inline
def _put_null(out, row, line):
    """NULL in a row; whether the column takes it."""
    word = line[WORD]
    if line[FLAGGED]:
        out[row, word] = 0
        out[row, word + 1] = 0
    else:
        out[row, word] = NULL_WORD
        if line[FORM] == WIDE_DECIMAL:
            out[row, word + 1] = NULL_WORD
    return line[NULLABLE] != 0


@inline
def _put_integers(out, first, values, offset, n, bitmap, line):
    word, flagged, least, greatest = line[WORD], line[FLAGGED], line[LEAST], line[GREATEST]
    for i in range(n):
        if _absent(bitmap, offset + i):
            if not _put_null(out, first + i, line):
                return False
            continue
        value = values[offset + i]
        if value < least or value > greatest:
            return False
        if flagged:
            out[first + i, word] = 1
            out[first + i, word + 1] = value
        else:
            out[first + i, word] = value
    return True


@inline
def _put_floats(out, first, values, offset, n, bitmap, line):
    word = line[WORD]
    for i in range(n):
        if _absent(bitmap, offset + i):
            if not _put_null(out, first + i, line):
                return False
            continue
        value = float(values[offset + i])
        if value != value:
            out[first + i, word] = NAN_CODE
        elif value == 0.0:
            out[first + i, word] = 0
        else:
            out[first + i, word] = flip(bits_of_float(value))
    return True


@inline
def _put_bits(out, first, values, offset, n, bitmap, line):
    word = line[WORD]
    for i in range(n):
        at = offset + i
        if not _absent(bitmap, at):
            out[first + i, word] = (values[at >> 3] >> (at & 7)) & 1
        elif not _put_null(out, first + i, line):
            return False
    return True


@inline
def _put_decimals(out, first, halves, offset, n, bitmap, line):
    word, one = line[WORD], line[FORM] == DECIMAL
    for i in range(n):
        at = offset + i
        if _absent(bitmap, at):
            if not _put_null(out, first + i, line):
                return False
        elif one:
            out[first + i, word] = halves[2 * at]
        else:
            out[first + i, word] = halves[2 * at + 1]
            out[first + i, word + 1] = halves[2 * at] ^ NULL_WORD
    return True


@kernel(i64, rows_out, i64, i64, rows)
def put_batch(out, first, address, plan):
    """Write the columns of a plan into the rows from ``first`` on; returns how many lines of the plan were done."""
    whole = carray(int64_at(address), 10)
    n, start = whole[0], whole[2]
    children = carray(int64_at(whole[6]), whole[4])
    for k in range(plan.shape[0]):
        line = plan[k]
        array = carray(int64_at(children[line[CHILD]]), 10)
        buffers = carray(int64_at(array[5]), 2)
        offset, form, data = start + array[2], line[FORM], buffers[1]
        end = offset + n
        bitmap = carray(uint8_at(buffers[0]), (end + 7) >> 3 if array[1] != 0 and buffers[0] != 0 else 0)
        if form == INT8:
            done = _put_integers(out, first, carray(int8_at(data), end), offset, n, bitmap, line)
        elif form == BITS:
            done = _put_bits(out, first, carray(uint8_at(data), (end + 7) >> 3), offset, n, bitmap, line)
        elif form == INT16:
            done = data & 1 == 0 and _put_integers(out, first, carray(int16_at(data), end), offset, n, bitmap, line)
        elif form == INT32:
            done = data & 3 == 0 and _put_integers(out, first, carray(int32_at(data), end), offset, n, bitmap, line)
        elif form == FLOAT32:
            done = data & 3 == 0 and _put_floats(out, first, carray(float32_at(data), end), offset, n, bitmap, line)
        elif data & 7 != 0:
            done = False
        elif form == INT64:
            done = _put_integers(out, first, carray(int64_at(data), end), offset, n, bitmap, line)
        elif form == FLOAT64:
            done = _put_floats(out, first, carray(float64_at(data), end), offset, n, bitmap, line)
        else:
            done = _put_decimals(out, first, carray(int64_at(data), 2 * end), offset, n, bitmap, line)
        if not done:
            return k
    return plan.shape[0]
