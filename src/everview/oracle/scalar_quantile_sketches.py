"""The meaning of KLL sketches: lists of values by level, a value of level h for 2^h values."""

from __future__ import annotations

import math
import struct
from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue
from everview.oracle.scalar_sketches import read, written
from everview.types import BIGINT, FLOAT, Array, Type

KINDS: Final = {"bigint": 4, "double": 5, "float": 6}


def _word(value: float) -> int:
    """A number as an integer of 64 bits with a sign, in the same order; floats by their bits."""
    if isinstance(value, int):
        return value
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return bits if bits >= 0 else -(2**63) + ~bits


def _value(word: int, kind: int) -> Any:
    if kind == KINDS["bigint"]:
        return word
    bits = word if word >= 0 else ~(word + 2**63)
    return struct.unpack("<d", struct.pack("<q", bits))[0]


@dataclass(frozen=True)
class QuantileSketch:
    """The values of each level as words in order, and of all values the number and the ends."""

    kind: int
    k: int
    levels: list[list[int]]
    n: int
    low: int
    high: int

    @staticmethod
    def of(values: list[Any], kind: int, k: int) -> QuantileSketch:
        words = sorted(_word(value) for value in values if value is not None and value == value)
        n, level = len(words), 0
        while n >> level > k:
            level += 1
        levels: list[list[int]] = [[] for _ in range(level + 1)]
        begin = 0
        for at in range(level, -1, -1):
            while begin + 2**at <= n:
                levels[at].append(words[begin + 2**at // 2])
                begin += 2**at
        return QuantileSketch(kind, k, levels, n, words[0] if n else 0, words[-1] if n else 0)

    @staticmethod
    def read(raw: bytes, kind: int) -> QuantileSketch:
        found, k, words = read(raw)
        signed = [word - 2**64 if word >> 63 else word for word in words]
        if found != kind or not 8 <= k <= 65535 or len(words) < 5 or not 1 <= words[3] <= len(words) - 4:
            raise NoValue("no such KLL sketch")
        n, low, high, count = signed[:4]
        sizes, rest = words[4 : 4 + count], signed[4 + count :]
        if count > 56 or sum(sizes) != len(rest) or n != sum(size << at for at, size in enumerate(sizes)) or n >= 2**62:
            raise NoValue("no such levels")
        levels: list[list[int]] = []
        for size in sizes:
            level, rest = rest[:size], rest[size:]
            if level != sorted(level) or not all(low <= word <= high for word in level):
                raise NoValue("no such values")
            levels.append(level)
        return QuantileSketch(kind, k, levels, n, low, high)

    @property
    def written(self) -> bytes:
        levels = self.levels[:]
        while len(levels) > 1 and not levels[-1]:
            levels.pop()
        sizes = [len(level) for level in levels]
        items = [word for level in levels for word in level]
        return written(self.kind, self.k, self.n, self.low, self.high, len(levels), *sizes, *items)

    @property
    def ranked(self) -> list[tuple[int, int]]:
        """Every value with the number of values up to it, in order."""
        pairs = sorted((word, 2**at) for at, level in enumerate(self.levels) for word in level)
        total, ranked = 0, list[tuple[int, int]]()
        for word, weight in pairs:
            total += weight
            ranked.append((word, total))
        return ranked

    def quantile(self, share: float | None) -> Any:
        if share is None:
            return None
        if not 0 <= share <= 1:
            raise NoValue("a rank outside of 0 to 1")
        if share in (0, 1):
            return _value(self.high if share else self.low, self.kind)
        wanted = max(1, math.ceil(share * self.n))
        return _value(next(word for word, rank in self.ranked if rank >= wanted), self.kind)

    def rank(self, value: float | None) -> float | None:
        if value is None:
            return None
        word = _word(math.nan if value != value else value)
        if not self.low <= word < self.high:
            return float(word >= self.high)
        return max([0, *(rank for held, rank in self.ranked if held <= word)]) / self.n

    @property
    def text(self) -> str:
        low, high = (repr(_value(word, self.kind)) if self.n else "none" for word in (self.low, self.high))
        items = sum(map(len, self.levels))
        return f"KLL sketch: k {self.k}, n {self.n}, levels {len(self.levels)}, items {items}, min {low}, max {high}"


# -- merging


def _capacities(k: int, count: int) -> list[int]:
    capacity, capacities = float(k), list[int]()
    for _ in range(count):
        capacities.insert(0, max(8, math.floor(capacity + 0.5)))
        capacity = capacity * 2.0 / 3.0
    return capacities


def _coin(level: list[int], at: int) -> int:
    word = (sum(level) + at) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ word >> shift) * factor % 2**64
    return (word ^ word >> 31) & 1


def _merged(raws: list[bytes | None], kind: int, k: int) -> bytes:
    sketches = [QuantileSketch.read(raw, kind) for raw in raws if raw is not None]
    filled = [sketch for sketch in sketches if sketch.n]
    k = k or min((sketch.k for sketch in sketches), default=200)
    levels: list[list[int]] = [[]]
    for sketch in sketches:
        levels += [[] for _ in range(len(sketch.levels) - len(levels))]
        for at, level in enumerate(sketch.levels):
            for word in level:
                insort(levels[at], word)
    while len(levels) > 1 and not levels[-1]:
        levels.pop()
    while sum(map(len, levels)) > sum(capacities := _capacities(k, len(levels))):
        at = next(at for at, level in enumerate(levels) if len(level) >= capacities[at])
        level, coin = levels[at], _coin(levels[at], at)
        pairs = len(level) // 2
        levels[at] = level[2 * pairs :]
        levels += [[]] * (at + 1 == len(levels))
        levels[at + 1] = sorted(levels[at + 1] + level[coin : 2 * pairs : 2])
    low, high = min((s.low for s in filled), default=0), max((s.high for s in filled), default=0)
    return QuantileSketch(kind, k, levels, sum(s.n for s in sketches), low, high).written


# -- functions


def _made(type_: Type, types: list[Type], values: list[Any]) -> bytes:
    assert isinstance(types[0], Array)
    of = types[0].element
    kind = "bigint" if of == BIGINT else "float" if of == FLOAT else "double"
    return QuantileSketch.of(values[0], KINDS[kind], values[1]).written


def _told(kind: int, ask: Callable[[QuantileSketch, Any], Any]) -> Callable[[Type, list[Type], list[Any]], Any]:
    def function(type_: Type, types: list[Type], values: list[Any]) -> Any:
        raw, asked = values
        sketch = QuantileSketch.read(raw, kind)
        if not sketch.n:
            shares = asked if isinstance(asked, list) else [asked]
            if ask is QuantileSketch.quantile and any(s is not None and not 0 <= s <= 1 for s in shares):
                raise NoValue("a rank outside of 0 to 1")
            return None
        return [ask(sketch, each) for each in asked] if isinstance(asked, list) else ask(sketch, asked)

    return function


def _of(function: Callable[..., Any]) -> Callable[[Type, list[Type], list[Any]], Any]:
    return lambda type_, types, values: function(*values)


def _of_kind(name: str, kind: int) -> dict[str, Callable[[Type, list[Type], list[Any]], Any]]:
    return {
        f"kll_sketch_merge_{name}": _of(lambda a, b: _merged([a, b], kind, 0)),
        f"kll_merge_of_{name}": _of(lambda sketches, k: _merged(sketches, kind, k)),
        f"kll_sketch_get_n_{name}": _of(lambda raw: QuantileSketch.read(raw, kind).n),
        f"kll_sketch_get_quantile_{name}": _told(kind, QuantileSketch.quantile),
        f"kll_sketch_get_rank_{name}": _told(kind, QuantileSketch.rank),
        f"kll_sketch_to_string_{name}": _of(lambda raw: QuantileSketch.read(raw, kind).text),
    }


QUANTILE_SKETCHES: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "kll_of": _made,
    **{name: function for of, kind in KINDS.items() for name, function in _of_kind(of, kind).items()},
}
