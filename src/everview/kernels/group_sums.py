"""Sums of many rows by group: `everview.kernels.contributions` on several threads, each with groups of its own."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np

from everview.kernels.contributions import ALL_KINDS, add_up, count_groups
from everview.kernels.jit import i64, kernel, rows, rows_out, words, words_out
from everview.kernels.large import PART, Matrix, Words, between_groups, sort_order, space
from everview.kernels.merge import merge
from everview.kernels.threads import each, ranges

UNEVEN = 2  # times an even share: a larger part is worth cutting a group in two


@kernel(i64, rows, words, words, i64, i64)
def _count_groups(m, group, order, lo, hi):
    return count_groups(m, group, order, lo, hi)


@kernel(i64, rows, words, words, rows, words_out, rows_out, i64, i64)
def _add_up(m, group, order, slots, dense, out, lo, hi):
    return add_up(m, group, order, slots, dense, out, lo, hi, ALL_KINDS)


def group_sums(delta: Matrix, group: Words, slots: Matrix, places: int, entries: int) -> Matrix:
    """The entries (group words, place) of a delta as a batch; a row has at most so many ``entries``.

    `OverflowError` if the digits of a few rows leave 64 bits.
    """
    order = sort_order(delta, group)

    def added_up(part: tuple[int, int]) -> Matrix:
        lo, hi = part
        room = min(places * _count_groups(delta, group, order, lo, hi), entries * (hi - lo))
        out = space(room, group.size + 2)
        count = _add_up(delta, group, order, slots, np.zeros(places, np.int64), out, lo, hi)
        return out[:count]

    every = each(added_up, _parts(delta, group, order))
    found = [part for part in every if len(part)] or every[:1]
    if all(_apart(a, b) for a, b in pairwise(found)):
        return np.concatenate(found)
    return reduce(merge, found)


def _parts(delta: Matrix, group: Words, order: Words) -> list[tuple[int, int]]:
    """Ranges of rows in order, between groups if no group is too large for that."""
    cuts, even = between_groups(delta, group, order), ranges(delta.shape[0], PART)
    return cuts if max(hi - lo for lo, hi in cuts) <= UNEVEN * (even[0][1] - even[0][0]) else even


def _apart(a: Matrix, b: Matrix) -> bool:
    """Whether no group is in two batches that follow one another, and have entries."""
    return bool((a[-1, :-2] != b[0, :-2]).any())
