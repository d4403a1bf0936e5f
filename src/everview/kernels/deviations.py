"""Aggregates that few programs compute, as routines of the compiled tick.

Variances, covariances, exact means of decimals as floats, and bits: what rows add to the places of their groups, and
what is read off these. And the least and greatest value by the order of texts, which are read off a trace that is
ordered by value. An operator that has one such call computes all of its calls here.
"""

from __future__ import annotations

import numpy as np

from everview.kernels import levels, sums
from everview.kernels import registers as register
from everview.kernels.contributions import ALL_KINDS, BITS
from everview.kernels.ends import first_rows_by_value, last_rows_by_value
from everview.kernels.instructions import END, LEFT, NO_BOUND, OUT, START, X, lines_of, ordering_of, routine
from everview.kernels.jit import inline
from everview.kernels.quotients import FLOAT_SQUARES, averages, covariances, variances


@routine
def weigh_more(line, constants, registers, ledgers):
    """Rows as entries (group, place) whose weights are what the rows contribute, squares, products and bits too."""
    middle = line[START] + line[X]
    slots = lines_of(constants, middle, line[END], sums.SLOT)
    delta = register.shown(registers, line[LEFT])
    register.put(registers, line[OUT], sums.weighed(delta, constants[line[START] : middle], slots, ALL_KINDS))
    return 1


@inline
def _codes(dense, call, counts):
    """The floats of a call. Its arguments are where what is added up besides begins, and how the result is made."""
    digits = dense[:, call[1] : call[2]].copy()
    if call[0] == sums.MEAN_SCALED:
        return averages(digits, counts, call[8])
    if call[0] == sums.VARIANCE:
        squares = dense[:, call[6] : call[6] + 2 * min(call[2] - call[1], FLOAT_SQUARES // 2)].copy()
        return variances(digits, squares, counts, call[7] & 1, call[8], call[7] & 2 != 0)
    others = dense[:, call[6] : call[6] + call[2] - call[1]].copy()
    products = dense[:, call[8] : call[8] + FLOAT_SQUARES].copy()
    return covariances(digits, others, products, counts, call[7])


@inline
def _bits(dense, i, call, count):
    """All values of a group bit by bit, from how often each bit is one."""
    word = np.uint64(0)
    for b in range(BITS):
        ones = dense[i, call[1] + b]
        if call[0] == sums.ALL_BITS:
            bit = ones == count
        elif call[0] == sums.ANY_BITS:
            bit = ones > 0
        else:
            bit = ones & 1 == 1
        if bit:
            word |= np.uint64(1) << np.uint64(b)
    return np.int64(word)


@inline
def finish_any(out, dense, call):
    """`everview.kernels.sums.finish`, for all kinds of calls."""
    if call[0] < sums.VARIANCE:
        return sums.finish(out, dense, call)
    counts = dense[:, call[3]].copy()
    if call[0] >= sums.ALL_BITS:
        for i in range(counts.size):
            sums.write(out, i, call, _bits(dense, i, call, counts[i]), 0, counts[i] == 0)
        return True
    codes = _codes(dense, call, counts)
    for i in range(counts.size):
        out[i, call[4]] = codes[i]
    return True


@inline
def ends_in_any_order(kind, groups, table, ordered, key, registers):
    """The row at an end of each group of a trace, whatever the trace is ordered by."""
    if ordered[levels.ORDER] == 0:
        return sums.ends_in_words(kind, groups, table, ordered, key)
    columns, ordering = ordered[levels.COLUMNS], ordering_of(ordered, registers)
    if kind == sums.LEAST_OF:
        return first_rows_by_value(groups, table, columns, key, 0, 1, NO_BOUND, *ordering)
    return last_rows_by_value(groups, table, columns, key, NO_BOUND, *ordering)


@routine
def aggregate_any(line, constants, registers, ledgers):
    """The change of the results of groups, for all kinds of calls; 0 if one is out of range, which the step tells."""
    return 1 if sums.aggregate(line, constants, registers, ledgers, ALL_KINDS) else 0
