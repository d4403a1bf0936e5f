"""When a condition on the current time holds, for each row: from one moment on, and before another.

``ts > now() - INTERVAL 1 HOUR`` is true of a row as long as ``now() < ts + INTERVAL 1 HOUR``. `span_of` solves such a
condition for the current time, step by step from the outside in: each function of the current time that never falls has
an inverse, or one that rounds up or down, which is applied to the other side instead.

>>> from everview.plan.typing import call, literal
>>> from everview.scalars.expressions import Column
>>> from everview.types import TIMESTAMP
>>> ts, hour = Column(0, "ts", TIMESTAMP), literal(3_600_000_000, DAY_TIME)
>>> span = span_of(call("greater", ts, call("subtract", Now(), hour)))
>>> print(span.since, span.until)
None ts + INTERVAL 1 HOUR

Months less than a moment are no such function: a month before March 30, 23:00 is February 28, 23:00, and a month before
March 31, 01:00 is February 28, 01:00. `spans_of` gives the several spans that such a condition has.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Call, Cast, Expression, Literal, Now, walk
from everview.scalars.kinds import DAY, DAY_TIME, MICROS, MONTHS, YEAR_MONTH
from everview.scalars.session_zone import UTC, current_zone, session_zone
from everview.types import BIGINT, DATE, INTEGER, STRING, TIMESTAMP, ScalarType

TURNED: Final = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}
NEGATED: Final = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}
ROUNDED: Final = {"less": "less", "less_equal": "less", "greater": "greater_equal", "greater_equal": "greater_equal"}


@dataclass(frozen=True, slots=True)
class Span:
    """The moments at which a condition is true of a row: from ``since`` on, before ``until``; None is no bound.

    It is true at no moment if a bound is NULL.
    """

    since: Expression | None = None
    until: Expression | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """``timed how other``, where only ``timed`` reads the current time."""

    timed: Expression
    how: str
    other: Expression


def reads_now(expression: Expression) -> bool:
    """Whether an expression depends on the current time."""
    return any(isinstance(part, Now) for part in walk(expression))


def spans_of(condition: Expression) -> tuple[Span, ...] | None:
    """The spans of a condition on the current time, no two at the same moment; None if it cannot be solved.

    A span whose bounds are NULL for a row is none.
    """
    span = span_of(condition)
    if span is not None:
        return (span,)
    compared = _compared(condition)
    if compared is None or compared.how == "equal":
        return None
    return _solved_by_days(compared) or _solved_by_local_days(compared)


def opposite(condition: Expression) -> Expression | None:
    """The comparison that holds where another is false; None if the condition is no such comparison."""
    compared = _compared(condition)
    if compared is None or compared.how not in NEGATED:
        return None
    return call(NEGATED[compared.how], compared.timed, compared.other)


def span_of(condition: Expression) -> Span | None:
    """The span of a condition that compares the current time with something else; None if it cannot be solved."""
    compared = _compared(condition)
    if compared is None:
        return None
    if compared.how != "equal":
        return _solved(compared)
    ends = [_solved(Comparison(compared.timed, how, compared.other)) for how in ("less_equal", "greater_equal")]
    return None if None in ends else common(span for span in ends if span is not None)


def common(spans: Iterable[Span]) -> Span:
    """The moments within all spans, whose bounds are not NULL."""
    every = tuple(spans)
    return Span(_outermost("greatest", [s.since for s in every]), _outermost("least", [s.until for s in every]))


def _outermost(function: str, bounds: Iterable[Expression | None]) -> Expression | None:
    given = list(dict.fromkeys(bound for bound in bounds if bound is not None))
    return None if not given else given[0] if len(given) == 1 else call(function, *given)


def _compared(condition: Expression) -> Comparison | None:
    if not isinstance(condition, Call):
        return None
    if condition.function == "not":
        inner = _compared(condition.arguments[0])
        return None if inner is None or inner.how not in NEGATED else replace(inner, how=NEGATED[inner.how])
    if condition.function not in TURNED:
        return None
    a, b = condition.arguments
    if reads_now(a) == reads_now(b):
        return None
    return Comparison(a, condition.function, b) if reads_now(a) else Comparison(b, TURNED[condition.function], a)


def _solved(compared: Comparison | None) -> Span | None:
    while compared is not None and compared.timed != Now("timestamp"):
        compared = _peeled(compared)
    if compared is None:
        return None
    moment, next_moment = compared.other, call("add", compared.other, literal(1, DAY_TIME))
    match compared.how:
        case "less":
            return Span(until=moment)
        case "less_equal":
            return Span(until=next_moment)
        case "greater":
            return Span(since=next_moment)
        case _:
            return Span(since=moment)


# -- one step: a function of the current time goes, and its inverse comes to the other side


def _peeled(compared: Comparison) -> Comparison | None:
    match compared.timed:
        case Cast(Call("from_utc_timestamp")) | Call("to_utc_timestamp"):
            return _peeled_in_zone(compared)
        case Now("date"):
            return _rounded(Now("timestamp"), compared, lambda day: cast(day, TIMESTAMP), _next_day)
        case Cast(argument, type_) if (argument.type, type_) == (TIMESTAMP, DATE):
            return _rounded(argument, compared, lambda day: cast(day, TIMESTAMP), _next_day)
        case Cast(argument, type_) if (argument.type, type_) == (DATE, TIMESTAMP):
            return _midnight(argument, compared)
        case Call("year", (argument,)) | Cast(Call("year", (argument,)), ScalarType("BIGINT")) if argument.type == DATE:
            return _rounded(argument, compared, _first_of_year, lambda n: call("add", n, literal(1)))
        case Cast(argument, type_) if (argument.type, type_) in _WIDENED:
            return _narrowed(argument, compared)
        case Call("date_trunc", (Literal(unit), argument)):
            return _truncated(str(unit).lower(), argument, compared)
        case Call("trunc", (argument, Literal(unit))):
            return _truncated_day(str(unit).lower(), argument, compared)
        case Call(function, (argument,)) if function in _FIRST_OF_SECONDS:
            first = _FIRST_OF_SECONDS[function]
            return _rounded(argument, compared, first, lambda n: call("add", n, literal(1, BIGINT)))
        case Call("integral_divide", (argument, Literal(size))) if isinstance(size, int) and size > 0:
            return _quotient(argument, size, compared)
        case Call("time_bucket", (Literal() as width, argument, Literal() as origin)) if width.type in (DAY, DAY_TIME):
            return _bucketed(width, argument, origin, compared)
        case Call("unix_micros", (argument,)):
            return Comparison(argument, compared.how, call("timestamp_micros", compared.other))
        case Call("add_months" | "add_months_to" | "subtract_months_to", (argument, months)) if (
            argument.type == DATE and not reads_now(months)
        ):
            return _rounded_month(argument, _months_of(compared.timed), compared)
        case Call(function, (a, b)) if function in _SUMS | _DIFFERENCES:
            return _moved(function, a, b, compared)
        case _:
            return None


_WIDENED: Final = ((INTEGER, BIGINT), (DAY, DAY_TIME))


def _narrowed(argument: Expression, compared: Comparison) -> Comparison | None:
    """A number of days, or one of four bytes, compared as a wider type with a constant that fits the narrow one."""
    other, unit = compared.other, MICROS["day"] if argument.type == DAY else 1
    if not isinstance(other, Literal) or other.value is None or other.value % unit or abs(other.value) >= unit << 31:
        return None
    return Comparison(argument, compared.how, Literal(other.value, argument.type))


def _rounded(
    argument: Expression,
    compared: Comparison,
    first: Callable[[Expression], Expression],
    following: Callable[[Expression], Expression],
) -> Comparison:
    """A function that rounds down: its value is below a whole one until the ``first`` moment of that."""
    whole = following(compared.other) if compared.how in ("less_equal", "greater") else compared.other
    return Comparison(argument, ROUNDED[compared.how], first(whole))


def _next_day(day: Expression) -> Expression:
    return call("date_add", day, literal(1, INTEGER))


def _of_seconds(seconds: Expression) -> Expression:
    return call("timestamp_seconds", seconds)


def _first_of_second(seconds: Expression) -> Expression:
    """The first moment of a second, counted from 1970; before that seconds are cut off the other way."""
    before = call("add", _of_seconds(call("subtract", seconds, literal(1, BIGINT))), literal(1, DAY_TIME))
    return call("if", call("greater", seconds, literal(0, BIGINT)), _of_seconds(seconds), before)


_FIRST_OF_SECONDS: Final = {"unix_seconds": _of_seconds, "unix_timestamp": _first_of_second}


def _quotient(argument: Expression, size: int, compared: Comparison) -> Comparison:
    """A quotient that is cut off towards zero."""
    one, by, zero = literal(1, BIGINT), literal(size, BIGINT), literal(0, BIGINT)

    def first(whole: Expression) -> Expression:
        below = call("add", call("multiply", call("subtract", whole, one), by), one)
        return call("if", call("greater", whole, zero), call("multiply", whole, by), below)

    return _rounded(argument, compared, first, lambda n: call("add", n, one))


def _first_of_year(year: Expression) -> Expression:
    """The first day of a year, or the end of what there is."""
    first = call("make_date", cast(year, INTEGER), literal(1), literal(1))
    ends = literal(dt.date(1, 1, 1)), literal(dt.date(9999, 12, 31))
    return call("case", call("less", year, literal(1)), ends[0], call("greater", year, literal(9999)), ends[1], first)


def _bucketed(width: Literal, argument: Expression, origin: Literal, compared: Comparison) -> Comparison:
    last = compared.other if compared.how in ("less_equal", "greater") else _just_before(compared.other)
    return Comparison(argument, ROUNDED[compared.how], call("add", call("time_bucket", width, last, origin), width))


def _midnight(day: Expression, compared: Comparison) -> Comparison:
    """A day as the moment at which it begins, compared with any moment."""
    moment = compared.other
    if compared.how in ("less_equal", "greater"):
        return Comparison(day, compared.how, cast(moment, DATE))
    return Comparison(day, compared.how, _next_day(cast(_just_before(moment), DATE)))


def _just_before(moment: Expression) -> Expression:
    return call("subtract", moment, literal(1, DAY_TIME))


def _truncated(unit: str, argument: Expression, compared: Comparison) -> Comparison | None:
    if unit not in MICROS and unit not in MONTHS:
        return None

    def began(moment: Expression) -> Expression:
        return call("date_trunc", literal(unit, STRING), moment)

    last = compared.other if compared.how in ("less_equal", "greater") else _just_before(compared.other)
    return Comparison(argument, ROUNDED[compared.how], call("add", began(last), _length(unit)))


def _length(unit: str) -> Expression:
    return literal(MONTHS[unit], YEAR_MONTH) if unit in MONTHS else literal(MICROS[unit], DAY_TIME)


_UNITS_OF_DAYS: Final = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month"}  # what `trunc` calls units, too


def _truncated_day(unit: str, argument: Expression, compared: Comparison) -> Comparison | None:
    """The first day of the week, month, quarter or year of a day."""
    word = _UNITS_OF_DAYS.get(unit, unit)
    if word != "week" and word not in MONTHS:
        return None
    last = compared.other if compared.how in ("less_equal", "greater") else _day_before(compared.other)
    began = call("trunc", last, literal(word, STRING))
    length = literal(7, INTEGER) if word == "week" else literal(MONTHS[word], YEAR_MONTH)
    return Comparison(argument, ROUNDED[compared.how], call("date_add" if word == "week" else "add", began, length))


def _day_before(day: Expression) -> Expression:
    return call("date_sub", day, literal(1, INTEGER))


# -- by the clock of a time zone
#
# A local day never returns: where clocks are put back, it is within a day, or at its end. (Newfoundland's were put back
# at 00:01 until 2011; there a day is taken to begin when it first does.)


def _clock(moment: Expression, zone: Expression) -> Expression:
    return Call("from_utc_timestamp", (moment, zone), TIMESTAMP, moment.nullable)


def _instant(shown: Expression, zone: Expression) -> Expression:
    return Call("to_utc_timestamp", (shown, zone), TIMESTAMP, shown.nullable)


def _peeled_in_zone(compared: Comparison) -> Comparison | None:
    """A local day, or the instant at which a local day, week, month or year begins; hours may come twice."""
    match compared.timed:
        case Cast(Call("from_utc_timestamp", (argument, zone)), type_) if type_ == DATE:
            return _rounded(argument, compared, lambda day: _instant(Cast(day, TIMESTAMP), zone), _next_day)
        case Call("to_utc_timestamp", (Cast(argument, _), zone)) if argument.type == DATE:
            moment = compared.other if compared.how in ("less_equal", "greater") else _just_before(compared.other)
            following = _next_day(Cast(_clock(moment, zone), DATE))
            return Comparison(argument, ROUNDED[compared.how], following)
        case Call("to_utc_timestamp", (Call("date_trunc", (Literal(unit), inner)), zone)) if (
            isinstance(inner, Call) and inner.function == "from_utc_timestamp" and inner.arguments[1] == zone
        ):
            return _truncated_in_zone(str(unit).lower(), inner.arguments[0], zone, compared)
        case _:
            return None


def _truncated_in_zone(unit: str, argument: Expression, zone: Expression, compared: Comparison) -> Comparison | None:
    if unit not in ("day", "week") and unit not in MONTHS:
        return None
    last = compared.other if compared.how in ("less_equal", "greater") else _just_before(compared.other)
    with session_zone(UTC):  # what the clock shows, as if it were of UTC
        began = call("date_trunc", literal(unit, STRING), _clock(last, zone))
        following = call("add", began, _length(unit))
    return Comparison(argument, ROUNDED[compared.how], _instant(following, zone))


_SUMS: Final = frozenset({"add", "add_time_to", "add_days_to", "date_add"})
_DIFFERENCES: Final = frozenset(
    {
        "subtract",
        "subtract_time_to",
        "subtract_days_to",
        "date_sub",
        "subtract_timestamps",
        "subtract_dates",
        "datediff",
    }
)


def _moved(function: str, a: Expression, b: Expression, compared: Comparison) -> Comparison | None:
    """A sum or difference: the part that does not read the current time goes to the other side."""
    if reads_now(a) and reads_now(b):
        return None
    timed, rest = (a, b) if reads_now(a) else (b, a)
    if not _exact(timed, rest):
        return None
    if function in _SUMS:
        return Comparison(timed, compared.how, call("subtract", compared.other, rest))
    if timed is a:
        return Comparison(timed, compared.how, call("add", rest, compared.other))
    return Comparison(timed, TURNED[compared.how], call("subtract", rest, compared.other))


def _exact(*sides: Expression) -> bool:
    """Whether adding and subtracting undo each other: not for numbers that are rounded."""
    return all(side.type in (BIGINT, INTEGER, DATE, TIMESTAMP, DAY, DAY_TIME) for side in sides)


# -- months: the day of a moment moves by them, and its time of day stays


@dataclass(frozen=True, slots=True)
class MonthShift:
    """Days moved by some months, and back."""

    months: Expression  # an interval, or a number of months
    forward: bool

    def there(self, day: Expression) -> Expression:
        """The day after the move."""
        return self._moved(day, self.forward)

    def first_day(self, reached: Expression) -> Expression:
        """The first day that is moved to a given day, or past it.

        The month before may be too short to have the day: then it is the day after the end of that month.
        """
        back = self._moved(reached, not self.forward)
        return call("if", call("less", self.there(back), reached), _next_day(back), back)

    def _moved(self, day: Expression, forward: bool) -> Expression:
        return call("add" if forward else "subtract", day, self.months)


def _months_of(timed: Expression) -> MonthShift:
    assert isinstance(timed, Call)
    months = timed.arguments[1]
    if timed.function == "add_months":
        months = call("multiply", literal(1, YEAR_MONTH), months)
    return MonthShift(months, timed.function != "subtract_months_to")


def _rounded_month(day: Expression, shift: MonthShift, compared: Comparison) -> Comparison:
    """A day moved by months, compared with another day: days never overtake each other."""
    reached = _next_day(compared.other) if compared.how in ("less_equal", "greater") else compared.other
    return Comparison(day, ROUNDED[compared.how], shift.first_day(reached))


LONGEST_STAY: Final = 4  # days that are moved to the same day: to the last of February, from the 28th to the 31st


def _solved_by_days(compared: Comparison | None) -> tuple[Span, ...] | None:
    """The spans of a comparison of a moment moved by months: one for each of the days that may move to the same day."""
    while compared is not None and not _is_moved_moment(compared.timed):
        compared = _peeled(compared)
    if compared is None or current_zone() != UTC:
        return None
    assert isinstance(compared.timed, Call)
    argument, shift = compared.timed.arguments[0], _months_of(compared.timed)
    moment = compared.other
    if compared.how in ("less_equal", "greater"):
        moment = call("add", moment, literal(1, DAY_TIME))
    day = cast(moment, DATE)
    into_day = call("subtract", moment, cast(day, TIMESTAMP))
    first, past = shift.first_day(day), shift.first_day(_next_day(day))
    earlier = compared.how in ("less", "less_equal")
    spans = [_before(argument, first) if earlier else _from(argument, past)]
    for n in range(LONGEST_STAY):
        one = call("date_add", first, literal(n, INTEGER))
        begins = call("if", call("less", one, past), cast(one, TIMESTAMP), literal(None, TIMESTAMP))
        turns, ends = call("add", begins, into_day), call("add", begins, literal(MICROS["day"], DAY_TIME))
        spans.append(_between(argument, begins, turns) if earlier else _between(argument, turns, ends))
    known = [span for span in spans if span is not None]
    return tuple(known) if len(known) == len(spans) else None


def _is_moved_moment(timed: Expression) -> bool:
    return (
        isinstance(timed, Call)
        and timed.function in ("add_months_to", "subtract_months_to")
        and timed.type == TIMESTAMP
        and reads_now(timed.arguments[0])
        and not reads_now(timed.arguments[1])
    )


def _before(argument: Expression, day: Expression) -> Span | None:
    return _solved(Comparison(argument, "less", cast(day, TIMESTAMP)))


def _from(argument: Expression, day: Expression) -> Span | None:
    return _solved(Comparison(argument, "greater_equal", cast(day, TIMESTAMP)))


def _between(argument: Expression, since: Expression, until: Expression) -> Span | None:
    ends = (_solved(Comparison(argument, "greater_equal", since)), _solved(Comparison(argument, "less", until)))
    return None if None in ends else common(span for span in ends if span is not None)


# -- days of a zone's calendar, which are not all of the same length

MOST_TURNS: Final = (
    5  # of a condition: a clock is set near the row's moment, and another near the time at which it passes
)
_LAST: Final = dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)


def _solved_by_local_days(compared: Comparison | None) -> tuple[Span, ...] | None:
    """The spans of a comparison of the current time that is moved by days or months of a zone's calendar."""
    while compared is not None and _local_days(compared.timed) is None:
        compared = _peeled(compared)
    moved = None if compared is None else _local_days(compared.timed)
    if compared is None or moved is None:
        return None
    span, zone = moved
    moment = compared.other
    if compared.how in ("less_equal", "greater"):
        moment = Call("add_time_to", (moment, literal(1, DAY_TIME)), TIMESTAMP, moment.nullable)
    by_months = span.type == YEAR_MONTH
    most = MOST_TURNS + 2 * LONGEST_STAY if by_months else MOST_TURNS
    turns = call("month_turns_in_zone" if by_months else "turns_in_zone", moment, span, zone)
    turn = [call("get", turns, literal(number, INTEGER)) for number in range(most + 1)]
    if compared.how in ("less", "less_equal"):
        return (Span(until=turn[0]), *(Span(turn[n], turn[n + 1]) for n in range(1, most, 2)))
    last = Literal(_LAST, TIMESTAMP)
    return tuple(Span(turn[n], call("coalesce", turn[n + 1], last)) for n in range(0, most, 2))


def _local_days(timed: Expression) -> tuple[Expression, Expression] | None:
    """The interval that is added to what a zone's clock shows now, and the zone."""
    match timed:
        case Call(
            "to_utc_timestamp",
            (Call("add_time_to" | "subtract_time_to" as how, (Call("from_utc_timestamp", (now, zone)), span)), other),
        ) if zone == other and now == Now("timestamp") and not reads_now(span):
            return (span if how == "add_time_to" else call("subtract", literal(0, DAY_TIME), span)), zone
        case Call(
            "to_utc_timestamp", (Call("add_months_to" | "subtract_months_to" as how, (shown, months)), other)
        ) if shown == _clock(Now("timestamp"), other) and not reads_now(months):
            return (months if how == "add_months_to" else call("subtract", literal(0, YEAR_MONTH), months)), other
        case _:
            return None
