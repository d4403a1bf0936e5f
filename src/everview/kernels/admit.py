"""Admitting changes to a table: sorted and checked against what the table holds, in one call.

Nearly all changes are plain: a key gets its first row, or a row that is there goes, or makes way for another of its
key. These are recognised here. Whatever else is asked, the caller looks at closely, to accept or to refuse it.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]

from everview.kernels.gallop import past
from everview.kernels.jit import boolean, i64, inline, kernel, rows, rows_out, words
from everview.kernels.rows import LINE, as_pointer, batch, compare, unowned
from everview.kernels.sieve import is_sifted, sift, starts_in
from everview.kernels.sort import arrange_into

UNCHECKED, BAG, KEYED = 0, 1, 2  # what is required: nothing; no negative weight; also no two rows of one key


@inline
def _not_beyond(out, n, m, key):
    """How many of the rows have a key that is not greater than all of a batch: new keys often are."""
    last = m.shape[0] - 1
    if last < 0 or compare(m, last, out, 0, 0, key) < 0:
        return 0
    return n if compare(m, last, out, n - 1, 0, key) >= 0 else past(out[:n], 0, m, last, key)


@inline
def _present(out, n, table, key):
    """For each removed row, how often the table has it; for each added one, how often its key."""
    width = out.shape[1] - 1
    present, found, sifted = np.zeros(n, np.int64), np.empty(n, np.int64), sift(table, out, n, key)
    for b in range(table.shape[0]):
        m = batch(table, b, width + 1)
        count = n if is_sifted(table, b, sifted) else _not_beyond(out, n, m, key)
        starts_in(table, b, m, out, count, key, found, sifted)
        for i in range(count):
            j = found[i]
            while j < m.shape[0] and compare(m, j, out, i, 0, key) == 0:
                if out[i, width] > 0 or compare(m, j, out, i, key, width) == 0:
                    present[i] += m[j, width]
                j += 1
    return present


@inline
def _plain_keys(out, n, present, key):
    """Whether of each key one row is added that was not there, or one removed that was, or one replaced."""
    width = out.shape[1] - 1
    i = 0
    while i < n:
        weight, end = out[i, width], i + 1
        while end < n and compare(out, end, out, i, 0, key) == 0:
            end += 1
        if end == i + 1:
            if not ((weight == 1 and present[i] == 0) or (weight == -1 and present[i] == 1)):
                return False
        elif end == i + 2 and weight * out[i + 1, width] == -1 and (weight == 1 or weight == -1):
            if present[i if weight < 0 else i + 1] != 1:
                return False
        else:
            return False
        i = end
    return True


@inline
def _all_added(out, n):
    """Whether no row is removed."""
    for i in range(n):  # noqa: SIM110, generators do not compile
        if out[i, out.shape[1] - 1] < 0:
            return False
    return True


@inline
def _plain_bag(out, n, present):
    """Whether no row of these will have a negative weight."""
    for i in range(n):  # noqa: SIM110, generators do not compile
        if out[i, out.shape[1] - 1] < -present[i]:
            return False
    return True


@inline
def _plain(out, n, table, key, rule):
    if n == 0 or rule == UNCHECKED or (rule == BAG and _all_added(out, n)):
        return True
    present = _present(out, n, table, key)
    return _plain_bag(out, n, present) if rule == BAG else _plain_keys(out, n, present, key)


@inline
def admitted(out, delta, columns, address, lines, key, rule):
    """See `admit`."""
    n = arrange_into(out, delta, columns)
    return n if _plain(unowned(out), n, carray(as_pointer(address), (lines, LINE)), key, rule) else ~n


@kernel(i64, rows_out, rows, words, i64, i64, i64, i64)
def admit(out, delta, columns, address, lines, key, rule):
    """Arrange a delta on ``columns`` into ``out``; returns the number of rows n, or ~n if they are to be looked at.

    At an address, in so many lines, is the table of the batches of what is held, in the same columns; ``key`` is the
    number of words of the key.
    """
    return admitted(out, delta, columns, address, lines, key, rule)


@kernel(boolean, rows, rows, i64, i64)
def is_plain(change, table, key, rule):
    """Whether a change that is arranged already need not be looked at."""
    return _plain(unowned(change), change.shape[0], unowned(table), key, rule)
