"""Functions of numbers: roots, powers, logarithms, rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.arithmetic import overflow
from everview.scalars.functions.decimals import double_as_decimal, half_even, half_up, objects, scaled, unscaled
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


def _floats(function: Callable[..., Any]) -> Kernel:
    """The kernel of a NumPy function of doubles."""

    def run(out: Kind, *arguments: Value) -> Any:
        rows = length(arguments)
        with np.errstate(all="ignore"):
            result = function(*(numbers(whole(a, rows), 1.0) for a in arguments))
        return from_numbers(result, out, nulls(*arguments))

    return run


def _logarithm(function: Callable[[Any], Any], above: float = 0.0) -> Kernel:
    """The kernel of a logarithm; NULL where there is none."""

    def run(out: Kind, a: Value) -> Any:
        x = numbers(a, 1.0)
        with np.errstate(all="ignore"):
            result = function(x)
        none = x <= above
        missing = nulls(a)
        return from_numbers(result, out, none if missing is None else none | missing)

    return run


def _log(out: Kind, base: Value, a: Value) -> Any:
    rows = length((base, a))
    b, x = numbers(whole(base, rows), 2.0), numbers(whole(a, rows), 1.0)
    with np.errstate(all="ignore"):
        result = np.log(x) / np.log(b)
    none = (x <= 0) | (b <= 0)
    missing = nulls(base, a)
    return from_numbers(result, out, none if missing is None else none | missing)


def _power(x: Any, y: Any) -> Any:
    """The power as in Java: 1 to the NaN is NaN, and so is 1 or -1 to infinity."""
    result = np.power(x, y)
    odd = np.isnan(y) | (np.isinf(y) & (np.abs(x) == 1))
    return np.where(odd, np.nan, result)


def _towards(function: Callable[[Any], Any], mode: str) -> Kernel:
    """The kernel of ceiling or floor: a DOUBLE gives a BIGINT, and a DECIMAL one without digits after the point."""

    def run(out: Kind, a: Value, scale: Value | None = None) -> Any:
        if pa.types.is_decimal(a.type):
            return _decimal_towards(out, a, mode, out.scale if scale is None else scale.as_py())
        if pa.types.is_integer(a.type):
            return a
        whole_numbers = function(numbers(a, 0.0))
        # As Spark has it: NaN is 0, and the double next to the largest BIGINT is that.
        inside = (whole_numbers >= -(2.0**63)) & (whole_numbers < 2.0**63)
        whole_part = np.where(inside, whole_numbers, 0.0).astype(np.int64)
        whole_part[whole_numbers == 2.0**63] = np.iinfo(np.int64).max
        value = from_numbers(whole_part, out, nulls(a))
        failed = ~inside & (whole_numbers == whole_numbers) & (whole_numbers != 2.0**63)
        return Checked(value, failed, overflow(out)) if failed.any() else value

    return run


def _decimal_towards(out: Kind, a: Value, mode: str, scale: int) -> Any:
    drop = a.type.scale - scale
    if drop <= 0:
        return a.cast(out)
    integers = objects(scaled(a))
    unit = 10**drop
    whole_numbers = integers // unit if mode == "down" else -(-integers // unit)
    if scale < 0:
        whole_numbers = whole_numbers * 10**-scale
    return unscaled(whole_numbers, out, nulls(a))


def _rounding(integral: Callable[[Any, int], Any], mode: str) -> Kernel:
    def run(out: Kind, a: Value, scale: Value) -> Any:
        digits = scale.as_py()
        if pa.types.is_decimal(a.type):
            return _round_decimal(out, a, digits, integral)
        if pa.types.is_integer(a.type):
            return a if digits >= 0 else _round_integer(out, a, digits, integral)
        return _round_float(out, a, digits, mode)

    return run


def _round_decimal(out: Kind, a: Value, digits: int, integral: Callable[[Any, int], Any]) -> Any:
    drop = a.type.scale - digits
    if drop <= 0:
        return a.cast(out)
    rounded = integral(objects(scaled(a)) if drop > 17 or a.type.precision > 17 else scaled(a), drop)
    if digits < 0:
        rounded = objects(rounded) * 10**-digits
    return unscaled(rounded, out, nulls(a))


def _round_integer(out: Kind, a: Value, digits: int, integral: Callable[[Any, int], Any]) -> Any:
    rounded = integral(numbers(a).astype(object), -digits) * 10**-digits
    limit = 1 << (out.bit_width - 1)
    failed = ((rounded < -limit) | (rounded >= limit)).astype(bool)
    rounded[failed] = 0
    value = from_numbers(rounded.astype(np.int64), out, nulls(a))
    return Checked(value, failed, overflow(out)) if failed.any() else value


def _round_float(out: Kind, a: Value, digits: int, mode: str) -> Any:
    if mode == "half_even" or pa.types.is_float32(out) or abs(digits) > 15:
        return each(out, lambda x: _round_one(x, digits, mode, pa.types.is_float32(out)), a)
    rounded, beyond = double_as_decimal(a, digits)
    plain = numbers(a, 0.0)
    # A float divided by a power of ten is the nearest to the quotient while both are exact.
    large = np.flatnonzero(np.abs(rounded) >= 1 << 53)
    exact = [_quotient(int(rounded[row]), digits) for row in large]
    rounded = (
        rounded.astype(np.float64)
        if not len(large)
        else np.where(np.abs(rounded) < 1 << 53, rounded, 0).astype(np.float64)
    )
    rounded = rounded / 10.0**digits if digits >= 0 else rounded * 10.0**-digits
    rounded[large] = exact
    rounded = np.where(beyond, plain, rounded)
    return from_numbers(rounded, out, nulls(a))


def _quotient(number: int, digits: int) -> float:
    import decimal

    return float(decimal.Decimal(number).scaleb(-digits, decimal.Context(prec=800)))


def _round_one(x: float, digits: int, mode: str, single: bool) -> float:
    import decimal

    if not math.isfinite(x):
        return x
    text = str(np.float32(x)) if single else repr(x)
    how = decimal.ROUND_HALF_EVEN if mode == "half_even" else decimal.ROUND_HALF_UP
    number = decimal.Decimal(text).scaleb(digits, decimal.Context(prec=800)).to_integral_value(how)
    return float(number.scaleb(-digits, decimal.Context(prec=800)))


MOST_FORMATTED: Final = 340  # digits after the point, as Java writes of a double


def _format_number(out: Kind, a: Value, digits: Value) -> Any:
    return each(out, _format_one, a, digits)


def _format_one(x: Any, digits: int) -> str | None:
    if digits < 0:
        return None
    if digits > MOST_FORMATTED:
        raise Failed(f"a number is written with at most {MOST_FORMATTED} digits after the point")
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if x != x else "∞" if x > 0 else "-∞"
    import decimal

    # The value itself, not its shortest text: halves to the even digit.
    exact = decimal.Decimal(x)
    with decimal.localcontext(decimal.Context(prec=800)):
        cut = exact.quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_EVEN)
    return f"{cut:,f}"


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cot": lambda x: 1.0 / np.tan(x),
    "sec": lambda x: 1.0 / np.cos(x),
    "csc": lambda x: 1.0 / np.sin(x),
    "expm1": np.expm1,
    "rint": np.rint,
    "hypot": np.hypot,
}
KERNELS: Final[dict[str, Kernel]] = {
    "sqrt": _floats(np.sqrt),
    "cbrt": _floats(np.cbrt),
    "exp": _floats(np.exp),
    "sin": _floats(np.sin),
    "cos": _floats(np.cos),
    "tan": _floats(np.tan),
    "atan": _floats(np.arctan),
    "atan2": _floats(lambda y, x: np.arctan2(y + 0.0, x + 0.0)),
    "radians": _floats(lambda x: x * (math.pi / 180.0)),
    "degrees": _floats(lambda x: x * (180.0 / math.pi)),
    **{name: _floats(function) for name, function in _FUNCTIONS.items()},
    "pow": _floats(_power),
    "sign": _floats(np.sign),
    "ln": _logarithm(np.log),
    "log10": _logarithm(np.log10),
    "log2": _logarithm(np.log2),
    "log1p": _logarithm(np.log1p, -1.0),
    "log": _log,
    "ceil": _towards(np.ceil, "up"),
    "floor": _towards(np.floor, "down"),
    "round": _rounding(half_up, "half_up"),
    "bround": _rounding(half_even, "half_even"),
    "format_number": _format_number,
}
FAILING: Final = frozenset({"ceil", "floor", "round", "bround"})
