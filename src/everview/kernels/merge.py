"""Merging two batches into one, all at once or a bounded number of rows at a time."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, inline, kernel, pair, rows, rows_out
from everview.kernels.ordering import by_values, compare_in, plain_first
from everview.kernels.rows import add


@inline
def _copy(out, at, m, i):
    """Row i of m to row ``at``, word by word: for a few words that beats assigning a slice."""
    for c in range(m.shape[1]):
        out[at, c] = m[i, c]


@inline
def _merge(a, i, b, j, out, at, fuel, ordering):
    """Go on merging until ``fuel`` rows have been read; equal rows add, zeros disappear."""
    na, nb, width = a.shape[0], b.shape[0], a.shape[1] - 1
    stop, plain = i + j + fuel, plain_first(0, width, ordering)
    while i < na and j < nb and i + j < stop:
        if plain and a[i, 0] != b[j, 0]:  # as nearly all rows are: a third of the time is saved by asking this first
            if a[i, 0] < b[j, 0]:
                _copy(out, at, a, i)
                i += 1
            else:
                _copy(out, at, b, j)
                j += 1
            at += 1
            continue
        order = compare_in(a, i, b, j, 0, width, ordering)
        if order < 0:
            _copy(out, at, a, i)
            i += 1
            at += 1
        elif order > 0:
            _copy(out, at, b, j)
            j += 1
            at += 1
        else:
            w = add(a[i, width], b[j, width])
            if w != 0:
                _copy(out, at, a, i)
                out[at, width] = w
                at += 1
            i += 1
            j += 1
    if j == nb:
        take = min(na - i, max(0, stop - i - j))
        out[at : at + take] = a[i : i + take]
        i += take
        at += take
    elif i == na:
        take = min(nb - j, max(0, stop - i - j))
        out[at : at + take] = b[j : j + take]
        j += take
        at += take
    return i, j, at


@inline
def merged(a, b, ordering):
    """The sum of two batches in an ordering, as a batch."""
    total = a.shape[0] + b.shape[0]
    out = np.empty((total, a.shape[1]), np.int64)
    _, _, at = _merge(a, 0, b, 0, out, 0, total, ordering)
    return out[:at]


@kernel(pair(i64, i64, i64), rows, i64, rows, i64, rows_out, i64, i64)
def merge_some(a, i, b, j, out, at, fuel):
    """Read at most about ``fuel`` rows more; the new positions in a, b and out."""
    return _merge(a, i, b, j, out, at, fuel, ())


@kernel(rows_out, rows, rows)
def merge(a, b):
    """The sum of two batches, as a batch."""
    return merged(a, b, ())


@kernel(pair(i64, i64, i64), rows, i64, rows, i64, rows_out, i64, i64, *by_values)
def merge_some_by_value(a, i, b, j, out, at, fuel, order, slots, codes, kinds, bounds, arena):
    """`merge_some` of batches that are ordered by value."""
    return _merge(a, i, b, j, out, at, fuel, (order, slots, codes, kinds, bounds, arena))


@kernel(rows_out, rows, rows, *by_values)
def merge_by_value(a, b, order, slots, codes, kinds, bounds, arena):
    """`merge` of batches that are ordered by value."""
    return merged(a, b, (order, slots, codes, kinds, bounds, arena))
