"""Hashes and the writing of bytes as text: one call for each distinct value.

`xxhash64` and `hash` are those of Spark, seed 42, on the types that it hashes by value: each argument's hash is the
next one's seed, and NULL leaves the seed as it is.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from everview.codes.atoms import since_midnight
from everview.scalars.functions.kernel import Kernel, Kind, Value, each, each_row

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_ZERO: Final = dt.date(1970, 1, 1)
_64: Final = (1 << 64) - 1
_32: Final = (1 << 32) - 1


def _raw(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _hashing(function: Callable[[bytes], Any]) -> Kernel:
    return lambda out, a: each(out, lambda value: function(_raw(value)), a)


def _sha2(out: Kind, a: Value, bits: Value) -> Any:
    return each(out, _sha2_one, a, bits)


def _sha2_one(value: str | bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if name is None else hashlib.new(name, _raw(value), usedforsecurity=False).hexdigest()


def _hex(value: Any) -> str:
    return f"{value & _64:X}" if isinstance(value, int) else _raw(value).hex().upper()


def _unhex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text) if " " not in text else None
    except ValueError:
        return None


def _unbase64(text: str) -> bytes | None:
    kept = "".join(c for c in text if c.isascii() and (c.isalnum() or c in "+/"))
    try:
        return base64.b64decode(kept + "=" * (-len(kept) % 4))
    except binascii.Error:
        return None


# -- XXH64 and Murmur3, as Spark computes them

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _left(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _64


def _xx_end(h: int) -> int:
    h = ((h ^ (h >> 33)) * _P2) & _64
    h = ((h ^ (h >> 29)) * _P3) & _64
    return h ^ (h >> 32)


def _xx_int(value: int, seed: int) -> int:
    h = (seed + _P5 + 4) & _64
    h ^= ((value & _32) * _P1) & _64
    return _xx_end((_left(h, 23) * _P2 + _P3) & _64)


def _xx_word(h: int, word: int) -> int:
    h ^= (_left((word * _P2) & _64, 31) * _P1) & _64
    return (_left(h, 27) * _P1 + _P4) & _64


def _xx_long(value: int, seed: int) -> int:
    return _xx_end(_xx_word((seed + _P5 + 8) & _64, value & _64))


def _xx_bytes(data: bytes, seed: int) -> int:
    size, offset = len(data), 0
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _64, (seed + _P2) & _64, seed & _64, (seed - _P1) & _64]
        while offset + 32 <= size:
            for i, word in enumerate(struct.unpack_from("<4Q", data, offset)):
                lanes[i] = (_left((lanes[i] + word * _P2) & _64, 31) * _P1) & _64
            offset += 32
        h = sum(_left(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _64
        for lane in lanes:
            h = ((h ^ ((_left((lane * _P2) & _64, 31) * _P1) & _64)) * _P1 + _P4) & _64
    else:
        h = (seed + _P5) & _64
    h = (h + size) & _64
    while offset + 8 <= size:
        h = _xx_word(h, struct.unpack_from("<Q", data, offset)[0])
        offset += 8
    if offset + 4 <= size:
        h ^= (struct.unpack_from("<I", data, offset)[0] * _P1) & _64
        h = (_left(h, 23) * _P2 + _P3) & _64
        offset += 4
    for byte in data[offset:]:
        h ^= (byte * _P5) & _64
        h = (_left(h, 11) * _P1) & _64
    return _xx_end(h)


def _turn(x: int, by: int) -> int:
    return ((x << by) | (x >> (32 - by))) & _32


def _mix(h: int, word: int) -> int:
    k = (_turn((word * 0xCC9E2D51) & _32, 15) * 0x1B873593) & _32
    return (_turn(h ^ k, 13) * 5 + 0xE6546B64) & _32


def _murmur_end(h: int, size: int) -> int:
    h ^= size
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _32
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _32
    return h ^ (h >> 16)


def _murmur_int(value: int, seed: int) -> int:
    return _murmur_end(_mix(seed & _32, value & _32), 4)


def _murmur_long(value: int, seed: int) -> int:
    return _murmur_end(_mix(_mix(seed & _32, value & _32), (value >> 32) & _32), 8)


def _murmur_bytes(data: bytes, seed: int) -> int:
    h = seed & _32
    aligned = len(data) - len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:aligned]):
        h = _mix(h, word)
    for byte in data[aligned:]:
        # The rest byte by byte, each with its sign: Spark's own variant.
        h = _mix(h, (byte - 256 if byte > 127 else byte) & _32)
    return _murmur_end(h, len(data))


def _digest(ints: Any, longs: Any, raw: Any, bits: int) -> Kernel:
    def run(out: Kind, *arguments: Value) -> Any:
        kinds = [a.type for a in arguments]

        def chained(*values: Any) -> int:
            seed = 42
            for value, kind in zip(values, kinds, strict=True):
                seed = seed if value is None else hashed(value, kind, seed)
            return seed - (1 << bits) if seed >> (bits - 1) else seed

        return each_row(out, chained, *arguments)

    def hashed(value: Any, kind: Kind, seed: int) -> int:
        if pa.types.is_list(kind):
            for item in value:
                seed = seed if item is None else hashed(item, kind.value_type, seed)
            return seed
        if pa.types.is_struct(kind):
            for number, part in enumerate(value.values()):
                seed = seed if part is None else hashed(part, kind.field(number).type, seed)
            return seed
        return _simple(value, kind, seed)

    def _simple(value: Any, kind: Kind, seed: int) -> int:
        match value:
            case bool():
                return ints(int(value), seed)
            case int():
                return longs(value, seed) if kind.bit_width == 64 else ints(value, seed)
            case float():
                value = value + 0.0  # -0.0 becomes 0.0
                if kind.bit_width == 64:
                    return longs(0x7FF8 << 48 if value != value else _bits("<q", "<d", value), seed)
                return ints(0x7FC0 << 16 if value != value else _bits("<i", "<f", value), seed)
            case dt.datetime():
                instant = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
                return longs((instant - _EPOCH) // dt.timedelta(microseconds=1), seed)
            case dt.timedelta():
                return longs(value // dt.timedelta(microseconds=1), seed)
            case dt.time():
                return longs(since_midnight(value) * 1000, seed)  # nanoseconds, as Spark has them
            case dt.date():
                return ints((value - _DAY_ZERO).days, seed)
            case str() | bytes():
                return raw(_raw(value), seed)
            case _:
                whole = _unscaled(value, kind.scale)
                if kind.precision <= 18:
                    return longs(whole, seed)
                return raw(whole.to_bytes(_size(whole), "big", signed=True), seed)

    return run


def _unscaled(value: decimal.Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits)) or "0") * 10 ** (scale + exponent)
    return -whole if sign else whole


def _size(whole: int) -> int:
    """The number of bytes that Java's BigInteger takes."""
    return ((whole if whole >= 0 else ~whole).bit_length()) // 8 + 1


def _bits(into: str, source: str, value: float) -> int:
    return struct.unpack(into, struct.pack(source, value))[0]


KERNELS: Final[dict[str, Kernel]] = {
    "md5": _hashing(lambda raw: hashlib.md5(raw, usedforsecurity=False).hexdigest()),
    "sha1": _hashing(lambda raw: hashlib.sha1(raw, usedforsecurity=False).hexdigest()),
    "sha2": _sha2,
    "crc32": _hashing(zlib.crc32),
    "hex": lambda out, a: each(out, _hex, a),
    "unhex": lambda out, a: each(out, _unhex, a),
    "base64": _hashing(lambda raw: base64.b64encode(raw).decode()),
    "unbase64": lambda out, a: each(out, _unbase64, a),
    "xxhash64": _digest(_xx_int, _xx_long, _xx_bytes, 64),
    "hash": _digest(_murmur_int, _murmur_long, _murmur_bytes, 32),
}
