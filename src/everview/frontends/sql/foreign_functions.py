"""Functions of DuckDB and PostgreSQL that Spark does not have, or has with another meaning."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.frontends.sql.date_parts import part, parts_of
from everview.frontends.sql.expressions import POSTGRES, Site, expression
from everview.frontends.sql.foreign_texts import (
    duckdb_substring,
    end_counts_alike,
    left_end,
    postgres_substring,
    regexp_replace,
    right_end,
    substring_counts_alike,
)
from everview.frontends.sql.series import SeriesCall
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression, Literal
from everview.types import DATE, DOUBLE, FLOAT, TIMESTAMP_NTZ, Array, Decimal

Foreign = Callable[[exp.Expr, Site], Expression]


def foreign_function(node: exp.Expr, site: Site) -> Expression | None:
    """A call bound as its dialect means it; None if Spark means the same or the dialect has no such function."""
    bind = _bound_by(node, site.context.dialect)
    return None if bind is None else bind(node, site)


def is_foreign(node: exp.Expr, dialect: str) -> bool:
    """Whether Spark would answer a call of a dialect otherwise, or not at all."""
    if isinstance(node, exp.Extract):
        return node.this.name.lower() in parts_of(dialect) and dialect != "spark"
    return _bound_by(node, dialect) is not None


def _bound_by(node: exp.Expr, dialect: str) -> Foreign | None:
    if dialect == "spark":
        return None
    by_name, by_class = _TABLES.get("postgres" if dialect in POSTGRES else dialect, (_OF_OTHERS, _OF_OTHER_CLASSES))
    if isinstance(node, exp.Anonymous):
        return by_name.get(node.name.lower())
    alike = _ALIKE.get(type(node))
    return None if alike is not None and alike(node) else by_class.get(type(node))


def _only(node: exp.Expr, site: Site) -> Expression:
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
    if len(arguments) != 1:
        name = node.name.lower()
        raise site.context.error(f"{name} takes one argument, and was given {len(arguments)}", node)
    return expression(arguments[0], site)


def _part(name: str) -> Foreign:
    return lambda node, site: part(name, _only(node, site), node, site)


def _series(node: exp.Expr, site: Site) -> Expression:
    return SeriesCall.of(node).array(site)


def _finite(node: exp.Expr, site: Site) -> Expression:
    """Whether a number is neither infinite nor NaN, which is above all."""
    return call("less", call("abs", cast(_only(node, site), DOUBLE)), literal(math.inf, DOUBLE))


def _infinite(node: exp.Expr, site: Site) -> Expression:
    return call("equal", call("abs", cast(_only(node, site), DOUBLE)), literal(math.inf, DOUBLE))


def _length(node: exp.Expr, site: Site) -> Expression:
    """The length of a text or of an array."""
    value = _only(node, site)
    return call("array_size" if isinstance(value.type, Array) else "length", value)


# -- numbers


def _logarithm(node: exp.Expr, site: Site) -> Expression:
    """The logarithm to a base that is given first, or to the base 10."""
    parts = [expression(part, site) for part in (node.this, node.expression) if isinstance(part, exp.Expr)]
    return call("log10" if len(parts) == 1 else "log", *parts)


def _truncated(node: exp.Expr, site: Site) -> Expression:
    """A number without its digits after the point, or with the first of them."""
    value, digits = expression(node.this, site), node.args.get("decimals")
    places = literal(0) if digits is None else expression(digits, site)
    if not isinstance(places, Literal) or not isinstance(places.value, int):
        raise site.context.unsupported("a number of digits that is not written down", node, "write trunc(x, 2)")
    if isinstance(value.type, Decimal) and places.value >= 0:
        scale = min(places.value, value.type.scale)
        unit = literal(decimal.Decimal(1).scaleb(-scale))
        kept = call("subtract", value, call("modulo", value, unit))
        whole = value.type.precision - value.type.scale
        return cast(kept, Decimal(min(max(whole + scale, 1), 38), scale))
    if places.value:
        raise site.context.unsupported(f"trunc of {value.type.sql} to digits", node, "cast to DECIMAL(38, 9) first")
    if value.type in (DOUBLE, FLOAT):
        return call("subtract", value, call("modulo", value, literal(1.0, value.type)))
    return value


def _rounded_to_even(node: exp.Expr, site: Site) -> Expression:
    """The nearest whole number; a float halfway between two goes to the even one."""
    parts = [expression(part, site) for part in (node.this, node.args.get("decimals")) if isinstance(part, exp.Expr)]
    return call("bround" if parts[0].type in (DOUBLE, FLOAT) else "round", *parts)


def _hexadecimal(node: exp.Expr, site: Site) -> Expression:
    return call("lower", call("hex", _only(node, site)))


# -- moments and lists


def _formatted(pattern: str) -> Foreign:
    """A moment as text."""
    return lambda node, site: call("date_format", _only(node, site), literal(pattern))


def _date_trunc(node: exp.Expr, site: Site) -> Expression:
    """The beginning of a unit of time, on a clock in no zone unless the moment has one."""
    site.context.only(node, "this", "unit", "input_type_preserved")
    moment = expression(node.this, site)
    begun = call("date_trunc", literal(node.args["unit"].name), moment)
    return cast(begun, TIMESTAMP_NTZ) if moment.type in (DATE, TIMESTAMP_NTZ) else begun


def _distinct_elements(node: exp.Expr, site: Site) -> Expression:
    """The different elements of a list, without NULL."""
    return call("array_distinct", call("array_compact", _only(node, site)))


def _refused_format(node: exp.Expr, site: Site) -> Expression:
    raise site.context.unsupported("format with {}", node, "write printf('%s', x), or concat")


_OF_OTHERS: Final[dict[str, Foreign]] = {"generate_series": _series}
_OF_DUCKDB: Final[dict[str, Foreign]] = {
    **_OF_OTHERS,
    **{name: _part(name) for name in ("weekday", "epoch", "isoyear", "century", "decade", "millennium")},
    "range": _series,
    "len": _length,
    "isfinite": _finite,
    "isinf": _infinite,
}
_OF_OTHER_CLASSES: Final[dict[type[exp.Expr], Foreign]] = {exp.GenerateSeries: _series}
_OF_BOTH: Final[dict[type[exp.Expr], Foreign]] = {
    **_OF_OTHER_CLASSES,
    exp.Left: left_end,
    exp.Log: _logarithm,
    exp.RegexpReplace: regexp_replace,
    exp.Right: right_end,
    exp.Trunc: _truncated,
}
_CLASSES: Final[dict[type[exp.Expr], Foreign]] = {
    **_OF_BOTH,
    exp.ArrayDistinct: _distinct_elements,
    exp.DayOfWeek: _part("dow"),
    exp.DayOfWeekIso: _part("isodow"),
    exp.Dayname: _formatted("EEEE"),
    exp.Format: _refused_format,
    exp.IsInf: _infinite,
    exp.Length: _length,
    exp.Monthname: _formatted("MMMM"),
    exp.Substring: duckdb_substring,
    exp.TimeToUnix: _part("epoch"),
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _date_trunc,
}
_OF_POSTGRES: Final[dict[type[exp.Expr], Foreign]] = {
    **_OF_BOTH,
    exp.Hex: _hexadecimal,
    exp.Round: _rounded_to_even,
    exp.Substring: postgres_substring,
}
_TABLES: Final = {"duckdb": (_OF_DUCKDB, _CLASSES), "postgres": (_OF_OTHERS, _OF_POSTGRES)}
# Calls of which Spark means the same, as far as their text tells.
_ALIKE: Final[dict[type[exp.Expr], Callable[[exp.Expr], bool]]] = {
    exp.Left: end_counts_alike,
    exp.Right: end_counts_alike,
    exp.Substring: substring_counts_alike,
    exp.Log: lambda node: isinstance(node.expression, exp.Expr),
    exp.Round: lambda node: node.args.get("decimals") is not None,
}
