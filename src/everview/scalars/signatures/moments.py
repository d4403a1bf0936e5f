"""Signatures of functions of dates and timestamps."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from everview.scalars.coercion import coerced, implicit, is_number
from everview.scalars.expressions import Cast, Expression, Literal
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, signed, takes
from everview.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Decimal, Type


def _date_part(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    return Typed((implicit(a, DATE, name),), INTEGER)


def _last_parts(name: str, arguments: Arguments) -> Typed:
    return Typed((implicit(arguments[0], TIMESTAMP, name),), Decimal(8, 6) if name == "second_fraction" else INTEGER)


def _read_time(type_: Type) -> Rule:
    """``to_date(text)`` is a cast; with a format, the text is read by it. A number is a moment, in seconds."""

    def rule(name: str, arguments: Arguments) -> Typed | Expression:
        if len(arguments) == 1 and type_ == TIMESTAMP and is_number(arguments[0].type):
            return coerced(arguments[0], type_)
        if len(arguments) == 1 or arguments[0].type in (DATE, TIMESTAMP):
            return implicit(arguments[0], type_, name)
        return Typed(tuple(implicit(a, STRING, name) for a in arguments), type_)

    return rule


def _try_read_time(name: str, arguments: Arguments) -> Typed | Expression:
    """``try_to_timestamp``: NULL where ``to_timestamp`` fails."""
    typed = _read_time(TIMESTAMP)(name, arguments)
    if isinstance(typed, Typed):
        return replace(typed, nullable=True)
    return replace(typed, try_=True) if isinstance(typed, Cast) else typed


def _unix(name: str, arguments: Arguments) -> Typed:
    moment = arguments[0]
    if moment.type in (DATE, TIMESTAMP):
        return Typed((coerced(moment, TIMESTAMP),), BIGINT)
    pattern = arguments[1] if len(arguments) == 2 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return Typed((implicit(moment, STRING, name), implicit(pattern, STRING, name)), BIGINT)


def _from_unix(name: str, arguments: Arguments) -> Typed:
    pattern = arguments[1] if len(arguments) == 2 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return Typed((implicit(arguments[0], BIGINT, name), implicit(pattern, STRING, name)), STRING)


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
    signed("to_timestamp", 1, 2, _read_time(TIMESTAMP), *_READ),
    signed("try_to_timestamp", 1, 2, _try_read_time, "text [, pattern]", "NULL where the other raises"),
    signed("date_format", 2, 2, takes(TIMESTAMP, STRING, gives=STRING), "timestamp or seconds, pattern"),
    signed("from_unixtime", 1, 2, _from_unix, "timestamp or seconds, pattern"),
    signed(
        *("unix_timestamp", 1, 2, _unix, "timestamp, or text and pattern", "cut off towards 1970"),
        unix_timestamp="to_unix_timestamp",
    ),
    signed("unix_micros unix_millis unix_seconds", 1, 1, takes(TIMESTAMP, gives=BIGINT), *_SECONDS),
    signed(*("timestamp_micros timestamp_millis timestamp_seconds", 1, 1, takes(BIGINT, gives=TIMESTAMP), *_SECONDS)),
)
