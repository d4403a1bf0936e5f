"""Exact decimals as scaled integers: int64 where 18 digits suffice, Python's integers where Arrow's do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
        found = low.copy()
    else:
        found = low.astype(np.uint64).astype(object) + high.astype(object) * (1 << 64)
    if value.null_count:
        found[value.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def unscaled(found: Any, out: Kind, missing: Mask | None) -> Any:
    """The DECIMAL column of scaled integers; rows with more digits than the type has are failed."""
    limit = 10**out.precision
    wide = found.dtype == object
    if wide or out.precision <= NARROW:
        failed = (found >= limit) | (found <= -limit)
        failed = failed.astype(bool)
        if missing is not None:
            failed &= ~missing
    else:
        failed = np.zeros(len(found), bool)
    if failed.any() or (wide and missing is not None):
        found = found.copy()
        found[failed if missing is None else failed | missing] = 0
    value = _column(found, out, missing)
    return Checked(value, failed, f"the result has more digits than {_name(out)}") if failed.any() else value


def _column(found: Any, out: Kind, missing: Mask | None) -> Value:
    words = np.empty((len(found), 2), np.int64)
    if found.dtype == object:
        words[:, 0] = [_signed(int(v) & 0xFFFF_FFFF_FFFF_FFFF) for v in found]
        words[:, 1] = [int(v) >> 64 for v in found]
    else:
        words[:, 0] = found
        words[:, 1] = found >> 63
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    return pa.Array.from_buffers(out, len(found), [valid, pa.py_buffer(words.tobytes())])


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _name(out: Kind) -> str:
    return f"DECIMAL({out.precision},{out.scale})"


def half_up(found: Any, drop: int) -> Any:
    """Scaled integers without their last `drop` digits, halves away from zero."""
    if drop <= 0:
        return found * 10**-drop if drop else found
    unit = 10**drop
    if found.dtype != object and drop > NARROW:
        return np.zeros_like(found)
    size = np.abs(found)
    whole = (size + unit // 2) // unit
    return (
        np.where(found < 0, -whole, whole)
        if found.dtype != object
        else np.array([-w if v < 0 else w for v, w in zip(found, whole, strict=True)], object)
    )


def half_even(found: Any, drop: int) -> Any:
    """Scaled integers without their last `drop` digits, halves to the even one."""
    if drop <= 0:
        return half_up(found, drop)
    unit = 10**drop
    if found.dtype != object and drop > NARROW:
        return np.zeros_like(found)
    size = np.abs(found)
    whole, rest = size // unit, size % unit
    up = (2 * rest > unit) | ((2 * rest == unit) & (whole % 2 == 1))
    whole = whole + up.astype(found.dtype)
    return whole * np.where(found < 0, -1, 1).astype(found.dtype)


def objects(found: Any) -> Any:
    """As Python's integers, which never overflow."""
    return found if found.dtype == object else found.astype(object)


def rescaled(value: Value, out: Kind) -> Any:
    """A DECIMAL column as another DECIMAL, halves away from zero."""
    of = value.type
    whole = of.precision - of.scale
    if out.scale >= of.scale and out.precision - out.scale >= whole:
        return value.cast(out)
    integers = scaled(value)
    wide = out.scale > of.scale and of.precision + out.scale - of.scale > NARROW
    missing = value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None
    return unscaled(half_up(objects(integers) if wide else integers, of.scale - out.scale), out, missing)


def to_double(value: Value) -> Value:
    """The nearest double of each DECIMAL."""
    of = value.type
    if of.precision <= 15 and of.scale <= 22:
        missing = value.is_null().to_numpy(zero_copy_only=False) if value.null_count else None
        return pa.array(scaled(value).astype(np.float64) / 10.0**of.scale, mask=missing)
    return value.cast(pa.string()).cast(pa.float64())


def double_as_decimal(value: Value, scale: int) -> tuple[Any, Mask]:
    """Doubles as integers scaled by ten to `scale`, halves away from zero, and which are too large for that.

    A double stands for the shortest decimal that reads back as it. Where it is clear of a half, floats tell.
    """
    numbers = value.fill_null(0.0).to_numpy(zero_copy_only=False) if value.null_count else value.to_numpy()
    numbers = numbers.astype(np.float64)
    with np.errstate(all="ignore"):
        large = numbers * 10.0**scale
        size = np.abs(large)
        rest = size - np.floor(size)
        # Scaling errs by less than that, and so does the shortest text from the double itself.
        clear = (size < 2.0**51) & (np.abs(rest - 0.5) > size * 1e-15 + 1e-12) & (abs(scale) <= 22)
    found = np.where(clear, np.copysign(np.floor(size + 0.5), large), 0.0).astype(np.int64)
    if clear.all():
        return found, np.zeros(len(found), bool)
    return _by_text(numbers, scale, found, clear)


def _by_text(numbers: Any, scale: int, found: Any, clear: Mask) -> tuple[Any, Mask]:
    finite = np.isfinite(numbers)
    unclear = np.flatnonzero(~clear & finite)
    exact = [_scaled_text(repr(float(numbers[at])), scale) for at in unclear]
    if any(abs(n) >= 1 << 62 for n in exact):
        found = found.astype(object)
    for at, number in zip(unclear, exact, strict=True):
        found[at] = number
    return found, ~finite


def _scaled_text(text: str, scale: int) -> int:
    import decimal

    number = decimal.Decimal(text).scaleb(scale, decimal.Context(prec=800))
    return int(number.to_integral_value(decimal.ROUND_HALF_UP))


def is_zero(value: Value) -> Mask:
    """Where a number is zero; not where it is NULL."""
    found = pc.equal(
        value, pa.scalar(0, pa.int32()).cast(value.type) if not pa.types.is_decimal(value.type) else _zero(value)
    )
    return found.as_py() or False if is_scalar(found) else found.fill_null(False).to_numpy(zero_copy_only=False)


def _zero(value: Value) -> Value:
    import decimal

    return pa.scalar(decimal.Decimal(0), value.type)
