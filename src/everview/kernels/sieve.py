"""A sieve: which keys may be among the newer rows of a spine, in a few bits for each row.

Of a table that is large, most keys that are looked up are in its largest batch, or nowhere. That they are in none of
the smaller batches takes a search in each. A **sieve** knows the keys of all batches but the largest: it says no to
nearly every key that these do not have, and never to one that they have. So one read replaces the searches.

A key sets three bits of one word, by its hash. Bits are only ever set: a sieve may know keys that are gone, and is made
anew when these are many. A row is entered once, when it comes, however often its batch is merged afterwards.

Whoever shows a batch with a sieve, in a line of the spine's table, has entered the keys of all of its rows before.
"""

from __future__ import annotations

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from everview.kernels.gallop import starts
from everview.kernels.jit import inline, kernel, rows, void, words_out
from everview.kernels.rows import BATCH_ROWS, SIEVE, as_pointer, compare

# The head: words of a key; the number of the last word with bits; rows entered; and rows for each probe, see `APART`.
KEY, MASK, ENTERED, SPARSE = range(4)
HEAD = 8  # words before those with bits
ROWS = 4  # for each word, when a sieve is full: one key in a hundred then passes although it is not there
LEAST = 1 << 10  # words
APART = 8  # rows for each probe; with fewer, searching reads what is near, and is faster than asking the sieve

# What is sifted: the sieve's address and how many keys pass; which ones; room for their places; and the keys.
ADDRESS, COUNT = range(2)
SIFTED = 2


def new_sieve(key: int, most: int) -> NDArray[np.int64]:
    """A sieve for keys of so many words, and for so many rows at least."""
    words = max(LEAST, 1 << (most // ROWS).bit_length())
    sieve = np.zeros(HEAD + words, np.int64)
    sieve[KEY], sieve[MASK], sieve[SPARSE] = key, words - 1, APART
    return sieve


def is_worn(sieve: NDArray[np.int64], held: int) -> bool:
    """Whether a sieve is too full; or knows mostly keys that are gone, since there are only so many rows."""
    entered, full = int(sieve[ENTERED]), ROWS * (int(sieve[MASK]) + 1)
    return entered > full or (entered > full // ROWS and entered > ROWS * held)


@inline
def _hash(m, i, key):
    """The hash of a row's first words: its last bits choose a word of a sieve, its first ones the bits."""
    hashed = np.uint64(0x9E3779B97F4A7C15)
    for c in range(key):
        hashed = (hashed ^ np.uint64(m[i, c])) * np.uint64(0xBF58476D1CE4E5B9)
        hashed ^= hashed >> np.uint64(32)
    return hashed


@inline
def _bits(hashed):
    """Three bits, or two or one if some are the same."""
    one, last = np.uint64(1), np.uint64(63)
    first = one << (hashed >> np.uint64(58))
    return first | (one << ((hashed >> np.uint64(52)) & last)) | (one << ((hashed >> np.uint64(46)) & last))


@inline
def _sieve_at(address):
    words = carray(as_pointer(address), HEAD)[MASK] + 1
    return carray(as_pointer(address), HEAD + words)


@inline
def enter_rows(address, m):
    """Let a sieve know the keys of some sorted rows."""
    sieve = _sieve_at(address)
    key, mask = sieve[KEY], np.uint64(sieve[MASK])
    for i in range(m.shape[0]):
        if i > 0 and compare(m, i, m, i - 1, 0, key) == 0:
            continue
        hashed = _hash(m, i, key)
        sieve[HEAD + np.int64(hashed & mask)] |= np.int64(_bits(hashed))
    sieve[ENTERED] += m.shape[0]


@kernel(void, words_out, rows)
def entered(sieve, m):
    """`enter_rows`, for Python."""
    enter_rows(sieve.ctypes.data, m)


@inline
def sift(table, probes, n, key):
    """Which of the first n probes the sieve of a table lets pass; nothing if there is none, or none for such probes."""
    address, held = 0, 0
    for b in range(table.shape[0]):
        if table[b, SIEVE] != 0:
            address = table[b, SIEVE]
            held += table[b, BATCH_ROWS]
    if address == 0 or n == 0:
        return np.empty(0, np.int64)
    sieve = _sieve_at(address)
    words, mask, count = sieve[KEY], np.uint64(sieve[MASK]), 0
    if words > key or held < sieve[SPARSE] * n:
        return np.empty(0, np.int64)
    sifted = np.empty(SIFTED + (2 + key) * n, np.int64)
    for i in range(n):  # without branches, so that many reads are under way at once
        hashed = _hash(probes, i, words)
        bits = np.int64(_bits(hashed))
        sifted[SIFTED + count] = i
        count += (sieve[HEAD + np.int64(hashed & mask)] & bits) == bits
    sifted[ADDRESS], sifted[COUNT] = address, count
    at = SIFTED + 2 * n
    for i in range(count):
        for c in range(key):
            sifted[at] = probes[sifted[SIFTED + i], c]
            at += 1
    return sifted


@inline
def is_sifted(table, b, sifted):
    """Whether the keys that pass are all that a batch of the table can have."""
    return sifted.size > 0 and table[b, SIEVE] == sifted[ADDRESS]


@inline
def starts_in(table, b, m, probes, n, key, found, sifted):
    """`starts` in a batch of a table whose probes are sifted; of a key that does not pass, the end of the batch."""
    if not is_sifted(table, b, sifted):
        starts(m, probes, n, key, found)
        return
    for i in range(n):
        found[i] = m.shape[0]
    count, room = sifted[COUNT], (sifted.size - SIFTED) // (2 + key)
    if count == 0:
        return
    first = SIFTED + 2 * room
    spots = sifted[SIFTED + room : first]
    starts(m, sifted[first : first + count * key].reshape((count, key)), count, key, spots)
    for i in range(count):
        found[sifted[SIFTED + i]] = spots[i]
