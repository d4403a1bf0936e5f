"""Casts of intervals and times of day: between each other, from numbers and into them, as Spark does them in ANSI mode.

An interval as a number is in its last unit: months, days, or seconds. What has no place in the other type is cut off
towards zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.coercion import bits, is_integer
from everview.scalars.functions.decimals import objects, rescaled, scaled, unscaled
from everview.scalars.functions.kernel import Checked, Failed, Value, each, from_numbers, nulls, numbers
from everview.scalars.functions.moments import DAY as DAY_LONG
from everview.types import DAY, DURATIONS, YEAR_MONTH, Decimal, Type

_SECOND: Final = 1_000_000
_SPACE: Final = "".join(map(chr, range(33)))  # what Spark takes off around a value


# -- into text


def span_text(value: Value, type_: Type) -> Value:
    """Intervals as SQL writes them, ``INTERVAL '1-2' YEAR TO MONTH``, and times of day, without zeros at the end."""
    return each(pa.string(), _WRITTEN[type_.sql], _integers(value))


def _integers(value: Value) -> Value:
    return value.cast(pa.int64())


def _months_text(months: int) -> str:
    years, rest = divmod(abs(months), 12)
    return f"INTERVAL '{'-' if months < 0 else ''}{years}-{rest}' YEAR TO MONTH"


def _days_text(micros: int) -> str:
    return f"INTERVAL '{'-' if micros < 0 else ''}{abs(micros) // DAY_LONG}' DAY"


def _span_text(micros: int) -> str:
    days, rest = divmod(abs(micros), DAY_LONG)
    return f"INTERVAL '{'-' if micros < 0 else ''}{days} {_clock_text(rest)}' DAY TO SECOND"


def _clock_text(micros: int) -> str:
    seconds, fraction = divmod(micros, _SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    digits = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{hour:02}:{minute:02}:{second:02}{digits}"


_WRITTEN: Final[dict[str, Callable[[int], str]]] = {
    "TIME": _clock_text,
    "INTERVAL YEAR TO MONTH": _months_text,
    "INTERVAL DAY": _days_text,
    "INTERVAL DAY TO SECOND": _span_text,
}


# -- from text

_SIGN: Final = r"(?P<sign>[+-])?"
_CLOCK: Final = r"(?P<h>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2})(?:\.(?P<f>\d{1,9}))?"
_BODIES: Final = {
    "INTERVAL YEAR TO MONTH": r"(?P<years>\d+)-(?P<months>\d+)",
    "INTERVAL DAY": r"(?P<days>\d+)",
    "INTERVAL DAY TO SECOND": rf"(?P<days>\d+) {_CLOCK}",
}
_TEXTS: Final = {
    name: (
        re.compile(_SIGN + body, re.ASCII),
        re.compile(
            rf"INTERVAL\s+(?P<outer>[+-])?'{_SIGN}{body}'\s+" + r"\s+".join(name.split()[1:]),
            re.ASCII | re.IGNORECASE,
        ),
    )
    for name, body in _BODIES.items()
}
_TIME: Final = re.compile(r"T?(?P<h>\d{1,2}):(?P<m>\d{1,2})(?::(?P<s>\d{1,2})(?:\.(?P<f>\d*))?)?", re.ASCII)
_HALVES: Final = re.compile(r"(?P<text>.*?) ?(?P<half>[AP]M)", re.ASCII | re.IGNORECASE)


def read_interval(value: Value, type_: Type, to: Type) -> Any:
    """Text as an interval, with or without the word INTERVAL and the units."""
    plain, whole = _TEXTS[to.sql]

    def read(text: str) -> int:
        text = text.strip(_SPACE)
        match = plain.fullmatch(text) or whole.fullmatch(text)
        if match is None:
            raise Failed(f"it is no {to}")
        parts = match.groupdict()
        size = _months_of(parts) if to == YEAR_MONTH else _micros_of(parts)
        negative = (parts["sign"] == "-") != (parts.get("outer") == "-")
        return _ranged(-size if negative else size, to)

    return _spans(each(pa.int64(), read, value), to)


def _months_of(parts: dict[str, str | None]) -> int:
    months = int(parts["months"] or 0)
    if months > 11:
        raise Failed("a year has twelve months")
    return int(parts["years"] or 0) * 12 + months


def _micros_of(parts: dict[str, str | None]) -> int:
    return int(parts["days"] or 0) * DAY_LONG + (_clock_of(parts) if "h" in parts else 0)


def _clock_of(parts: dict[str, str | None]) -> int:
    hour, minute, second = (int(parts[name] or 0) for name in "hms")
    if hour > 23 or minute > 59 or second > 59:
        raise Failed("there is no such time of day")
    return ((hour * 60 + minute) * 60 + second) * _SECOND + int(f"{parts['f'] or ''}000000"[:6])


def _ranged(number: int, to: Type) -> int:
    if abs(number) >= 1 << (31 if to == YEAR_MONTH else 63):
        raise Failed(f"it is outside the range of {to}")
    return number


def read_time(value: Value, type_: Type, to: Type) -> Any:
    """Text as a time of day: ``12:30``, ``12:30:00.5``, ``01:30 PM``."""
    return _spans(each(pa.int64(), _time_of, value), to)


def _time_of(text: str) -> int:
    text = text.strip(_SPACE)
    halved = _HALVES.fullmatch(text)
    match = _TIME.fullmatch(halved["text"] if halved else text)
    if match is None:
        raise Failed("it is no TIME")
    micros = _clock_of(match.groupdict())
    if not halved:
        return micros
    hour = int(match["h"])
    if not 1 <= hour <= 12:
        raise Failed("there is no such time of day")
    return micros - hour * 3600 * _SECOND + (hour % 12 + 12 * (halved["half"].upper() == "PM")) * 3600 * _SECOND


def _spans(words: Any, to: Type) -> Any:
    """Words as a column of their type."""
    inner = words.value if isinstance(words, Checked) else words
    column = inner.cast(pa.int32()) if to == YEAR_MONTH else inner.cast(to.arrow)
    return Checked(column, words.failed, words.reason) if isinstance(words, Checked) else column


# -- between intervals, and with numbers

_UNITS: Final = {"INTERVAL YEAR TO MONTH": 1, "INTERVAL DAY": DAY_LONG, "INTERVAL DAY TO SECOND": _SECOND}


def interval_to_interval(value: Value, type_: Type, to: Type) -> Value:
    """Days as days and seconds, or without what is no whole day."""
    assert type_ in DURATIONS, "months are no days"
    if to != DAY:
        return value.cast(to.arrow)
    micros = numbers(value).astype(np.int64)
    return from_numbers(micros - np.fmod(micros, DAY_LONG), to.arrow, nulls(value))


def interval_to_integer(value: Value, type_: Type, to: Type) -> Any:
    """The number of whole units, towards zero."""
    micros = numbers(value).astype(np.int64)
    unit = _UNITS[type_.sql]
    whole = (micros - np.fmod(micros, unit)) // unit
    limit = 1 << (bits(to) - 1)
    failed = (whole < -limit) | (whole >= limit) if bits(to) < 64 else np.zeros(len(whole), bool)
    return _checked(from_numbers(np.where(failed, 0, whole), to.arrow, nulls(value)), failed, value, to)


def interval_to_decimal(value: Value, type_: Type, to: Type) -> Any:
    """The number of units, of seconds with their fractions."""
    micros = numbers(value).astype(np.int64)
    unit = _UNITS[type_.sql]
    scale = 6 if unit == _SECOND else 0
    counted = micros if scale else (micros - np.fmod(micros, unit)) // unit
    return rescaled(unscaled(objects(counted), pa.decimal128(25, scale), nulls(value)), to.arrow)


def number_to_interval(value: Value, type_: Type, to: Type) -> Any:
    """So many months, days or seconds; only seconds have fractions."""
    unit = _UNITS[to.sql]
    if is_integer(type_):
        exact = objects(numbers(value).astype(np.int64)) * unit
    else:
        assert isinstance(type_, Decimal)
        parts = objects(scaled(value)) * (unit if unit == _SECOND else 1)
        size = np.abs(parts) // 10**type_.scale
        exact = np.where(parts < 0, -size, size) * (1 if unit == _SECOND else unit)
    # The least word of all is NULL, no interval.
    least, greatest = (-(1 << 31), (1 << 31) - 1) if to == YEAR_MONTH else (1 - (1 << 63), (1 << 63) - 1)
    failed = np.asarray((exact < least) | (exact > greatest), bool)
    kept = np.where(failed, 0, exact).astype(np.int64)
    return _checked(from_numbers(kept, to.arrow, nulls(value)), failed, value, to)


def _checked(column: Value, failed: Any, value: Value, to: Type) -> Any:
    missing = nulls(value)
    failed = failed if missing is None else failed & ~missing
    return Checked(column, failed, f"it is outside the range of {to}") if failed.any() else column


# -- times of day


def moment_to_time(value: Value, type_: Type, to: Type) -> Value:
    """The time of day of a timestamp."""
    return from_numbers(numbers(value) % DAY_LONG, to.arrow, nulls(value))


def time_to_integer(value: Value, type_: Type, to: Type) -> Any:
    """The whole seconds since midnight."""
    seconds = numbers(value) // _SECOND
    failed = seconds >= 1 << (bits(to) - 1) if bits(to) < 32 else np.zeros(len(seconds), bool)
    return _checked(from_numbers(np.where(failed, 0, seconds), to.arrow, nulls(value)), failed, value, to)


def time_to_decimal(value: Value, type_: Type, to: Type) -> Any:
    """The seconds since midnight, with their fractions."""
    return rescaled(unscaled(numbers(value).astype(object), pa.decimal128(20, 6), nulls(value)), to.arrow)


def same_moment(value: Value, type_: Type, to: Type) -> Value:
    """A timestamp in UTC without its zone, or with it."""
    return from_numbers(numbers(value), to.arrow, nulls(value))


Caster = Callable[[Value, Type, Type], Any]
SPAN_CASTS: Final[dict[tuple[str, str], Caster]] = {
    ("interval", "interval"): interval_to_interval,
    ("interval", "integer"): interval_to_integer,
    ("interval", "decimal"): interval_to_decimal,
    ("integer", "interval"): number_to_interval,
    ("decimal", "interval"): number_to_interval,
    ("STRING", "interval"): read_interval,
    ("STRING", "TIME"): read_time,
    ("TIMESTAMP", "TIME"): moment_to_time,
    ("TIMESTAMP_NTZ", "TIME"): moment_to_time,
    ("TIME", "integer"): time_to_integer,
    ("TIME", "decimal"): time_to_decimal,
    ("TIMESTAMP", "TIMESTAMP_NTZ"): same_moment,
    ("TIMESTAMP_NTZ", "TIMESTAMP"): same_moment,
}
