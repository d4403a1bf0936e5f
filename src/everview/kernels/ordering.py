"""How two rows compare in the order of an index: by their words, or for some words by the values they stand for.

An ordering is a tuple: empty for words alone, else ``(order, slots, codes, kinds, bounds, arena)``, where
``order[w] = (kind, mode)`` of word w and the rest are the dictionary's arrays. Kind 0 compares numbers, -1 takes the
kind from the word before (ANY), any other is a kind of interned value. The bits of mode: 1 descending, 2 NULL at the
other end. Which of the two is meant is known when a kernel is compiled.
"""

from __future__ import annotations

from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numba.extending import overload

from everview.kernels.dictionary import NULL_WORD
from everview.kernels.dictionary import compare as compare_values
from everview.kernels.jit import inline, octets, offsets32, rows, words
from everview.kernels.pointers import int32_at, int64_at, uint8_at
from everview.kernels.rows import compare


def plain_first(key, width, ordering):
    """Whether rows that differ in word ``key`` compare as these numbers do."""
    raise NotImplementedError("compiled only")


@overload(plain_first, inline="never")
def _plain_first(key, width, ordering):
    if len(ordering) == 0:
        return lambda key, width, ordering: key < width
    return lambda key, width, ordering: key < width and ordering[0][key, 0] == 0 and ordering[0][key, 1] == 0


by_values = (rows, offsets32, words, words, words, octets)
ARRAYS = 10  # words that say where the dictionary's five arrays are: the address and the size of each


@inline
def ordering_with(order, dictionary):
    """The ordering by ``order``, over a dictionary of which an address says where its arrays are."""
    where = carray(int64_at(dictionary), ARRAYS)
    return (
        order,
        carray(int32_at(where[0]), where[1]),
        carray(int64_at(where[2]), where[3]),
        carray(int64_at(where[4]), where[5]),
        carray(int64_at(where[6]), where[7]),
        carray(uint8_at(where[8]), where[9]),
    )


@inline
def _word(order, w, a, i, b, j, slots, codes, kinds, bounds, arena):
    """One word of two rows, by value, turned as the mode says."""
    x, y = a[i, w], b[j, w]
    if x == y:
        return 0
    kind, mode = order[w, 0], order[w, 1]
    found = compare_values(kind if kind >= 0 else a[i, w - 1], x, y, slots, codes, kinds, bounds, arena)
    if mode & 2 and (x == NULL_WORD) != (y == NULL_WORD):
        found = -found
    return -found if mode & 1 else found


def compare_in(a, i, b, j, lo, hi, ordering):
    """Sign of the comparison of words ``lo..hi`` of row i of a and row j of b."""
    raise NotImplementedError("compiled only")


@overload(compare_in, inline="never")
def _compare_in(a, i, b, j, lo, hi, ordering):
    if len(ordering) == 0:
        return lambda a, i, b, j, lo, hi, ordering: compare(a, i, b, j, lo, hi)

    def by_value(a, i, b, j, lo, hi, ordering):
        order, slots, codes, kinds, bounds, arena = ordering
        for w in range(lo, hi):
            found = _word(order, w, a, i, b, j, slots, codes, kinds, bounds, arena)
            if found != 0:
                return -1 if found < 0 else 1
        return 0

    return by_value
