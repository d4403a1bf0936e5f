"""Searching for many keys side by side: where the rows of each begin in a sorted matrix.

One search after the other waits for memory at each of its steps, and a wrong guess of a branch costs as much again. Of
searches that take each step together, without branches, the processor has many reads under way at once: a thousand
keys are found in a million rows five times as fast. Only among probes that are dense is galloping on from the last one
better, since it reads what is near.
"""

from __future__ import annotations

from everview.kernels.gallop import seek
from everview.kernels.jit import inline
from everview.kernels.rows import compare

LANES = 64  # searches that are under way together
DENSE = 16  # rows for each probe; with fewer, galloping reads less


@inline
def starts(m, probes, n, key, found):
    """Write, for each of the first n sorted probes, the first row of m that is not less in its first ``key`` words."""
    rows = m.shape[0]
    if n == 0 or rows == 0:
        for i in range(n):
            found[i] = 0
        return
    if rows < DENSE * n:
        at = 0
        for i in range(n):
            at = seek(m, at, probes, i, key, max(1, rows // n))
            found[i] = at
        return
    for first in range(0, n, LANES):
        _together(m, probes, first, min(first + LANES, n), key, found)


@inline
def _together(m, probes, first, end, key, found):
    """`starts` of a few probes: by halves on two words of the key, and by galloping on any others."""
    second = min(1, key - 1)  # of a key of one word the first again, which decides nothing
    for i in range(first, end):
        found[i] = 0
    size = m.shape[0]
    while size > 1:
        half = size >> 1
        size -= half
        for i in range(first, end):
            at = found[i] + half
            x, y = m[at - 1, 0], probes[i, 0]
            less = (x < y) | ((x == y) & (m[at - 1, second] < probes[i, second]))
            found[i] = at if less else found[i]
    for i in range(first, end):
        at = found[i]
        if compare(m, at, probes, i, 0, min(key, 2)) < 0:
            at += 1
        found[i] = seek(m, at, probes, i, key) if key > 2 else at
