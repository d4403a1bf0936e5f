"""Exact decimals as scaled integers: int64 where 18 digits suffice, Python's integers where Arrow's do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Checked, Kind, Mask, Value, is_scalar

NARROW = 18  # digits that int64 holds


def scaled(value: Value) -> Any:
    """The integers of a DECIMAL column, without its point: int64, or Python's for more than 18 digits; 0 for NULL."""
    if is_scalar(value):
        value = pa.array([value.as_py()], value.type)
    if value.offset:
        value = value.take(pa.array(np.arange(len(value))))
    words = np.frombuffer(value.buffers()[1] or b"", np.int64, 2 * len(value)).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    if value.type.precision <= NARROW:
        integers = low.copy()
    else:
        integers = low.astype(np.uint64).astype(object) + high.astype(object) * (1 << 64)
    if value.null_count:
        integers[value.is_null().to_numpy(zero_copy_only=False)] = 0
    return integers


def unscaled(integers: Any, out: Kind, missing: Mask | None) -> Any:
    """The DECIMAL column of scaled integers; rows with more digits than the type has are failed."""
    limit = 10**out.precision
    wide = integers.dtype == object
    if wide or out.precision <= NARROW:
        failed = (integers >= limit) | (integers <= -limit)
        failed = failed.astype(bool)
        if missing is not None:
            failed &= ~missing
    else:
        failed = np.zeros(len(integers), bool)
    if failed.any() or (wide and missing is not None):
        integers = integers.copy()
        integers[failed if missing is None else failed | missing] = 0
    value = _column(integers, out, missing)
    return Checked(value, failed, f"the result has more digits than {_name(out)}") if failed.any() else value


def _column(integers: Any, out: Kind, missing: Mask | None) -> Value:
    words = np.empty((len(integers), 2), np.int64)
    if integers.dtype == object:
        words[:, 0] = [_signed(int(v) & 0xFFFF_FFFF_FFFF_FFFF) for v in integers]
        words[:, 1] = [int(v) >> 64 for v in integers]
    else:
        words[:, 0] = integers
        words[:, 1] = integers >> 63
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    return pa.Array.from_buffers(out, len(integers), [valid, pa.py_buffer(words.tobytes())])


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _name(out: Kind) -> str:
    return f"DECIMAL({out.precision},{out.scale})"


def half_up(integers: Any, drop: int) -> Any:
    """Scaled integers without their last `drop` digits, halves away from zero."""
    if drop <= 0:
        return integers * 10**-drop if drop else integers
    unit = 10**drop
    if integers.dtype != object and drop > NARROW:
        return np.zeros_like(integers)
    size = np.abs(integers)
    whole = (size + unit // 2) // unit
    return (
        np.where(integers < 0, -whole, whole)
        if integers.dtype != object
        else np.array([-w if v < 0 else w for v, w in zip(integers, whole, strict=True)], object)
    )


def half_even(integers: Any, drop: int) -> Any:
    """Scaled integers without their last `drop` digits, halves to the even one."""
    if drop <= 0:
        return half_up(integers, drop)
    unit = 10**drop
    if integers.dtype != object and drop > NARROW:
        return np.zeros_like(integers)
    size = np.abs(integers)
    whole, rest = size // unit, size % unit
    up = (2 * rest > unit) | ((2 * rest == unit) & (whole % 2 == 1))
    whole = whole + up.astype(integers.dtype)
    return whole * np.where(integers < 0, -1, 1).astype(integers.dtype)


def objects(integers: Any) -> Any:
    """Integers as Python's, which never overflow."""
    return integers if integers.dtype == object else integers.astype(object)


def rescaled(value: Value, out: Kind) -> Any:
    """A DECIMAL column as another DECIMAL, halves away from zero."""
    type_ = value.type
    whole = type_.precision - type_.scale
    if out.scale >= type_.scale and out.precision - out.scale >= whole:
        return value.cast(out)
    integers = scaled(value)
    wide = out.scale > type_.scale and type_.precision + out.scale - type_.scale > NARROW
    missing = value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None
    return unscaled(half_up(objects(integers) if wide else integers, type_.scale - out.scale), out, missing)


def to_double(value: Value) -> Value:
    """The nearest double of each DECIMAL."""
    type_ = value.type
    if type_.precision <= 15 and type_.scale <= 22:
        missing = value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None
        return pa.array(scaled(value).astype(np.float64) / 10.0**type_.scale, mask=missing)
    return value.cast(pa.string()).cast(pa.float64())


def double_as_decimal(value: Value, scale: int) -> tuple[Any, Mask]:
    """Doubles as integers scaled by ten to `scale`, halves away from zero, and a mask of those too large.

    A double stands for the shortest decimal that reads back as that double. Its text decides only near a half.
    """
    numbers = value.fill_null(0.0).to_numpy(zero_copy_only=False) if value.null_count else value.to_numpy()
    numbers = numbers.astype(np.float64)
    with np.errstate(all="ignore"):
        large = numbers * 10.0**scale
        size = np.abs(large)
        rest = size - np.floor(size)
        # Scaling errs by less than that, and so does the shortest text from the double itself.
        clear = (size < 2.0**51) & (np.abs(rest - 0.5) > size * 1e-15 + 1e-12) & (abs(scale) <= 22)
    integers = np.where(clear, np.copysign(np.floor(size + 0.5), large), 0.0).astype(np.int64)
    if clear.all():
        return integers, np.zeros(len(integers), bool)
    return _by_text(numbers, scale, integers, clear)


def _by_text(numbers: Any, scale: int, integers: Any, clear: Mask) -> tuple[Any, Mask]:
    finite = np.isfinite(numbers)
    unclear = np.flatnonzero(~clear & finite)
    exact = [_scaled_text(repr(float(numbers[row])), scale) for row in unclear]
    if any(abs(n) >= 1 << 62 for n in exact):
        integers = integers.astype(object)
    for row, number in zip(unclear, exact, strict=True):
        integers[row] = number
    return integers, ~finite


def _scaled_text(text: str, scale: int) -> int:
    import decimal

    number = decimal.Decimal(text).scaleb(scale, decimal.Context(prec=800))
    return int(number.to_integral_value(decimal.ROUND_HALF_UP))
