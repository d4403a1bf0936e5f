"""Arithmetic, + - * / DIV % and their kind: the result type is fixed, and a result beyond it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.decimals import (
    NARROW,
    half_up,
    objects,
    scaled,
    unscaled,
)
from everview.scalars.functions.kernel import (
    Checked,
    Kernel,
    Kind,
    Value,
    from_numbers,
    length,
    nulls,
    numbers,
    whole,
)

ZERO: Final = "division by zero"
OVERFLOW: Final = "the result is outside the range of {}"
_WIDEST: Final = 76  # digits of Arrow's widest decimal


def sql_name(type_: Kind) -> str:
    """The SQL name of an Arrow type, for people."""
    from everview.types import type_of_arrow

    return "INTERVAL" if pa.types.is_duration(type_) else type_of_arrow(type_).sql


def overflow(type_: Kind) -> str:
    return OVERFLOW.format(sql_name(type_))


def _exact(out: Kind, function: Callable[[Any, Any], Any], a: Value, b: Value) -> Checked:
    """Integers computed again by Python's, to find the rows that overflow; NULL there."""
    rows = length((a, b))
    missing = nulls(a, b)
    wide = function(numbers(whole(a, rows)).astype(object), numbers(whole(b, rows)).astype(object))
    limit = 1 << (out.bit_width - 1)
    failed = ((wide < -limit) | (wide >= limit)).astype(bool)
    if missing is not None:
        failed &= ~missing
    wide[failed if missing is None else failed | missing] = 0
    return Checked(from_numbers(wide.astype(np.int64), out, missing), failed, overflow(out))


def _summed(checked: Kernel, function: Callable[[Any, Any], Any]) -> Kernel:
    def run(out: Kind, a: Value, b: Value) -> Any:
        if pa.types.is_decimal(out):
            return _decimal_sum(out, checked, function, a, b)
        try:
            return checked(a, b)
        except pa.ArrowInvalid:
            return _exact(out, function, a, b)

    return run


def _decimal_sum(out: Kind, checked: Kernel, function: Callable[[Any, Any], Any], a: Value, b: Value) -> Any:
    scale = max(a.type.scale, b.type.scale)
    digits = max(a.type.precision - a.type.scale, b.type.precision - b.type.scale) + scale + 1
    if digits <= 38:
        total = checked(a, b)
        return total if total.type == out else total.cast(out)
    rows = length((a, b))
    return _wide(out, scale, rows, a, b, lambda x, y: function(_shifted(x, a, scale), _shifted(y, b, scale)))


def _shifted(integers: Any, decimals: Value, scale: int) -> Any:
    return integers * 10 ** (scale - decimals.type.scale)


def _wide(out: Kind, scale: int, rows: int, a: Value, b: Value, function: Callable[[Any, Any], Any]) -> Any:
    """Decimals computed by Python's integers; the function gives integers of that scale."""
    integers = function(objects(scaled(whole(a, rows))), objects(scaled(whole(b, rows))))
    return unscaled(half_up(integers, scale - out.scale), out, nulls(a, b))


def _multiply(out: Kind, a: Value, b: Value) -> Any:
    if not pa.types.is_decimal(out):
        return _summed(pc.multiply_checked, lambda x, y: x * y)(out, a, b)
    digits = a.type.precision + b.type.precision + 1
    if digits <= 38:
        return pc.multiply(a, b)
    if digits <= _WIDEST:
        product = pc.multiply(_widened(a), _widened(b))
        narrow = _narrowed(product, out)
        if narrow is not None:
            return narrow
    return _wide(out, a.type.scale + b.type.scale, length((a, b)), a, b, lambda x, y: x * y)


def _widened(value: Value) -> Value:
    return value.cast(pa.decimal256(value.type.precision, value.type.scale))


def _narrowed(wide: Value, out: Kind) -> Value | None:
    """Decimals rounded to the result's scale, halves away from zero; None if some row has too many digits."""
    if wide.type.scale > out.scale:
        wide = pc.round(wide, out.scale, round_mode="half_towards_infinity")
    try:
        return wide.cast(out)
    except pa.ArrowInvalid:
        return None


def _zeros(b: Value, rows: int, *others: Value) -> Any:
    """The rows in which the divisor is zero and no argument is NULL."""
    zero = numbers(whole(b, rows), 1) == 0 if not pa.types.is_decimal(b.type) else scaled(whole(b, rows)) == 0
    missing = nulls(b, *others)
    zero = np.asarray(zero, bool)
    return zero if missing is None else zero & ~missing


def _safe(b: Value, rows: int, zeros: Any) -> Value:
    """The divisor, NULL where it is zero."""
    return pc.if_else(pa.array(zeros), pa.scalar(None, b.type), whole(b, rows))


def _dividing(function: Callable[[Kind, Value, Value], Any]) -> Kernel:
    """The kernel of a division: fails where the divisor is zero, else calls the function."""

    def run(out: Kind, a: Value, b: Value) -> Any:
        rows = length((a, b))
        zeros = _zeros(b, rows, a)
        if not zeros.any():
            return function(out, a, b)
        result = function(out, a, _safe(b, rows, zeros))
        value = result.value if isinstance(result, Checked) else result
        return Checked(value, zeros, ZERO)

    return run


def _divide(out: Kind, a: Value, b: Value) -> Any:
    if not pa.types.is_decimal(out):
        return pc.divide(a, b)
    # One digit more than asked for, cut off; then rounding it sees what rounding the quotient would.
    more = out.scale + 1
    left = max(a.type.scale, more - b.type.precision + b.type.scale - 1)
    lifted = a.type.precision + left - a.type.scale
    digits = lifted - left + b.type.scale + max(4, left + b.type.precision - b.type.scale + 1)
    # Arrow puts NULL's bytes through the division, too: these must not be zero.
    if digits <= _WIDEST and not (not isinstance(b, pa.Scalar) and b.null_count):
        if digits <= 38:
            quotient = pc.divide(a.cast(pa.decimal128(lifted, left)), b)
        else:
            quotient = pc.divide(a.cast(pa.decimal256(lifted, left)), _widened(b))
        narrow = _narrowed(quotient, out)
        if narrow is not None:
            return narrow
    return _wide_quotient(out, a, b)


def _wide_quotient(out: Kind, a: Value, b: Value) -> Any:
    shift = out.scale + 1 + b.type.scale - a.type.scale

    def quotient(x: Any, y: Any) -> Any:
        y = np.where(y == 0, 1, y)
        top, bottom = (np.abs(x) * 10**shift, np.abs(y)) if shift >= 0 else (np.abs(x), np.abs(y) * 10**-shift)
        result = top // bottom
        return np.where((x < 0) != (y < 0), -result, result)

    return _wide(out, out.scale + 1, length((a, b)), a, b, quotient)


def _integral_divide(out: Kind, a: Value, b: Value) -> Any:
    rows = length((a, b))
    if pa.types.is_decimal(a.type):
        scale = max(a.type.scale, b.type.scale)
        x = _shifted(objects(scaled(whole(a, rows))), a, scale)
        y = _shifted(objects(scaled(whole(b, rows))), b, scale)
        y = np.where(y == 0, 1, y)
        quotient = np.abs(x) // np.abs(y)
        quotient = np.where((x < 0) != (y < 0), -quotient, quotient)
        missing = nulls(a, b)
        failed = ((quotient >= 1 << 63) | (quotient < -(1 << 63))).astype(bool)
        quotient[failed] = 0
        failed = failed if missing is None else failed & ~missing
        value = from_numbers(quotient.astype(np.int64), out, missing)
        return Checked(value, failed, overflow(out)) if failed.any() else value
    try:
        return pc.divide_checked(a, b)  # cuts off towards zero
    except pa.ArrowInvalid:
        return _exact(out, lambda x, y: np.where((x < 0) != (y < 0), -1, 1) * (np.abs(x) // np.abs(_nonzero(y))), a, b)


def _nonzero(y: Any) -> Any:
    return np.where(y == 0, 1, y)


def _modulo(out: Kind, a: Value, b: Value) -> Any:
    """The remainder with the sign of the dividend."""
    rows = length((a, b))
    if pa.types.is_decimal(out):
        return _decimal_remainder(out, a, b, rows, positive=False)
    with np.errstate(all="ignore"):
        remainder = np.fmod(numbers(whole(a, rows)), numbers(whole(b, rows), 1))
    return from_numbers(remainder, out, nulls(a, b))


def _pmod(out: Kind, a: Value, b: Value) -> Any:
    """The remainder; a negative one is replaced by the remainder of its sum with the divisor."""
    rows = length((a, b))
    if pa.types.is_decimal(out):
        return _decimal_remainder(out, a, b, rows, positive=True)
    x, y = numbers(whole(a, rows)), numbers(whole(b, rows), 1)
    with np.errstate(all="ignore"):
        remainder = np.fmod(x, y)
        again = np.fmod(remainder + y, y)
        if x.dtype.kind == "i":
            # Of integers it is the remainder itself when both are negative; the sum might leave the range.
            again = np.where(y < 0, remainder, again)
        remainder = np.where(remainder < 0, again, remainder)
    return from_numbers(remainder, out, nulls(a, b))


def _decimal_remainder(out: Kind, a: Value, b: Value, rows: int, *, positive: bool) -> Any:
    scale = max(a.type.scale, b.type.scale)
    x, y = scaled(whole(a, rows)), scaled(whole(b, rows))
    digits = max(a.type.precision - a.type.scale, b.type.precision - b.type.scale) + scale
    if digits > NARROW:
        x, y = objects(x), objects(y)
    x, y = _shifted(x, a, scale), _nonzero(_shifted(y, b, scale))
    remainder = np.abs(x) % np.abs(y)
    remainder = np.where(x < 0, -remainder, remainder)
    if positive:
        again = np.abs(remainder + y) % np.abs(y)
        again = np.where(remainder + y < 0, -again, again)
        remainder = np.where(remainder < 0, again, remainder)
    remainder = np.asarray(remainder, object) if digits > NARROW else remainder
    return unscaled(half_up(remainder, scale - out.scale), out, nulls(a, b))


def _negate(out: Kind, a: Value) -> Any:
    try:
        return pc.negate_checked(a)
    except pa.ArrowInvalid:
        return _exact(out, lambda x, _: -x, a, a)


def _abs(out: Kind, a: Value) -> Any:
    if pa.types.is_duration(a.type):
        return pc.abs_checked(a.cast(pa.int64())).cast(a.type)
    try:
        return pc.abs_checked(a)
    except pa.ArrowInvalid:
        return _exact(out, lambda x, _: np.abs(x), a, a)


def _positive(out: Kind, a: Value) -> Any:
    return a


def _bits(function: Kernel) -> Kernel:
    return lambda out, *arguments: function(*arguments)


def _shift(function: Callable[[Any, Any], Any]) -> Kernel:
    """The kernel of a shift by the low five or six bits of the distance, as in Java."""

    def run(out: Kind, a: Value, by: Value) -> Any:
        rows = length((a, by))
        bits = out.bit_width
        shifted = function(numbers(whole(a, rows)), (numbers(whole(by, rows)) & (bits - 1)).astype(f"int{bits}"))
        return from_numbers(shifted, out, nulls(a, by))

    return run


def _unsigned_shift(x: Any, by: Any) -> Any:
    kind = f"uint{8 * x.dtype.itemsize}"
    return (x.view(kind) >> by.astype(kind)).view(x.dtype)


KERNELS: Final[dict[str, Kernel]] = {
    "add": _summed(pc.add_checked, lambda x, y: x + y),
    "subtract": _summed(pc.subtract_checked, lambda x, y: x - y),
    "multiply": _multiply,
    "divide": _dividing(_divide),
    "integral_divide": _dividing(_integral_divide),
    "modulo": _dividing(_modulo),
    "pmod": _dividing(_pmod),
    "negate": _negate,
    "positive": _positive,
    "abs": _abs,
    "bit_and": _bits(pc.bit_wise_and),
    "bit_or": _bits(pc.bit_wise_or),
    "bit_xor": _bits(pc.bit_wise_xor),
    "bit_not": _bits(pc.bit_wise_not),
    "shiftleft": _shift(np.left_shift),
    "shiftright": _shift(np.right_shift),
    "shiftrightunsigned": _shift(_unsigned_shift),
}
FAILING: Final = frozenset(
    {"add", "subtract", "multiply", "divide", "integral_divide", "modulo", "pmod", "negate", "abs"}
)
