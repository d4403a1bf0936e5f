"""`xxhash64` and `hash` as Spark defines them, by the published algorithms, one value at a time."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

from everview.oracle.scalar_casts import EPOCH
from everview.types import BIGINT, FLOAT, Array, Decimal, Struct, Type

PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)


def _rotated(x: int, by: int, bits: int) -> int:
    x %= 1 << bits
    return (x << by | x >> bits - by) % (1 << bits)


def _finished(h: int) -> int:
    for by, prime in ((33, PRIMES[1]), (29, PRIMES[2])):
        h = (h ^ h >> by) * prime % 2**64
    return h ^ h >> 32


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 of bytes."""
    p1, p2, p3, p4, p5 = PRIMES

    def rounded(lane: int, word: int) -> int:
        return _rotated(lane + word * p2, 31, 64) * p1 % 2**64

    stripes = len(data) // 32
    if stripes:
        lanes = [seed + p1 + p2, seed + p2, seed, seed - p1]
        for stripe in range(stripes):
            words = struct.unpack("<4Q", data[32 * stripe : 32 * stripe + 32])
            lanes = [rounded(lane, word) for lane, word in zip(lanes, words, strict=True)]
        h = sum(_rotated(lane, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            h = ((h ^ rounded(0, lane)) * p1 + p4) % 2**64
    else:
        h = seed + p5
    h = (h + len(data)) % 2**64
    rest = data[32 * stripes :]
    while len(rest) >= 8:
        h = (_rotated(h ^ rounded(0, int.from_bytes(rest[:8], "little")), 27, 64) * p1 + p4) % 2**64
        rest = rest[8:]
    if len(rest) >= 4:
        h = (_rotated(h ^ int.from_bytes(rest[:4], "little") * p1 % 2**64, 23, 64) * p2 + p3) % 2**64
        rest = rest[4:]
    for byte in rest:
        h = _rotated(h ^ byte * p5 % 2**64, 11, 64) * p1 % 2**64
    return _finished(h)


def murmur3(data: bytes, seed: int) -> int:
    """Murmur3 of bytes, in Spark's variant: each byte of the last, incomplete word is a word of its own, signed."""
    h = seed % 2**32
    for word in _words(data):
        k = _rotated(word * 0xCC9E2D51, 15, 32) * 0x1B873593
        h = (_rotated(h ^ k % 2**32, 13, 32) * 5 + 0xE6546B64) % 2**32
    h ^= len(data)
    for by, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> by) * factor % 2**32
    return h ^ h >> 16


def _words(data: bytes) -> Iterator[int]:
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        yield int.from_bytes(data[start : start + 4], "little")
    for byte in data[whole:]:
        yield (byte if byte < 128 else byte - 256) % 2**32


def _bytes(value: Any, type_: Type) -> bytes:
    """The bytes of a value that are hashed: four or eight of a number, least first; text and bytes as they are."""
    match value:
        case bool():
            return struct.pack("<i", value)
        case int():
            return struct.pack("<q" if type_ == BIGINT else "<i", value)
        case float():
            value = math.nan if value != value else value + 0.0
            return struct.pack("<f" if type_ == FLOAT else "<d", value)
        case dt.timedelta():
            return struct.pack("<q", value // dt.timedelta(microseconds=1))
        case dt.time():
            span = dt.datetime.combine(dt.date.min, value) - dt.datetime.min
            return struct.pack("<q", span // dt.timedelta(microseconds=1) * 1000)
        case dt.datetime() if value.tzinfo is None:
            return struct.pack("<q", (value.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1))
        case dt.datetime():
            return struct.pack("<q", (value - EPOCH) // dt.timedelta(microseconds=1))
        case dt.date():
            return struct.pack("<i", (value - dt.date(1970, 1, 1)).days)
        case str():
            return value.encode()
        case bytes():
            return value
        case _:
            assert isinstance(value, decimal.Decimal)
            assert isinstance(type_, Decimal)
            return _decimal(value, type_)


def _decimal(value: decimal.Decimal, type_: Decimal) -> bytes:
    with decimal.localcontext(decimal.Context(prec=60)):
        whole = int(value * 10**type_.scale)
    if type_.precision <= 18:
        return struct.pack("<q", whole)
    size = 1
    while not -(1 << (8 * size - 1)) <= whole < 1 << (8 * size - 1):
        size += 1
    return whole.to_bytes(size, "big", signed=True)


def chained(function: Callable[[bytes, int], int], bits: int) -> Callable[[Type, list[Type], list[Any]], int]:
    """The hash of several values: each hash is the seed of the next, NULL leaves the seed."""

    def after(seed: int, value: Any, type_: Type) -> int:
        if value is None:
            return seed
        if isinstance(type_, Array):
            for item in value:
                seed = after(seed, item, type_.element)
            return seed
        if isinstance(type_, Struct):
            for f in type_.fields:
                seed = after(seed, value[f.name], f.type)
            return seed
        return function(_bytes(value, type_), seed)

    def run(out: Type, types: list[Type], values: list[Any]) -> int:
        seed = 42
        for value, type_ in zip(values, types, strict=True):
            seed = after(seed, value, type_)
        return seed - (1 << bits) if seed >= 1 << (bits - 1) else seed

    return run
