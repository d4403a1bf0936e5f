"""Casts to and from intervals of some units, and to times of day of some digits.

A type holds all months, all days, or all microseconds; which units a cast names says what is cut off, and in which
unit a number is: ``CAST(lasts AS INTERVAL HOUR)`` has whole hours, and ``CAST(5 AS INTERVAL HOUR)`` has five.
"""

from __future__ import annotations

import decimal
from typing import Final

from sqlglot import exp

from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.types import duration, interval_of
from everview.plan.typing import call, cast, is_integer, literal
from everview.scalars.expressions import Expression
from everview.scalars.kinds import MONTHS
from everview.types import BIGINT, DAY_TIME, INTERVALS, STRING, TIME, YEAR_MONTH, Decimal, Type

# How many of what numbers count (months, or seconds) are in the last unit of an interval.
_COUNTED: Final = {"YEAR": MONTHS["year"], "MONTH": 1, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_MILLION, _MILLIONTH = decimal.Decimal(1_000_000), decimal.Decimal("0.000001")
_DIGITS: Final = 6  # of the fraction of a second


def cast_by_units(node: exp.Cast, value: Expression, type_: Type, context: QueryContext) -> Expression | None:
    """A cast whose units or digits matter; None if the types alone say all."""
    if isinstance(node.to.this, exp.Interval):
        return _to_units(node, value, type_, context)
    if value.type in INTERVALS and (is_integer(type_) or isinstance(type_, Decimal)):
        return _from_unit(node, value, type_, context)
    if type_ == TIME and node.to.expressions:
        return _to_digits(int(node.to.expressions[0].name), value, bool(node.args.get("safe")))
    return None


def _to_units(node: exp.Cast, value: Expression, type_: Type, context: QueryContext) -> Expression | None:
    units, _ = interval_of(node.to, context)
    try_, last = bool(node.args.get("safe")), units.split()[-1]
    if value.type == STRING and units not in ("YEAR TO MONTH", "DAY TO SECOND", "DAY"):
        return _read(node, units, context)
    if type_ not in (YEAR_MONTH, DAY_TIME) or (_COUNTED.get(last) == 1 and units in (last, "DAY TO SECOND")):
        return None
    counted = _COUNTED[last]
    if value.type in INTERVALS:
        whole = cast(value, type_, try_=try_)
        return (
            whole if counted == 1 else _multiple(call("integral_divide", cast(whole, BIGINT), literal(counted)), last)
        )
    if not (is_integer(value.type) or isinstance(value.type, Decimal)):
        return None
    if " " in units:
        hint = f"cast to an interval of one unit, as in INTERVAL {last}"
        raise context.error(f"a cast of {value.type} to INTERVAL {units}: in which unit?", node, hint)
    if isinstance(value.type, Decimal) and value.type.scale:
        raise context.unsupported(
            f"a cast of {value.type} to INTERVAL {units}", node, "round it to a whole number first"
        )
    return _multiple(cast(value, BIGINT, try_=try_), last)


def _multiple(count: Expression, unit: str) -> Expression:
    """An interval of so many units."""
    type_ = YEAR_MONTH if unit in ("YEAR", "MONTH") else DAY_TIME
    return cast(call("multiply", count, literal(_COUNTED[unit], BIGINT)), type_)


def _read(node: exp.Cast, units: str, context: QueryContext) -> Expression:
    """A literal text as an interval of units."""
    inner = node.this
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        hint = "cast to INTERVAL YEAR TO MONTH, INTERVAL DAY or INTERVAL DAY TO SECOND"
        raise context.unsupported(f"a cast of STRING to INTERVAL {units}", node, hint)
    assert isinstance(node.to.this, exp.Interval)
    made = duration(exp.Interval(this=inner.copy(), unit=node.to.this.args["unit"]), context)
    assert made is not None, "a literal amount makes a literal interval"
    return made


def _from_unit(node: exp.Cast, value: Expression, type_: Type, context: QueryContext) -> Expression | None:
    """An interval as a number of the one unit that it was written or cast with."""
    unit = _unit_of(node.this, context)
    if unit is None or _COUNTED.get(unit, 1) == 1:
        return None
    try_ = bool(node.args.get("safe"))
    return cast(call("integral_divide", cast(value, BIGINT), literal(_COUNTED[unit])), type_, try_=try_)


def _unit_of(node: exp.Expr, context: QueryContext) -> str | None:
    """The one unit of an interval that is written down, or that a cast names."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    if isinstance(node, exp.Cast) and isinstance(node.to.this, exp.Interval):
        units, _ = interval_of(node.to, context)
        return None if " " in units else units
    unit = node.args.get("unit") if isinstance(node, exp.Interval) else None
    if unit is None or isinstance(unit, exp.IntervalSpan):
        return None
    return unit.name.upper().removesuffix("S")


def _to_digits(digits: int, value: Expression, try_: bool) -> Expression | None:
    """A time of day with so many digits of seconds; the others are cut off."""
    if digits == _DIGITS:
        return None
    step = literal(10 ** (_DIGITS - digits), BIGINT)
    micros = call("time_to_micros", cast(value, TIME, try_=try_))
    return call("time_from_micros", call("multiply", call("integral_divide", micros, step), step))


# -- percentiles, which are computed of numbers


def in_smallest_units(value: Expression) -> Expression:
    """An interval as its number of months, or of microseconds."""
    if value.type == YEAR_MONTH:
        return cast(value, BIGINT)
    seconds = cast(cast(value, DAY_TIME), Decimal(25, 6))
    return cast(call("multiply", seconds, literal(_MILLION, Decimal(7, 0))), BIGINT)


def as_interval(value: Expression, counted: Type) -> Expression:
    """A number of an interval's smallest units as an interval, what is between two cut off."""
    whole = cast(value, BIGINT)
    if counted == YEAR_MONTH:
        return cast(whole, YEAR_MONTH)
    exact = call("multiply", cast(whole, Decimal(19, 0)), literal(_MILLIONTH, Decimal(6, 6)))
    return cast(exact, DAY_TIME)
