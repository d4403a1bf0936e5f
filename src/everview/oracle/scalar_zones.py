"""The meaning of moments in zones, of moments made of their parts, and of buckets of time."""

from __future__ import annotations

import calendar
import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from everview.oracle.scalar_casts import SHORT_ZONES, NoValue, read_timestamp
from everview.oracle.scalar_moments import letters_written, tokens_of


def zone_named(name: str) -> dt.tzinfo:
    name = SHORT_ZONES.get(name, name)
    plain = name.removeprefix("UTC").removeprefix("GMT").removeprefix("UT")
    if plain in ("", "Z"):
        if name == "":
            raise NoValue("no zone")
        return dt.UTC
    if plain[0] in "+-":
        digits = re.match(r"[+-](\d\d?)(?::?(\d\d))?(?::?(\d\d))?$", plain)
        if digits is None:
            raise NoValue("no zone")
        hours, minutes, seconds = (int(part or 0) for part in digits.groups())
        ahead = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes > 59 or ahead > dt.timedelta(hours=18):
            raise NoValue("no zone")
        return dt.timezone(-ahead if plain[0] == "-" else ahead)
    try:
        if not name[:1].isupper():
            raise NoValue("no zone")
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise NoValue("no zone") from None


def _within(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        try:
            return function(*values)
        except OverflowError:
            raise NoValue("outside the years") from None
        except ValueError:
            raise NoValue("no such moment") from None

    return run


def _from_utc(moment: dt.datetime, zone: str) -> dt.datetime:
    instant = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return instant.astimezone(zone_named(zone)).replace(tzinfo=dt.UTC, fold=0)


def _to_utc(moment: dt.datetime, zone: str) -> dt.datetime:
    return moment.replace(tzinfo=zone_named(zone), fold=0).astimezone(dt.UTC)


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: Decimal) -> dt.datetime:
    if not 0 <= seconds <= 60:
        raise NoValue("no such second")
    start = dt.datetime(year, month, day, hour, minute, tzinfo=dt.UTC)
    return start + dt.timedelta(microseconds=int(seconds.scaleb(6)))


def _next_day(day: dt.date, name: str) -> dt.date:
    names = {n[:size].lower(): number for number, n in enumerate(calendar.day_name) for size in (2, 3, len(n))}
    wanted = names.get(name.strip().lower())
    if wanted is None:
        raise NoValue("no such day")
    return day + dt.timedelta(days=(wanted - day.weekday() - 1) % 7 + 1)


def _make_dt_interval(days: int, hours: int, minutes: int, seconds: Decimal) -> int:
    total = ((days * 24 + hours) * 60 + minutes) * 60_000_000 + int(seconds.scaleb(6))
    if not -(2**63) <= total < 2**63:
        raise NoValue("overflow")
    return total


def _make_ym_interval(years: int, months: int) -> int:
    if not -(2**31) <= years * 12 + months < 2**31:
        raise NoValue("overflow")
    return years * 12 + months


def _time_bucket(width: Any, moment: dt.datetime, origin: dt.datetime) -> dt.datetime:
    if isinstance(width, int) and width < 10**6:  # months
        count = ((moment.year - origin.year) * 12 + moment.month - origin.month) // width + 1
        begin = None
        while begin is None or begin > moment:
            begin, count = _months_on(origin, count * width, moment), count - 1
        return begin
    span = width if isinstance(width, dt.timedelta) else dt.timedelta(microseconds=width)
    return origin + (moment - origin) // span * span


def _months_on(when: dt.datetime, months: int, moment: dt.datetime) -> dt.datetime | None:
    year, month = divmod(when.year * 12 + when.month - 1 + months, 12)
    if year > 9999:
        return None
    day = min(when.day, calendar.monthrange(year, month + 1)[1]) if year > 0 else 1
    return when.replace(year=year, month=month + 1, day=day)


def _read(text: str, zone: str) -> dt.datetime:
    """Text that names no zone is in the given one."""
    text = text.strip("".join(map(chr, range(33))))
    moment = read_timestamp(text)
    local = re.fullmatch(r"[^ T]*([ T][0-9:. ]*)?", text)
    return _to_utc(moment, zone) if local else moment


def _changes(before: Callable[[dt.datetime], bool], begin: dt.datetime, end: dt.datetime) -> list[dt.datetime]:
    """The moments at which a condition is another than just before; found by looking at every minute."""
    micro, minute = dt.timedelta(microseconds=1), dt.timedelta(minutes=1)
    changes: list[dt.datetime] = []
    t = begin.replace(second=0, microsecond=0)
    while t < end:
        low, high = t, t + minute
        if before(low) != before(high):
            while high - low > micro:
                middle = low + (high - low) // 2
                low, high = (middle, high) if before(middle) == before(t) else (low, middle)
            changes.append(high)
        t += minute
    return changes


def _turns(moment: dt.datetime, span: Any, zone: str) -> list[dt.datetime]:
    """Every moment t at which ``moved(t) < moment`` is another than just before."""
    by = span if isinstance(span, dt.timedelta) else dt.timedelta(microseconds=span)
    micro, day = dt.timedelta(microseconds=1), dt.timedelta(days=1)

    def still(t: dt.datetime) -> bool:
        return len({_from_utc(moment, zone) - moment for moment in (t - 27 * day / 24, t, t + 27 * day / 24)}) == 1

    def before(t: dt.datetime) -> bool:
        return _to_utc(_from_utc(t, zone) + by, zone) < moment

    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    edges = [dt.datetime.min.replace(tzinfo=dt.UTC), dt.datetime.max.replace(tzinfo=dt.UTC)]
    reached = (moment - edges[0]) // micro - by // micro
    years = (edges[1] - edges[0]) // micro
    inside = all(12 * day // micro < at < years - 12 * day // micro for at in (reached, (moment - edges[0]) // micro))
    if isinstance(zone_named(zone), dt.timezone) or not inside:
        return [edges[0] + max(0, min(reached, years)) * micro]
    first = _to_utc(_from_utc(moment, zone) - by, zone)
    if still(moment) and still(first):
        return [first]
    return _changes(before, first - 3 * day, first + 3 * day)


def _month_turns(moment: dt.datetime, months: int, zone: str) -> list[dt.datetime]:
    """Every moment t at which ``moved(t) < moment`` is another than just before; found by looking at every minute."""
    micro, day = dt.timedelta(microseconds=1), dt.timedelta(days=1)
    zone_named(zone)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    first, last = dt.datetime.min.replace(tzinfo=dt.UTC), dt.datetime.max.replace(tzinfo=dt.UTC)
    since, years = (moment - first) // micro, (last - first) // micro
    rough, edge = since - months * 2_629_746_000_000, 12 * day // micro
    if not (edge < since < years - edge and 2 * edge < rough < years - 2 * edge):
        return [first + max(0, min(rough, years)) * micro]

    def before(t: dt.datetime) -> bool:
        moved = _months_on(_from_utc(t, zone), months, t)
        assert moved is not None, "inside the years"
        return _to_utc(moved, zone) < moment

    near = _months_on(_from_utc(moment, zone), -months, moment)
    assert near is not None, "inside the years"
    near = _to_utc(near, zone)
    return _changes(before, near - 6 * day, near + 6 * day)


def _date_format(moment: dt.datetime, pattern: str, name: str) -> str:
    local = moment.astimezone(zone_named(name))
    tokens = [token for token in tokens_of(pattern) if token[0] != "bracket"]
    return "".join(text if kind == "text" else _letters_in_zone(local, text, name) for kind, text in tokens)


def _letters_in_zone(local: dt.datetime, letters: str, name: str) -> str:
    """A run of one letter of a pattern, by the clock of a zone."""
    match letters[0]:
        case "V":
            return name
        case "z":
            return name if isinstance(local.tzinfo, dt.timezone) else local.tzname() or name
        case "X" | "x" | "Z" | "O":
            ahead = str(dt.timezone(local.utcoffset() or dt.timedelta())).removeprefix("UTC")
            return _offset_written(ahead, letters)
        case _:
            return letters_written(local, letters)


def _offset_written(ahead: str, letters: str) -> str:
    """``+05:30``, or nothing for UTC itself, as letters of a pattern write it."""
    if letters in ("O", "OOOO", "ZZZZ"):
        short = re.sub(r"^(.)0?(\d+)(:00)?$", r"\1\2", ahead) if letters == "O" and len(ahead) == 6 else ahead
        return "GMT" + (re.sub(r"^(.)0", r"\1", short) if letters == "O" else short)
    if not ahead:
        return (
            "Z"
            if letters[0] == "X" or letters == "ZZZZZ"
            else {1: "+00"}.get(
                len(letters) if letters[0] == "x" else 2, "+00:00" if letters in ("xxx", "xxxxx") else "+0000"
            )
        )
    if letters not in ("XXXX", "XXXXX", "xxxx", "xxxxx", "ZZZZZ"):
        ahead = ahead[:6]
    if letters in ("X", "x"):
        return ahead.replace(":00", "").replace(":", "")
    return ahead if letters in ("XXX", "XXXXX", "xxx", "xxxxx", "ZZZZZ") else ahead.replace(":", "")


ZONES: Final[Mapping[str, Callable[..., Any]]] = {
    "from_utc_timestamp": _within(_from_utc),
    "to_utc_timestamp": _within(_to_utc),
    "timestamp_in_zone": _within(_read),
    "date_format_in_zone": _within(_date_format),
    "turns_in_zone": _within(_turns),
    "month_turns_in_zone": _within(_month_turns),
    "make_timestamp": _within(_make_timestamp),
    "next_day": _within(_next_day),
    "make_dt_interval": _make_dt_interval,
    "make_ym_interval": _make_ym_interval,
    "time_bucket": _within(_time_bucket),
}
