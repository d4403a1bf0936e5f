"""Dates, timestamps and intervals over words: days, microseconds and months."""

from __future__ import annotations

from typing import Final

from everview.operators.word_program import NotInWords, op
from everview.scalars.expressions import Call, Expression, Literal
from everview.scalars.functions.moments import DAY
from everview.scalars.in_words.slots import Handler, Slots
from everview.types import DATE, INTEGER, TIME, TIMESTAMP

_PARTS: Final = {
    "year": op.YEAR,
    "quarter": op.QUARTER,
    "month": op.MONTH,
    "day": op.DAY,
    "dayofyear": op.DAY_OF_YEAR,
    "dayofweek": op.DAY_OF_WEEK,
    "weekday": op.WEEKDAY,
    "weekofyear": op.ISO_WEEK,
    "yearofweek": op.ISO_YEAR,
}
_CLOCK: Final = {"hour": (DAY, 3_600_000_000), "minute": (3_600_000_000, 60_000_000), "second": (60_000_000, 1_000_000)}
_SINCE: Final = {"unix_micros": 1, "unix_millis": 1_000, "unix_seconds": 1_000_000}
_UNTIL: Final = {"timestamp_micros": 1, "timestamp_millis": 1_000, "timestamp_seconds": 1_000_000}
_STARTS: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), op.YEAR),
    "QUARTER": op.QUARTER,
    **dict.fromkeys(("MONTH", "MON", "MM"), op.MONTH),
    "WEEK": op.ISO_WEEK,
}
_UNITS: Final = {
    "DAY": DAY, "DD": DAY, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
    "MILLISECOND": 1_000, "MICROSECOND": 1,
}  # fmt: skip


def _part(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.emit(op.PART_OF_DATE, values[0], _PARTS[call.function], slots.unlimited)


def _clock(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    within, unit = _CLOCK[call.function]
    return slots.floored(slots.rest(values[0], within), unit)


def _second_fraction(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.rest(values[0], 60_000_000)


def _sign(call: Call) -> int:
    return op.SUBTRACT if call.function.removeprefix("try_").startswith(("subtract", "date_sub")) else op.ADD


def _by_days(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(_sign(call), values[0], values[1], slots.range_of(DATE), failure)


def _days_to(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    moment, by = values
    return slots.whole(_sign(call), moment, slots.floored(by, DAY), slots.range_of(DATE), failure)


def _time_to(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(_sign(call), values[0], values[1], slots.range_of(TIMESTAMP), failure)


def _intervals(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(_sign(call), values[0], values[1], slots.range_of(call.type), failure)


def _scaled_interval(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(op.MULTIPLY, values[0], values[1], slots.range_of(call.type), failure)


def _months_to(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    moment, months = values
    if _sign(call) == op.SUBTRACT:
        months = slots.whole(op.SUBTRACT, slots.constant(0), months)
    if call.type == DATE:
        return slots.emit(op.ADD_MONTHS, moment, months, slots.range_of(DATE), failure)
    days = slots.emit(op.ADD_MONTHS, slots.floored(moment, DAY), months, slots.range_of(DATE), failure)
    return _at_day(slots, days, slots.rest(moment, DAY), failure)


def _at_day(slots: Slots, days: int, rest: int, failure: int) -> int:
    return slots.whole(op.ADD, slots.times(days, DAY), rest, slots.range_of(TIMESTAMP), failure)


def _datediff(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(op.SUBTRACT, values[0], values[1], slots.range_of(INTEGER))


def _difference(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    between = slots.whole(op.SUBTRACT, *values)
    return slots.times(between, DAY) if call.function == "subtract_dates" else between


def _last_day(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.emit(op.END_DAY_OF, values[0], op.LAST_DAY, slots.unlimited, op.FAILED)


def _unit_of(argument: Expression) -> str:
    if not isinstance(argument, Literal) or argument.value is None:
        raise NotInWords("a unit of time that is no literal")
    return str(argument.value).upper()


def _trunc(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    which = _STARTS.get(_unit_of(call.arguments[1]))
    if which is None:
        raise NotInWords("a unit of time that there is not")
    return slots.emit(op.END_DAY_OF, values[0], which, slots.range_of(DATE), failure)


def _date_trunc(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    unit, moment = _unit_of(call.arguments[0]), values[1]
    if unit in _UNITS:
        return slots.whole(op.SUBTRACT, moment, slots.rest(moment, _UNITS[unit]))
    which = _STARTS.get(unit)
    if which is None:
        raise NotInWords("a unit of time that there is not")
    days = slots.emit(op.END_DAY_OF, slots.floored(moment, DAY), which, slots.range_of(DATE), failure)
    return slots.times(days, DAY)


def _since(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.floored(values[0], _SINCE[call.function])


def _until(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(
        op.MULTIPLY, values[0], slots.constant(_UNTIL[call.function]), slots.range_of(TIMESTAMP), failure
    )


def _moved_time(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.whole(_sign(call), values[0], values[1], slots.range_of(TIME), failure)


def _time_trunc(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    unit = _UNITS.get(_unit_of(call.arguments[0]))
    if unit is None or unit == DAY:
        raise NotInWords("a unit of time that there is not")
    return slots.whole(op.SUBTRACT, values[1], slots.rest(values[1], unit))


def _time_diff(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    unit = _UNITS.get(_unit_of(call.arguments[0]))
    if unit is None or unit == DAY:
        raise NotInWords("a unit of time that there is not")
    return slots.whole(op.DIVIDE, slots.whole(op.SUBTRACT, values[2], values[1]), slots.constant(unit))


def _part_of_interval(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    """A part with the sign of the whole, so divisions cut off towards zero."""
    within, unit = _OF_INTERVALS[call.function]
    part = values[0] if unit == 1 else slots.whole(op.DIVIDE, values[0], slots.constant(unit))
    if within == 0:
        return part
    above = slots.whole(op.DIVIDE, values[0], slots.constant(within))
    return slots.whole(op.SUBTRACT, part, slots.times(above, within // unit))


def _time_from(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    unit = {"time_from_millis": 1_000}.get(call.function, 1)
    return slots.whole(op.MULTIPLY, values[0], slots.constant(unit), slots.range_of(TIME), failure)


def _time_to_units(slots: Slots, call: Call, values: list[int], failure: int) -> int:
    return slots.floored(values[0], 1_000 if call.function == "time_to_millis" else 1)


# Of a part of an interval: within which unit it counts, 0 for all, and its own.
_OF_INTERVALS: Final = {
    "interval_years": (0, 12),
    "interval_months": (12, 1),
    "interval_days": (0, DAY),
    "interval_hours": (DAY, 3_600_000_000),
    "interval_minutes": (3_600_000_000, 60_000_000),
    "interval_seconds": (60_000_000, 1),
}
FUNCTIONS: Final[dict[str, Handler]] = {
    **dict.fromkeys(_PARTS, _part),
    **dict.fromkeys(_CLOCK, _clock),
    "second_fraction": _second_fraction,
    "date_add": _by_days,
    "date_sub": _by_days,
    "add_months": _months_to,
    "add_months_to": _months_to,
    "subtract_months_to": _months_to,
    "add_days_to": _days_to,
    "subtract_days_to": _days_to,
    "add_time_to": _time_to,
    "subtract_time_to": _time_to,
    "add_intervals": _intervals,
    "subtract_intervals": _intervals,
    "scale_interval": _scaled_interval,
    "add_to_time": _moved_time,
    "subtract_from_time": _moved_time,
    "time_trunc": _time_trunc,
    "time_diff": _time_diff,
    "time_from_millis": _time_from,
    "time_from_micros": _time_from,
    "time_from_seconds": _time_from,
    "time_to_seconds": _time_to_units,
    "time_to_millis": _time_to_units,
    "time_to_micros": _time_to_units,
    **dict.fromkeys(_OF_INTERVALS, _part_of_interval),
    "datediff": _datediff,
    "subtract_dates": _difference,
    "subtract_timestamps": _difference,
    "last_day": _last_day,
    "trunc": _trunc,
    "date_trunc": _date_trunc,
    **dict.fromkeys(_SINCE, _since),
    **dict.fromkeys(_UNTIL, _until),
}
