"""The meaning of functions of times of day, and of parts, products and quotients of intervals."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue

_MICRO: Final = dt.timedelta(microseconds=1)
_DAY: Final = dt.timedelta(days=1)
_UNITS: Final = {
    "hour": dt.timedelta(hours=1),
    "minute": dt.timedelta(minutes=1),
    "second": dt.timedelta(seconds=1),
    "millisecond": dt.timedelta(milliseconds=1),
    "microsecond": _MICRO,
}


def _span(time: dt.time) -> dt.timedelta:
    return dt.datetime.combine(dt.date.min, time) - dt.datetime.min


def _time(span: dt.timedelta) -> dt.time:
    if not dt.timedelta() <= span < _DAY:
        raise NoValue("outside of a day")
    return (dt.datetime.min + span).time()


def _make_time(hour: int, minute: int, second: Decimal) -> dt.time:
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        raise NoValue("no such time")
    return dt.time(hour, minute, int(second), int(second % 1 * 1_000_000))


def _unit(name: str) -> dt.timedelta:
    unit = _UNITS.get(name.lower())
    if unit is None:
        raise NoValue(f"no unit {name}")
    return unit


def _trunc(unit: str, time: dt.time) -> dt.time:
    step = _unit(unit)
    return _time(_span(time) // step * step)


def _diff(unit: str, start: dt.time, end: dt.time) -> int:
    return math.trunc((_span(end) - _span(start)) / _unit(unit))


def _from(unit: dt.timedelta) -> Callable[[Any], dt.time]:
    def run(count: Any) -> dt.time:
        micros = Fraction(count) * (unit // _MICRO)
        if not 0 <= micros < _DAY // _MICRO:
            raise NoValue("outside of a day")
        return _time(dt.timedelta(microseconds=int(micros)))

    return run


def _part(within: dt.timedelta | None, unit: dt.timedelta) -> Callable[[dt.timedelta], int]:
    def run(span: dt.timedelta) -> int:
        size = abs(span) % within if within is not None else abs(span)
        return size // unit if span >= dt.timedelta() else -(size // unit)

    return run


def _seconds(span: dt.timedelta) -> Decimal:
    micros = abs(span) % dt.timedelta(minutes=1) // _MICRO
    return Decimal(micros if span >= dt.timedelta() else -micros).scaleb(-6)


def _words(span: Any) -> int:
    return span // _MICRO if isinstance(span, dt.timedelta) else span


def _rounded(exact: Any, span: Any) -> int:
    """The nearest whole number of months or microseconds, halves away from zero."""
    if isinstance(exact, float):
        if not math.isfinite(exact):
            raise NoValue("overflow")
        exact = Fraction(exact)
    size = math.floor(abs(exact) + Fraction(1, 2))
    if size >= 1 << (63 if isinstance(span, dt.timedelta) else 31):
        raise NoValue("overflow")
    return size if exact >= 0 else -size


def _product(span: Any, number: Any) -> int:
    if isinstance(number, float):
        return _rounded(float(_words(span)) * number, span)
    return _rounded(_words(span) * Fraction(number), span)


def _quotient(span: Any, number: Any) -> int:
    if number == 0:
        raise NoValue("division by zero")
    if isinstance(number, float):
        return _rounded(float(_words(span)) / number if number == number else math.nan, span)
    return _rounded(_words(span) / Fraction(number), span)


def _calendar(months: int, days: int, time: dt.timedelta) -> str:
    """An interval in words; what is zero is left out."""
    rest = abs(time)
    sign = -1 if time < dt.timedelta() else 1
    hours, minutes = rest // dt.timedelta(hours=1), rest % dt.timedelta(hours=1) // dt.timedelta(minutes=1)
    seconds = Decimal(rest % dt.timedelta(minutes=1) // _MICRO).scaleb(-6).normalize() * sign
    years = abs(months) // 12 * (1 if months >= 0 else -1)
    counts = {"years": years, "months": months - 12 * years, "days": days, "hours": sign * hours}
    counts |= {"minutes": sign * minutes, "seconds": seconds}
    there = {name: count for name, count in counts.items() if count}
    said = [f"{format(count, 'f' if name == 'seconds' else 'd')} {name}" for name, count in there.items()]
    return " ".join(said) or "0 seconds"


TIMES: Final[Mapping[str, Callable[..., Any]]] = {
    "make_time": _make_time,
    "add_to_time": lambda time, by: _time(_span(time) + by),
    "subtract_from_time": lambda time, by: _time(_span(time) - by),
    "time_trunc": _trunc,
    "time_diff": _diff,
    "time_from_seconds": _from(dt.timedelta(seconds=1)),
    "time_from_millis": _from(dt.timedelta(milliseconds=1)),
    "time_from_micros": _from(_MICRO),
    "time_to_seconds": lambda time: Decimal(_span(time) // _MICRO).scaleb(-6),
    "time_to_millis": lambda time: _span(time) // dt.timedelta(milliseconds=1),
    "time_to_micros": lambda time: _span(time) // _MICRO,
    "interval_years": lambda months: math.trunc(months / 12),
    "interval_months": lambda months: int(math.fmod(months, 12)),
    "interval_days": _part(None, _DAY),
    "interval_hours": _part(_DAY, dt.timedelta(hours=1)),
    "interval_minutes": _part(dt.timedelta(hours=1), dt.timedelta(minutes=1)),
    "interval_seconds": _seconds,
    "interval_sign": lambda span: float((_words(span) > 0) - (_words(span) < 0)),
    "multiply_interval": _product,
    "calendar_interval": _calendar,
    "divide_interval": _quotient,
}
