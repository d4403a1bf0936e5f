"""Sketches of quantiles (KLL): some values of a multiset, each for a power of two of them.

A value of level h stands for 2^h values. A sketch of up to k values keeps all. Of n values, sorted, it keeps the middle
one of each block of 2^h, with the least h that leaves at most k blocks; what is behind the last block is taken in
smaller blocks in the same way. So a sketch is a function of the multiset, and a rank is wrong by less than n / k.

Sketches are put together level by level. While there are more values than all levels may hold, the lowest level that
is full is halved: of its values in order every other one goes a level up. Which ones, the first or the second of each
pair, a bit says that the values themselves give, so that the same sketches give the same one, in whatever order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Kernel, Kind, Mask, Value, each, from_numbers, nulls, numbers, whole
from everview.scalars.functions.lists import Lists, lists
from everview.scalars.functions.sketch_words import (
    FOREIGN,
    Parts,
    Sketches,
    SketchKind,
    Writing,
    header,
    per_row,
    refused,
    rows_with,
)

DEFAULT: Final = 200
FEWEST, MOST = 8, 65535
LEVELS: Final = 56
LEAST_CAPACITY: Final = 8
FIXED: Final = 5  # words before the sizes of the levels
KINDS: Final = {"bigint": SketchKind.BIGINT, "double": SketchKind.DOUBLE, "float": SketchKind.FLOAT}
_LOW: Final = np.int64((1 << 63) - 1)


def ordered_words(values: Any) -> Any:
    """Numbers as 64-bit integers in the same order."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    words = np.where(np.isnan(values), np.nan, values.astype(np.float64) + 0.0).view(np.int64)
    return words ^ (words >> 63 & _LOW)


def _values(words: Any, kind: Kind) -> Any:
    """The numbers of such integers."""
    if not pa.types.is_floating(kind):
        return words
    return (words ^ (words >> 63 & _LOW)).view(np.float64)


@dataclass(frozen=True, slots=True)
class Leveled:
    """The values of sketches with their rows and levels, in order of row, level and value."""

    rows: Any
    levels: Any
    words: Any

    @staticmethod
    def sorted(rows: Any, levels: Any, words: Any) -> Leveled:
        order = np.lexsort((words, levels, rows))
        return Leveled(rows[order], levels[order], words[order])

    def sizes(self, count: int) -> Any:
        """How many values each level of each row has."""
        return np.bincount(self.rows * LEVELS + self.levels, minlength=count * LEVELS).reshape(count, LEVELS)


def _heights(sizes: Any) -> Any:
    """The number of levels, at least one: no higher one has values."""
    filled = sizes > 0
    return np.where(filled.any(axis=1), LEVELS - np.argmax(filled[:, ::-1], axis=1), 1)


def _packed(out: Kind, kind: int, k: Any, ends: tuple[Any, Any, Any], items: Leveled, missing: Mask) -> Any:
    """Sketches of values; ``ends`` has the number of values behind each, the least and the greatest."""
    sizes = items.sizes(len(k))
    heights, counts = _heights(sizes), sizes.sum(axis=1)
    writing = Writing.of(FIXED + heights + counts, missing)
    writing.put(0, header(np.full(len(k), kind), k))
    for place, values in enumerate((*ends, heights), 1):
        writing.put(place, values.astype(np.int64).view(np.uint64))
    rows, levels = np.nonzero((np.arange(LEVELS) < heights[:, None]) & writing.kept[:, None])
    writing.words[writing.begins[rows] + FIXED + levels] = sizes[rows, levels].astype(np.uint64)
    places = np.arange(len(items.rows)) - (np.cumsum(counts) - counts)[items.rows]
    there = writing.kept[items.rows]
    at = writing.begins[items.rows] + FIXED + heights[items.rows] + places
    writing.words[at[there]] = items.words[there].view(np.uint64)
    return writing.column(out)


def _of(out: Kind, values: Value, size: Value) -> Any:
    rows, of = len(values), values.type.value_type
    split, missing = Lists.of(values, rows), nulls(values)
    none, k = np.zeros(rows, bool) if missing is None else missing, per_row(size, rows)
    there = split.elements.is_valid().to_numpy(zero_copy_only=False)
    given = numbers(split.elements)
    there = there & (given == given)
    words, parents = ordered_words(given[there]), split.parents[there]
    order = np.lexsort((words, parents))
    words, parents = words[order], parents[order]
    n = np.bincount(parents, minlength=rows)
    begins, filled = np.cumsum(n) - n, n > 0
    low, high = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    low[filled], high[filled] = words[begins[filled]], words[(begins + n - 1)[filled]]
    top = np.zeros(rows, np.int64)
    while (above := n >> top > k).any():
        top += above
    kind = SketchKind.BIGINT if not pa.types.is_floating(of) else SketchKind.FLOAT
    kind = SketchKind.DOUBLE if pa.types.is_float64(of) else kind
    chosen = _sampled(n, top)
    items = Leveled.sorted(chosen[0], chosen[1], words[begins[chosen[0]] + chosen[2]])
    return _packed(out, kind, k, (n, low, high), items, none)


def _sampled(n: Any, top: Any) -> tuple[Any, Any, Any]:
    """The rows, levels and places of the kept values: first the values of the top level, then the levels below."""
    blocks = n >> top
    rows = np.repeat(np.arange(len(n)), blocks)
    number = np.arange(len(rows)) - (np.cumsum(blocks) - blocks)[rows]
    found = [(rows, top[rows], (number << top[rows]) + (1 << top[rows] >> 1))]
    for level in range(int(top.max(initial=0))):
        rest = np.flatnonzero((top > level) & (n >> level & 1 == 1))
        first = n[rest] >> (level + 1) << (level + 1)
        found.append((rest, np.full(len(rest), level), first + (1 << level >> 1)))
    rows, levels, places = map(np.concatenate, zip(*found, strict=True))
    return rows, levels, places


# -- what sketches hold


def _sound(sketches: Sketches, kind: int) -> Mask:
    known = (sketches.kinds == kind) & (sketches.sizes > FIXED)
    known &= (sketches.parameters >= FEWEST) & (sketches.parameters <= MOST)
    heights = sketches.word(4, known)
    known &= (heights >= 1) & (heights <= LEVELS) & (heights <= sketches.sizes.clip(FIXED) - FIXED)
    sizes, rows, levels = _level_sizes(sketches, known)
    count = len(known)
    known &= ~rows_with(sizes > 1 << 32, rows, count)
    behind = sketches.sizes - FIXED - np.where(known, sketches.word(4, known), 0).astype(np.int64)
    known &= np.bincount(rows, sizes.astype(np.float64), minlength=count) == behind
    known &= np.bincount(rows, sizes * 2.0**levels, minlength=count) < 2.0**62
    total = np.zeros(count, np.int64)
    fits = known[rows]
    np.add.at(total, rows[fits], sizes[fits].astype(np.int64) << levels[fits])
    known &= total == sketches.word(1, known).view(np.int64)
    items = _items(sketches, known)
    levels = items.rows * LEVELS + items.levels
    wrong = np.zeros(len(levels), bool)
    wrong[1:] = (levels[1:] == levels[:-1]) & (items.words[1:] < items.words[:-1])
    low, high = (sketches.word(place, known).view(np.int64)[items.rows] for place in (2, 3))
    return known & ~rows_with(wrong | (items.words < low) | (items.words > high), items.rows, count)


def _level_sizes(sketches: Sketches, where: Mask) -> tuple[Any, Any, Any]:
    """The sizes of all levels of some sketches, with the sketch and the level of each."""
    heights = np.where(where, sketches.word(4, where), 0).astype(np.int64)
    rows = np.repeat(np.arange(len(heights)), heights)
    levels = np.arange(len(rows)) - (np.cumsum(heights) - heights)[rows]
    return sketches.words[sketches.begins[rows] + FIXED + levels], rows, levels


def _items(sketches: Sketches, where: Mask) -> Leveled:
    """The values of some sketches as they stand."""
    sizes, rows, levels = _level_sizes(sketches, where)
    sizes = sizes.astype(np.int64)
    of, at = np.repeat(rows, sizes), np.repeat(levels, sizes)
    counts = np.bincount(of, minlength=len(where))
    heights = np.where(where, sketches.word(4, where), 0).astype(np.int64)
    places = np.arange(len(of)) - (np.cumsum(counts) - counts)[of]
    return Leveled(of, at, sketches.words[(sketches.begins + FIXED + heights)[of] + places].view(np.int64))


# -- merging


def _capacities(k: Any, heights: Any) -> Any:
    """How many values each level may hold: the highest k, each lower one two thirds of the next."""
    capacity, depth = k.astype(np.float64), np.zeros((len(k), LEVELS))
    for below in range(int(heights.max(initial=1))):
        there = heights > below
        level = (heights - 1 - below).clip(0)
        depth[there, level[there]] = np.maximum(LEAST_CAPACITY, np.floor(capacity + 0.5))[there]
        capacity = capacity * 2.0 / 3.0
    return depth


def _mixed(words: Any) -> Any:
    """A number all of whose bits depend on all of a word (the finalizer of SplitMix64)."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def _halved(items: Leveled, level: Any, chosen: Mask) -> Leveled:
    """The values after a level of some rows was halved."""
    full = np.flatnonzero(chosen[items.rows] & (items.levels == level[items.rows]))
    rows, words = items.rows[full], items.words[full]
    sizes = np.bincount(rows, minlength=len(level))
    sums = np.zeros(len(level), np.uint64)
    np.add.at(sums, rows, words.view(np.uint64))
    coins = (_mixed(sums + level.astype(np.uint64)) & np.uint64(1)).astype(np.int64)
    places = np.arange(len(full)) - (np.cumsum(sizes) - sizes)[rows]
    left = (places == sizes[rows] - 1) & (sizes[rows] % 2 == 1)
    levels = items.levels.copy()
    levels[full[~left]] += 1
    kept = np.ones(len(items.rows), bool)
    kept[full[~left & (places % 2 != coins[rows])]] = False
    return Leveled.sorted(items.rows[kept], levels[kept], items.words[kept])


def _compacted(items: Leveled, k: Any) -> Leveled:
    while True:
        sizes = items.sizes(len(k))
        capacities = _capacities(k, _heights(sizes))
        over = sizes.sum(axis=1) > capacities.sum(axis=1)
        if not over.any():
            return items
        full = (sizes >= capacities) & (capacities > 0)
        items = _halved(items, np.argmax(full, axis=1), over)


def _merged(out: Kind, kind: int, parts: Parts, size: Value | None) -> Any:
    sketches, there = parts.sketches, parts.there
    sound = _sound(sketches, kind)
    used = sound & there
    rows = parts.parents[used]
    n, filled = np.zeros(parts.rows, np.int64), used & (sketches.word(1, used) > 0)
    np.add.at(n, rows, sketches.word(1, used).view(np.int64)[used])
    low, high = np.full(parts.rows, _LOW), np.full(parts.rows, ~_LOW)
    np.minimum.at(low, parts.parents[filled], sketches.word(2, filled).view(np.int64)[filled])
    np.maximum.at(high, parts.parents[filled], sketches.word(3, filled).view(np.int64)[filled])
    low, high = (np.where(n > 0, end, 0) for end in (low, high))
    least = parts.extreme(np.minimum, np.where(sound, sketches.parameters, MOST), MOST)
    k = np.where(parts.any(there), least, DEFAULT)
    k = k if size is None else np.where(per_row(size, parts.rows) > 0, per_row(size, parts.rows), k)
    held = _items(sketches, used)
    items = _compacted(Leveled.sorted(parts.parents[held.rows], held.levels, held.words), k)
    made = _packed(out, kind, k, (n, low, high), items, parts.missing)
    return refused(made, parts.any(there & ~sound), _foreign(kind))


def _foreign(kind: int) -> str:
    return FOREIGN.format(f"KLL ({SketchKind(kind).name})")


# -- questions


@dataclass(frozen=True, slots=True)
class Ranked:
    """The values of sketches in order, and how many values there are up to each in all sketches before it and here."""

    items: Leveled
    ranks: Any
    before: Any  # of each sketch
    n: Any

    @staticmethod
    def of(sketches: Sketches, sound: Mask) -> Ranked:
        held = _items(sketches, sound)
        order = np.lexsort((held.words, held.rows))
        items = Leveled(held.rows[order], held.levels[order], held.words[order])
        n = np.where(sound, sketches.word(1, sound), 0).astype(np.int64)
        return Ranked(items, np.cumsum(np.int64(1) << items.levels), np.cumsum(n) - n, n)

    def at(self, rows: Any, shares: Any) -> Any:
        """The places of the first values at whose rank there are such shares of all; of no values, 0."""
        wanted = np.maximum(np.ceil(shares * self.n[rows]), 1).astype(np.int64)
        return np.minimum(np.searchsorted(self.ranks, self.before[rows] + wanted), max(len(self.ranks) - 1, 0))

    def up_to(self, rows: Any, words: Any) -> Any:
        """How many values there are that are not greater."""
        _, codes = np.unique(np.concatenate([self.items.words, words]), return_inverse=True)
        count, most = len(self.items.words), int(codes.max(initial=0)) + 1
        places = np.searchsorted(self.items.rows * most + codes[:count], rows * most + codes[count:], "right")
        return np.append(0, self.ranks)[places] - self.before[rows]


def _asked(answer: Any, kind: int) -> Kernel:
    """A kernel of a sketch and a number, or an array of numbers."""

    def run(out: Kind, column: Value, asked: Value) -> Any:
        rows = max(len(v) for v in (column, asked) if not isinstance(v, pa.Scalar))
        column, asked = whole(column, rows), whole(asked, rows)
        sketches, missing = Sketches.of(column), nulls(column, asked)
        none = np.zeros(rows, bool) if missing is None else missing
        sound = _sound(sketches, kind)
        foreign = ~sketches.missing & ~none & ~sound
        if not pa.types.is_list(asked.type):
            value, wrong = answer(out, sketches, sound, np.arange(rows), numbers(asked), none)
            made = from_numbers(value, out, none | (sketches.word(1, sound) == 0))
            return refused(refused(made, wrong & ~none & ~foreign, OUTSIDE), foreign, _foreign(kind))
        split = Lists.of(asked, rows)
        absent = ~split.elements.is_valid().to_numpy(zero_copy_only=False) | none[split.parents]
        value, wrong = answer(out.value_type, sketches, sound, split.parents, numbers(split.elements), absent)
        elements = from_numbers(value, out.value_type, absent)
        empty = none | (sketches.word(1, sound) == 0)
        sizes = np.where(empty, 0, split.sizes)
        made = lists(elements.filter(pa.array(~empty[split.parents])), sizes, out, empty)
        outside = rows_with(wrong & ~absent, split.parents, rows) & ~foreign
        return refused(refused(made, outside, OUTSIDE), foreign, _foreign(kind))

    return run


OUTSIDE: Final = "a rank is a number from 0 to 1"


def _quantile(out: Kind, sketches: Sketches, sound: Mask, rows: Any, shares: Any, absent: Mask) -> tuple[Any, Mask]:
    ranked, wrong = Ranked.of(sketches, sound), ~((shares >= 0) & (shares <= 1))
    shares = np.where(wrong | absent, 0.0, shares)
    words = np.append(ranked.items.words, 0)[ranked.at(rows, shares)]
    low, high = (sketches.word(place, sound).view(np.int64)[rows] for place in (2, 3))
    words = np.where(shares == 0, low, np.where(shares == 1, high, words))
    return _values(words, out), wrong


def _rank(out: Kind, sketches: Sketches, sound: Mask, rows: Any, values: Any, absent: Mask) -> tuple[Any, Mask]:
    ranked, words = Ranked.of(sketches, sound), ordered_words(values)
    low, high = (sketches.word(place, sound).view(np.int64)[rows] for place in (2, 3))
    n = np.maximum(ranked.n[rows], 1)
    found = ranked.up_to(rows, words) / n
    return np.where(words < low, 0.0, np.where(words >= high, 1.0, found)), np.zeros(len(rows), bool)


def _count(kind: int) -> Kernel:
    def run(out: Kind, column: Value) -> Any:
        sketches = Sketches.of(column)
        sound = _sound(sketches, kind)
        made = from_numbers(sketches.word(1, sound).view(np.int64), out, nulls(column))
        return refused(made, ~sketches.missing & ~sound, _foreign(kind))

    return run


def _text(kind: int) -> Kernel:
    def run(out: Kind, column: Value) -> Any:
        sketches = Sketches.of(column)
        sound = _sound(sketches, kind)
        made = each(out, lambda raw: _described(raw, kind), column)
        return refused(made, ~sketches.missing & ~sound, _foreign(kind))

    return run


def _described(raw: bytes, kind: int) -> str | None:
    words = np.frombuffer(raw[: len(raw) // 8 * 8], np.int64)
    if len(words) <= FIXED:
        return None
    k, (n, low, high, levels) = int(words[0]) >> 48 & 0xFFFF, map(int, words[1:FIXED])
    of = pa.int64() if kind == SketchKind.BIGINT else pa.float64()
    ends = (repr(_values(np.array([word]), of)[0].item()) for word in (low, high))
    least, greatest = ends if n else ("none", "none")
    items = len(words) - FIXED - levels
    return f"KLL sketch: k {k}, n {n}, levels {levels}, items {items}, min {least}, max {greatest}"


KERNELS: Final[dict[str, Kernel]] = {
    "kll_of": _of,
    **{
        f"kll_sketch_merge_{name}": (lambda out, a, b, kind=kind: _merged(out, kind, Parts.of_columns(a, b), None))
        for name, kind in KINDS.items()
    },
    **{
        f"kll_merge_of_{name}": (
            lambda out, sketches, size, kind=kind: _merged(out, kind, Parts.of_arrays(sketches), size)
        )
        for name, kind in KINDS.items()
    },
    **{f"kll_sketch_get_n_{name}": _count(kind) for name, kind in KINDS.items()},
    **{f"kll_sketch_get_quantile_{name}": _asked(_quantile, kind) for name, kind in KINDS.items()},
    **{f"kll_sketch_get_rank_{name}": _asked(_rank, kind) for name, kind in KINDS.items()},
    **{f"kll_sketch_to_string_{name}": _text(kind) for name, kind in KINDS.items()},
}
