"""Functions of DuckDB and PostgreSQL that Spark does not have, or has with another meaning."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.frontends.sql.date_parts import part, parts_of
from everview.frontends.sql.expressions import POSTGRES, Site, expression
from everview.frontends.sql.foreign_casts import ESCAPING, duckdb_type
from everview.frontends.sql.foreign_json import (
    array_text,
    at_path,
    built_array,
    built_object,
    extracted_path,
    object_text,
    to_variant,
)
from everview.frontends.sql.foreign_lists import aggregated, extracted, inserted, row, slice_call
from everview.frontends.sql.foreign_moments import (
    added,
    binned,
    bucket,
    counted,
    difference,
    truncated,
    units,
    whole_units,
)
from everview.frontends.sql.foreign_patterns import by_percents, read_moment, shown_moment
from everview.frontends.sql.foreign_templates import Template, by_template, filled, from_template
from everview.frontends.sql.foreign_texts import (
    duckdb_substring,
    end_counts_alike,
    formatted,
    joined,
    left_end,
    postgres_substring,
    regexp_replace,
    right_end,
    substring_counts_alike,
)
from everview.frontends.sql.series import SeriesCall
from everview.plan.typing import call, cast, is_integer, literal
from everview.scalars.expressions import Expression, Literal
from everview.types import BIGINT, DATE, DOUBLE, FLOAT, INTEGER, TIMESTAMP_NTZ, Array, Decimal

Foreign = Callable[[exp.Expr, Site], Expression]


def foreign_function(node: exp.Expr, site: Site) -> Expression | None:
    """A call bound as its dialect means it; None if Spark means the same or the dialect has no such function."""
    bind = _bound_by(node, site.context.dialect)
    if bind is not None:
        return bind(node, site)
    known = _template_of(node, site.context.dialect)
    if known is None:
        return None
    template, arguments = known
    return filled(template, [expression(argument, site) for argument in arguments], site)


def _template_of(node: exp.Expr, dialect: str) -> tuple[Template, list[exp.Expr]] | None:
    name = "postgres" if dialect in POSTGRES else dialect
    return from_template(node, name) if name in _TABLES else None


def is_foreign(node: exp.Expr, dialect: str) -> bool:
    """Whether Spark would answer a call of a dialect otherwise, or not at all."""
    if isinstance(node, exp.Extract):
        return node.this.name.lower() in parts_of(dialect) and dialect != "spark"
    if isinstance(node, exp.Cast):
        return dialect in ESCAPING and (node.to.this in _CAST_OTHERWISE or isinstance(node.to.this, exp.Interval))
    if isinstance(node, (exp.SimilarTo, exp.Slice, exp.Comprehension)):
        return True
    return _bound_by(node, dialect) is not None or _template_of(node, dialect) is not None


_CAST_OTHERWISE: Final = (*(exp.DType.VARCHAR, exp.DType.TEXT, exp.DType.CHAR), exp.DType.VARBINARY, exp.DType.INTERVAL)


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
    base = parts[0].value if len(parts) > 1 and isinstance(parts[0], Literal) else 10
    dialect = "postgres" if site.context.dialect in POSTGRES else site.context.dialect
    made = by_template(f"log{base}", parts[-1:], dialect, site) if base in (2, 10) else None
    return call("log", *parts) if made is None else made


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
    return without_fraction("trunc", value)


_WITH_FRACTION: Final = float(2**52)  # a float of which the absolute value is less may have one


def without_fraction(function: str, value: Expression) -> Expression:
    """A float without a fraction, which stays a float: it may be beyond all integers."""
    if value.type not in (DOUBLE, FLOAT):
        return value if function == "trunc" else call(function, value)
    small = call("less", call("abs", value), literal(_WITH_FRACTION, value.type))
    fraction = call("if", small, value, literal(0.0, value.type))
    if function == "trunc":
        made = call("subtract", fraction, call("modulo", fraction, literal(1.0, value.type)))
    else:
        made = cast(call(function, fraction), value.type)
    return call("if", small, made, value)


def _rounded_to_even(node: exp.Expr, site: Site) -> Expression:
    """The nearest whole number; a float halfway between two goes to the even one."""
    parts = [expression(part, site) for part in (node.this, node.args.get("decimals")) if isinstance(part, exp.Expr)]
    return call("bround" if parts[0].type in (DOUBLE, FLOAT) else "round", *parts)


def _hexadecimal(node: exp.Expr, site: Site) -> Expression:
    """The digits of a number; of a negative one as many as its type has."""
    value = _only(node, site)
    if value.type == INTEGER:
        value = call("bit_and", cast(value, BIGINT), literal(2**32 - 1))
    return call("lower", call("hex", value))


# -- moments and lists


def _formatted(pattern: str) -> Foreign:
    """A moment as text."""
    return lambda node, site: call("date_format", _only(node, site), literal(pattern))


def _date_trunc(node: exp.Expr, site: Site) -> Expression:
    """The beginning of a unit of time, on a clock in no zone unless the moment has one."""
    site.context.only(node, "this", "unit", "input_type_preserved")
    moment = expression(node.this, site)
    begun = truncated(node.args["unit"].name, moment, node, site)
    return cast(begun, TIMESTAMP_NTZ) if moment.type in (DATE, TIMESTAMP_NTZ) else begun


def _distinct_elements(node: exp.Expr, site: Site) -> Expression:
    """The different elements of a list, without NULL."""
    return call("array_distinct", call("array_compact", _only(node, site)))


def _cased(function: str) -> Foreign:
    """A text with every letter for itself in another case: ß is no SS."""

    def bind(node: exp.Expr, site: Site) -> Expression:
        name = "duckdb" if site.context.dialect == "duckdb" else "postgres"
        return call(function, _only(node, site), literal(name))

    return bind


def _of_two(function: str, *keys: str) -> Foreign:
    """A function whose arguments sqlglot has under other names, or under a name of its own."""

    def bind(node: exp.Expr, site: Site) -> Expression:
        parts = [node.args.get(key) for key in keys] if keys else node.expressions
        return call(function, *(expression(part, site) for part in parts if isinstance(part, exp.Expr)))

    return bind


def _divided(node: exp.Expr, site: Site) -> Expression:
    """``divide(7, 2)``: whole numbers are divided as by ``//``, all others as by ``/``."""
    a, b = (expression(argument, site) for argument in node.expressions)
    if is_integer(a.type) and is_integer(b.type):
        return call("integral_divide", a, b)
    return call("divide", *(cast(side, DOUBLE) for side in (a, b)))


def _type_name(node: exp.Expr, site: Site) -> Expression:
    return literal(duckdb_type(_only(node, site).type))


def _since_1970(micros: int) -> Foreign:
    """A moment as a number of so many microseconds since 1970."""
    return lambda node, site: counted(_only(node, site), micros)


_OF_OTHERS: Final[dict[str, Foreign]] = {"generate_series": _series, "row": row}
_OF_DUCKDB: Final[dict[str, Foreign]] = {
    **_OF_OTHERS,
    **{name: _part(name) for name in ("weekday", "epoch", "isoyear", "century", "decade", "millennium")},
    "range": _series,
    "len": _length,
    "isfinite": _finite,
    "isinf": _infinite,
    "struct_insert": inserted,
    "divide": _divided,
    "date_sub": whole_units,
    "datesub": whole_units,
    **dict.fromkeys(("list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate"), aggregated),
    **dict.fromkeys(("list_slice", "array_slice"), slice_call),
    **dict.fromkeys(("list_extract", "list_element", "array_extract"), extracted),
    **{f"to_{unit}s": units(unit) for unit in ("day", "week", "hour", "minute", "second", "month", "year")},
    "to_milliseconds": units("millisecond"),
    "to_microseconds": units("microsecond"),
    "epoch_ms": _since_1970(1_000),
    "epoch_us": _since_1970(1),
    "gcd": _of_two("gcd"),
    "greatest_common_divisor": _of_two("gcd"),
    "lcm": _of_two("lcm"),
    "least_common_multiple": _of_two("lcm"),
}
_OF_OTHER_CLASSES: Final[dict[type[exp.Expr], Foreign]] = {exp.Concat: joined, exp.GenerateSeries: _series}
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
    exp.DateAdd: added,
    exp.DateBin: bucket,
    exp.DateDiff: difference,
    exp.Format: formatted,
    exp.JSONArray: array_text,
    exp.JSONObject: object_text,
    exp.JarowinklerSimilarity: _of_two("jaro_winkler_similarity", "this", "expression"),
    exp.Lower: _cased("lower_letters"),
    exp.TimeFromParts: _of_two("make_time", "hour", "min", "sec"),
    exp.Typeof: _type_name,
    exp.UnixToTime: _since_1970(1_000),
    exp.Upper: _cased("upper_letters"),
    exp.IsInf: _infinite,
    exp.Length: _length,
    exp.Monthname: _formatted("MMMM"),
    exp.Substring: duckdb_substring,
    exp.TimeToStr: by_percents,
    exp.TimeToUnix: _part("epoch"),
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _date_trunc,
}
_OF_POSTGRES: Final[dict[type[exp.Expr], Foreign]] = {
    **_OF_BOTH,
    exp.DateBin: binned,
    exp.Hex: _hexadecimal,
    exp.Initcap: lambda node, site: call("capitalized", expression(node.this, site)),
    exp.Lower: _cased("lower_letters"),
    exp.JSONBExtract: at_path,
    exp.JSONBExtractScalar: at_path,
    exp.TimestampTrunc: _date_trunc,
    exp.Upper: _cased("upper_letters"),
    exp.Round: _rounded_to_even,
    exp.Substring: postgres_substring,
}
_NAMES_OF_POSTGRES: Final[dict[str, Foreign]] = {
    **_OF_OTHERS,
    "gcd": _of_two("gcd"),
    "lcm": _of_two("lcm"),
    "jsonb_build_object": built_object,
    "jsonb_build_array": built_array,
    "to_jsonb": to_variant,
    "jsonb_extract_path": extracted_path,
    "jsonb_extract_path_text": extracted_path,
    "to_char": shown_moment,
    "to_date": read_moment,
    "to_timestamp": read_moment,
}
_TABLES: Final = {"duckdb": (_OF_DUCKDB, _CLASSES), "postgres": (_NAMES_OF_POSTGRES, _OF_POSTGRES)}
# Calls of which Spark means the same, as far as their text tells.
_ALIKE: Final[dict[type[exp.Expr], Callable[[exp.Expr], bool]]] = {
    exp.Left: end_counts_alike,
    exp.Right: end_counts_alike,
    exp.Substring: substring_counts_alike,
    exp.Round: lambda node: node.args.get("decimals") is not None,
}
