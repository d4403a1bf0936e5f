"""Functions of dates, timestamps and intervals; the session's zone is UTC, and years are 1 to 9999."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.arithmetic import overflow
from everview.scalars.functions.decimals import unscaled
from everview.scalars.functions.kernel import (
    Checked,
    Kernel,
    Kind,
    Value,
    constant,
    from_numbers,
    length,
    nulls,
    numbers,
    whole,
)
from everview.scalars.functions.moments import DAY, add_months, days_of, in_years, month_length

BEYOND: Final = "the result is outside the years 1 to 9999"


def _part(function: Kernel, **options: Any) -> Kernel:
    return lambda out, a: function(a, **options).cast(out)


def _time_part(within: int, unit: int) -> Kernel:
    """The kernel of a part of the time of day, of timestamps and of times."""
    return lambda out, a: from_numbers(numbers(a) % within // unit, out, nulls(a))


def _second_fraction(out: Kind, a: Value) -> Any:
    return unscaled(numbers(a) % 60_000_000, out, nulls(a))


def _moved(function: Callable[[Any, Any], Any]) -> Kernel:
    """The kernel of a function of a date and a number of days."""

    def run(out: Kind, a: Value, by: Value) -> Any:
        rows = length((a, by))
        days = function(_int64(a, rows), _int64(by, rows))
        return _dated(days, out, nulls(a, by))

    return run


def _int64(value: Value, rows: int) -> Any:
    return numbers(whole(value, rows)).astype(np.int64)


def _dated(days: Any, out: Kind, missing: Any) -> Any:
    failed = ~in_years(days)
    if missing is not None:
        failed &= ~missing
    if not failed.any():
        return from_numbers(days, out, missing)
    return Checked(from_numbers(np.where(failed, 0, days), out, missing), failed, BEYOND)


def _timed(micros: Any, out: Kind, missing: Any, also: Any = None) -> Any:
    failed = ~in_years(micros // DAY)
    if also is not None:
        failed |= also
    if missing is not None:
        failed &= ~missing
    if not failed.any():
        return from_numbers(micros, out, missing)
    return Checked(from_numbers(np.where(failed, 0, micros), out, missing), failed, BEYOND)


def _datediff(out: Kind, a: Value, b: Value) -> Any:
    rows = length((a, b))
    return from_numbers(_int64(a, rows) - _int64(b, rows), out, nulls(a, b))


def _months_to(sign: int) -> Kernel:
    """The kernel that adds months to a date or a timestamp; the time of day stays."""

    def run(out: Kind, a: Value, months: Value) -> Any:
        rows = length((a, months))
        moments, by = _int64(a, rows), sign * _int64(months, rows)
        if pa.types.is_date32(out):
            return _dated(_months_on(moments, by), out, nulls(a, months))
        days = moments // DAY
        return _timed(_months_on(days, by) * DAY + (moments - days * DAY), out, nulls(a, months))

    return run


def _months_on(days: Any, months: Any) -> Any:
    return add_months(days, np.clip(months, -240_000, 240_000))


def _days_to(sign: int) -> Kernel:
    def run(out: Kind, a: Value, by: Value) -> Any:
        rows = length((a, by))
        return _dated(_int64(a, rows) + sign * (_int64(by, rows) // DAY), out, nulls(a, by))

    return run


def _time_to(sign: int) -> Kernel:
    def run(out: Kind, a: Value, by: Value) -> Any:
        rows = length((a, by))
        return _summed(out, _int64(a, rows), sign * _int64(by, rows), nulls(a, by), _timed)

    return run


def _summed(out: Kind, x: Any, y: Any, missing: Any, made: Callable[..., Any]) -> Any:
    with np.errstate(all="ignore"):
        total = x + y
    wrapped = ((x ^ total) & (y ^ total)) < 0
    return made(total, out, missing, wrapped)


def _spanned(micros: Any, out: Kind, missing: Any, wrapped: Any) -> Any:
    """Months or microseconds as intervals; those that do not fit, or are the word of NULL, fail."""
    limit = 1 << 31 if pa.types.is_int32(out) else (1 << 63) - 1
    wrapped = wrapped | (micros < -limit) | (micros > limit - 1 if pa.types.is_int32(out) else False)
    if missing is not None:
        wrapped &= ~missing
    value = from_numbers(np.where(wrapped, 0, micros), out, missing)
    return Checked(value, wrapped, overflow(out)) if wrapped.any() else value


def _intervals(sign: int) -> Kernel:
    def run(out: Kind, a: Value, b: Value) -> Any:
        rows = length((a, b))
        return _summed(out, _int64(a, rows), sign * _int64(b, rows), nulls(a, b), _spanned)

    return run


def _scaled_interval(out: Kind, a: Value, b: Value) -> Any:
    rows = length((a, b))
    missing = nulls(a, b)
    wide = _int64(a, rows).astype(object) * _int64(b, rows).astype(object)
    limit = 1 << (31 if pa.types.is_int32(out) else 63)
    failed = np.asarray((wide >= limit) | (wide < -limit), bool)
    wide[failed] = 0
    return _spanned(wide.astype(np.int64), out, missing, failed)


def _difference(unit: int) -> Kernel:
    def run(out: Kind, a: Value, b: Value) -> Any:
        rows = length((a, b))
        return from_numbers((_int64(a, rows) - _int64(b, rows)) * unit, out, nulls(a, b))

    return run


def _last_day(out: Kind, a: Value) -> Any:
    month = numbers(a).astype(np.int64).astype("M8[D]").astype("M8[M]")
    last = month.astype("M8[D]").astype(np.int64) + month_length(month) - 1
    return from_numbers(last, out, nulls(a))


def _months_between(out: Kind, a: Value, b: Value, rounded: Value | None = None) -> Any:
    rows = length((a, b))
    x, y = _int64(a, rows), _int64(b, rows)
    (month_x, day_x, last_x, rest_x), (month_y, day_y, last_y, rest_y) = _month_parts(x), _month_parts(y)
    months = (month_x - month_y).astype(np.float64)
    even = (day_x == day_y) | (last_x & last_y)
    seconds = (day_x - day_y) * 86_400 + (rest_x - rest_y)
    between = np.where(even, months, months + seconds / (31 * 86_400.0))
    if rounded is None or (rounded.as_py() if isinstance(rounded, pa.Scalar) else rounded[0].as_py()):
        between = np.where(even, between, np.round(between * 1e8) / 1e8)
    return from_numbers(between, out, nulls(a, b))


def _month_parts(micros: Any) -> tuple[Any, Any, Any, Any]:
    days = micros // DAY
    when = days.astype("M8[D]")
    month = when.astype("M8[M]")
    day = (when - month.astype("M8[D]")).astype(np.int64) + 1
    return month.astype(np.int64), day, day == month_length(month), (micros - days * DAY) // 1_000_000


def _truncated_days(days: Any, unit: str) -> Any | None:
    """The first day of the year, quarter, month or week; None for another unit."""
    when = days.astype("M8[D]")
    months = when.astype("M8[M]").astype(np.int64)
    match unit.upper():
        case "YEAR" | "YYYY" | "YY":
            months = months - months % 12
        case "QUARTER":
            months = months - months % 3
        case "MONTH" | "MON" | "MM":
            pass
        case "WEEK":
            return days - (days + 3) % 7
        case _:
            return None
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


_UNITS: Final = {
    "DAY": DAY, "DD": DAY, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
    "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip


def _trunc(out: Kind, a: Value, unit: Value) -> Any:
    days = _truncated_days(numbers(a).astype(np.int64), unit.as_py())
    return pa.nulls(len(a), out) if days is None else _dated(days, out, nulls(a))


def _date_trunc(out: Kind, unit: Value, a: Value) -> Any:
    micros, name = numbers(a), unit.as_py()
    step = _UNITS.get(name.upper())
    if step is not None:
        return from_numbers(micros - micros % step, out, nulls(a))
    days = _truncated_days(micros // DAY, name)
    return pa.nulls(len(a), out) if days is None else _timed(days * DAY, out, nulls(a))


def _make_date(out: Kind, year: Value, month: Value, day: Value) -> Any:
    rows = length((year, month, day))
    days, good = days_of(_int64(year, rows), _int64(month, rows), _int64(day, rows))
    missing = nulls(year, month, day)
    failed = ~good if missing is None else ~good & ~missing
    value = from_numbers(days, out, missing)
    return Checked(value, failed, "there is no such date") if failed.any() else value


def _since(unit: int) -> Kernel:
    return lambda out, a: from_numbers(numbers(a) // unit, out, nulls(a))


def _until(unit: int) -> Kernel:
    def run(out: Kind, a: Value) -> Any:
        count = numbers(a)
        beyond = np.abs(count.astype(np.float64)) > 4e17 / unit
        return _timed(np.where(beyond, 0, count) * unit, out, nulls(a), beyond)

    return run


KERNELS: Final[dict[str, Kernel]] = {
    "year": _part(pc.year),
    "quarter": _part(pc.quarter),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "dayofweek": _part(pc.day_of_week, count_from_zero=False, week_start=7),
    "weekday": _part(pc.day_of_week),
    "dayofyear": _part(pc.day_of_year),
    "weekofyear": _part(pc.iso_week),
    "yearofweek": _part(pc.iso_year),
    "hour": _time_part(DAY, 3_600_000_000),
    "minute": _time_part(3_600_000_000, 60_000_000),
    "second": _time_part(60_000_000, 1_000_000),
    "second_fraction": _second_fraction,
    "date_add": _moved(lambda days, by: days + by),
    "date_sub": _moved(lambda days, by: days - by),
    "add_months": _moved(_months_on),
    "datediff": _datediff,
    "months_between": _months_between,
    "add_months_to": _months_to(1),
    "subtract_months_to": _months_to(-1),
    "add_days_to": _days_to(1),
    "subtract_days_to": _days_to(-1),
    "add_time_to": _time_to(1),
    "subtract_time_to": _time_to(-1),
    "add_intervals": _intervals(1),
    "subtract_intervals": _intervals(-1),
    "scale_interval": _scaled_interval,
    "subtract_dates": _difference(DAY),
    "subtract_timestamps": _difference(1),
    "last_day": _last_day,
    "trunc": constant(1, _trunc),
    "date_trunc": constant(0, _date_trunc),
    "make_date": _make_date,
    "unix_micros": _since(1),
    "unix_millis": _since(1_000),
    "unix_seconds": _since(1_000_000),
    "timestamp_micros": _until(1),
    "timestamp_millis": _until(1_000),
    "timestamp_seconds": _until(1_000_000),
}
FAILING: Final = frozenset(
    {
        *(name for name in KERNELS if name.startswith(("add_", "subtract_", "date_", "timestamp_", "scale_"))),
        "make_date",
        "trunc",
    }
)
