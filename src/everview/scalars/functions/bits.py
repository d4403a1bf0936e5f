"""Bits and digits of whole numbers, factorials, and the buckets of a histogram."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import (
    Checked,
    Failed,
    Kernel,
    Kind,
    Value,
    each,
    from_numbers,
    length,
    nulls,
    numbers,
    whole,
)

_FACTORIALS: Final = np.array([math.factorial(n) for n in range(21)], np.int64)
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _bit_count(out: Kind, a: Value) -> Any:
    """The number of ones; a negative number counts as 64 bits, whatever its width."""
    if pa.types.is_boolean(a.type):
        return a.cast(out)
    return from_numbers(np.bitwise_count(numbers(a).astype(np.int64).view(np.uint64)).astype(np.int32), out, nulls(a))


def _bit_get(out: Kind, a: Value, place: Value) -> Any:
    rows, bits = length((a, place)), a.type.bit_width
    x, places = numbers(whole(a, rows)).astype(np.int64), numbers(whole(place, rows)).astype(np.int64)
    missing, beyond = nulls(a, place), (places < 0) | (places >= bits)
    failed = beyond if missing is None else beyond & ~missing
    value = from_numbers((x >> np.where(beyond, 0, places)) & 1, out, missing)
    return Checked(value, failed, f"the bits are numbered from 0 to {bits - 1}") if failed.any() else value


def _factorial(out: Kind, a: Value) -> Any:
    x = numbers(a).astype(np.int64)
    none, missing = (x < 0) | (x > 20), nulls(a)
    return from_numbers(_FACTORIALS[np.where(none, 0, x)], out, none if missing is None else none | missing)


def _bin(out: Kind, a: Value) -> Any:
    return each(out, lambda x: f"{x & (1 << 64) - 1:b}", a)


def _conv(out: Kind, text: Value, old: Value, new: Value) -> Any:
    return each(out, _converted, text, old, new)


def _converted(text: str, old: int, new: int) -> str | None:
    """The digits of a number in another base; as many as are digits, and the number one of 64 bits without a sign."""
    text = text.strip(" ")
    if not text or not 2 <= old <= 36 or not 2 <= abs(new) <= 36:
        return None
    negative, number = text.startswith("-"), 0
    for letter in text[int(negative) :]:
        digit = _DIGITS.find(letter.upper() if letter.isascii() else letter)
        if not 0 <= digit < old:
            break
        number = number * old + digit
        if number >> 64:
            raise Failed("the number has more than 64 bits")
    if negative:
        number = (1 << 64) - 1 if new > 0 and number >> 63 else -number & (1 << 64) - 1
    below = new < 0 and number >> 63
    return ("-" if below else "") + _in_base((1 << 64) - number if below else number, abs(new))


def _in_base(number: int, base: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _width_bucket(out: Kind, value: Value, low: Value, high: Value, count: Value) -> Any:
    """Which of so many buckets of one width a value is in: 0 before the first, and one more than there are behind."""
    given = (value, low, high, count)
    rows = length(given)
    x, a, b, n = (numbers(whole(g, rows)) for g in given)
    unknown = np.isnan(x) | ~np.isfinite(a) | ~np.isfinite(b) | (a == b) | (n <= 0) | (n == np.iinfo(np.int64).max)
    with np.errstate(all="ignore"):
        inside = n * np.abs(x - a) / np.abs(b - a)
    upward = a < b
    before, behind = np.where(upward, x < a, x > a), np.where(upward, x >= b, x <= b)
    place = np.where(before | behind | unknown, 0.0, inside).astype(np.int64) + 1
    result = np.where(before, 0, np.where(behind, np.where(unknown, 0, n) + 1, place))
    missing = nulls(*given)
    return from_numbers(result, out, unknown if missing is None else unknown | missing)


BITMAP: Final = 4096  # bytes of a bitmap


def _bitmap(places: list[int | None]) -> bytes:
    """The bits at these places; the first is the lowest of the first byte."""
    bits = 0
    for place in places:
        if place is not None and not 0 <= place < 8 * BITMAP:
            raise Failed(f"{place} is no place in a bitmap of {8 * BITMAP:,} bits")
        bits |= 0 if place is None else 1 << place
    return bits.to_bytes(BITMAP, "little")


def _bitmaps(start: int, met: Callable[[int, int], int]) -> Kernel:
    """The kernel of several bitmaps put together, beginning with one; short ones end in zeros."""

    def one(bitmaps: list[bytes | None]) -> bytes:
        bits = start
        for bitmap in bitmaps:
            bits = bits if bitmap is None else met(bits, int.from_bytes(bitmap[:BITMAP], "little"))
        return bits.to_bytes(BITMAP, "little")

    return lambda out, a: each(out, one, a)


KERNELS: Final[dict[str, Kernel]] = {
    "bit_count": _bit_count,
    "bit_get": _bit_get,
    "factorial": _factorial,
    "bin": _bin,
    "conv": _conv,
    "width_bucket": _width_bucket,
    "bitmap_of": lambda out, a: each(out, _bitmap, a),
    "bitmap_or_of": _bitmaps(0, int.__or__),
    "bitmap_and_of": _bitmaps((1 << 8 * BITMAP) - 1, int.__and__),
    "bitmap_count": lambda out, a: each(out, lambda raw: int.from_bytes(raw, "big").bit_count(), a),
}
