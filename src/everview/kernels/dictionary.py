"""The table behind the dictionary: entries in order of arrival, found by (kind, code).

Entry ``e`` is ``(kinds[e], codes[e])`` and the bytes ``arena[bounds[e]:bounds[e + 1]]``. ``slots`` is an
open-addressing table with a power of two of places, at most half of them taken, each an entry or -1. Entries
are only ever added at the end, so removing the newest ones in reverse order leaves exactly the table that was
there before them.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import (
    i64,
    inline,
    kernel,
    octets,
    octets_out,
    offsets32,
    offsets32_out,
    pair,
    words,
    words_out,
)
from everview.kernels.rows import prefetch

NULL_WORD = np.int64(-(2**63))
MISSING = np.int64(-1)
BLOCK = 64
FIRST_INTERNED = np.int64(56)  # kinds from here on have codes, those before it have values as words


@inline
def _place(kind, code, slots):
    mixed = np.uint64(code ^ kind) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(slots) - 1))


@inline
def find(kind, code, slots, codes, kinds):
    """The entry of a code, or -1."""
    place = _place(kind, code, slots)
    while slots[place] >= 0:
        entry = slots[place]
        if codes[entry] == code and kinds[entry] == kind:
            return np.int64(entry)
        place = (place + 1) & (len(slots) - 1)
    return MISSING


@inline
def compare_bytes(data, start, end, other, other_start, other_end):
    """-1, 0 or 1: two byte strings in lexicographic order."""
    for i in range(min(end - start, other_end - other_start)):
        a, b = data[start + i], other[other_start + i]
        if a != b:
            return np.int64(-1) if a < b else np.int64(1)
    return _sign(end - start, other_end - other_start)


@inline
def _same_bytes(data, start, end, other, other_start, other_end):
    """Whether two byte strings are equal; without a branch for each byte, so that many are compared at once."""
    if end - start != other_end - other_start:
        return False
    different = np.uint8(0)
    for i in range(end - start):
        different |= data[start + i] ^ other[other_start + i]
    return different == 0


@inline
def _ask_for(kind, wanted, rows, first, touched, slots, codes, kinds, bounds, arena):
    """Ask for what a block of rows will read, step by step, so that the waits for memory overlap."""
    count = min(BLOCK, len(rows) - first)
    for ahead in range(count):
        prefetch(slots, _place(kind, wanted[rows[first + ahead]], slots))
    for ahead in range(count):
        touched[ahead] = entry = slots[_place(kind, wanted[rows[first + ahead]], slots)]
        if entry >= 0:
            prefetch(codes, entry)
            prefetch(kinds, entry)
            prefetch(bounds, entry)
    for ahead in range(count):
        entry = touched[ahead]
        if entry >= 0 and codes[entry] == wanted[rows[first + ahead]]:
            prefetch(arena, bounds[entry])


@inline
def _sign(a, b):
    return np.int64(a > b) - np.int64(a < b)


@inline
def compare(kind, a, b, slots, codes, kinds, bounds, arena):
    """-1, 0 or 1: two words by the values they stand for; NULL is first, kinds without codes are numbers."""
    if kind < FIRST_INTERNED or a == b or NULL_WORD in (a, b):
        return _sign(a, b)
    x = find(kind, a, slots, codes, kinds)
    y = find(kind, b, slots, codes, kinds)
    assert x >= 0 and y >= 0, "a code that is not in the dictionary"
    return compare_bytes(arena, bounds[x], bounds[x + 1], arena, bounds[y], bounds[y + 1])


@kernel(i64, i64, i64, i64, offsets32, words, words, words, octets)
def compare_words(kind, a, b, slots, codes, kinds, bounds, arena):
    """`compare`, to be called from Python."""
    return compare(kind, a, b, slots, codes, kinds, bounds, arena)


@kernel(
    pair(i64, i64, i64),
    *(i64, words, words, octets, octets, words, i64, words_out, words_out, i64),
    *(i64, i64, offsets32_out, words_out, words_out, words_out, octets_out, octets_out),
)
def intern(
    kind, wanted, offsets, data, valid, rows, done, out, clashes, clashed,
    flag, n, slots, codes, kinds, bounds, arena, flags,
):  # fmt: skip
    """Give every row its wanted code, adding entries (flagged `flag`) for values not seen before.

    A row whose wanted code belongs to another value, or is NULL's, is put in `clashes`. Begins after the rows
    `done` and stops early when the table is full; returns the rows done, the clashes and the entries by then.
    """
    touched = np.empty(BLOCK, np.int32)
    for r in range(done, len(rows)):
        if (r - done) % BLOCK == 0:
            _ask_for(kind, wanted, rows, r, touched, slots, codes, kinds, bounds, arena)
        i = rows[r]
        if len(valid) and not valid[i]:
            out[i] = NULL_WORD
            continue
        code = wanted[i]
        if code == NULL_WORD:
            clashes[clashed] = i
            clashed += 1
            continue
        place = _place(kind, code, slots)
        entry = slots[place]
        while entry >= 0 and (codes[entry] != code or kinds[entry] != kind):
            place = (place + 1) & (len(slots) - 1)
            entry = slots[place]
        if entry < 0:
            start, size = bounds[n], offsets[i + 1] - offsets[i]
            if n == len(codes) or 2 * (n + 1) > len(slots) or start + size > len(arena):
                return np.int64(r), clashed, n
            slots[place] = n
            codes[n], kinds[n], flags[n] = code, kind, flag
            for b in range(size):
                arena[start + b] = data[offsets[i] + b]
            bounds[n + 1] = start + size
            n += 1
        elif not _same_bytes(data, offsets[i], offsets[i + 1], arena, bounds[entry], bounds[entry + 1]):
            clashes[clashed] = i
            clashed += 1
            continue
        out[i] = code
    return np.int64(len(rows)), clashed, n


@kernel(i64, i64, offsets32_out, words, words)
def index(n, slots, codes, kinds):
    """Fill empty slots with the first n entries."""
    for entry in range(n):
        place = _place(kinds[entry], codes[entry], slots)
        while slots[place] >= 0:
            place = (place + 1) & (len(slots) - 1)
        slots[place] = entry
    return n


@kernel(i64, i64, i64, offsets32_out, words, words)
def forget(keep, n, slots, codes, kinds):
    """Take entries n-1, …, keep out of the slots, newest first."""
    for entry in range(n - 1, keep - 1, -1):
        place = _place(kinds[entry], codes[entry], slots)
        while slots[place] != entry:
            place = (place + 1) & (len(slots) - 1)
        slots[place] = -1
    return keep


@kernel(pair(words_out, i64), i64, words, offsets32, words, words)
def locate(kind, wanted, slots, codes, kinds):
    """The entry of every code, -1 for NULL; and the first row whose code has no entry, or -1."""
    out = np.empty(len(wanted), np.int64)
    missing = np.int64(-1)
    for i in range(len(wanted)):
        out[i] = MISSING
        if wanted[i] == NULL_WORD:
            continue
        out[i] = find(kind, wanted[i], slots, codes, kinds)
        if out[i] < 0 and missing < 0:
            missing = i
    return out, missing


@kernel(pair(words_out, octets_out), words, words, octets)
def gather(entries, bounds, arena):
    """The bytes of entries, end to end, with their offsets; entry -1 has none."""
    offsets = np.empty(len(entries) + 1, np.int64)
    offsets[0] = 0
    for i in range(len(entries)):
        e = entries[i]
        offsets[i + 1] = offsets[i] + (bounds[e + 1] - bounds[e] if e >= 0 else 0)
    data = np.empty(offsets[len(entries)], np.uint8)
    for i in range(len(entries)):
        if entries[i] < 0:
            continue
        source = bounds[entries[i]]
        for b in range(offsets[i + 1] - offsets[i]):
            data[offsets[i] + b] = arena[source + b]
    return offsets, data


@kernel(i64, octets_out, i64, words, offsets32, words, words)
def keep_codes(keep, kind, live, slots, codes, kinds):
    """Mark the entries of live codes of one kind; returns how many codes had none."""
    missing = np.int64(0)
    for i in range(len(live)):
        if live[i] == NULL_WORD:
            continue
        entry = find(kind, live[i], slots, codes, kinds)
        if entry < 0:
            missing += 1
        else:
            keep[entry] = 1
    return missing
