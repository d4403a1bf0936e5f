"""Search in sorted rows: galloping from where one stands, in steps that double, then by halves; or side by side.

Two ways to say what is looked for: a probe, whose first words are the row's first; or words in the middle of rows that
are equal before them. A search that goes on from the last one costs the logarithm of how far it goes.

One search after the other waits for memory at each of its steps, and a wrong guess of a branch costs as much again. Of
searches that take each step together, without branches, the processor has many reads under way at once: a thousand
keys are found in a million rows five times as fast. Only among probes that are dense is galloping on from the last one
better, since it reads what is near.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import inline
from everview.kernels.rows import compare

LANES = 64  # searches that are under way together
DENSE = 16  # rows for each probe; with fewer, galloping reads less


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
def starts(m, probes, n, key, found):
    """Write, for each of the first n sorted probes, the first row of m that is not less in its first ``key`` words."""
    rows = m.shape[0]
    if rows < DENSE * n or n < 2 or key == 0:
        at = 0
        for i in range(n):
            at = seek(m, at, probes, i, key, max(1, rows // n))
            found[i] = at
        return
    lanes, at = np.empty((LANES, 2), np.int64), np.empty(LANES, np.int64)
    begin = 0
    while begin < n:
        end, count = _fill(lanes, probes, begin, n, key)
        _halve(m, lanes, at, count, key)
        lane = -1
        for i in range(begin, end):
            if i > begin and compare(probes, i, probes, i - 1, 0, key) == 0:
                found[i] = found[i - 1]
                continue
            lane += 1
            found[i] = seek(m, at[lane], probes, i, key)
        begin = end


@inline
def _fill(lanes, probes, begin, n, key):
    """Give each lane the first two words of another probe; returns the end of those, and the number of lanes."""
    second, lane, i = min(1, key - 1), 0, begin
    while i < n:
        if i == begin or compare(probes, i, probes, i - 1, 0, key) != 0:
            if lane >= LANES:
                break
            lanes[lane, 0], lanes[lane, 1] = probes[i, 0], probes[i, second]
            lane += 1
        i += 1
    return i, lane


@inline
def _halve(m, lanes, at, count, key):
    """Where the rows that are not less than each lane's words begin, or the row before that."""
    second = min(1, key - 1)  # of a key of one word the first again, which decides nothing
    for lane in range(count):
        at[lane] = 0
    size = m.shape[0]
    while size > 1:
        half = size >> 1
        size -= half
        for lane in range(count):
            middle = at[lane] + half
            x, y = m[middle - 1, 0], lanes[lane, 0]
            less = (x < y) | ((x == y) & (m[middle - 1, second] < lanes[lane, 1]))
            at[lane] = middle if less else at[lane]


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
