"""Galloping search in sorted rows: from where one stands, in steps that double, then by halves.

Two ways to say what is looked for: a probe, whose first words are the row's first; or words in the middle of rows that
are equal before them. A search that goes on from the last one costs the logarithm of how far it goes.
"""

from __future__ import annotations

from everview.kernels.jit import inline
from everview.kernels.rows import compare


@inline
def seek(m, lo, probe, i, key, step=1):
    """The first row at or after ``lo`` of m whose first ``key`` words are not less than those of the probe.

    ``step`` is the first one, where it is known about how far it is.
    """
    n = m.shape[0]
    if lo >= n or compare(m, lo, probe, i, 0, key) >= 0:
        return lo
    while lo + step < n and compare(m, lo + step, probe, i, 0, key) < 0:
        lo += step
        step <<= 1
    hi = min(n, lo + step)
    lo += 1
    while lo < hi:
        mid = (lo + hi) >> 1
        if compare(m, mid, probe, i, 0, key) < 0:
            lo = mid + 1
        else:
            hi = mid
    return lo


@inline
def past(m, lo, probe, i, key):
    """The first row at or after ``lo`` of m whose first ``key`` words are greater than those of the probe."""
    n = m.shape[0]
    if lo >= n or compare(m, lo, probe, i, 0, key) > 0:
        return lo
    step = 1
    while lo + step < n and compare(m, lo + step, probe, i, 0, key) <= 0:
        lo += step
        step <<= 1
    hi = min(n, lo + step)
    lo += 1
    while lo < hi:
        mid = (lo + hi) >> 1
        if compare(m, mid, probe, i, 0, key) <= 0:
            lo = mid + 1
        else:
            hi = mid
    return lo


@inline
def compare_value(m, row, at, value):
    """The order of a row's words from ``at`` on and some others."""
    for c in range(value.size):
        x = m[row, at + c]
        if x != value[c]:
            return -1 if x < value[c] else 1
    return 0


@inline
def reach(m, lo, hi, at, value, above):
    """The first row from ``lo`` to ``hi`` whose value is at least (with ``above`` one, greater than) the given."""
    if lo >= hi or compare_value(m, lo, at, value) >= above:
        return lo
    step = 1
    while lo + step < hi and compare_value(m, lo + step, at, value) < above:
        lo += step
        step <<= 1
    hi = min(hi, lo + step)
    lo += 1
    while lo < hi:
        mid = (lo + hi) >> 1
        if compare_value(m, mid, at, value) < above:
            lo = mid + 1
        else:
            hi = mid
    return lo


@inline
def reach_word(m, lo, hi, at, word, step=1):
    """`reach` for a value of one word; ``step`` is the first one, where it is known about how far it is."""
    if lo >= hi or m[lo, at] >= word:
        return lo
    while lo + step < hi and m[lo + step, at] < word:
        lo += step
        step <<= 1
    hi = min(hi, lo + step)
    lo += 1
    while lo < hi:
        mid = (lo + hi) >> 1
        if m[mid, at] < word:
            lo = mid + 1
        else:
            hi = mid
    return lo


@inline
def pass_word(m, lo, hi, at, word, step=1):
    """The first row from ``lo`` to ``hi`` whose word is greater than the given; ``step`` as in `reach_word`."""
    if lo >= hi or m[lo, at] > word:
        return lo
    while lo + step < hi and m[lo + step, at] <= word:
        lo += step
        step <<= 1
    hi = min(hi, lo + step)
    lo += 1
    while lo < hi:
        mid = (lo + hi) >> 1
        if m[mid, at] <= word:
            lo = mid + 1
        else:
            hi = mid
    return lo
