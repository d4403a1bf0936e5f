"""Whole units of time between two timestamps, as ``timestampdiff`` counts them by the clock: only complete ones."""

from __future__ import annotations

from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression
from everview.scalars.kinds import MICROS, MONTHS
from everview.scalars.session_zone import on_the_clock
from everview.types import BIGINT, DATE, TIMESTAMP


def whole_units(unit: str, start: Expression, end: Expression) -> Expression:
    """The number of whole units between two timestamps; negative if the end comes first."""
    if unit in MONTHS:
        return call("integral_divide", _months(start, end), literal(MONTHS[unit], BIGINT))
    between = call("subtract", call("unix_micros", on_the_clock(end)), call("unix_micros", on_the_clock(start)))
    return call("integral_divide", between, literal(MICROS[unit], BIGINT))


def _months(start: Expression, end: Expression) -> Expression:
    """The number of whole months, judged by dates; a last day that is not complete does not count."""
    first, last = cast(start, DATE), cast(end, DATE)
    earlier = call("less", _time_of(end, last), _time_of(start, first))
    later = call("greater", _time_of(end, last), _time_of(start, first))
    one = literal(1)
    day = call(
        "case",
        call("and", call("greater", last, first), earlier),
        call("date_sub", last, one),
        call("and", call("less", last, first), later),
        call("date_add", last, one),
        last,
    )
    return call("integral_divide", call("subtract", _packed(day), _packed(first)), literal(32, BIGINT))


def _time_of(moment: Expression, day: Expression) -> Expression:
    midnight = on_the_clock(cast(day, TIMESTAMP))
    return call("subtract", call("unix_micros", on_the_clock(moment)), call("unix_micros", midnight))


def _packed(day: Expression) -> Expression:
    """The month and the day of the month as one number: 32 × month + day."""
    months = call("add", call("multiply", call("year", day), literal(12)), call("month", day))
    return call("add", call("multiply", months, literal(32)), call("day", day))
