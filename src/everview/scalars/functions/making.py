"""Moments and intervals made of their parts, the next day of a name, and buckets of time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.decimals import scaled
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
from everview.scalars.functions.moments import DAY, add_months, days_of, in_years

_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_DAYS: Final = ("TH", "FR", "SA", "SU", "MO", "TU", "WE")  # 1970 began on the first
_LONG: Final = ("THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY")


def _int64(value: Value, rows: int) -> Any:
    return numbers(whole(value, rows)).astype(np.int64)


def _checked(value: Value, failed: Any, missing: Any, reason: str) -> Any:
    failed = failed if missing is None else failed & ~missing
    return Checked(value, failed, reason) if failed.any() else value


def _make_timestamp(out: Kind, *parts: Value) -> Any:
    """Year, month, day, hour, minute and seconds with six digits after the point; 60 seconds are a minute."""
    rows, missing = length(parts), nulls(*parts)
    year, month, day, hour, minute = (_int64(part, rows) for part in parts[:5])
    micros = scaled(whole(parts[5], rows)).astype(np.int64)
    days, good = days_of(year, month, day)
    good &= (hour >= 0) & (hour < 24) & (minute >= 0) & (minute < 60) & (micros >= 0) & (micros <= _MINUTE)
    moment = days * DAY + np.where(good, hour * _HOUR + minute * _MINUTE + micros, 0)
    good &= in_years(moment // DAY)
    return _checked(from_numbers(np.where(good, moment, 0), out, missing), ~good, missing, "there is no such moment")


def _make_dt_interval(out: Kind, days: Value, hours: Value, minutes: Value, seconds: Value) -> Any:
    given = (days, hours, minutes, seconds)
    rows, missing = length(given), nulls(*given)
    whole_parts = [_int64(part, rows) for part in given[:3]]
    micros = scaled(whole(seconds, rows)).astype(np.int64)
    units = (DAY, _HOUR, _MINUTE)
    size = sum(part.astype(np.float64) * unit for part, unit in zip(whole_parts, units, strict=True)) + micros
    failed = np.abs(size) >= 2.0**63
    with np.errstate(all="ignore"):
        total = sum((part * unit for part, unit in zip(whole_parts, units, strict=True)), micros)
    return _checked(from_numbers(np.where(failed, 0, total), out, missing), failed, missing, "the interval overflows")


def _make_ym_interval(out: Kind, years: Value, months: Value) -> Any:
    rows, missing = length((years, months)), nulls(years, months)
    total = _int64(years, rows) * 12 + _int64(months, rows)
    failed = (total < -(2**31)) | (total >= 2**31)
    value = from_numbers(np.where(failed, 0, total).astype(np.int32), out, missing)
    return _checked(value, failed, missing, "the interval overflows")


def _next_day(out: Kind, a: Value, name: Value) -> Any:
    days, missing = numbers(a).astype(np.int64), nulls(a)
    wanted = _day_of_week(name.as_py().strip().upper())
    if wanted is None:
        return _checked(a, np.ones(len(a), bool), missing, f"there is no day {name.as_py()!r}")
    moved = days + (wanted - days - 1) % 7 + 1
    failed = ~in_years(moved)
    value = from_numbers(np.where(failed, 0, moved), out, missing)
    return _checked(value, failed, missing, "the result is outside the years 1 to 9999")


def _day_of_week(name: str) -> int | None:
    """The place of a day in the week from the first of 1970, by two or three letters or in full."""
    for place, (short, long) in enumerate(zip(_DAYS, _LONG, strict=True)):
        if name in (short, long[:3], long):
            return place
    return None


def _time_bucket(out: Kind, width: Value, a: Value, origin: Value) -> Any:
    """The beginning of the bucket that a moment is in, all of one width from an origin on."""
    rows, missing = length((width, a, origin)), nulls(width, a, origin)
    step, moment, first = (_int64(part, rows) for part in (width, a, origin))
    step = np.where(step > 0, step, 1)
    if pa.types.is_int32(width.type):
        begins = _months_before(step, moment, first)
    else:
        begins = moment - (moment - first) % step
    failed = ~in_years(begins // DAY)
    value = from_numbers(np.where(failed, 0, begins), out, missing)
    return _checked(value, failed, missing, "the result is outside the years 1 to 9999")


def _months_before(step: Any, moment: Any, first: Any) -> Any:
    day, time = first // DAY, first % DAY
    months = (moment // DAY).astype("M8[D]").astype("M8[M]") - day.astype("M8[D]").astype("M8[M]")
    buckets = months.astype(np.int64) // step
    begins = add_months(day, buckets * step) * DAY + time
    return np.where(begins > moment, add_months(day, (buckets - 1) * step) * DAY + time, begins)


KERNELS: Final[dict[str, Kernel]] = {
    "make_timestamp": _make_timestamp,
    "make_dt_interval": _make_dt_interval,
    "make_ym_interval": _make_ym_interval,
    "next_day": constant(1, _next_day),
    "time_bucket": _time_bucket,
}
