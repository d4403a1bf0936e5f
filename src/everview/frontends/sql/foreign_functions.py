"""Functions of DuckDB and PostgreSQL that Spark does not have, or has with another meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from sqlglot import exp

from everview.frontends.sql.date_parts import part, parts_of
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.series import SeriesCall
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import Expression
from everview.types import DOUBLE, Array

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
    by_name, by_class = (_OF_DUCKDB, _CLASSES) if dialect == "duckdb" else (_OF_OTHERS, _OF_OTHER_CLASSES)
    return by_name.get(node.name.lower()) if isinstance(node, exp.Anonymous) else by_class.get(type(node))


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
_CLASSES: Final[dict[type[exp.Expr], Foreign]] = {
    **_OF_OTHER_CLASSES,
    exp.DayOfWeek: _part("dow"),
    exp.DayOfWeekIso: _part("isodow"),
    exp.TimeToUnix: _part("epoch"),
    exp.IsInf: _infinite,
    exp.Length: _length,
}
