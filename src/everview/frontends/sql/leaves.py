"""Names and constants: the leaves of expressions, and what a name or a place in a list of columns stands for."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.errors import EverviewError, UnknownName
from everview.frontends.sql import types
from everview.frontends.sql.expressions import Site, expression, handles
from everview.frontends.sql.parameters import parameter_name
from everview.frontends.sql.pipes import Place
from everview.plan.typing import call, cast, literal
from everview.scalars.expressions import FALSE, NULL, TRUE, Cast, Expression, Now
from everview.scalars.session_zone import today
from everview.types import TIME, TIMESTAMP, TIMESTAMP_NTZ

MOMENTS: dict[str, Callable[[], Expression]] = {  # unless a column is called so
    "current_date": today,
    "current_timestamp": lambda: Now("timestamp"),
    "localtimestamp": lambda: Now("timestamp"),
    "current_time": lambda: cast(Now("timestamp"), TIME),
    "localtime": lambda: cast(Now("timestamp"), TIME),
}


@handles(exp.Column, args="this table db catalog")
def _column(node: exp.Column, site: Site) -> Expression:
    if isinstance(node.this, exp.Star):
        raise site.context.error(f"* is not a value in {site.clause}", node, "a star stands in SELECT and count(*)")
    parts = tuple(part.name for part in node.parts)
    given = site.given.get(parts[0]) if len(parts) == 1 else None
    if given is not None:
        return given
    try:
        if node.args.get("db") is not None:
            return _qualified(parts, site)
        return site.scope.find(parts)
    except UnknownName:
        moment = MOMENTS.get(parts[0].lower()) if len(parts) == 1 and not node.this.args.get("quoted") else None
        if moment is None:
            raise
        return moment()


def _qualified(parts: tuple[str, ...], site: Site) -> Expression:
    """The column ``schema.relation.column``, unless the name means a field of a struct."""
    try:
        return site.scope.find(parts)
    except EverviewError:
        known = any(v.of(parts[1]) for v in site.scope.visible)
        if not known:
            raise
        return site.scope.find(parts[1:])


@handles(Place)
def _place(node: Place, site: Site) -> Expression:
    return placed(node, site)[1]


def placed(node: Place, site: Site) -> tuple[str, Expression]:
    """The name and the value of the column at a place."""
    columns = site.scope.star()
    place = int(node.this.name) if isinstance(node.this, exp.Literal) else 0
    if not 1 <= place <= len(columns):
        raise site.context.error(
            f"{site.clause} {place}: there is no such column", node.this, f"there are {len(columns)}"
        )
    return columns[place - 1].name, columns[place - 1].expression


@handles(exp.Dot, args="this expression")
def _dot(node: exp.Dot, site: Site) -> Expression:
    if isinstance(node.expression, exp.Star):
        return _star(node.expression, site)
    if not isinstance(node.expression, exp.Identifier):
        raise site.context.unsupported(f"the name {node.sql('spark')[:60]}", node, "relations have one name")
    return call("get_field", expression(node.this, site), literal(node.expression.name))


@handles(exp.Star, args="except_ replace rename")
def _star(node: exp.Star, site: Site) -> Expression:
    raise site.context.error(f"* is not a value in {site.clause}", node, "a star stands in SELECT and count(*)")


@handles(exp.Literal, args="this is_string")
def _literal(node: exp.Literal, site: Site) -> Expression:
    return types.constant(node, site.context)


@handles(exp.RawString, exp.National, exp.UnicodeString)
def _text(node: exp.Expr, site: Site) -> Expression:
    return literal(node.name)


@handles(exp.HexString, args="this is_integer")
def _hexadecimal(node: exp.HexString, site: Site) -> Expression:
    return types.hexadecimal(node, site.context)


@handles(exp.Boolean)
def _boolean(node: exp.Boolean, site: Site) -> Expression:
    return TRUE if node.this else FALSE


@handles(exp.Null, args="")
def _null(node: exp.Null, site: Site) -> Expression:
    return NULL


@handles(exp.CurrentDate)
def _today(node: exp.CurrentDate, site: Site) -> Expression:
    return today()


@handles(exp.CurrentTimestamp, exp.CurrentDatetime, exp.Localtimestamp, args="sysdate")
def _now(node: exp.Expr, site: Site) -> Expression:
    return Now("timestamp")


@handles(exp.CurrentTime, exp.Localtime)
def _time_of_day(node: exp.Expr, site: Site) -> Expression:
    if node.this is not None:
        raise site.context.unsupported("the current time to some digits", node, "write time_trunc('SECOND', …) of it")
    return cast(Now("timestamp"), TIME)


@handles(exp.AtTimeZone, args="this zone")
def _in_zone(node: exp.AtTimeZone, site: Site) -> Expression:
    """``AT TIME ZONE``: a TIMESTAMP becomes the local time of the zone, and a local time becomes a TIMESTAMP.

    The casts are those of UTC: the zone of the session has no part in it.
    """
    value, zone = expression(node.this, site), expression(node.args["zone"], site)
    if value.type == TIMESTAMP_NTZ:
        return call("to_utc_timestamp", Cast(value, TIMESTAMP), zone)
    return Cast(call("from_utc_timestamp", value, zone), TIMESTAMP_NTZ)


@handles(exp.Interval, args="this unit")
def _interval(node: exp.Interval, site: Site) -> Expression:
    written = types.duration(node, site.context)
    if written is not None:
        return written
    return call("multiply", expression(node.this, site), types.unit_of(node, site.context))


@handles(exp.Placeholder, exp.Parameter, exp.SessionParameter, args="*")
def _parameter(node: exp.Expr, site: Site) -> Expression:
    value = site.context.parameters.get(parameter_name(node.name))
    if value is not None:
        return value
    hint = "write the value, or give it beside the text: db.sql(text, [value])"
    raise site.context.unsupported("a parameter here", node, hint)
