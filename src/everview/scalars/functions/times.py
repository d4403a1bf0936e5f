"""Functions of times of day, and of intervals: their parts, products and quotients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.arithmetic import ZERO, overflow
from everview.scalars.functions.decimals import objects, scaled, unscaled
from everview.scalars.functions.kernel import (
    Checked,
    Kernel,
    Kind,
    Value,
    constant,
    each,
    from_numbers,
    length,
    nulls,
    numbers,
    whole,
)
from everview.scalars.functions.moments import DAY

_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_UNITS: Final = {
    "HOUR": _HOUR, "MINUTE": _MINUTE, "SECOND": _SECOND, "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip
NO_TIME: Final = "there is no such time of day"


def _int64(value: Value, rows: int) -> Any:
    return numbers(whole(value, rows)).astype(np.int64)


def _settled(value: Value, failed: Any, missing: Any, reason: str) -> Any:
    failed = failed if missing is None else failed & ~missing
    return Checked(value, failed, reason) if failed.any() else value


def _timed(micros: Any, out: Kind, missing: Any, also: Any = False) -> Any:
    """Microseconds as times of day; those beyond a day fail."""
    failed = (micros < 0) | (micros >= DAY) | also
    return _settled(from_numbers(np.where(failed, 0, micros), out, missing), failed, missing, NO_TIME)


# -- times of day


def _make_time(out: Kind, hour: Value, minute: Value, second: Value) -> Any:
    """Hour, minute, and second with six digits after the point."""
    given = (hour, minute, second)
    rows, missing = length(given), nulls(*given)
    hours, minutes = _int64(hour, rows), _int64(minute, rows)
    micros = scaled(whole(second, rows)).astype(np.int64)
    good = (hours >= 0) & (hours < 24) & (minutes >= 0) & (minutes < 60) & (micros >= 0) & (micros < _MINUTE)
    total = np.where(good, hours * _HOUR + minutes * _MINUTE + micros, 0)
    return _settled(from_numbers(total, out, missing), ~good, missing, NO_TIME)


def _moved(sign: int) -> Kernel:
    def run(out: Kind, time: Value, by: Value) -> Any:
        rows = length((time, by))
        span = _int64(by, rows)
        far = np.abs(span) >= DAY
        return _timed(_int64(time, rows) + sign * np.where(far, 0, span), out, nulls(time, by), far)

    return run


def _trunc(out: Kind, unit: Value, time: Value) -> Any:
    micros, missing = numbers(time), nulls(time)
    step = _UNITS.get(unit.as_py().upper())
    if step is None:
        return _settled(time, np.ones(len(time), bool), missing, _no_unit(unit))
    return from_numbers(micros - micros % step, out, missing)


def _difference(out: Kind, unit: Value, start: Value, end: Value) -> Any:
    """Whole units from the first to the second."""
    rows, missing = length((start, end)), nulls(start, end)
    step = _UNITS.get(unit.as_py().upper())
    if step is None:
        return _settled(
            from_numbers(np.zeros(rows, np.int64), out, missing), np.ones(rows, bool), missing, _no_unit(unit)
        )
    between = _int64(end, rows) - _int64(start, rows)
    return from_numbers((between - np.fmod(between, step)) // step, out, missing)


def _no_unit(unit: Value) -> str:
    return f"{unit.as_py()!r} is none of {', '.join(_UNITS)}"


def _from_units(unit: int) -> Kernel:
    def run(out: Kind, count: Value) -> Any:
        counted = numbers(count).astype(np.int64)
        far = (counted < 0) | (counted >= DAY // unit)
        return _timed(np.where(far, 0, counted) * unit, out, nulls(count), far)

    return run


def _from_seconds(out: Kind, seconds: Value) -> Any:
    """From a DECIMAL with six digits after the point."""
    parts = objects(scaled(seconds))
    far = np.asarray((parts < 0) | (parts >= DAY), bool)
    return _timed(np.where(far, 0, parts).astype(np.int64), out, nulls(seconds), far)


def _to_units(unit: int) -> Kernel:
    return lambda out, time: from_numbers(numbers(time) // unit, out, nulls(time))


def _to_seconds(out: Kind, time: Value) -> Any:
    return unscaled(numbers(time).astype(np.int64), out, nulls(time))


# -- parts of intervals, which all have the sign of the whole


def _part(within: int, unit: int) -> Kernel:
    def run(out: Kind, span: Value) -> Any:
        rest = np.fmod(numbers(span).astype(np.int64), within) if within else numbers(span).astype(np.int64)
        return from_numbers((rest - np.fmod(rest, unit)) // unit, out, nulls(span))

    return run


def _seconds(out: Kind, span: Value) -> Any:
    return unscaled(np.fmod(numbers(span).astype(np.int64), _MINUTE), out, nulls(span))


def _sign(out: Kind, span: Value) -> Any:
    return from_numbers(np.sign(numbers(span)).astype(np.float64), out, nulls(span))


# -- products and quotients, rounded with halves away from zero


def _scaled_by(exactly: Callable[[Any, Any, int], Any], floating: Callable[[Any, Any], Any], dividing: bool) -> Kernel:
    """The kernel of an interval times a number, or by one; `exactly` gets a DECIMAL as an integer and its unit."""

    def run(out: Kind, span: Value, number: Value) -> Any:
        rows, missing = length((span, number)), nulls(span, number)
        counted, by = _int64(span, rows), whole(number, rows)
        limit = 1 << (31 if pa.types.is_int32(out) else 63)
        zero = np.zeros(rows, bool)
        if pa.types.is_floating(by.type):
            factors = numbers(by, 1.0).astype(np.float64)
            zero = factors == 0 if dividing else zero
            with np.errstate(all="ignore"):
                total = floating(counted.astype(np.float64), np.where(zero, 1.0, factors))
            rounded = np.copysign(np.floor(np.abs(total) + 0.5), total)
            failed = ~(np.abs(rounded) < float(limit))
            result = np.where(failed, 0, rounded).astype(np.int64)
        else:
            unit = 10**by.type.scale if pa.types.is_decimal(by.type) else 1
            factors = objects(scaled(by)) if pa.types.is_decimal(by.type) else objects(_int64(by, rows))
            zero = np.asarray(factors == 0, bool) if dividing else zero
            wide = exactly(objects(counted), np.where(zero, 1, factors), unit)
            failed = np.asarray(np.abs(wide) >= limit, bool)
            result = np.where(failed, 0, wide).astype(np.int64)
        value = from_numbers(np.where(zero, 0, result), out, missing)
        return _settled(value, failed | zero, missing, ZERO if zero.any() else overflow(out))

    return run


def _half_up(top: Any, bottom: Any) -> Any:
    size = (2 * np.abs(top) + np.abs(bottom)) // (2 * np.abs(bottom))
    return np.where((top < 0) != (bottom < 0), -size, size)


# -- intervals of months, days and time


def _calendar(out: Kind, months: Value, days: Value, time: Value) -> Any:
    """The text of calendar intervals: no other function takes them."""
    rows = length((months, days, time))
    given = [whole(part, rows).cast(pa.int64()) for part in (months, days, time)]
    return each(out, _calendar_text, *given)


def _calendar_text(months: int, days: int, micros: int) -> str:
    parts = [(_quotient(months, 12), "years"), (int(math.fmod(months, 12)), "months"), (days, "days")]
    for unit, name in ((_HOUR, "hours"), (_MINUTE, "minutes")):
        parts.append((_quotient(micros, unit), name))
        micros -= _quotient(micros, unit) * unit
    said = [f"{count} {name}" for count, name in parts if count]
    seconds, fraction = divmod(abs(micros), _SECOND)
    if micros:
        digits = f".{fraction:06}".rstrip("0") if fraction else ""
        said.append(f"{'-' if micros < 0 else ''}{seconds}{digits} seconds")
    return " ".join(said) or "0 seconds"


def _quotient(number: int, by: int) -> int:
    """The quotient, cut off towards zero."""
    return number // by if number >= 0 else -(-number // by)


KERNELS: Final[dict[str, Kernel]] = {
    "make_time": _make_time,
    "add_to_time": _moved(1),
    "subtract_from_time": _moved(-1),
    "time_trunc": constant(0, _trunc),
    "time_diff": constant(0, _difference),
    "time_from_seconds": _from_seconds,
    "time_from_millis": _from_units(1_000),
    "time_from_micros": _from_units(1),
    "time_to_seconds": _to_seconds,
    "time_to_millis": _to_units(1_000),
    "time_to_micros": _to_units(1),
    "interval_years": _part(0, 12),
    "interval_months": _part(12, 1),
    "interval_days": _part(0, DAY),
    "interval_hours": _part(DAY, _HOUR),
    "interval_minutes": _part(_HOUR, _MINUTE),
    "interval_seconds": _seconds,
    "interval_sign": _sign,
    "multiply_interval": _scaled_by(
        lambda a, b, unit: _half_up(a * b, np.full(len(a), unit, object)), np.multiply, dividing=False
    ),
    "calendar_interval": _calendar,
    "divide_interval": _scaled_by(lambda a, b, unit: _half_up(a * unit, b), np.divide, dividing=True),
}
