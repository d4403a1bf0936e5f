"""Leapfrog triejoin: all bindings of a join, found depth first, one variable at a time.

Every atom is one batch, a word a variable, its columns in the order in which the variables are bound. So the rows
under a bound prefix are a range, and binding the next variable narrows it. The ranges of one level leapfrog: whoever is
behind gallops to the largest word seen, until all stand on the same one or one of them ends.

A walk keeps its place, so bindings come in portions of any size:

- **table**: a line (address, rows, columns) for each atom;
- **slots**: a line (atom, column, slot of the atom's column before or -1, whether it is the atom's last column) for
  each variable of each atom, by level; ``starts`` says where each level begins;
- **cursors**: a line for each slot: the row it stands on, the end of its range, the end of the word it stands on;
- **place**: the level at which to go on, -1 at the end, and whether that level is already open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everview.kernels.gallop import pass_word, reach_word
from everview.kernels.jit import i64, inline, kernel, rows, rows_out, words, words_out
from everview.kernels.rows import batch, multiply

Words = NDArray[np.int64]


@inline
def _open(table, slots, cursors, lo, hi):
    """Put the slots of a level on the first row under the bound prefix."""
    for s in range(lo, hi):
        parent = slots[s, 2]
        if parent < 0:
            cursors[s, 0] = 0
            cursors[s, 1] = table[slots[s, 0], 1]
        else:
            cursors[s, 0] = cursors[parent, 0]
            cursors[s, 1] = cursors[parent, 2]


@inline
def _meet(table, slots, cursors, lo, hi):
    """Leapfrog until all slots of a level stand on one word; whether they do."""
    for s in range(lo, hi):
        if cursors[s, 0] >= cursors[s, 1]:
            return False
    atom, column = slots[lo, 0], slots[lo, 1]
    key = batch(table, atom, table[atom, 2])[cursors[lo, 0], column]
    agreed, s = 1, lo
    while agreed < hi - lo:
        s = s + 1 if s + 1 < hi else lo
        atom, column = slots[s, 0], slots[s, 1]
        m = batch(table, atom, table[atom, 2])
        at = reach_word(m, cursors[s, 0], cursors[s, 1], column, key)
        cursors[s, 0] = at
        if at >= cursors[s, 1]:
            return False
        if m[at, column] == key:
            agreed += 1
        else:
            key = m[at, column]
            agreed = 1
    return True


@inline
def _bind(table, slots, cursors, lo, hi, weight):
    """Mark the end of the word that the slots stand on; the weight times those of the atoms now bound."""
    for s in range(lo, hi):
        atom, column = slots[s, 0], slots[s, 1]
        m = batch(table, atom, table[atom, 2])
        at = cursors[s, 0]
        if slots[s, 3]:  # rows are distinct
            cursors[s, 2] = at + 1
            weight = multiply(weight, m[at, column + 1])
        else:
            cursors[s, 2] = pass_word(m, at, cursors[s, 1], column, m[at, column])
    return weight


@inline
def _next(table, slots, starts, cursors, products, place):
    """Go on to the next binding; whether there is one."""
    last = starts.size - 2
    level, opened = place[0], place[1]
    while level >= 0:
        lo, hi = starts[level], starts[level + 1]
        if opened:
            for s in range(lo, hi):
                cursors[s, 0] = cursors[s, 2]
        else:
            _open(table, slots, cursors, lo, hi)
        if not _meet(table, slots, cursors, lo, hi):
            level -= 1
            opened = 1
            continue
        products[level + 1] = _bind(table, slots, cursors, lo, hi, products[level])
        if level == last:
            place[0] = level
            place[1] = 1
            return True
        level += 1
        opened = 0
    place[0] = -1
    return False


@kernel(i64, rows, rows, words, rows_out, words_out, words_out, rows_out)
def bindings(table, slots, starts, cursors, products, place, out):
    """Write the next bindings with their weights; how many there were, fewer than asked for only at the end."""
    levels = starts.size - 1
    for i in range(out.shape[0]):
        if not _next(table, slots, starts, cursors, products, place):
            return i
        for level in range(levels):
            s = starts[level]
            m = batch(table, slots[s, 0], table[slots[s, 0], 2])
            out[i, level] = m[cursors[s, 0], slots[s, 1]]
        out[i, levels] = products[levels]
    return out.shape[0]


@kernel(i64, rows, rows, words, rows_out, words_out, words_out)
def count(table, slots, starts, cursors, products, place):
    """How many bindings are still to come; nothing is written down."""
    n = 0
    while _next(table, slots, starts, cursors, products, place):
        n += 1
    return n


@dataclass(frozen=True, slots=True)
class Walk:
    """One leapfrog triejoin on its way: `bindings` and `count` go on from where it stands.

    ``levels[k]`` are the levels that the columns of batch k bind, ascending; each of the levels must be bound by
    one of them. ``weight`` multiplies every result.

    >>> edges = np.array([[1, 2, 1], [1, 3, 1], [2, 3, 2]])
    >>> walk = Walk.over([edges, edges, edges], [(0, 1), (0, 2), (1, 2)], 3)
    >>> walk.bindings(10).tolist(), walk.bindings(10).tolist()
    ([[1, 2, 3, 2]], [])
    """

    batches: tuple[Words, ...]  # the table holds their addresses
    table: Words
    slots: Words
    starts: Words
    cursors: Words
    products: Words
    place: Words

    @classmethod
    def over(cls, batches: list[Words], levels: list[tuple[int, ...]], depth: int, weight: int = 1) -> Walk:
        kept = tuple(np.ascontiguousarray(m, np.int64) for m in batches)
        assert all(m.shape[1] == len(own) + 1 for m, own in zip(kept, levels, strict=True)), "a word a variable"
        slots, starts = _slots(levels, depth)
        table = [(m.ctypes.data, *m.shape) for m in kept]
        products = np.full(depth + 1, weight, np.int64)
        cursors = np.zeros((len(slots), 3), np.int64)
        return cls(kept, np.array(table, np.int64), slots, starts, cursors, products, np.zeros(2, np.int64))

    def bindings(self, most: int) -> Words:
        """The next bindings, at most so many, the weight last; none at the end."""
        out = np.empty((most, self.starts.size), np.int64)
        found = bindings(self.table, self.slots, self.starts, self.cursors, self.products, self.place, out)
        return out[:found]

    def count(self) -> int:
        """How many bindings are still to come."""
        return count(self.table, self.slots, self.starts, self.cursors, self.products, self.place)


def _slots(levels: list[tuple[int, ...]], depth: int) -> tuple[Words, Words]:
    """The variables of every atom by level, and where each level begins."""
    at: dict[tuple[int, int], int] = {}
    slots: list[tuple[int, int, int, int]] = []
    starts = [0]
    for level in range(depth):
        for atom, own in enumerate(levels):
            if level in own:
                column = own.index(level)
                at[atom, column] = len(slots)
                slots.append((atom, column, at.get((atom, column - 1), -1), int(column == len(own) - 1)))
        assert len(slots) > starts[-1], "every level is bound by an atom"
        starts.append(len(slots))
    return np.array(slots, np.int64), np.array(starts, np.int64)
