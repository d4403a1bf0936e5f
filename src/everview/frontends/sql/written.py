"""Calls of aggregates and window functions as they are written: the name, the arguments, and the words around them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from sqlglot import exp

from everview.frontends.sql.casts import untyped
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.naming import direction
from everview.operators.aggregate.registry import aggregates_of
from everview.scalars.expressions import Expression, Order
from everview.types import DOUBLE, INTEGER, Type


@dataclass(frozen=True)
class SqlCall:
    """A call of an aggregate or a window function as written, not yet bound."""

    name: str
    arguments: tuple[exp.Expr, ...]
    node: exp.Expr
    distinct: bool = False
    order: tuple[exp.Ordered, ...] = ()
    filter: exp.Expr | None = None
    skips_nulls: bool = False
    within: bool = False  # whether its order was written WITHIN GROUP


NAMES: Final = aggregates_of("sql")
RANKS: dict[str, Type] = {
    "row_number": INTEGER,
    "rank": INTEGER,
    "dense_rank": INTEGER,
    "ntile": INTEGER,
    "percent_rank": DOUBLE,
    "cume_dist": DOUBLE,
    "lag": INTEGER,  # of the value
    "lead": INTEGER,
    "nth_value": INTEGER,
}
PICKED = ("first_value", "last_value", "first", "last", "nth_value", "any_value")
# What sqlglot has classes for under names that are none of ours.
CLASSES: dict[type[exp.Expr], str] = {
    exp.StddevSamp: "stddev",
    exp.GroupConcat: "listagg",
    exp.ArrayUniqueAgg: "collect_set",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
}
_RANKS_OF_NO_GROUP = (exp.RowNumber,)  # which sqlglot takes for a plain function
# Aggregates whose order may stand behind them.
ORDERED_WITHIN = ("percentile_cont", "percentile_disc", "mode", "listagg", "string_agg")
_FLAGS = ("big_int", "nulls_excluded", "on_overflow")  # said by sqlglot, not by the user


def is_window_function(name: str) -> bool:
    """Whether a name is that of a function that needs a window."""
    return name in RANKS


def is_aggregate(node: exp.Expr, context: QueryContext) -> bool:
    """Whether a node is a call of an aggregate, with FILTER or WITHIN GROUP around it or without."""
    while isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        node = node.this
    if isinstance(node, exp.Anonymous):
        name, user = node.name.lower(), context.catalog.function(node.name.lower())
        return name in NAMES or (user is not None and user.aggregate)
    return isinstance(node, (exp.AggFunc, *_RANKS_OF_NO_GROUP))


def is_user(name: str, site: Site) -> bool:
    """Whether a name is that of a user's aggregate."""
    function = site.context.catalog.function(name)
    return function is not None and function.aggregate


def read(node: exp.Expr, site: Site) -> SqlCall | None:
    """Read a call of an aggregate or a window function; None if the node is neither."""
    only, order, kept, skips = site.context.only, tuple[exp.Ordered, ...](), None, False
    outside = node
    while isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        only(node, "this", "expression")
        if isinstance(node, exp.Filter):
            kept = node.expression.this
        elif isinstance(node, exp.WithinGroup):
            order = tuple(node.expression.expressions)
        skips = skips or isinstance(node, exp.IgnoreNulls)
        node = node.this
    core = _core(node, site)
    if core is None:
        if node is not outside:
            expression(node, site)  # an unknown function is refused as such
            raise site.context.error("FILTER, WITHIN GROUP and IGNORE NULLS follow an aggregate", outside)
        return None
    name, arguments = core
    if order and name not in ORDERED_WITHIN:
        raise site.context.error(f"{name} WITHIN GROUP", outside, f"it follows {', '.join(ORDERED_WITHIN)}")
    written = SqlCall(name, (), outside, order=order, filter=kept, skips_nulls=skips, within=bool(order))
    return _opened(written, arguments, site)


def _core(node: exp.Expr, site: Site) -> tuple[str, list[exp.Expr]] | None:
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        site.context.only(node, "this", "expressions")
        return (name, node.expressions) if name in NAMES or name in RANKS or is_user(name, site) else None
    if isinstance(node, exp.Any) and not isinstance(node.this, exp.Query):
        return "bool_or", [node.this]
    if not isinstance(node, (exp.AggFunc, *_RANKS_OF_NO_GROUP)):
        return None
    name = _name_of(type(node))
    if name not in NAMES and name not in RANKS:
        raise site.context.unsupported(f"the aggregate {name}", node, f"there are {', '.join(sorted(NAMES))}")
    arguments: list[exp.Expr] = []
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            arguments.append(value)
        elif isinstance(value, list):
            arguments += value
        elif value and key not in _FLAGS:
            raise site.context.unsupported(f"{key} in {name}", node)
    return name, arguments


@cache
def _name_of(kind: type[exp.Func]) -> str:
    """The name of a call for which sqlglot has a class: the first of our names that sqlglot knows."""
    theirs = [name.lower() for name in kind.sql_names()]
    ours = (name for name in (*NAMES, *RANKS) if name in theirs)
    return CLASSES.get(kind) or next(ours, theirs[0])


def _opened(written: SqlCall, arguments: list[exp.Expr], site: Site) -> SqlCall:
    """The arguments without the words that stand before and after them."""
    plain: list[exp.Expr] = []
    for given in arguments:
        argument = given
        while isinstance(argument, _DRESSES):
            site.context.only(argument, "this", "expressions")
            if isinstance(argument, exp.Distinct):
                *first, argument = argument.expressions
                plain += first
                written = replace(written, distinct=True)
                continue
            if isinstance(argument, exp.Order):
                written = replace(written, order=tuple(argument.expressions))
                if argument.this is None:
                    hint = "the order stands behind the last argument: first(x ORDER BY y)"
                    raise site.context.error("nothing stands before ORDER BY", written.node, hint)
            elif isinstance(argument, exp.IgnoreNulls):
                written = replace(written, skips_nulls=True)
            argument = argument.this
        if isinstance(argument, (exp.Limit, exp.Having, exp.HavingMax)):
            raise site.context.unsupported(f"{argument.key.upper()} inside of an aggregate", argument)
        plain.append(argument)
    return replace(written, arguments=tuple(plain))


_DRESSES = (exp.Distinct, exp.Order, exp.IgnoreNulls, exp.RespectNulls)


def ordering(items: tuple[exp.Ordered, ...] | list[exp.Ordered], site: Site) -> Order:
    """The keys of ORDER BY, every direction in full."""
    order: list[tuple[Expression, str]] = []
    for item in items:
        site.context.only(item, "this", "desc", "nulls_first")
        order.append((untyped(expression(item.this, site)), direction(item)))
    return tuple(order)
