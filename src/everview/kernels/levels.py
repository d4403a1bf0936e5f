"""The small batches of a spine: levels of growing size that compiled code fills, merges and gives up by itself.

A **ledger** is all that compiled code knows of a spine, in one line of words: a head, the table of the spine's
batches, and the owners of the levels' memory. The batches in the spine's slots come first, largest first; they
belong to Python. The levels follow. A batch that is entered is merged with all levels that are at most `RATIO` times as
large, so there are few, and each row is merged a few times. Levels are never changed in place: whoever has taken a view
keeps what it shows.

An act merges aside first and changes the ledger afterwards: whatever raises, the ledger means what it meant.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from everview.kernels import registers as register
from everview.kernels.jit import boolean, i64, inline, kernel, rows, rows_out, void, words_out
from everview.kernels.merge import merged
from everview.kernels.ordering import by_values
from everview.kernels.rows import LINE, SIEVE, as_pointer
from everview.kernels.sieve import enter_rows

# ``NEWER`` is the address of the sieve of what is entered, or 0; ``ASKED`` is 1 once keys have been looked up;
# ``ORDER`` is, if rows are ordered by value, the address of (kind, mode) of each word (see `ordering`), or 0.
SLOTS, ALL, COLUMNS, VERSION, GENERATION, ROWS, LAST, REACH, LIMIT, NEWER, ASKED, ORDER = range(12)
HEAD = 12
MOST = 96  # batches of a spine
OWNERS = HEAD + LINE * (MOST + 1)  # one line more than batches: for the change of the open epoch
LEDGER = OWNERS + MOST

RATIO = 2
FULL = 2048  # rows in levels; from then on they are a batch of the spine


def new_ledger(columns: int, order: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The ledger of a spine without batches; whoever has it keeps the ``order``, if it has one, as long."""
    ledger = np.zeros(LEDGER, np.int64)
    ledger[COLUMNS], ledger[LIMIT] = columns, FULL
    ledger[ORDER] = 0 if order is None else order.ctypes.data
    return ledger


@inline
def table_of(ledger):
    """The table of a spine's batches, with room for one more line."""
    return ledger[HEAD:OWNERS].reshape((MOST + 1, LINE))


@inline
def ledger_at(address):
    return carray(as_pointer(address), LEDGER)


@inline
def _level(ledger, b):
    """A level as a matrix of its own."""
    table = table_of(ledger)
    return register.owned(ledger[OWNERS + b], table[b, 0], table[b, 1], ledger[COLUMNS])


@inline
def enter_batch(ledger, m, ordering):
    """Add a batch, whose memory is a kernel's: merged with the levels that are not much larger, it is the last one."""
    if ledger[NEWER] != 0:
        enter_rows(ledger[NEWER], m)
    table = table_of(ledger)
    before = ledger[ALL]
    keep, added = before, m.shape[0]
    while keep > ledger[SLOTS] and table[keep - 1, 1] <= RATIO * m.shape[0]:
        keep -= 1
        added -= table[keep, 1] + m.shape[0]
        m = merged(_level(ledger, keep), m, ordering)
        added += m.shape[0]
    for b in range(keep, before):
        register.release(ledger[OWNERS + b])
        ledger[OWNERS + b] = 0
    if m.shape[0] > 0:
        table[keep, 0] = m.ctypes.data
        table[keep, 1] = m.shape[0]
        table[keep, SIEVE] = ledger[NEWER]
        ledger[OWNERS + keep] = register.hold(m)
        keep += 1
    ledger[ALL] = keep
    ledger[ROWS] += added
    ledger[VERSION] += 1


@inline
def give_up(ledger):
    """Let go of all levels."""
    for b in range(ledger[SLOTS], ledger[ALL]):
        register.release(ledger[OWNERS + b])
        ledger[OWNERS + b] = 0
    ledger[ALL] = ledger[SLOTS]
    ledger[ROWS] = 0
    ledger[VERSION] += 1


@inline
def is_full(ledger):
    """Whether the levels are due to become a batch of the spine. There are never many: each is much larger."""
    return ledger[ROWS] >= ledger[LIMIT]


@inline
def gather(ledger, ordering):
    """All levels as one matrix."""
    whole = np.empty((0, ledger[COLUMNS]), np.int64)
    for b in range(ledger[ALL] - 1, ledger[SLOTS] - 1, -1):
        whole = merged(_level(ledger, b), whole, ordering)
    return whole


@kernel(boolean, words_out, rows, i64)
def enter(ledger, m, number):
    """Add a batch of Python's to the levels, once for each number; whether the levels are full."""
    if ledger[LAST] != number or number == 0:
        enter_batch(ledger, m.copy(), ())
        ledger[LAST] = number
    return is_full(ledger)


@kernel(boolean, words_out, rows, i64, *by_values)
def enter_by_value(ledger, m, number, order, slots, codes, kinds, bounds, arena):
    """`enter` of a spine that is ordered by value."""
    if ledger[LAST] != number or number == 0:
        enter_batch(ledger, m.copy(), (order, slots, codes, kinds, bounds, arena))
        ledger[LAST] = number
    return is_full(ledger)


@kernel(rows_out, words_out)
def gathered(ledger):
    """All levels as one batch."""
    return gather(ledger, ())


@kernel(rows_out, words_out, *by_values)
def gathered_by_value(ledger, order, slots, codes, kinds, bounds, arena):
    """`gathered` of a spine that is ordered by value."""
    return gather(ledger, (order, slots, codes, kinds, bounds, arena))


@kernel(rows_out, words_out, i64)
def level(ledger, b):
    """A level, by its number among all batches, as an array that stays whatever becomes of the level."""
    return _level(ledger, b)


@kernel(void, words_out, rows, i64, i64)
def follow(ledger, slots, generation, sieve):
    """Show these batches of Python's in place of those before; with a new generation, levels are given up.

    A generation is the number of times that levels have become a batch of the spine. The sieve, whose address is given,
    or 0, knows the keys of levels that stay, and gets those of what is entered.
    """
    table = table_of(ledger)
    first, end = ledger[SLOTS], ledger[ALL]
    if generation != ledger[GENERATION]:
        give_up(ledger)
        end = first
        ledger[GENERATION] = generation
    kept, n = end - first, slots.shape[0]
    lines, owners = table[first:end].copy(), ledger[OWNERS + first : OWNERS + end].copy()
    table[:n] = slots
    lines[:, SIEVE] = sieve
    table[n : n + kept] = lines
    ledger[OWNERS : OWNERS + MOST] = 0
    ledger[OWNERS + n : OWNERS + n + kept] = owners
    ledger[SLOTS] = n
    ledger[ALL] = n + kept
    ledger[NEWER] = sieve
    ledger[VERSION] += 1
