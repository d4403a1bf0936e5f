"""Signatures of functions of dates and timestamps."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Final

from everview.scalars.coercion import FRACTIONS, coerced, implicit, is_number, mismatch
from everview.scalars.coercion import MOMENTS as INSTANTS
from everview.scalars.expressions import TRY, Call, Cast, Expression, Literal
from everview.scalars.kinds import DAY_TIME, INTERVALS, VOID, YEAR_MONTH
from everview.scalars.session_zone import UTC, current_zone
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, signed, takes
from everview.scalars.signatures.times import on_day
from everview.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Struct,
    Type,
)


def _date_part(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    return Typed((implicit(a, DATE, name),), INTEGER)


def _last_parts(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    moment = a if a.type in (TIME, TIMESTAMP_NTZ) else implicit(a, TIMESTAMP, name)
    return Typed((moment,), Decimal(8, 6) if name == "second_fraction" else INTEGER)


def _read_time(type_: Type) -> Rule:
    """``to_date(text)`` is a cast; with a format, the text is read by it. A number is a moment, in seconds."""

    def rule(name: str, arguments: Arguments) -> Typed | Expression:
        if len(arguments) == 1 and type_ == TIMESTAMP and is_number(arguments[0].type):
            return coerced(arguments[0], type_)
        if len(arguments) == 1 or arguments[0].type in INSTANTS:
            return implicit(arguments[0], type_, name)
        if type_ == TIMESTAMP_NTZ:
            read = _read_time(TIMESTAMP)(name, arguments)
            assert isinstance(read, Typed)
            nullable = any(a.nullable for a in read.arguments)
            return Cast(Call("to_timestamp", read.arguments, TIMESTAMP, nullable), type_)
        return Typed(tuple(implicit(a, STRING, name) for a in arguments), type_)

    return rule


def _unix(name: str, arguments: Arguments) -> Typed:
    moment = arguments[0]
    if moment.type in INSTANTS:
        return Typed((coerced(moment, TIMESTAMP),), BIGINT)
    pattern = arguments[1] if len(arguments) == 2 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return Typed((implicit(moment, STRING, name), implicit(pattern, STRING, name)), BIGINT)


def _from_unix(name: str, arguments: Arguments) -> Typed:
    pattern = arguments[1] if len(arguments) == 2 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return Typed((implicit(arguments[0], BIGINT, name), implicit(pattern, STRING, name)), STRING)


def _attempt(rule: Rule) -> Rule:
    """The rule of a `try_` function: NULL where the function fails."""

    def attempted(name: str, arguments: Arguments) -> Typed | Expression:
        typed = rule(name, arguments)
        if isinstance(typed, Typed):
            return replace(typed, nullable=True)
        return replace(typed, try_=True) if isinstance(typed, Cast) else typed

    return attempted


def _formatted(name: str, arguments: Arguments) -> Typed:
    """A timestamp by a pattern; a time of day is one of the first day of 1970."""
    moment, pattern = arguments
    if moment.type == TIME:
        moment = on_day(_DAY_ZERO, moment, TIMESTAMP)
    return Typed((implicit(moment, TIMESTAMP, name), implicit(pattern, STRING, name)), STRING)


def _unix_date(name: str, arguments: Arguments) -> Expression:
    day = implicit(arguments[0], DATE, name)
    return Call("datediff", (day, _DAY_ZERO), INTEGER, day.nullable)


def _from_unix_date(name: str, arguments: Arguments) -> Expression:
    count = implicit(arguments[0], INTEGER, name)
    return Call("date_add", (_DAY_ZERO, count), DATE, count.nullable)


def _named(pattern: str) -> Rule:
    """The rule of a name that `date_format` writes."""

    def rule(name: str, arguments: Arguments) -> Expression:
        day = coerced(implicit(arguments[0], DATE, name), TIMESTAMP)
        return Call("date_format", (day, Literal(pattern, STRING)), STRING, day.nullable)

    return rule


def _of_day(name: str, arguments: Arguments, attempt: str, type_: Type) -> Expression:
    """The timestamp of a date, a time of day, and a zone in which they are meant."""
    day, *rest = arguments
    if len(rest) > 2:
        raise mismatch(name, tuple(a.type for a in arguments), "it takes six parts, or a date and a time")
    time = implicit(rest[0], TIME, name) if rest else None
    made = on_day(implicit(day, DATE, name), time, type_)
    if len(rest) < 2:
        return made
    zone = implicit(rest[1], STRING, name)
    return Call(f"{attempt}to_utc_timestamp", (made, zone), type_, bool(attempt) or made.nullable or zone.nullable)


def _make_timestamp(attempt: str, type_: Type = TIMESTAMP) -> Rule:
    """Six parts, and a zone in which they are meant; or a date, a time, and a zone."""

    def rule(name: str, arguments: Arguments) -> Expression:
        if len(arguments) < 6:
            return _of_day(name, arguments, attempt, type_)
        parts = (*(implicit(a, INTEGER, name) for a in arguments[:5]), implicit(arguments[5], Decimal(16, 6), name))
        nullable = bool(attempt) or any(p.nullable for p in parts)
        made = Call(f"{attempt}make_timestamp", parts, type_, nullable)
        if len(arguments) == 6:
            return made
        zone = implicit(arguments[6], STRING, name)
        return Call(f"{attempt}to_utc_timestamp", (made, zone), TIMESTAMP, nullable or zone.nullable)

    return rule


def _convert_timezone(name: str, arguments: Arguments) -> Expression:
    """From the clock of one zone, UTC if none is named, to that of another."""
    *zones, moment = arguments
    type_ = TIMESTAMP_NTZ if moment.type == TIMESTAMP_NTZ else TIMESTAMP
    moment = implicit(moment, type_, name)
    zones = [implicit(zone, STRING, name) for zone in zones]
    if len(zones) == 1 and type_ == TIMESTAMP_NTZ and current_zone() != UTC:
        zones = [Literal(current_zone(), STRING), *zones]
    if len(zones) == 2:
        moment = Call("to_utc_timestamp", (moment, zones[0]), type_, moment.nullable or zones[0].nullable)
    return Call("from_utc_timestamp", (moment, zones[-1]), type_, moment.nullable or zones[-1].nullable)


def _interval_of(gives: Type, *parts: Type) -> Rule:
    """The rule of an interval of parts, those that are not given zero."""

    def rule(name: str, arguments: Arguments) -> Typed:
        zeros = (coerced(Literal(0, INTEGER), part) for part in parts[len(arguments) :])
        return Typed((*(implicit(a, p, name) for a, p in zip(arguments, parts, strict=False)), *zeros), gives)

    return rule


def _seconds(name: str, arguments: Arguments) -> Typed | Expression:
    (a,) = arguments
    if isinstance(a.type, Decimal) or a.type in FRACTIONS:
        return coerced(a, TIMESTAMP)
    return Typed((implicit(a, BIGINT, name),), TIMESTAMP)


def _time_bucket(name: str, arguments: Arguments) -> Typed:
    width, moment, origin = (*arguments, Literal(_MOMENT_ZERO, TIMESTAMP))[:3]
    if width.type not in INTERVALS or not isinstance(width, Literal) or width.value is None or width.value <= 0:
        raise mismatch(name, (width.type,), "its width is a literal interval, and positive")
    if moment.type == TIMESTAMP_NTZ:
        origin = coerced(Literal(None, TIMESTAMP_NTZ) if origin.type == VOID else origin, TIMESTAMP_NTZ)
        return Typed((width, moment, origin), TIMESTAMP_NTZ)
    if TIMESTAMP not in (moment.type, origin.type) or moment.type == DATE:
        raise mismatch(name, (width.type, moment.type), "it takes a timestamp")
    return Typed((width, implicit(moment, TIMESTAMP, name), implicit(origin, TIMESTAMP, name)), TIMESTAMP)


def _window_time(name: str, arguments: Arguments) -> Expression:
    """The last moment of a window: a microsecond before its end."""
    (window,) = arguments
    end = next((f for f in window.type.fields if f.name == "end"), None) if isinstance(window.type, Struct) else None
    if end is None or end.type not in INSTANTS:
        raise mismatch(name, (window.type,), "it takes a window, as window(…) gives it")
    ends = Call("get_field", (window, Literal("end", STRING)), end.type, window.nullable or end.nullable)
    return Call("subtract_time_to", (ends, Literal(1, DAY_TIME)), end.type, ends.nullable)


def _zone_of_session(name: str, arguments: Arguments) -> Expression:
    return Literal(current_zone(), STRING)


_DAY_ZERO: Final = Literal(dt.date(1970, 1, 1), DATE)
_MOMENT_ZERO: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ZONES: Final = "a zone is a name such as `Europe/Berlin` or an offset such as `+02:00`"
_MADE: Final = (
    "year, month, day, hour, minute, second [, zone], or date [, time [, zone]]",
    "60 seconds are a minute; without a zone, UTC, which is the zone of the others, too",
)
_DAYS: Final = "date, number or date"
_READ: Final = ("text [, pattern]", "without a pattern, a cast; `to_timestamp` of a number is in seconds")
_SECONDS: Final = ("timestamp; `BIGINT`", "no fractions of seconds")

MOMENTS: Final[Signatures] = family(
    signed("year quarter month day dayofyear", 1, 1, _date_part, "date", day="dayofmonth"),
    signed("dayofweek weekday weekofyear", 1, 1, _date_part, "date", "Sunday is 1; Monday is 0; ISO weeks"),
    signed("yearofweek", 1, 1, _date_part),  # of EXTRACT
    signed(
        *("hour minute second", 1, 1, _last_parts, "timestamp"),
        "`EXTRACT(SECOND …)` is `second_fraction`, a `DECIMAL(8,6)`",
    ),
    signed("second_fraction", 1, 1, _last_parts),
    signed("date_add date_sub", 2, 2, takes(DATE, INTEGER, gives=DATE), _DAYS, date_add="dateadd"),
    signed("datediff", 2, 2, takes(DATE, DATE, gives=INTEGER), _DAYS, datediff="date_diff"),
    signed("add_months", 2, 2, takes(DATE, INTEGER, gives=DATE), _DAYS),
    signed("last_day", 1, 1, takes(DATE, gives=DATE), _DAYS),
    signed(
        *("months_between", 2, 3, takes(TIMESTAMP, TIMESTAMP, BOOLEAN, gives=DOUBLE)),
        "timestamp, timestamp [, literal whether rounded]",
    ),
    signed(
        *("trunc", 2, 2, takes(DATE, STRING, gives=DATE, nullable=True)),
        *("date, unit", "year, quarter, month, week; else NULL"),
    ),
    signed(
        *("date_trunc", 2, 2, takes(STRING, TIMESTAMP, gives=TIMESTAMP, nullable=True)),
        *("unit, timestamp", "also day to microsecond; else NULL"),
    ),
    signed("make_date", 3, 3, takes(INTEGER, gives=DATE), "year, month, day"),
    signed("to_date", 1, 2, _read_time(DATE), *_READ),
    signed("try_to_date", 1, 2, _attempt(_read_time(DATE)), "text [, pattern]", "NULL where the other raises"),
    signed(
        *("to_timestamp", 1, 2, _read_time(TIMESTAMP), *_READ),
        to_timestamp="to_timestamp_ltz",
    ),
    signed("to_timestamp_ntz", 1, 2, _read_time(TIMESTAMP_NTZ), *_READ),
    signed(
        "try_to_timestamp", 1, 2, _attempt(_read_time(TIMESTAMP)), "text [, pattern]", "NULL where the other raises"
    ),
    signed("date_format", 2, 2, _formatted, "timestamp or seconds, pattern"),
    signed("from_unixtime", 1, 2, _from_unix, "timestamp or seconds, pattern"),
    signed(
        *("unix_timestamp", 1, 2, _unix, "timestamp, or text and pattern", "cut off towards 1970"),
        unix_timestamp="to_unix_timestamp",
    ),
    signed("unix_micros unix_millis unix_seconds", 1, 1, takes(TIMESTAMP, gives=BIGINT), *_SECONDS),
    signed(*("timestamp_micros timestamp_millis", 1, 1, takes(BIGINT, gives=TIMESTAMP), *_SECONDS)),
    signed("timestamp_seconds", 1, 1, _seconds, "number of seconds"),
    signed("unix_date", 1, 1, _unix_date, "date", "days since 1970"),
    signed("date_from_unix_date", 1, 1, _from_unix_date, "days since 1970"),
    signed("dayname", 1, 1, _named("EEE"), "date", "three letters"),
    signed("monthname", 1, 1, _named("MMM"), "date", "three letters"),
    signed("next_day", 2, 2, takes(DATE, STRING, gives=DATE), "date, day", "two or three letters, or the whole name"),
    signed(
        *("make_timestamp", 1, 7, _make_timestamp(""), *_MADE),
        make_timestamp="make_timestamp_ltz",
    ),
    signed("make_timestamp_ntz", 1, 6, _make_timestamp("", TIMESTAMP_NTZ), _MADE[0].replace(" [, zone]", "")),
    signed(
        *("try_make_timestamp", 1, 7, _make_timestamp(TRY), _MADE[0], "NULL where the other raises"),
        try_make_timestamp="try_make_timestamp_ltz",
    ),
    signed(
        *("try_make_timestamp_ntz", 1, 6, _make_timestamp(TRY, TIMESTAMP_NTZ)),
        *(_MADE[0].replace(" [, zone]", ""), "NULL where the other raises"),
    ),
    signed(
        "make_dt_interval",
        0,
        4,
        _interval_of(DAY_TIME, *[INTEGER] * 3, Decimal(18, 6)),
        "days, hours, minutes, seconds",
    ),
    signed("make_ym_interval", 0, 2, _interval_of(YEAR_MONTH, INTEGER, INTEGER), "years, months"),
    signed(
        *("from_utc_timestamp to_utc_timestamp", 2, 2, takes(TIMESTAMP, STRING, gives=TIMESTAMP), "timestamp, zone"),
        _ZONES,
    ),
    signed("convert_timezone", 2, 3, _convert_timezone, "[zone,] zone, timestamp", _ZONES),
    signed("window_time", 1, 1, _window_time, "window", "its last moment, a microsecond before its end"),
    signed("current_timezone", 0, 0, _zone_of_session, "none", "UTC, unless `connect(timezone=…)` names another"),
    signed("timestamp_in_zone", 2, 2, takes(STRING, STRING, gives=TIMESTAMP)),  # of casts
    signed("date_format_in_zone", 3, 3, takes(TIMESTAMP, STRING, gives=STRING)),  # of date_format
    signed("turns_in_zone", 3, 3, takes(TIMESTAMP, DAY_TIME, STRING, gives=Array(TIMESTAMP))),  # of now()
    signed("month_turns_in_zone", 3, 3, takes(TIMESTAMP, YEAR_MONTH, STRING, gives=Array(TIMESTAMP))),
    signed(
        *("time_bucket", 2, 3, _time_bucket, "literal interval, timestamp [, origin]"),
        "the beginning of its bucket, counted from the origin, 1970 if none is given",
    ),
)
