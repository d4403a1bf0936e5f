"""Resolving commands: the change that puts and deletes make of a table with a key, in one call.

Of several commands for a key the last counts. A put takes the place of the row that is there, a delete removes it; the
change has the old row with weight -1 and the new one with weight 1, and neither if they are equal.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.gallop import past
from everview.kernels.jit import i64, inline, kernel, rows, rows_out, words
from everview.kernels.rows import batch, compare
from everview.kernels.sieve import sift, starts_in
from everview.kernels.sort import sort_order

DELETES, BY_WEIGHT, PUTS = -1, 0, 1  # what commands are: all deletes; puts if their weight is positive; all puts
NO_ORDER = -1


@inline
def _same_key(commands, i, j, columns, key):
    for c in range(key):  # noqa: SIM110, generators do not compile
        if commands[i, columns[c]] != commands[j, columns[c]]:
            return False
    return True


@inline
def _chosen(commands, columns, by, key):
    """The commands that count, the last one of each key, in the order of the keys."""
    sequence = sort_order(commands, by)
    n, at = commands.shape[0], 0
    for i in range(n):
        row = sequence[i]
        if i + 1 == n or not _same_key(commands, row, sequence[i + 1], columns, key):
            sequence[at] = row
            at += 1
    return sequence[:at]


@inline
def _find(commands, chosen, columns, table, entry, key):
    """The bounds, in every batch, of the entries, of ``entry`` words, that have the keys of some commands."""
    n, batches = chosen.size, table.shape[0]
    keys, found = np.empty((n, key), np.int64), np.empty(n, np.int64)
    for i in range(n):
        for c in range(key):
            keys[i, c] = commands[chosen[i], columns[c]]
    bounds, sifted = np.empty((n, batches, 2), np.int64), sift(table, keys, n, key)
    for b in range(batches):
        m = batch(table, b, entry)
        starts_in(table, b, m, keys, n, key, found, sifted)
        for i in range(n):
            bounds[i, b, 0] = found[i]
            bounds[i, b, 1] = past(m, found[i], keys, i, key)
    return bounds


@inline
def _held(table, columns, key, bounds):
    """The batch and place of the row that is there, whose weights do not add up to zero; -1 if there is none."""
    for b in range(table.shape[0]):
        m = batch(table, b, columns)
        for i in range(bounds[b, 0], bounds[b, 1]):
            if m[i, columns - 1] <= 0:
                continue
            weight = 0
            for other in range(table.shape[0]):
                n = batch(table, other, columns)
                for j in range(bounds[other, 0], bounds[other, 1]):
                    if compare(m, i, n, j, key, columns - 1) == 0:
                        weight += n[j, columns - 1]
            if weight > 0:
                return b, i
    return -1, -1


@inline
def _put(out, at, old, i, key):
    """The change from row i of ``old`` to row ``at`` of ``out``, in order; returns its end."""
    width = out.shape[1] - 1
    order = compare(old, i, out, at, key, width)
    if order == 0:
        return at
    if order > 0:
        new, place = at, at + 1
    else:
        new, place = at + 1, at
        for c in range(width):
            out[new, c] = out[at, c]
    for c in range(width):
        out[place, c] = old[i, c]
    out[place, width] = -1
    out[new, width] = 1
    return at + 2


@kernel(i64, rows_out, rows, words, words, rows, i64, i64, i64)
def resolve(out, commands, columns, by, table, key, order, mode):
    """Write the change into ``out``, which has room for two rows a command; returns the number of its rows.

    ``columns`` are the words of a command in the order of the table's trace, key first; ``by`` are those that sort
    commands: by key, then from the first to the last. With an ``order``, a word of the trace, a command comes too late
    if its own, the word after all columns, is less than that of the row it would replace.
    """
    width = out.shape[1] - 1
    chosen = _chosen(commands, columns, by, key)
    bounds = _find(commands, chosen, columns, table, width + 1, key)
    at = 0
    for i in range(chosen.size):
        row = chosen[i]
        puts = mode == PUTS or (mode == BY_WEIGHT and commands[row, commands.shape[1] - 1] > 0)
        for c in range(width if puts else key):
            out[at, c] = commands[row, columns[c]]
        b, j = _held(table, width + 1, key, bounds[i])
        if b < 0:
            if puts:
                out[at, width] = 1
                at += 1
            continue
        old = batch(table, b, width + 1)
        if order >= 0 and commands[row, columns.size] < old[j, order]:
            continue
        if puts:
            at = _put(out, at, old, j, key)
        else:
            for c in range(width):
                out[at, c] = old[j, c]
            out[at, width] = -1
            at += 1
    return at
