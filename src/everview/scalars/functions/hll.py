"""HyperLogLog: how many different values there are, from the longest run of zeros among their hashes.

A hash says a slot, its lowest 26 bits, and a rank: one more than the zeros before the first one of its other 38 bits. A
sketch of 2^k registers keeps the greatest rank of all slots that agree in their lowest k bits. Up to a quarter of that
many slots it keeps the slots themselves instead, each with its rank, from which the number is known nearly exactly.
Either form is a function of the set of hashes, and of the sketches of its parts.

The estimate of registers is Ertl's improved one, that of slots counts the empty ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from everview.scalars.functions.kernel import Kernel, Kind, Mask, Value, from_numbers, nulls, numbers
from everview.scalars.functions.lists import Lists, spans
from everview.scalars.functions.sketch_words import (
    FOREIGN,
    Parts,
    Sketches,
    SketchKind,
    Writing,
    falls,
    flags,
    header,
    per_row,
    refused,
    rounded,
    rows_with,
)

SLOTS: Final = 26
REST: Final = 64 - SLOTS
RANKS: Final = REST + 2  # 0 of an empty register, and REST + 1 of a hash whose other bits are zeros
DEFAULT: Final = 12
FEWEST, MOST = 4, 21
HALF_OVER_LOG: Final = 0.5 / np.log(2.0)
DIFFERENT: Final = (
    "sketches of different lgConfigK, {0} and {1}, are put together only where allowDifferentLgConfigK is true"
)
NO_HLL: Final = FOREIGN.format("HLL")


def coupons_of(hashes: Any) -> Any:
    """The slot of each hash, and behind it in six bits its rank."""
    hashes = hashes.view(np.uint64)
    slots = (hashes & np.uint64((1 << SLOTS) - 1)).astype(np.int64)
    _, length = np.frexp((hashes >> np.uint64(SLOTS)).astype(np.float64))
    return slots << 6 | (REST + 1 - length)


def most_slots(lg: Any) -> Any:
    """Up to how many slots a sketch keeps, by the binary logarithm of its registers."""
    return np.maximum(8, 1 << (lg - 2))


def _packed(out: Kind, coupons: Any, parents: Any, lg: Any, missing: Mask, known: tuple[Any, Any, Any]) -> Any:
    """Sketches of coupons, each with the row that it is for, and of registers: rows, places and ranks."""
    rows = len(lg)
    keys = np.sort(parents << 32 | coupons)
    last = np.append(keys[1:] >> 6 != keys[:-1] >> 6, True)[: len(keys)]
    keys = keys[last]
    parents, coupons = keys >> 32, keys & 0xFFFFFFFF
    counts = np.bincount(parents, minlength=rows)
    dense = (counts > most_slots(lg)) | rows_with(np.ones(len(known[0]), bool), known[0], rows)
    writing = Writing.of(1 + np.where(dense, (1 << lg) // 8, (counts + 1) // 2), missing)
    writing.put(0, header(np.where(dense, SketchKind.REGISTERS, SketchKind.COUPONS), lg))
    places = np.arange(len(keys)) - (np.cumsum(counts) - counts)[parents]
    there = writing.kept[parents]
    sparse = there & ~dense[parents]
    writing.words.view(np.uint32)[2 * (writing.begins[parents[sparse]] + 1) + places[sparse]] = coupons[sparse]
    registers, first = writing.words.view(np.uint8), 8 * (writing.begins + 1)
    of = there & dense[parents]
    slots = coupons[of] >> 6 & ((1 << lg) - 1)[parents[of]]
    np.maximum.at(registers, first[parents[of]] + slots, (coupons[of] & 63).astype(np.uint8))
    row, place, rank = (part[writing.kept[known[0]]] for part in known)
    np.maximum.at(registers, first[row] + (place & ((1 << lg) - 1)[row]), rank.astype(np.uint8))
    return writing.column(out)


_EMPTY: Final = np.zeros(0, np.int64)


def _of(out: Kind, hashes: Value, lg: Value) -> Any:
    rows = len(hashes)
    lists, missing = Lists.of(hashes, rows), nulls(hashes)
    none = np.zeros(rows, bool) if missing is None else missing
    there = lists.elements.is_valid().to_numpy(zero_copy_only=False)
    coupons = coupons_of(numbers(lists.elements).astype(np.int64))[there]
    return _packed(out, coupons, lists.parents[there], per_row(lg, rows), none, (_EMPTY, _EMPTY, _EMPTY))


# -- what sketches hold


def _coupons(sketches: Sketches, where: Mask) -> tuple[Any, Any]:
    """The coupons of some sketches, and the sketch of each; a last half of a word may be empty."""
    words, rows = sketches.items(1, where)
    halves, of = words.view(np.uint32).astype(np.int64), np.repeat(rows, 2)
    ends = np.append(of[1:] != of[:-1], True)[: len(of)]
    filled = ~(ends & (halves == 0))
    return halves[filled], of[filled]


def _registers(sketches: Sketches, where: Mask) -> tuple[Any, Any, Any]:
    """The sketch, the place and the rank of every register of some sketches."""
    words, rows = sketches.items(1, where)
    ranks, of = words.view(np.uint8).astype(np.int64), np.repeat(rows, 8)
    sizes = np.where(where, 8 * (sketches.sizes - 1), 0)
    return of, spans(np.zeros(len(sizes), np.int64), sizes), ranks


def _sound(sketches: Sketches) -> tuple[Any, Any]:
    """The sound sketches of slots, and the sound sketches of registers."""
    kinds, lg, sizes = sketches.kinds, sketches.parameters, sketches.sizes
    known = (lg >= FEWEST) & (lg <= MOST)
    lg = np.where(known, lg, FEWEST)
    sparse = known & (kinds == SketchKind.COUPONS) & (sizes - 1 <= (most_slots(lg) + 1) // 2)
    dense = known & (kinds == SketchKind.REGISTERS) & (sizes - 1 == (1 << lg) // 8)
    coupons, rows = _coupons(sketches, sparse)
    wrong = falls(coupons >> 6, rows) | (coupons & 63 == 0) | (coupons & 63 >= RANKS)
    of, _, ranks = _registers(sketches, dense)
    count = len(sizes)
    return sparse & ~rows_with(wrong, rows, count), dense & ~rows_with(ranks >= RANKS, of, count)


def _joined(out: Kind, parts: Parts, different: Any) -> Any:
    """The sketch of what several are of, as exact as the least exact one."""
    sketches, there = parts.sketches, parts.there
    sparse, dense = _sound(sketches)
    foreign = parts.any(there & ~sparse & ~dense)
    sound = sparse | dense
    least = parts.extreme(np.minimum, np.where(sound, sketches.parameters, MOST), MOST)
    greatest = parts.extreme(np.maximum, np.where(sound, sketches.parameters, FEWEST), FEWEST)
    lg = np.where(parts.any(there), least, DEFAULT)
    coupons, rows = _coupons(sketches, sparse & there)
    of, places, ranks = _registers(sketches, dense & there)
    known = parts.parents[of], places, ranks
    made = _packed(out, coupons, parts.parents[rows], lg, parts.missing, known)
    apart = parts.any(there) & (least < greatest) & ~flags(different, parts.rows)
    apart &= ~foreign
    if apart.any():
        told = int(np.argmax(apart))
        made = refused(made, apart, DIFFERENT.format(least[told], greatest[told]))
    return refused(made, foreign, NO_HLL)


def _union(out: Kind, a: Value, b: Value, different: Value) -> Any:
    return _joined(out, Parts.of_columns(a, b), different)


def _union_of(out: Kind, sketches: Value, different: Value) -> Any:
    return _joined(out, Parts.of_arrays(sketches), different)


# -- estimates


def _sigma(x: Any) -> Any:
    """The sum of x^(2^i) times 2^(i-1), besides the first."""
    full = x == 1.0
    x = np.where(full, 0.0, x)
    y, z = 1.0, x
    while True:
        x, before = x * x, z
        z = z + x * y
        y += y
        if (z == before).all():
            return np.where(full, np.inf, z)


def _tau(x: Any) -> Any:
    """A third of the sum of (1 - x^(2^-i))^2 times 2^-i, taken from 1 - x."""
    none = (x == 0.0) | (x == 1.0)
    x = np.where(none, 1.0, x)
    y, z = 1.0, 1.0 - x
    while True:
        x, before = np.sqrt(x), z
        y *= 0.5
        z = z - (1.0 - x) * (1.0 - x) * y
        if (z == before).all():
            return np.where(none, 0.0, z / 3.0)


def estimate_of_registers(counts: Any) -> Any:
    """Ertl's estimate, of how many registers have each rank; a row a sketch."""
    m = counts.sum(axis=1).astype(np.float64)
    z = m * _tau(1.0 - counts[:, -1] / m)
    for rank in range(RANKS - 2, 0, -1):
        z = 0.5 * (z + counts[:, rank])
    z = z + m * _sigma(counts[:, 0] / m)
    with np.errstate(divide="ignore"):
        return HALF_OVER_LOG * m * m / z


def _estimate(out: Kind, column: Value) -> Any:
    sketches, missing = Sketches.of(column), nulls(column)
    sparse, dense = _sound(sketches)
    _, rows = _coupons(sketches, sparse)
    counts, slots = np.bincount(rows, minlength=len(column)), float(1 << SLOTS)
    found = slots * np.log(slots / (slots - counts))
    of, _, ranks = _registers(sketches, dense)
    chosen = np.flatnonzero(dense)
    if len(chosen):
        number = np.zeros(len(column), np.int64)
        number[chosen] = np.arange(len(chosen))
        by_rank = np.bincount(number[of] * RANKS + ranks.clip(0, RANKS - 1), minlength=len(chosen) * RANKS)
        found[chosen] = estimate_of_registers(by_rank.reshape(-1, RANKS))
    made = from_numbers(rounded(found), out, missing)
    return refused(made, ~sketches.missing & ~sparse & ~dense, NO_HLL)


KERNELS: Final[dict[str, Kernel]] = {
    "hll_of": _of,
    "hll_union": _union,
    "hll_union_of": _union_of,
    "hll_sketch_estimate": _estimate,
}
