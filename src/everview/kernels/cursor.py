"""Walking a spine in order, one entry at a time, from wherever a seek puts it."""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import seek
from everview.kernels.jit import i64, kernel, rows, rows_out, void, words_out
from everview.kernels.rows import add, batch, compare


@kernel(void, rows, i64, words_out, rows, i64)
def seek_all(table, columns, at, probe, key):
    """Move every batch's position on to its first row whose first ``key`` words are not less than the probe's."""
    for b in range(table.shape[0]):
        at[b] = seek(batch(table, b, columns), at[b], probe, 0, key)


@kernel(rows_out, rows, i64, words_out)
def next_entry(table, columns, at):
    """The least entry at or after the positions, summed over the batches, moving past it; none at the end."""
    out = np.empty((1, columns), np.int64)
    weight = columns - 1
    while True:
        best = -1
        for b in range(table.shape[0]):
            m = batch(table, b, columns)
            if at[b] == m.shape[0]:
                continue
            if best < 0 or compare(m, at[b], batch(table, best, columns), at[best], 0, weight) < 0:
                best = b
        if best < 0:
            return out[:0]
        out[0, :] = batch(table, best, columns)[at[best], :]
        total = 0
        for b in range(table.shape[0]):
            m = batch(table, b, columns)
            if at[b] < m.shape[0] and compare(m, at[b], out, 0, 0, weight) == 0:
                total = add(total, m[at[b], weight])
                at[b] += 1
        if total != 0:
            out[0, weight] = total
            return out
