"""Search in sorted rows: galloping from where one stands, in steps that double, then by halves; or side by side.

Two ways to say what is looked for: a probe, whose first words are the row's first; or words in the middle of rows that
are equal before them. A search that goes on from the last one costs the logarithm of how far it goes.

One search after the other waits for memory at each of its steps, and a wrong guess of a branch costs as much again. Of
searches that take each step together, without branches, the processor has many reads under way at once: a thousand
keys are found in a million rows five times as fast. Only among probes that are dense is galloping on from the last one
better, since it reads what is near.

Words of a key are numbers that were counted up, or hashes: both grow evenly. So the place of a word among many rows is
guessed, and looked for near that first; where words grow otherwise, that costs a few reads more.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import inline
from everview.kernels.rows import compare, unowned

LANES = 64  # searches that are under way together
FIRST, SECOND, AT, GUESS, LOST, FOUND = range(6)  # of a lane; the last two are lists of lanes, one in each line
LANE = 6
DENSE = 16  # rows for each probe; with fewer, galloping reads less
MANY = 1 << 12  # rows; from here on it is worth guessing where to look
NEAR = (0, 64)  # rows before and after a guess


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
    if rows < DENSE * n or key == 0 or (n < 2 and rows < MANY):
        at = 0
        for i in range(n):
            at = seek(m, at, probes, i, key, max(1, rows // n))
            found[i] = at
        return
    lanes = np.empty((LANES, LANE), np.int64)
    uncounted = unowned(lanes)
    begin = 0
    while begin < n:
        end, count = _fill(uncounted, probes, begin, n, key)
        _search(m, uncounted, count, key)
        lane = -1
        for i in range(begin, end):
            if i > begin and compare(probes, i, probes, i - 1, 0, key) == 0:
                found[i] = found[i - 1]
                continue
            lane += 1
            found[i] = seek(m, lanes[lane, AT], probes, i, key)
        begin = end


@inline
def _fill(lanes, probes, begin, n, key):
    """Give each lane the first two words of another probe; returns the end of those, and the number of lanes."""
    second, lane, i = min(1, key - 1), 0, begin
    while i < n:
        if i == begin or compare(probes, i, probes, i - 1, 0, key) != 0:
            if lane >= LANES:
                break
            lanes[lane, FIRST], lanes[lane, SECOND] = probes[i, 0], probes[i, second]
            lane += 1
        i += 1
    return i, lane


@inline
def _search(m, lanes, count, key):
    """Find where the rows that are not less than each lane's words begin, or the row before that."""
    rows, lost = m.shape[0], count
    for lane in range(count):
        lanes[lane, LOST] = lane
    if rows >= MANY and float(m[0, 0]) < float(m[rows - 1, 0]):  # large numbers may be the same float
        _guess(m, lanes, count)
        for around in NEAR:
            lost = _search_near(m, lanes, lost, around, key)
    for i in range(lost):
        lanes[lanes[i, LOST], AT] = 0
    _halve(m, lanes, LOST, lost, rows, key)


@inline
def _guess(m, lanes, count):
    """Guess by the first word of each lane where its rows are, as if words grew evenly; then once more from there."""
    last = m.shape[0] - 1
    low, high = float(m[0, 0]), float(m[last, 0])
    rate = last / (high - low)
    for lane in range(count):
        lanes[lane, GUESS] = int(min(max((float(lanes[lane, FIRST]) - low) * rate, 0.0), float(last)))
    for lane in range(count):
        at = lanes[lane, GUESS]
        off = (float(lanes[lane, FIRST]) - float(m[at, 0])) * rate
        lanes[lane, GUESS] = int(min(max(at + off, 0.0), float(last)))


@inline
def _search_near(m, lanes, lost, around, key):
    """Search for lost lanes near what was guessed; how many of them are not there, and still lost."""
    rows, second, near, far = m.shape[0], min(1, key - 1), 0, 0
    for i in range(lost):
        lane = lanes[i, LOST]
        at = max(0, min(lanes[lane, GUESS] - around, rows - 2 * around))
        begins = at == 0 or _is_less(m, at - 1, lanes, lane, second)
        if begins and (at + 2 * around >= rows or not _is_less(m, at + 2 * around, lanes, lane, second)):
            lanes[lane, AT] = at
            lanes[near, FOUND] = lane
            near += 1
        else:
            lanes[far, LOST] = lane
            far += 1
    _halve(m, lanes, FOUND, near, 2 * around, key)
    return far


@inline
def _is_less(m, row, lanes, lane, second):
    x, y = m[row, 0], lanes[lane, FIRST]
    return (x < y) | ((x == y) & (m[row, second] < lanes[lane, SECOND]))


@inline
def _halve(m, lanes, which, count, size, key):
    """Halve ``size`` rows for some lanes, from where each is, until there is one or two to look at."""
    second = min(1, key - 1)  # of a key of one word the first again, which decides nothing
    while size > 1:
        half = size >> 1
        size -= half
        for i in range(count):
            lane = lanes[i, which]
            middle = lanes[lane, AT] + half
            lanes[lane, AT] = middle if _is_less(m, middle - 1, lanes, lane, second) else lanes[lane, AT]


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
