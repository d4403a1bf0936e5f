"""Large deltas: the sorting, projecting and selecting of many rows, in parts that run side by side on threads.

The answers are those of the kernels that go through a delta row by row, bit for bit, and a small delta goes to them.
Space for very large results comes from NumPy, which asks for huge pages: faster to fill, but slow to get where the
system has none at hand. Other space comes in small ones.

Sorting packs the leading columns of a row into one number, and deals rows into buckets that fit into a processor's
cache (`everview.kernels.dealing`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from everview.kernels import linear, sort
from everview.kernels.dealing import BITS, deal, pack, packing_of, sort_buckets, spans
from everview.kernels.jit import boolean, i64, kernel, octets, rows, rows_out, void, words, words_out
from everview.kernels.rows import add, prefetch
from everview.kernels.sort import AHEAD
from everview.kernels.threads import each, ranges

LARGE = 1 << 15  # rows; below, dividing costs more than it saves
MANY = 1 << 18  # rows; below, all of a sort stays in a processor's cache, and one thread does it
PART = 1 << 14  # rows that a part has at least
SPARE = 12  # bits of a packed number beyond those that number the rows: so few rows share one that more would cost more
BUCKET = 1 << 12  # rows of a bucket, about
MOST_BUCKETS = 12  # as bits: more would not fit into a processor's table of pages
HUGE = 1 << 23  # words; from here on space comes in huge pages
CLOSE = 0.9  # a result that is smaller than this part of its space is copied, where the rest cannot be given back

Matrix = NDArray[np.int64]
Words = NDArray[np.int64]
Flags = NDArray[np.bool_]


@kernel(words_out, i64)
def _in_small_pages(size):
    return np.empty(size, np.int64)


def space(rows: int, columns: int) -> Matrix:
    """A matrix to be filled."""
    size = rows * columns
    return np.empty((rows, columns), np.int64) if size >= HUGE else _in_small_pages(size).reshape(rows, columns)


# ---------------------------------------------------------------- row by row


@kernel(void, rows, words, rows_out, i64, i64)
def _project_part(delta, columns, out, lo, hi):
    width, weight = columns.size, delta.shape[1] - 1
    for i in range(lo, hi):
        for c in range(width):
            out[i, c] = delta[i, columns[c]]
        out[i, width] = delta[i, weight]


def project(delta: Matrix, columns: Words) -> Matrix:
    """``delta`` on ``columns``, in that order; nothing is sorted or summed."""
    n = delta.shape[0]
    if n < LARGE:
        return linear.project(delta, columns)
    out = space(n, columns.size + 1)
    each(lambda part: _project_part(delta, columns, out, *part), ranges(n, PART))
    return out


def project_into(delta: Matrix, columns: Words, out: Matrix) -> None:
    """`project`, into the first rows of a matrix, by one thread."""
    _project_part(delta, columns, out, 0, delta.shape[0])


@kernel(void, rows, octets, rows_out, i64, i64, i64)
def _select_part(delta, kept, out, at, lo, hi):
    for i in range(lo, hi):
        if kept[i]:
            for c in range(delta.shape[1]):
                out[at, c] = delta[i, c]
            at += 1


def select(delta: Matrix, kept: Flags) -> Matrix:
    """The rows of a delta for which a flag is set."""
    n = delta.shape[0]
    if n < LARGE:
        return delta[kept]
    parts = ranges(n, PART)
    counts = [int(np.count_nonzero(kept[lo:hi])) for lo, hi in parts]
    starts = np.cumsum([0, *counts])
    out = space(int(starts[-1]), delta.shape[1])
    flags = np.ascontiguousarray(kept).view(np.uint8)
    starting = [(int(start), lo, hi) for start, (lo, hi) in zip(starts[:-1], parts, strict=True)]
    each(lambda part: _select_part(delta, flags, out, *part), starting)
    return out


# ---------------------------------------------------------------- sorting


@kernel(boolean, rows, words)
def _in_order(m, columns):
    """Whether no row stands before a smaller one."""
    for i in range(1, m.shape[0]):
        for c in range(columns.size):
            x, y = m[i - 1, columns[c]], m[i, columns[c]]
            if x < y:
                break
            if x > y:
                return False
    return True


@kernel(i64, rows, words, words, rows_out, i64, i64)
def _sum_part(delta, columns, order, out, lo, hi):
    """Write the rows ``order[lo:hi]`` from row ``lo`` on: equal ones summed, zeros gone. How many there are."""
    width, weight = columns.size, delta.shape[1] - 1
    at = lo - 1
    for i in range(lo, hi):
        row = order[i]
        if i + AHEAD < hi:
            prefetch(delta, order[i + AHEAD])
        same = at >= lo
        if same:
            for c in range(width):
                if out[at, c] != delta[row, columns[c]]:
                    same = False
                    break
        if same:
            out[at, width] = add(out[at, width], delta[row, weight])
            continue
        if at < lo or out[at, width] != 0:
            at += 1
        for c in range(width):
            out[at, c] = delta[row, columns[c]]
        out[at, width] = delta[row, weight]
    if at >= lo and out[at, width] == 0:
        at -= 1
    return at + 1 - lo


@kernel(void, rows_out, i64, i64, i64)
def _move(out, start, end, to):
    """Move rows towards the beginning."""
    for i in range(start, end):
        for c in range(out.shape[1]):
            out[to + i - start, c] = out[i, c]


class Scratch:
    """Memory that sorts work in, kept from one to the next: fresh memory takes longer to get than to sort in."""

    def __init__(self) -> None:
        self._arrays: dict[int, Words] = {}

    def array(self, number: int, size: int) -> Words:
        """One of a few arrays, which holds whatever was left in it."""
        known = self._arrays.get(number)
        if known is None or known.size < size:
            self._arrays.pop(number, None)  # before the larger one comes
            known = self._arrays[number] = space(1, size)[0]
        return known[:size]


_scratch: ContextVar[Scratch | None] = ContextVar("scratch", default=None)


@contextmanager
def one_scratch() -> Generator[None]:
    """Let all sorts inside of a block work in the same memory."""
    token = _scratch.set(Scratch())
    try:
        yield
    finally:
        _scratch.reset(token)


def sort_order(m: Matrix, columns: Words) -> Words:
    """The order of the rows of ``m`` by the given columns; rows equal in all of them keep their order."""
    if m.shape[0] < MANY:
        return sort.sort_order(m, columns)
    if _in_order(m, columns):
        return np.arange(m.shape[0])
    return _sorted(m, columns, space(1, m.shape[0])[0], _scratch.get() or Scratch())[0]


def arrange(delta: Matrix, columns: Words) -> Matrix:
    """The batch of ``delta`` projected on ``columns``, in that order: sorted, equal rows summed, zeros gone."""
    n = delta.shape[0]
    if n < MANY:
        return sort.arrange(delta, columns)
    if _in_order(delta, columns):
        order = np.arange(n)
        parts = between_groups(delta, columns, order)
    else:
        scratch = _scratch.get() or Scratch()
        order, parts = _sorted(delta, columns, scratch.array(0, n), scratch)
    out = space(n, columns.size + 1)
    counts = each(lambda part: _sum_part(delta, columns, order, out, *part), parts)
    return together(out, [lo for lo, _ in parts], counts)


def together(out: Matrix, starts: list[int], counts: list[int]) -> Matrix:
    """The rows that parts have written, each from its start on, one part after the other."""
    total = 0
    for start, count in zip(starts, counts, strict=True):
        if start != total and count:
            _move(out, start, start + count, total)
        total += count
    if total == out.shape[0]:
        return out
    if not out.flags.owndata:
        return out[:total] if total >= CLOSE * out.shape[0] else out[:total].copy()
    out.resize((total, out.shape[1]), refcheck=False)  # gives the rest back; nobody else has the matrix yet
    return out


def between_groups(m: Matrix, columns: Words, order: Words) -> list[tuple[int, int]]:
    """Ranges of rows in order, such that rows equal in the columns lie in the same one."""
    bounds = [0]
    for _, end in ranges(m.shape[0], PART):
        bounds.append(max(bounds[-1], _group_end(m, columns, order, end)))
    return [(lo, hi) for lo, hi in pairwise(bounds) if lo < hi]


@kernel(i64, rows, words, words, i64)
def _group_end(m, columns, order, end):
    """The first place from ``end`` on whose row differs from the one before it."""
    while end < order.size:
        for c in range(columns.size):
            if m[order[end], columns[c]] != m[order[end - 1], columns[c]]:
                return end
        end += 1
    return end


def _sorted(m: Matrix, columns: Words, order: Words, scratch: Scratch) -> tuple[Words, list[tuple[int, int]]]:
    """The order of the rows by the columns, and ranges of it: rows equal in the columns lie in the same one."""
    n = m.shape[0]
    parts = ranges(n, PART)
    room = min(BITS, n.bit_length() + SPARE)
    packing, covered = packing_of(columns, _together(each(lambda part: spans(m, columns, *part), parts)), room)
    bits = int(packing[:, 4].sum())
    first_bits = min(bits, MOST_BUCKETS, (n // BUCKET).bit_length())
    shift = bits - first_bits
    packed, counts = scratch.array(1, n), np.zeros((len(parts), 1 << first_bits), np.int64)
    each(lambda k: pack(m, packing, packed, counts[k], shift, *parts[k]), range(len(parts)))
    # Of each bucket the rows of the first part come first: equal rows keep their order.
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape)
    at = np.ascontiguousarray(ends.T - counts)
    bounds = np.concatenate([[0], ends[:, -1]])
    keys, order2 = scratch.array(2, n), scratch.array(3, n)
    each(lambda k: deal(packed, at[k], keys, order, shift, *parts[k]), range(len(parts)))
    shares = _shares(bounds, parts)
    each(lambda s: sort_buckets(m, columns, covered, keys, order, packed, order2, bounds, *s), shares)
    return order, [(int(bounds[first]), int(bounds[last])) for first, last in shares]


def _together(found: list[Matrix]) -> Matrix:
    """The spans of the parts as those of all rows."""
    least, greatest, absent = np.array(found).transpose(1, 0, 2)
    return np.array([least.min(axis=0), greatest.max(axis=0), absent.max(axis=0)])


def _shares(bounds: Words, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of buckets with about as many rows as the parts have."""
    cuts = np.unique(np.searchsorted(bounds, [0, *(end for _, end in parts)], side="left"))
    return [(int(a), int(b)) for a, b in pairwise(cuts)]
