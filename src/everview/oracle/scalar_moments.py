"""The meaning of functions of dates, timestamps and intervals, one value at a time, by Python's `datetime`."""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from everview.oracle.scalar_casts import EPOCH, NoValue, read_timestamp

_MICRO: Final = dt.timedelta(microseconds=1)


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        try:
            return function(*values)
        except (OverflowError, ValueError):
            raise NoValue("outside the years 1 to 9999") from None

    return run


def _add_days(day: dt.date, by: int) -> dt.date:
    return day + dt.timedelta(days=by)


def _add_months(when: Any, by: int) -> Any:
    months = when.year * 12 + when.month - 1 + by
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        raise NoValue("outside the years 1 to 9999")
    return when.replace(year=year, month=month + 1, day=min(when.day, calendar.monthrange(year, month + 1)[1]))


def _interval(micros: Any) -> dt.timedelta:
    return micros if isinstance(micros, dt.timedelta) else dt.timedelta(microseconds=micros)


def _months_or_micros(a: Any, b: Any, sign: int) -> int:
    """The sum or difference of two intervals of one kind."""
    total = _micros(a) + sign * _micros(b)
    if not isinstance(a, dt.timedelta) and not -(1 << 31) <= total < 1 << 31:
        raise NoValue("overflow")
    return _span(total)


def _scaled(number: int, span: Any) -> int:
    total = number * _micros(span)
    if not isinstance(span, dt.timedelta) and not -(1 << 31) <= total < 1 << 31:
        raise NoValue("overflow")
    return _span(total)


def _between(a: Any, b: Any) -> dt.timedelta:
    if isinstance(a, dt.time):
        a, b = (dt.datetime.combine(dt.date.min, time) for time in (a, b))
    return a - b


def _micros(span: Any) -> int:
    return span // _MICRO if isinstance(span, dt.timedelta) else span


def _span(micros: int) -> Any:
    if not -(1 << 63) <= micros < 1 << 63:
        raise NoValue("overflow")
    return micros


def _months_between(a: dt.datetime, b: dt.datetime, rounded: bool = True) -> float:
    months = (a.year - b.year) * 12 + a.month - b.month
    last = all(x.day == calendar.monthrange(x.year, x.month)[1] for x in (a, b))
    if a.day == b.day or last:
        return float(months)
    clock = [x.hour * 3600 + x.minute * 60 + x.second for x in (a, b)]
    between = months + ((a.day - b.day) * 86400 + clock[0] - clock[1]) / (31 * 86400.0)
    return round(between * 1e8) / 1e8 if rounded else between


def _first_day(day: dt.date, unit: str) -> dt.date | None:
    unit = unit.lower()
    if unit in ("year", "yyyy", "yy"):
        return day.replace(month=1, day=1)
    if unit == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    if unit in ("month", "mon", "mm"):
        return day.replace(day=1)
    return day - dt.timedelta(days=day.weekday()) if unit == "week" else None


def _date_trunc(unit: str, moment: dt.datetime) -> dt.datetime | None:
    day = _first_day(moment.date(), unit)
    if day is not None:
        return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
    match unit.lower():
        case "day" | "dd":
            return moment.replace(hour=0, minute=0, second=0, microsecond=0)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "second":
            return moment.replace(microsecond=0)
        case "millisecond":
            return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        case "microsecond":
            return moment
        case _:
            return None


def _make_date(year: int, month: int, day: int) -> dt.date:
    try:
        return dt.date(year, month, day)
    except (ValueError, OverflowError):
        raise NoValue("no such date") from None


def _since(unit: int) -> Callable[[dt.datetime], int]:
    return lambda moment: (moment - EPOCH) // _MICRO // unit


def _until(unit: int) -> Callable[[int], dt.datetime]:
    return lambda count: EPOCH + dt.timedelta(microseconds=count * unit)


# -- patterns: those that Python's strptime and strftime share with Spark's

_PARTS: Final = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|(.)", re.DOTALL)


def tokens_of(pattern: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    for quoted, letters, _, mark in _PARTS.findall(pattern):
        if letters:
            tokens.append(("letters", letters.replace("L", "M").replace("q", "Q")))
        elif mark in ("[", "]"):
            tokens.append(("bracket", mark))
        else:
            tokens.append(("text", mark or quoted.replace("''", "'") or "'"))
    return tokens


# Of every moment after year 0, in UTC.
_ALWAYS: Final = {
    **dict.fromkeys(("G", "GG", "GGG"), "AD"), "GGGG": "Anno Domini", "VV": "UTC", "z": "UTC", "zz": "UTC",
    "zzz": "UTC", "zzzz": "Coordinated Universal Time", "O": "GMT", "OOOO": "GMT",
    **dict.fromkeys(("X", "XX", "XXX", "XXXX", "XXXXX", "ZZZZZ"), "Z"), "x": "+00", "xxx": "+00:00", "xxxxx": "+00:00",
    **dict.fromkeys(("xx", "xxxx", "Z", "ZZ", "ZZZ"), "+0000"), "ZZZZ": "GMT",
}  # fmt: skip


def letters_written(moment: dt.datetime, letters: str) -> str:
    count = len(letters)
    hour = moment.hour % 12 or 12
    numbers = {"M": moment.month, "d": moment.day, "H": moment.hour, "h": hour, "m": moment.minute, "s": moment.second}
    numbers |= {"D": moment.timetuple().tm_yday, "Q": (moment.month - 1) // 3 + 1, "y": moment.year}
    numbers |= {"K": moment.hour % 12, "k": moment.hour or 24, "F": (moment.day - 1) % 7 + 1}
    if letters in _ALWAYS:
        return _ALWAYS[letters]
    match letters[0]:
        case "y" if count == 2:
            return f"{moment.year % 100:02}"
        case "M" if count >= 3:
            return moment.strftime("%B" if count == 4 else "%b")
        case "Q" if count >= 3:
            return ("Q%d" if count == 3 else "%d" + ("st", "nd", "rd", "th")[numbers["Q"] - 1] + " quarter") % numbers[
                "Q"
            ]
        case "E":
            return moment.strftime("%A" if count == 4 else "%a")
        case "a":
            return "AM" if moment.hour < 12 else "PM"
        case "S":
            return f"{moment.microsecond:06}000"[:count]
        case letter:
            return str(numbers[letter]).rjust(count, "0")


def _date_format(moment: dt.datetime, pattern: str) -> str:
    tokens = [token for token in tokens_of(pattern) if token[0] != "bracket"]
    return "".join(text if kind == "text" else letters_written(moment, text) for kind, text in tokens)


def _read(text: str, pattern: str) -> dt.datetime:
    regex, letters = "", []
    for kind, token in tokens_of(pattern):
        if kind == "text":
            regex += re.escape(token)
            continue
        if kind == "bracket":
            regex += "(?:" if token == "[" else ")?"
            continue
        letters.append(token)
        regex += f"({_readable(token)})"
    match = re.fullmatch(regex, text, re.ASCII)
    if match is None:
        raise NoValue(f"not of the form {pattern}")
    parts = {token[0]: (token, part) for token, part in zip(letters, match.groups(), strict=True) if part is not None}
    try:
        return _assembled(parts)
    except (ValueError, KeyError, OverflowError):
        raise NoValue("no such moment") from None


def _readable(token: str) -> str:
    """The regular expression of what a run of one letter of a pattern reads."""
    letter, count = token[0], len(token)
    if letter in "XxZ":
        colon = ":" if count in (3, 5) and token != "ZZZ" else ""
        zero, rest = "Z|" if letter == "X" or count == 5 else "", "?" if token in "Xx" else ""
        return rf"{zero}[+-]\d\d(?:{colon}\d\d){rest}"
    if letter == "D":
        return rf"\d{{{count},3}}"
    if letter in "aE" or (letter == "M" and count >= 3):
        return "[A-Za-z]+"
    if letter == "y" and count not in (2, 4):
        return r"\d{1,6}"
    if letter == "S":
        return rf"\d{{1,{count}}}"
    return rf"\d{{{count}}}" if count > 1 else r"\d{1,2}"


def _assembled(parts: dict[str, tuple[str, str]]) -> dt.datetime:
    def number(letter: str, missing: int) -> int:
        return int(parts[letter][1]) if letter in parts else missing

    year = number("y", 1970) + (2000 if parts.get("y", ("", ""))[0] == "yy" else 0)
    if len(parts.get("M", ("", ""))[0]) >= 3:
        names = list(calendar.month_name if len(parts["M"][0]) == 4 else calendar.month_abbr)
        month = names.index(parts["M"][1])
    else:
        month = number("M", 1)
    hour = number("H", 0)
    if "h" in parts:
        twelve = number("h", 12)
        if not 1 <= twelve <= 12:
            raise ValueError(twelve)
        hour = twelve % 12 + {"": 0, "am": 0, "pm": 12}[parts.get("a", ("", ""))[1].lower()]
    elif "K" in parts:
        if number("K", 0) > 11:
            raise ValueError("K")
        hour = number("K", 0) + {"": 0, "am": 0, "pm": 12}[parts.get("a", ("", ""))[1].lower()]
    elif "k" in parts:
        if not 1 <= number("k", 24) <= 24:
            raise ValueError("k")
        hour = number("k", 24) % 24
    micros = int(f"{parts.get('S', ('', ''))[1]}000000"[:6])
    moment = dt.datetime(year, month, number("d", 1), hour, number("m", 0), number("s", 0), micros, dt.UTC)
    if "D" in parts:
        moment += dt.timedelta(days=number("D", 1) - 1)
        if moment.year != year or number("D", 1) == 0:
            raise ValueError("D")
    return moment - _ahead(parts)


def _ahead(parts: dict[str, tuple[str, str]]) -> dt.timedelta:
    """How far ahead of UTC the moment is said to be."""
    for letter in "XxZ":
        text = parts.get(letter, ("", "Z"))[1].replace(":", "")
        if text != "Z":
            hours, minutes = int(text[1:3]), int(text[3:5] or "0")
            if hours > 18 or minutes > 59:
                raise ValueError(text)
            return (-1 if text[0] == "-" else 1) * dt.timedelta(hours=hours, minutes=minutes)
    return dt.timedelta()


def _unix_timestamp(value: Any, pattern: str | None = None) -> int:
    moment = value if pattern is None else _read(value, pattern)
    return math.trunc(Decimal((moment - EPOCH) // _MICRO) / 1_000_000)


def _to_timestamp(text: str, pattern: str | None = None) -> dt.datetime:
    return read_timestamp(text.strip()) if pattern is None else _read(text, pattern)


MOMENTS: Final[Mapping[str, Callable[..., Any]]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
    "weekday": lambda day: day.weekday(),
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "weekofyear": lambda day: day.isocalendar().week,
    "yearofweek": lambda day: day.isocalendar().year,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
    "second_fraction": lambda moment: Decimal(moment.second * 1_000_000 + moment.microsecond).scaleb(-6),
    "date_add": _moved(_add_days),
    "date_sub": _moved(lambda day, by: _add_days(day, -by)),
    "add_months": _moved(_add_months),
    "datediff": lambda a, b: (a - b).days,
    "months_between": _months_between,
    "add_months_to": _moved(_add_months),
    "subtract_months_to": _moved(lambda when, by: _add_months(when, -by)),
    "add_days_to": _moved(lambda day, by: day + _interval(by)),
    "subtract_days_to": _moved(lambda day, by: day - _interval(by)),
    "add_time_to": _moved(lambda moment, by: moment + _interval(by)),
    "subtract_time_to": _moved(lambda moment, by: moment - _interval(by)),
    "add_intervals": lambda a, b: _months_or_micros(a, b, 1),
    "subtract_intervals": lambda a, b: _months_or_micros(a, b, -1),
    "scale_interval": _scaled,
    "subtract_dates": lambda a, b: _micros(a - b),
    "subtract_timestamps": _between,
    "last_day": lambda day: day.replace(day=calendar.monthrange(day.year, day.month)[1]),
    "trunc": _moved(_first_day),
    "date_trunc": _moved(_date_trunc),
    "make_date": _make_date,
    "unix_micros": _since(1),
    "unix_millis": _since(1_000),
    "unix_seconds": _since(1_000_000),
    "timestamp_micros": _moved(_until(1)),
    "timestamp_millis": _moved(_until(1_000)),
    "timestamp_seconds": _moved(_until(1_000_000)),
    "date_format": _date_format,
    "from_unixtime": _moved(lambda n, pattern: _date_format(EPOCH + dt.timedelta(seconds=n), pattern)),
    "to_date": lambda text, pattern: _read(text, pattern).date(),
    "to_timestamp": _to_timestamp,
    "unix_timestamp": _unix_timestamp,
}
