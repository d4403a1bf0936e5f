"""Calls of scalar functions: by the name that was written, in syntax of their own, or in another dialect's spelling.

A function of another dialect is rendered by sqlglot as Spark would write it, with its arguments already bound, and
Spark's spelling is bound in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from everview.errors import SqlError, UnknownName
from everview.frontends.sql import aggregates, generators, timespans
from everview.frontends.sql.expressions import Site, expression, handles
from everview.frontends.sql.names import short
from everview.frontends.sql.parse import parse_expression
from everview.frontends.sql.schemas import DEFAULT
from everview.frontends.sql.written import NAMES, is_window_function
from everview.later import Later
from everview.plan.typing import call, cast, coerced, implicit, interval, is_function, literal, unknown_unit
from everview.scalars.expressions import Expression, Literal, Now, UserCall
from everview.scalars.kinds import MICROS, MONTHS
from everview.scalars.session_zone import today
from everview.types import (
    BIGINT,
    INTEGER,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    parse_type,
    unknown_name,
)

if TYPE_CHECKING:
    from everview.frontends.sql.date_parts import part
    from everview.frontends.sql.foreign_functions import foreign_function
    from everview.frontends.sql.lambdas import lambda_call
    from everview.frontends.sql.macros import expanded
    from everview.frontends.sql.sketches import estimate
else:
    estimate = Later("everview.frontends.sql.sketches", "estimate")
    part = Later("everview.frontends.sql.date_parts", "part")
    foreign_function = Later("everview.frontends.sql.foreign_functions", "foreign_function")
    lambda_call = Later("everview.frontends.sql.lambdas", "lambda_call")
    expanded = Later("everview.frontends.sql.macros", "expanded")

GIVEN = "given to the function "  # no column is called so
CASTS = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
    "time",
]
CHANCE = (
    *("rand", "random", "randn", "uniform", "uuid", "shuffle", "monotonically_increasing_id", "gen_random_uuid"),
    *("randstr", "spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"),
)


def function(node: exp.Expr, site: Site) -> Expression:
    """Bind a call of a function."""
    applied = lambda_call(node, site) if node.find(exp.Lambda) is not None else None
    if applied is not None:
        return applied
    aggregate = aggregates.aggregate(node, site)
    if aggregate is not None:
        return aggregate
    foreign = foreign_function(node, site)
    if foreign is not None:
        return foreign
    if isinstance(node, exp.Anonymous):
        site.context.only(node, "this", "expressions")
        return by_name(node.name.lower(), node.expressions, node, site)
    return _in_spark(node, site)


# The parameters of functions that Spark lets be given by name.
PARAMETERS: dict[str, tuple[str, ...]] = {"mask": ("str", "upperchar", "lowerchar", "digitchar", "otherchar")}
_MARKS = ("X", "x", "n", None)  # of mask, where none are given


def _in_places(name: str, arguments: list[exp.Expr], site: Site) -> list[exp.Expr]:
    """The arguments in the order of the parameters; a parameter skipped between named arguments has its default."""
    named = [part for part in arguments if isinstance(part, exp.Kwarg)]
    if not named or name not in PARAMETERS:
        return arguments
    known = PARAMETERS[name]
    places: dict[str, exp.Expr] = dict(zip(known, arguments[: -len(named)], strict=False))
    for given in named:
        parameter = given.this.name.lower()
        if parameter not in known or parameter in places:
            what = "twice" if parameter in places else f"that {name} does not have"
            raise site.context.error(
                f'the argument "{short(given.this.name)}" {what}', given, f"it has {', '.join(known)}"
            )
        places[parameter] = given.expression
    if known[0] not in places:
        raise site.context.error(f"{name} of what?", named[0], f"give {known[0]}")
    texts = (exp.Null() if mark is None else exp.Literal.string(mark) for mark in _MARKS)
    return [places.get(parameter, default) for parameter, default in zip(known, (exp.Null(), *texts), strict=True)]


def by_name(name: str, arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """Bind a call by its name in Spark."""
    arguments = _in_places(name, arguments, site)
    special = SPECIAL.get(name)
    if special is not None:
        return special(arguments, node, site)
    if name in CHANCE:
        hint = "a view must give the same answer when a row is taken away again; store the value in a table"
        raise site.context.unsupported(f"{name}()", node, hint)
    if generators.name_of(node) is not None:
        raise site.context.unsupported(f"{name} inside of an expression", node, "write it alone in SELECT or in FROM")
    if site.context.catalog.stored_function(name) is not None:
        return expanded(name, arguments, node, site)
    user = site.context.catalog.function(name)
    bound = [expression(argument, site) for argument in arguments]
    if user is not None:
        if not bound:
            raise site.context.error(f"{name} of what?", node, "a Python function takes one argument or more")
        kinds = user.arguments
        if kinds is not None and len(kinds) != len(bound):
            raise site.context.error(f"{name} takes {len(kinds)} arguments, and was given {len(bound)}", node)
        if kinds is not None:
            bound = [implicit(argument, type_, name) for argument, type_ in zip(bound, kinds, strict=True)]
        return UserCall(user.name, tuple(bound), user.type, user.nullable)
    if not is_function(name) and is_window_function(name):
        raise site.context.error(f"{name} without a window", node, f"write {name}() OVER (PARTITION BY … ORDER BY …)")
    if not is_function(name):
        raise unknown_function(name)
    return call(name, *bound)


def unknown_function(name: str) -> Exception:
    from difflib import get_close_matches

    from everview.frontends.sql.creating import NO_SEQUENCE
    from everview.frontends.sql.other_names import INSTEAD
    from everview.frontends.sql.spark_names import OF_SPARK
    from everview.scalars.signatures import ALIASES, INTERNAL, SIGNATURES

    if name in ("nextval", "currval", "setval", "lastval"):
        return UnknownName(f"there are no sequences, and so no {name}", hint=NO_SEQUENCE)
    if name in OF_SPARK:
        return UnknownName(f"Spark's {name} is not supported yet", hint=OF_SPARK[name])
    if name in INSTEAD:
        return UnknownName(f'function "{short(name)}" does not exist', hint=f"here it is written {INSTEAD[name]}")
    known = [*(SIGNATURES.keys() - INTERNAL), *(a for a in ALIASES if a.isidentifier()), *NAMES, *SPECIAL]
    near = get_close_matches(name, known, n=5)
    error = unknown_name("function", short(name), near or ["see the reference of functions"])
    own = "a Python function is made known by @ev.function or @ev.aggregate before it is called"
    return UnknownName(error.message, hint=f"{error.hint}; {own}")


@handles(exp.Tuple, args="expressions")
def _row_value(node: exp.Tuple, site: Site) -> Expression:
    """``(a, b)`` as a value is a struct, as in Spark."""
    return by_name("struct", node.expressions, node, site)


@handles(exp.Kwarg, args="*")
def _by_name(node: exp.Kwarg, site: Site) -> Expression:
    hint = "give it by its place; mask, generators and functions that CREATE FUNCTION makes take arguments by name"
    raise site.context.unsupported(f'the argument "{short(node.this.name)}" by name', node, hint)


# -- functions that do not take plain values

Special = Callable[[list[exp.Expr], exp.Expr, Site], Expression]


def _moment(kind: Any) -> Special:
    def special(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
        if arguments:
            raise site.context.error("the current time takes no arguments", node)
        return today() if kind == "date" else Now(kind)

    return special


def _schema_of_names(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """The schema of names without one, as USE says."""
    if arguments:
        raise site.context.error("the current schema takes no arguments", node)
    return literal(site.context.schema or DEFAULT)


def _current_time(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """The time of day of now, to six digits of a second or fewer."""
    now = cast(Now("timestamp"), TIME)
    if not arguments:
        return now
    digits = _digits_of(arguments, node, site)
    unit = literal(10 ** (6 - digits), BIGINT)
    whole = call("integral_divide", call("time_to_micros", now), unit)
    return call("time_from_micros", call("multiply", whole, unit))


def _digits_of(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> int:
    given = expression(arguments[0], site)
    if len(arguments) > 1 or not isinstance(given, Literal) or given.value not in range(7):
        raise site.context.error("the digits of a second are 0 to 6", node, "write current_time(3)")
    return given.value


def _unix_timestamp(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """Seconds since 1970 of a moment, by default of now."""
    if not arguments:
        return call("unix_seconds", Now("timestamp"))
    return call("unix_timestamp", *(expression(a, site) for a in arguments))


def _conversion(name: str) -> Special:
    def special(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
        if len(arguments) != 1:
            raise site.context.error(f"{name} takes one argument", node, f"write {name}(value)")
        return cast(expression(arguments[0], site), parse_type(name))

    return special


def _date_part(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    if len(arguments) != 2:
        raise site.context.error("date_part takes a part and a time", node, "write date_part('year', d)")
    return part(arguments[0].name, expression(arguments[1], site), node, site)


def _difference(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """``datediff(end, start)`` in days, ``datediff(MONTH, start, end)`` in whole units."""
    if len(arguments) != 3:
        return call("datediff", *(expression(a, site) for a in arguments))
    unit = _unit_of(arguments[0], node, site)
    start, end = (expression(a, site) for a in arguments[1:])
    if site.context.dialect == "spark":
        return timespans.whole_units(unit, cast(start, TIMESTAMP), cast(end, TIMESTAMP))
    if unit == "day":
        return call("datediff", end, start)
    if unit in MONTHS and site.context.dialect == "duckdb":
        return _boundaries(unit, start, end)
    raise site.context.unsupported(f"datediff in {unit}s", node, "it counts days; subtract timestamps for less")


def _unit_of(node: exp.Expr, around: exp.Expr, site: Site) -> str:
    """A unit of time by its name; the day of a year is a day."""
    unit = node.name.lower()
    unit = "day" if unit == "dayofyear" else unit if site.context.dialect == "spark" else unit.removesuffix("s")
    if unit not in MONTHS and unit not in MICROS:
        site.context.source.locate(error := unknown_unit(short(unit)), around)
        raise error
    return unit


def _boundaries(unit: str, start: Expression, end: Expression) -> Expression:
    """The number of years, quarters or months that begin between two dates."""
    years = call("subtract", call("year", end), call("year", start))
    if unit == "year":
        return years
    inner = call("subtract", call(unit, end), call(unit, start))
    return call("add", call("multiply", years, literal(12 if unit == "month" else 4)), inner)


def _addition(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """``date_add(date, days)``, ``dateadd(MONTH, 3, date)``."""
    if len(arguments) != 3:
        bound = [expression(a, site) for a in arguments]
        if len(bound) == 2 and not isinstance(bound[1], Literal):
            return call("date_add", *bound)
        return call("add" if _is_interval(bound) else "date_add", *bound)
    unit, amount = _unit_of(arguments[0], node, site), expression(arguments[1], site)
    to = expression(arguments[2], site)
    if site.context.dialect == "spark":  # there the sum is a timestamp, whatever it is added to
        amount = cast(amount, BIGINT if unit in MICROS else INTEGER)
        to = to if to.type == TIMESTAMP_NTZ else cast(to, TIMESTAMP)
    if isinstance(amount, Literal) and isinstance(amount.value, int):
        return call("add", to, interval(amount.value, unit))
    whole = amount if site.context.dialect == "spark" else coerced(amount, INTEGER)
    return call("add", to, call("multiply", whole, interval(1, unit)))


def _is_interval(bound: list[Expression]) -> bool:
    return len(bound) == 2 and bound[1].type.sql.startswith("INTERVAL")


def _struct(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
    """``struct(a, b + 1 AS c, 2)``: fields named as the columns, by AS, or else by their place: a, c, col3."""
    parts: list[Expression] = []
    for place, argument in enumerate(arguments, 1):
        name = argument.alias_or_name if isinstance(argument, (exp.Column, exp.Alias)) else f"col{place}"
        value = argument.this if isinstance(argument, exp.Alias) else argument
        parts += [literal(name), expression(value, site)]
    return call("named_struct", *parts)


def _trimmed(name: str) -> Special:
    """``ltrim(characters, text)``: Spark names the characters first."""

    def special(arguments: list[exp.Expr], node: exp.Expr, site: Site) -> Expression:
        return call(name, *(expression(a, site) for a in reversed(arguments)))

    return special


_KINDS = ("bigint", "double", "float")
ESTIMATES = (
    *("hll_sketch_estimate", "theta_sketch_estimate", *(f"kll_sketch_get_n_{kind}" for kind in _KINDS)),
    *(f"kll_sketch_get_quantile_{kind}" for kind in _KINDS),
)
SPECIAL: dict[str, Special] = {
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "struct": _struct,
    "current_date": _moment("date"),
    "curdate": _moment("date"),
    "today": _moment("date"),
    "now": _moment("timestamp"),
    "current_timestamp": _moment("timestamp"),
    "localtimestamp": _moment("timestamp"),
    "current_database": _schema_of_names,
    "current_schema": _schema_of_names,
    "current_time": _current_time,
    "localtime": _current_time,
    "unix_timestamp": _unix_timestamp,
    "date_part": _date_part,
    "datepart": _date_part,
    **dict.fromkeys(ESTIMATES, estimate),
    "datediff": _difference,
    "date_diff": _difference,
    "timestampdiff": _difference,
    "timediff": _difference,
    "date_add": _addition,
    "dateadd": _addition,
    "timestampadd": _addition,
    **{name: _conversion(name) for name in CASTS},
}


# -- other dialects


def _in_spark(node: exp.Expr, site: Site) -> Expression:
    """A function of sqlglot's own naming, as Spark spells it."""
    given: dict[str, Expression] = {}

    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(v) for v in value]
        if not isinstance(value, exp.Expr) or isinstance(value, _KEPT):
            return value
        name = f"{GIVEN}{len(given)}"
        given[name] = expression(value, site)
        return exp.column(exp.to_identifier(name, quoted=True))

    rendered = type(node)(**{key: placed(value) for key, value in node.args.items()})
    try:
        text = rendered.sql("spark", unsupported_level=ErrorLevel.RAISE)
        tree = parse_expression(text)
    except (SqlglotError, AssertionError, RecursionError):
        raise _no_function(node, site) from None
    if type(tree) is type(node):
        raise _no_function(node, site)
    return expression(tree, replace(site, given={**site.given, **given}))


_KEPT = (exp.Literal, exp.Var, exp.Boolean, exp.Null, exp.DataType, exp.Identifier)


def _no_function(node: exp.Expr, site: Site) -> SqlError:
    name = node.sql_name() if isinstance(node, exp.Func) else node.key
    return site.context.unsupported(f"the function {name.lower()}", node, "Spark has it under no name known here")
