"""``EXTRACT(part FROM moment)`` and ``date_part``: the parts of dates, timestamps, times and intervals.

Spark counts the days of a week from Sunday, 1; DuckDB and PostgreSQL from Sunday, 0. What these two have besides, such
as ``epoch`` and ``isodow``, is computed from Spark's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.frontends.sql.expressions import Site
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression
from everview.scalars.kinds import INTERVALS
from everview.types import BIGINT, DOUBLE, INTEGER, TIME, TIMESTAMP, YEAR_MONTH

_WORDS: Final = {
    "year": "year years y yr yrs",
    "quarter": "quarter qtr",
    "month": "month months mon mons",
    "weekofyear": "week weeks w",
    "day": "day days d dayofmonth",
    "dayofyear": "doy dayofyear",
    "dayofweek": "dow dayofweek",
    "hour": "hour hours h hr hrs",
    "minute": "minute minutes m min mins",
    "second_fraction": "second seconds s sec secs",
    "yearofweek": "yearofweek",
}
PARTS: Final = {word: function for function, words in _WORDS.items() for word in words.split()}
PARTS_OF_INTERVALS: Final = {
    True: {"year": "interval_years", "month": "interval_months"},
    False: {
        "day": "interval_days",
        "hour": "interval_hours",
        "minute": "interval_minutes",
        "second_fraction": "interval_seconds",
    },
}
OF_TIME: Final = ("hour", "minute", "second_fraction")


def part(name: str, value: Expression, node: exp.Expr, site: Site) -> Expression:
    """``EXTRACT(name FROM value)``."""
    special = parts_of(site.context.dialect).get(name.lower())
    if special is not None and value.type != TIME and value.type not in INTERVALS:
        return special(value)
    if name.lower() == "epoch" and value.type in INTERVALS and special is not None:
        return _seconds(value)
    extracting = PARTS.get(name.lower())
    if value.type in INTERVALS and extracting is not None:
        extracting = PARTS_OF_INTERVALS[value.type == YEAR_MONTH].get(extracting)
    if value.type == TIME and extracting not in OF_TIME:
        extracting = None
    if extracting is None:
        if value.type == TIME or value.type in INTERVALS:
            hint = "there are the units of the type"
            raise site.context.error(f"EXTRACT({name} …) of {value.type}", node, hint)
        known = dict.fromkeys([*PARTS, *parts_of(site.context.dialect)])
        raise site.context.unsupported(f"EXTRACT({name} …)", node, f"there are {', '.join(known)}")
    return call(extracting, value)


Computed = Callable[[Expression], Expression]


def parts_of(dialect: str) -> dict[str, Computed]:
    """The parts that a dialect computes in a way of its own."""
    if dialect == "duckdb":
        return {**_ELSEWHERE, **_IN_DUCKDB}
    return _ELSEWHERE if dialect.startswith("postgres") else _IN_SPARK


def _plus(function: str, more: int) -> Computed:
    return lambda value: call("add", call(function, value), literal(more, INTEGER))


def _years(years: int) -> Computed:
    """Which of the spans of so many years; the first century is that of the years 1 to 100."""
    return lambda value: cast(call("ceil", call("divide", call("year", value), literal(years))), BIGINT)


def _decade(value: Expression) -> Expression:
    return cast(call("floor", call("divide", call("year", value), literal(10))), BIGINT)


def _epoch(value: Expression) -> Expression:
    """Seconds since 1970, with their fraction."""
    micros = call("unix_micros", cast(value, TIMESTAMP))
    return call("divide", cast(micros, DOUBLE), literal(1e6, DOUBLE))


def _seconds(value: Expression) -> Expression:
    """The seconds of an interval; a month has 30 days, and a year 365 days and a quarter."""
    from everview.frontends.sql.interval_casts import in_smallest_units

    count = in_smallest_units(value)
    if value.type != YEAR_MONTH:
        return call("divide", cast(count, DOUBLE), literal(1e6, DOUBLE))
    years, year = call("integral_divide", count, literal(12)), literal(12 * 30.4375 * 86400, DOUBLE)
    months = call("multiply", cast(call("modulo", count, literal(12)), DOUBLE), literal(30.0 * 86400, DOUBLE))
    return call("add", call("multiply", cast(years, DOUBLE), year), months)


def _fractions(of_a_second: int) -> Computed:
    """The seconds of the minute, in parts of a second."""
    return lambda value: cast(call("multiply", call("second_fraction", value), literal(of_a_second)), BIGINT)


_IN_SPARK: Final[dict[str, Computed]] = dict.fromkeys(("dow_iso", "dayofweek_iso"), _plus("weekday", 1))
_ELSEWHERE: Final[dict[str, Computed]] = {
    **dict.fromkeys(("dow", "dayofweek"), _plus("dayofweek", -1)),
    "isodow": _plus("weekday", 1),
    "isoyear": lambda value: call("yearofweek", value),
    "epoch": _epoch,
    "decade": _decade,
    "century": _years(100),
    "millennium": _years(1000),
    **dict.fromkeys(("millisecond", "milliseconds", "ms"), _fractions(1_000)),
    **dict.fromkeys(("microsecond", "microseconds", "us"), _fractions(1_000_000)),
}
_IN_DUCKDB: Final[dict[str, Computed]] = {
    **dict.fromkeys(_WORDS["second_fraction"].split(), lambda value: cast(call("second", value), BIGINT)),
    "weekday": _plus("dayofweek", -1),
}
