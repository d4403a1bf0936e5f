"""Signatures of functions of times of day, and of parts, products and quotients of intervals."""

from __future__ import annotations

import datetime as dt
from typing import Final

from everview.scalars.coercion import FRACTIONS, coerced, implicit, is_integer, is_number, mismatch
from everview.scalars.expressions import TRY, Call, Cast, Expression, Literal
from everview.scalars.kinds import CALENDAR, DAY_TIME, INTERVALS, YEAR_MONTH
from everview.scalars.session_zone import in_session_zone
from everview.scalars.signatures.rules import Arguments, Rule, Signatures, Typed, family, signed, takes
from everview.types import (
    BIGINT,
    DATE,
    DAY,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    TINYINT,
    Decimal,
    Type,
)

MIDNIGHT: Final = Literal(dt.time(), TIME)
_SECONDS: Final = Decimal(16, 6)


def since_midnight(time: Expression) -> Expression:
    """The interval from midnight to a time of day."""
    return Call("subtract_timestamps", (time, MIDNIGHT), DAY_TIME, time.nullable)


def on_day(day: Expression, time: Expression | None, type_: Type) -> Expression:
    """The timestamp of a date and a time of day, midnight if there is none."""
    start = coerced(day, type_)
    if time is None:
        return start
    return Call("add_time_to", (start, since_midnight(time)), type_, day.nullable or time.nullable)


def _read_time(attempt: bool) -> Rule:
    """``to_time(text)`` is a cast; with a pattern, the text is read by that as a moment of 1970."""

    def rule(name: str, arguments: Arguments) -> Expression:
        text = implicit(arguments[0], STRING, name)
        if len(arguments) == 1:
            return Cast(text, TIME, attempt)
        pattern = implicit(arguments[1], STRING, name)
        nullable = attempt or text.nullable or pattern.nullable
        read = Call(f"{TRY if attempt else ''}to_timestamp", (text, pattern), TIMESTAMP, nullable)
        return Cast(read, TIME)

    return rule


def _from_seconds(name: str, arguments: Arguments) -> Typed:
    (a,) = arguments
    if not is_number(a.type):
        a = implicit(a, _SECONDS, name)
    return Typed((coerced(a, _SECONDS),), TIME)


def _make_interval(attempt: str) -> Rule:
    """An interval of months, of days, and of time; parts that are not given are zero."""
    parts = (*[INTEGER] * 6, Decimal(18, 6))

    def rule(name: str, arguments: Arguments) -> Expression:
        zeros = (coerced(Literal(0, INTEGER), part) for part in parts[len(arguments) :])
        given = (*(implicit(a, p, name) for a, p in zip(arguments, parts, strict=False)), *zeros)
        years, months, weeks, days, *time = given
        nullable = bool(attempt) or any(a.nullable for a in given)
        of_weeks = Call(f"{attempt}multiply", (weeks, Literal(7, INTEGER)), INTEGER, nullable)
        spans = (
            Call(f"{attempt}make_ym_interval", (years, months), YEAR_MONTH, nullable),
            Call(f"{attempt}add", (of_weeks, days), INTEGER, nullable),
            Call(f"{attempt}make_dt_interval", (Literal(0, INTEGER), *time), DAY_TIME, nullable),
        )
        return Call("calendar_interval", spans, CALENDAR, nullable)

    return rule


def moved_by_calendar(name: str, moment: Expression, span: Expression, way: str) -> Expression:
    """A moment moved by months, then by days, then by time; ``way`` is to add or to subtract."""
    if not isinstance(span, Call) or span.function != "calendar_interval":
        raise mismatch(name, (moment.type, span.type), "add what make_interval gives, or intervals one after the other")
    months, days, time = span.arguments
    nullable = moment.nullable or span.nullable
    moment = coerced(moment, TIMESTAMP) if moment.type == STRING else moment
    there = in_session_zone(Call(f"{way}_months_to", (moment, months), moment.type, nullable))
    if moment.type == DATE:
        if not all(isinstance(part, Literal) and not part.value for part in time.children):
            raise mismatch(name, (DATE, span.type), "a date is moved by months and days; cast it to a TIMESTAMP")
        return Call("date_add" if way == "add" else "date_sub", (there, days), DATE, nullable)
    of_days = coerced(coerced(days, DAY), DAY_TIME)
    there = in_session_zone(Call(f"{way}_time_to", (there, of_days), moment.type, nullable))
    return Call(f"{way}_time_to", (there, time), moment.type, nullable)


def _part(type_: Type, gives: Type) -> Rule:
    def rule(name: str, arguments: Arguments) -> Typed:
        (a,) = arguments
        if a.type not in INTERVALS or (a.type == YEAR_MONTH) != (type_ == YEAR_MONTH):
            raise mismatch(name, (a.type,), f"it takes {type_}")
        return Typed((a,), gives)

    return rule


def product(name: str, number: Expression, span: Expression) -> Call:
    """An interval times a number."""
    if not is_number(number.type):
        raise mismatch(name, (number.type, span.type), "an interval is multiplied by a number")
    type_ = DAY_TIME if span.type == DAY else span.type
    nullable = number.nullable or span.nullable
    if is_integer(number.type):
        return Call("scale_interval", (coerced(number, BIGINT), coerced(span, type_)), type_, nullable)
    number = coerced(number, DOUBLE) if number.type in FRACTIONS else number
    return Call("multiply_interval", (coerced(span, type_), number), type_, nullable)


def quotient(name: str, span: Expression, number: Expression) -> Call:
    """An interval by a number."""
    if not is_number(number.type):
        raise mismatch(name, (span.type, number.type), "an interval is divided by a number")
    type_ = DAY_TIME if span.type == DAY else span.type
    number = coerced(number, DOUBLE) if number.type in FRACTIONS else number
    number = coerced(number, BIGINT) if is_integer(number.type) else number
    return Call("divide_interval", (coerced(span, type_), number), type_, span.nullable or number.nullable)


def moved_time(name: str, time: Expression, by: Expression) -> Call:
    """A time of day moved by an interval; ``name`` is that of adding."""
    if by.type == YEAR_MONTH:
        raise mismatch(name, (time.type, by.type), "a time of day is moved by an interval within a day")
    return Call("add_to_time", (time, coerced(by, DAY_TIME)), TIME, time.nullable or by.nullable)


_UNITS: Final = "hour, minute, second, millisecond, microsecond; another raises"
_PARTS: Final = "years, months, weeks, days, hours, minutes, seconds"
_WITHIN: Final = "outside of a day it raises"

TIMES: Final[Signatures] = family(
    signed("make_time", 3, 3, takes(INTEGER, INTEGER, _SECONDS, gives=TIME), "hour, minute, second"),
    signed("to_time", 1, 2, _read_time(False), "text [, pattern]", "without a pattern, a cast"),
    signed("try_to_time", 1, 2, _read_time(True), "text [, pattern]", "NULL where the other raises"),
    signed("time_trunc", 2, 2, takes(STRING, TIME, gives=TIME), "unit, time", _UNITS),
    signed("time_diff", 3, 3, takes(STRING, TIME, TIME, gives=BIGINT), "unit, start, end", f"whole units: {_UNITS}"),
    signed("time_from_seconds", 1, 1, _from_seconds, "number of seconds", _WITHIN),
    signed("time_from_millis time_from_micros", 1, 1, takes(BIGINT, gives=TIME), "`BIGINT`", _WITHIN),
    signed("time_to_seconds", 1, 1, takes(TIME, gives=Decimal(14, 6)), "time"),
    signed("time_to_millis time_to_micros", 1, 1, takes(TIME, gives=BIGINT), "time"),
    signed("make_interval", 0, 7, _make_interval(""), _PARTS, "added to a moment, or as text"),
    signed("try_make_interval", 0, 7, _make_interval(TRY), _PARTS, "NULL where the other raises"),
    # of EXTRACT and of operators
    signed("interval_years", 1, 1, _part(YEAR_MONTH, INTEGER)),
    signed("interval_months", 1, 1, _part(YEAR_MONTH, TINYINT)),
    signed("interval_days", 1, 1, _part(DAY_TIME, INTEGER)),
    signed("interval_hours interval_minutes", 1, 1, _part(DAY_TIME, TINYINT)),
    signed("interval_seconds", 1, 1, _part(DAY_TIME, Decimal(8, 6))),
)
