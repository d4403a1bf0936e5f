"""Moments of DuckDB and PostgreSQL: differences in units, sums with intervals, buckets, and counts since 1970."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.interval_casts import in_smallest_units
from everview.plan.typing import call, cast, interval, literal
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import MICROS
from everview.types import BIGINT, DATE, INTERVALS, TIMESTAMP, TIMESTAMP_NTZ, YEAR_MONTH

Bind = Callable[[exp.Expr, Site], Expression]
_EPOCH: Final = Literal(dt.datetime(1970, 1, 1), TIMESTAMP_NTZ)
_YEARS: Final = {"decade": 10, "century": 100, "millennium": 1000}
_BY_CALENDAR: Final = ("year", "quarter", "month", *_YEARS)


def micros(moment: Expression) -> Expression:
    """The microseconds of a moment since 1970, on its own clock if it is in no zone."""
    if moment.type == TIMESTAMP:
        return call("unix_micros", moment)
    return in_smallest_units(call("subtract", cast(moment, TIMESTAMP_NTZ), _EPOCH))


def difference(node: exp.Expr, site: Site) -> Expression:
    """``date_diff('hour', start, end)``: how many hours begin between two moments."""
    unit_node = node.args.get("unit")
    if unit_node is None:
        raise site.context.error("date_diff in which unit?", node, "write date_diff('day', start, end)")
    end, start = expression(node.this, site), expression(node.expression, site)
    unit = _unit(unit_node.name)
    if unit in _BY_CALENDAR:
        first, last = (_place_in_calendar(unit, moment) for moment in (start, end))
    elif unit == "week":
        return call("integral_divide", cast(call("datediff", end, start), BIGINT), literal(7, BIGINT))
    elif unit in MICROS:
        first, last = (_begun(unit, micros(moment)) for moment in (start, end))
    else:
        known = ", ".join((*_BY_CALENDAR, *MICROS))
        raise site.context.error(f"date_diff in {unit_node.name.lower()[:30]}", node, f"the units are {known}")
    return call("subtract", last, first)


def _unit(name: str) -> str:
    unit = name.lower()
    return {"centuries": "century", "millennia": "millennium", "millenia": "millennium"}.get(unit) or (
        unit if unit in MICROS or unit in _BY_CALENDAR else unit.removesuffix("s")
    )


def _place_in_calendar(unit: str, moment: Expression) -> Expression:
    """The number of a month, a quarter, a year, or of several years."""
    year = call("year", moment)
    if unit in ("month", "quarter"):
        return call("add", call("multiply", year, literal(12 if unit == "month" else 4)), call(unit, moment))
    years = _YEARS.get(unit, 1)
    return call("integral_divide", call("subtract", year, call("pmod", year, literal(years))), literal(years))


def truncated(name: str, moment: Expression, node: exp.Expr, site: Site) -> Expression:
    """The beginning of a unit of time; PostgreSQL counts centuries from the year 1."""
    unit = _unit(name)
    if unit not in _YEARS:
        if unit not in MICROS and unit not in _BY_CALENDAR:
            known = ", ".join((*_BY_CALENDAR, *MICROS))
            raise site.context.error(f"date_trunc to {name.lower()[:30]}", node, f"the units are {known}")
        return call("date_trunc", literal(unit), moment)
    first = literal(0 if unit == "decade" or site.context.dialect == "duckdb" else 1)
    year = call("year", moment)
    begun = call("subtract", year, call("pmod", call("subtract", year, first), literal(_YEARS[unit])))
    return cast(
        call("make_date", begun, literal(1), literal(1)), TIMESTAMP if moment.type == TIMESTAMP else TIMESTAMP_NTZ
    )


def _begun(unit: str, count: Expression) -> Expression:
    """How many units have begun since 1970."""
    size = literal(MICROS[unit], BIGINT)
    return call("integral_divide", call("subtract", count, call("pmod", count, size)), size)


def whole_units(node: exp.Expr, site: Site) -> Expression:
    """``date_sub('hour', start, end)``: how many whole hours lie between two moments."""
    if len(node.expressions) != 3:
        raise site.context.error("date_sub takes a unit and two moments", node, "write date_sub('hour', a, b)")
    unit = _unit(node.expressions[0].name)
    if unit not in MICROS:
        hint = "the day of a month counts otherwise in each database; date_diff counts the months that begin"
        raise site.context.unsupported(f"date_sub in {unit}s", node, hint)
    start, end = (micros(expression(moment, site)) for moment in node.expressions[1:])
    return call("integral_divide", call("subtract", end, start), literal(MICROS[unit], BIGINT))


def added(node: exp.Expr, site: Site) -> Expression:
    """``date_add(d, INTERVAL 1 DAY)``, which is a timestamp as ``d + INTERVAL 1 DAY`` is."""
    value, by = expression(node.this, site), expression(node.expression, site)
    if by.type in INTERVALS and value.type == DATE:
        value = cast(value, TIMESTAMP_NTZ)
    return call("add", value, by) if by.type in INTERVALS else call("date_add", value, by)


def counted(moment: Expression, unit: int) -> Expression:
    """A moment as a number of so many microseconds since 1970; a number as the moment."""
    if moment.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        made = call("multiply", cast(moment, BIGINT), literal(unit, BIGINT))
        return cast(call("timestamp_micros", made), TIMESTAMP_NTZ)
    size, count = literal(unit, BIGINT), micros(moment)
    return call("integral_divide", call("subtract", count, call("pmod", count, size)), size)


def units(unit: str) -> Bind:
    """The function that makes an interval of so many units: ``to_days(3)``."""

    def bind(node: exp.Expr, site: Site) -> Expression:
        arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
        if len(arguments) != 1:
            raise site.context.error(f"to_{unit}s takes one number", node, f"write to_{unit}s(3)")
        return call("multiply", expression(arguments[0], site), interval(1, unit))

    return bind


def bucket(node: exp.Expr, site: Site) -> Expression:
    """``time_bucket(INTERVAL '10 minutes', ts)``: the beginning of the bucket, counted from Monday, 2000-01-03.

    Buckets of months are counted from 2000-01-01.
    """
    if node.args.get("unit") is not None or node.args.get("zone") is not None:
        raise site.context.unsupported("time_bucket with an origin or a zone", node, "write it in Spark's dialect")
    width, moment = expression(node.this, site), expression(node.expression, site)
    first = dt.datetime(2000, 1, 1 if width.type == YEAR_MONTH else 3)
    begun = call("time_bucket", width, cast(moment, TIMESTAMP_NTZ), Literal(first, TIMESTAMP_NTZ))
    return cast(begun, moment.type)


def binned(node: exp.Expr, site: Site) -> Expression:
    """``date_bin('15 minutes', ts, origin)`` of PostgreSQL: the beginning of the bucket, counted from a moment."""
    origin = node.args.get("unit")
    if not isinstance(origin, exp.Expr) or node.args.get("zone") is not None:
        raise site.context.error(
            "date_bin counts from when?", node, "write date_bin('15 minutes', ts, TIMESTAMP '2001-01-01')"
        )
    width = expression(exp.cast(node.this.copy(), exp.DType.INTERVAL) if node.this.is_string else node.this, site)
    moment, first = expression(node.expression, site), expression(origin, site)
    return cast(call("time_bucket", width, *(cast(m, TIMESTAMP_NTZ) for m in (moment, first))), moment.type)
