"""How often rows are there, and how much of what was billed for them goes back."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, kernel, pair, rows, rows_out, words
from everview.kernels.rows import add, compare


@kernel(pair(rows_out, rows_out, rows_out), rows, words)
def risen_and_fallen(delta, before):
    """A delta by what it does to how often each row is there, given the weights before: ``max(weight, 0)``.

    Rows that are there more often, with the increase; rows that are not there any more; rows that are there less
    often, with the decrease.
    """
    n, width = delta.shape[0], delta.shape[1] - 1
    more, gone, fewer = (
        np.empty(delta.shape, np.int64),
        np.empty(delta.shape, np.int64),
        np.empty(delta.shape, np.int64),
    )
    risen = left = fallen = 0
    for i in range(n):
        was = max(before[i], 0)
        now = max(add(before[i], delta[i, width]), 0)
        if now > was:
            more[risen, :width] = delta[i, :width]
            more[risen, width] = now - was
            risen += 1
        elif now == 0 and was > 0:
            gone[left, :width] = delta[i, :width]
            gone[left, width] = 1
            left += 1
        elif now < was:
            fewer[fallen, :width] = delta[i, :width]
            fewer[fallen, width] = was - now
            fallen += 1
    return more[:risen], gone[:left], fewer[:fallen]


@kernel(rows_out, rows, rows, words, i64)
def given_back(billed, fewer, before, key):
    """Of the rows billed for each sorted group, in order, what goes when the group falls by its weight from ``before``.

    If each row was billed equally often for every time that the group is there, an equal share of each goes. Else, of
    those of positive weight, as many as the group falls by, the first ones first.
    """
    width = billed.shape[1] - 1
    out = np.empty(billed.shape, np.int64)
    filled = j = 0
    for i in range(fewer.shape[0]):
        places = fewer[i, fewer.shape[1] - 1]
        end, even = j, True
        while end < billed.shape[0] and compare(billed, end, fewer, i, 0, key) == 0:
            even = even and billed[end, width] % before[i] == 0
            end += 1
        while j < end:
            if even:
                out[filled, :width] = billed[j, :width]
                out[filled, width] = billed[j, width] // before[i] * places
                filled += 1
            elif places > 0 and billed[j, width] > 0:
                out[filled, :width] = billed[j, :width]
                out[filled, width] = min(places, billed[j, width])
                places -= out[filled, width]
                filled += 1
            j += 1
    return out[:filled]
