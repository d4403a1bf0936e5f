"""The meaning of HLL and theta sketches: their format read and written word by word, and what is told of them.

An HLL sketch is a mapping from slots to ranks, a theta sketch a set of hashes below a bound.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue
from everview.oracle.scalar_hashes import xxh64
from everview.types import Type

COUPONS, REGISTERS, THETA = 1, 2, 3
ALL: Final = 2**64 - 1


def written(kind: int, parameter: int, *words: int) -> bytes:
    """A sketch: four letters, the version, the kind and the parameter, then words."""
    return struct.pack(f"<4sBBH{len(words)}Q", b"EVSK", 1, kind, parameter, *(word % 2**64 for word in words))


def read(raw: bytes) -> tuple[int, int, list[int]]:
    """The kind, the parameter and the words of a sketch."""
    if len(raw) < 8 or len(raw) % 8 or raw[:5] != b"EVSK\x01":
        raise NoValue("no sketch of ours")
    _, kind, parameter = struct.unpack("<5sBH", raw[:8])
    return kind, parameter, list(struct.unpack(f"<{len(raw) // 8 - 1}Q", raw[8:]))


def _ascends(items: list[int]) -> bool:
    return all(a < b for a, b in pairwise(items))


# -- hashes


def _hash(type_: Type, types: list[Type], values: list[Any]) -> int | None:
    (value,) = values
    match value:
        case str() | bytes():
            raw = value.encode() if isinstance(value, str) else value
        case list():
            raw = b"".join(struct.pack("<q", 0 if item is None else item) for item in value)
        case float():
            raw = struct.pack("<d", math.nan if value != value else value + 0.0)
        case _:
            raw = struct.pack("<q", value)
    hashed = xxh64(raw, 0)
    return None if not raw else hashed - 2**64 if hashed >> 63 else hashed


# -- HLL

Slots = dict[int, int]


def _slots(hashes: Iterable[int | None]) -> Slots:
    """The greatest rank of each slot."""
    slots: Slots = {}
    for hashed in hashes:
        if hashed is not None:
            word = f"{hashed % 2**64:064b}"
            slot, zeros = int(word[38:], 2), len(word[:38]) - len(word[:38].lstrip("0"))
            slots[slot] = max(slots.get(slot, 0), zeros + 1)
    return slots


def _hll(slots: Slots, registers: Mapping[int, int] | None, lg: int) -> bytes:
    """A sketch of slots, with registers as soon as one of its parts has registers."""
    if registers is None and len(slots) <= max(8, 2 ** (lg - 2)):
        halves = [slot << 6 | rank for slot, rank in sorted(slots.items())]
        halves += [0] * (len(halves) % 2)
        return written(COUPONS, lg, *(a | b << 32 for a, b in zip(halves[::2], halves[1::2], strict=True)))
    ranks = [0] * 2**lg
    for slot, rank in [*slots.items(), *(registers or {}).items()]:
        ranks[slot % 2**lg] = max(ranks[slot % 2**lg], rank)
    words = struct.unpack(f"<{2**lg // 8}Q", bytes(ranks))
    return written(REGISTERS, lg, *words)


def _read_hll(raw: bytes) -> tuple[int, Slots | list[int]]:
    """The parameter of a sketch, and its slots or its registers."""
    kind, lg, words = read(raw)
    if kind not in (COUPONS, REGISTERS) or not 4 <= lg <= 21:
        raise NoValue("no HLL sketch")
    octets = struct.pack(f"<{len(words)}Q", *words)
    if kind == REGISTERS:
        if len(octets) != 2**lg or max(octets) > 39:
            raise NoValue("no registers")
        return lg, list(octets)
    halves = list(struct.unpack(f"<{len(octets) // 4}I", octets))
    halves = halves[:-1] if halves and halves[-1] == 0 else halves
    slots = [half >> 6 for half in halves]
    most = max(8, 2 ** (lg - 2))
    if len(words) > (most + 1) // 2 or not _ascends(slots) or not all(1 <= half & 63 <= 39 for half in halves):
        raise NoValue("no slots")
    return lg, {half >> 6: half & 63 for half in halves}


def _hll_union(sketches: list[bytes | None], different: bool) -> bytes:
    found = [_read_hll(raw) for raw in sketches if raw is not None]
    sizes = {lg for lg, _ in found}
    if len(sizes) > 1 and not different:
        raise NoValue("sketches of different sizes")
    slots: Slots = {}
    registers: Slots | None = None
    for _, held in found:
        if isinstance(held, dict):
            slots = {slot: max(slots.get(slot, 0), held.get(slot, 0)) for slot in {*slots, *held}}
            continue
        registers = registers or {}
        for place, rank in enumerate(held):
            folded = place % 2 ** min(sizes)
            registers[folded] = max(registers.get(folded, 0), rank)
    return _hll(slots, registers, min(sizes, default=12))


def _hll_estimate(raw: bytes) -> int:
    lg, held = _read_hll(raw)
    if isinstance(held, dict):
        return _whole(2.0**26 * math.log(2.0**26 / (2.0**26 - len(held))))
    m, counts = 2.0**lg, [held.count(rank) for rank in range(40)]
    z = m * _tau(1.0 - counts[39] / m)
    for rank in range(38, 0, -1):
        z = 0.5 * (z + counts[rank])
    if counts[0] == len(held):
        return 0
    z += m * _sigma(counts[0] / m)
    return _whole(0.5 / math.log(2.0) * m * m / z) if z else 2**62


def _sigma(x: float) -> float:
    total, times, power = x, 1.0, x
    while True:
        power *= power
        if total + power * times == total:
            return total
        total, times = total + power * times, 2 * times


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    total, times = 1.0 - x, 1.0
    while True:
        x, times = math.sqrt(x), times / 2
        less = total - (1.0 - x) * (1.0 - x) * times
        if less == total:
            return total / 3.0
        total = less


def _whole(number: float) -> int:
    return math.floor(min(number, 2.0**62) + 0.5)


# -- theta

Below = tuple[set[int], int]  # hashes, and the bound below which they are all


def _theta(hashes: set[int], theta: int) -> bytes:
    kept = sorted(hashed for hashed in hashes if hashed < theta)
    return written(THETA, 0, theta, *kept)


def _least(hashes: set[int], theta: int, lg: int) -> bytes:
    kept = sorted(hashed for hashed in hashes if hashed < theta)
    return _theta(hashes, theta if len(kept) <= 2**lg else kept[2**lg])


def _read_theta(raw: bytes) -> Below:
    kind, parameter, words = read(raw)
    if kind != THETA or parameter or not words or not _ascends([*words[1:], words[0]]):
        raise NoValue("no theta sketch")
    return set(words[1:]), words[0]


def _held(sketches: Iterable[bytes | None]) -> list[Below]:
    return [_read_theta(raw) for raw in sketches if raw is not None]


def _theta_union(sketches: Iterable[bytes | None], lg: int) -> bytes:
    held = _held(sketches)
    return _least({*()}.union(*(hashes for hashes, _ in held)), min((t for _, t in held), default=ALL), lg)


def _theta_intersection(sketches: Iterable[bytes | None]) -> bytes:
    held = _held(sketches)
    if not held or (set(), ALL) in held:
        return _theta(set(), ALL)
    return _theta(set.intersection(*(hashes for hashes, _ in held)), min(t for _, t in held))


def _theta_difference(a: bytes, b: bytes) -> bytes:
    (first, bound), (second, other) = _held([a, b])
    return _theta(first - second, ALL if (first, bound) == (set(), ALL) else min(bound, other))


def _theta_estimate(raw: bytes) -> int:
    hashes, theta = _read_theta(raw)
    if theta == ALL or not hashes:
        return len(hashes)
    return _whole(float(len(hashes)) * 2.0**64 / float(theta))


def _of(function: Callable[..., Any]) -> Callable[[Type, list[Type], list[Any]], Any]:
    return lambda type_, types, values: function(*values)


SKETCHES: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "sketch_hash": _hash,
    "hll_of": _of(lambda hashes, lg: _hll(_slots(hashes), None, lg)),
    "hll_union": _of(lambda a, b, different: _hll_union([a, b], different)),
    "hll_union_of": _of(_hll_union),
    "hll_sketch_estimate": _of(_hll_estimate),
    "theta_of": _of(lambda hashes, lg: _least({min(h % 2**64, ALL - 1) for h in hashes if h is not None}, ALL, lg)),
    "theta_union": _of(lambda a, b, lg: _theta_union([a, b], lg)),
    "theta_union_of": _of(_theta_union),
    "theta_intersection": _of(lambda a, b: _theta_intersection([a, b])),
    "theta_intersection_of": _of(_theta_intersection),
    "theta_difference": _of(_theta_difference),
    "theta_sketch_estimate": _of(_theta_estimate),
}
