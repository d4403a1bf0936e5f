"""Calls of aggregates and window functions as they are written: the name, the arguments, and the words around them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from sqlglot import exp

from everview.frontends.sql.casts import untyped
from everview.frontends.sql.context import Context
from everview.frontends.sql.expressions import Here, expression
from everview.frontends.sql.naming import direction
from everview.operators.aggregate.registry import aggregates_of
from everview.scalars.expressions import Expression, Order
from everview.types import DOUBLE, INTEGER, Type


@dataclass(frozen=True)
class WrittenCall:
    """A call as it was written, without what it means."""

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
}
_RANKS_OF_NO_GROUP = (exp.RowNumber,)  # which sqlglot takes for a plain function
# Aggregates whose order may stand behind them.
ORDERED_WITHIN = ("percentile_cont", "percentile_disc", "mode", "listagg", "string_agg")
_FLAGS = ("big_int", "nulls_excluded", "on_overflow")  # said by sqlglot, not by the user


def is_window_function(name: str) -> bool:
    """Is it one that takes a window?"""
    return name in RANKS


def is_aggregate(node: exp.Expr, context: Context) -> bool:
    """Is it a call of an aggregate, with what is written around it?"""
    while isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        node = node.this
    if isinstance(node, exp.Anonymous):
        name, user = node.name.lower(), context.catalog.function(node.name.lower())
        return name in NAMES or (user is not None and user.aggregate)
    return isinstance(node, (exp.AggFunc, *_RANKS_OF_NO_GROUP))


def is_user(name: str, here: Here) -> bool:
    """Is it an aggregate that the user wrote?"""
    found = here.context.catalog.function(name)
    return found is not None and found.aggregate


def read(node: exp.Expr, here: Here) -> WrittenCall | None:
    """What a call of an aggregate or a window function says; None when it is neither."""
    only, order, kept, skips = here.context.only, tuple[exp.Ordered, ...](), None, False
    outside = node
    while isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        only(node, "this", "expression")
        if isinstance(node, exp.Filter):
            kept = node.expression.this
        elif isinstance(node, exp.WithinGroup):
            order = tuple(node.expression.expressions)
        skips = skips or isinstance(node, exp.IgnoreNulls)
        node = node.this
    found = _core(node, here)
    if found is None:
        if node is not outside:
            raise here.context.error("FILTER, WITHIN GROUP and IGNORE NULLS follow an aggregate", outside)
        return None
    name, arguments = found
    if order and name not in ORDERED_WITHIN:
        raise here.context.error(f"{name} WITHIN GROUP", outside, f"it follows {', '.join(ORDERED_WITHIN)}")
    written = WrittenCall(name, (), outside, order=order, filter=kept, skips_nulls=skips, within=bool(order))
    return _opened(written, arguments, here)


def _core(node: exp.Expr, here: Here) -> tuple[str, list[exp.Expr]] | None:
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        here.context.only(node, "this", "expressions")
        return (name, node.expressions) if name in NAMES or name in RANKS or is_user(name, here) else None
    if isinstance(node, exp.Any) and not isinstance(node.this, exp.Query):
        return "bool_or", [node.this]
    if not isinstance(node, (exp.AggFunc, *_RANKS_OF_NO_GROUP)):
        return None
    name = _name_of(type(node))
    if name not in NAMES and name not in RANKS:
        raise here.context.unsupported(f"the aggregate {name}", node, f"there are {', '.join(sorted(NAMES))}")
    arguments: list[exp.Expr] = []
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            arguments.append(value)
        elif isinstance(value, list):
            arguments += value
        elif value and key not in _FLAGS:
            raise here.context.unsupported(f"{key} in {name}", node)
    return name, arguments


@cache
def _name_of(kind: type[exp.Func]) -> str:
    """The name of a call that sqlglot has a class for: the first of ours that it knows it by."""
    theirs = [name.lower() for name in kind.sql_names()]
    ours = (name for name in (*NAMES, *RANKS) if name in theirs)
    return CLASSES.get(kind) or next(ours, theirs[0])


def _opened(written: WrittenCall, arguments: list[exp.Expr], here: Here) -> WrittenCall:
    """The arguments without the words that stand before and after them."""
    found: list[exp.Expr] = []
    for given in arguments:
        argument = given
        while isinstance(argument, _DRESSES):
            here.context.only(argument, "this", "expressions")
            if isinstance(argument, exp.Distinct):
                *first, argument = argument.expressions
                found += first
                written = replace(written, distinct=True)
                continue
            if isinstance(argument, exp.Order):
                written = replace(written, order=tuple(argument.expressions))
            elif isinstance(argument, exp.IgnoreNulls):
                written = replace(written, skips_nulls=True)
            argument = argument.this
        if isinstance(argument, (exp.Limit, exp.Having, exp.HavingMax)):
            raise here.context.unsupported(f"{argument.key.upper()} inside of an aggregate", argument)
        found.append(argument)
    return replace(written, arguments=tuple(found))


_DRESSES = (exp.Distinct, exp.Order, exp.IgnoreNulls, exp.RespectNulls)


def ordering(items: tuple[exp.Ordered, ...] | list[exp.Ordered], here: Here) -> Order:
    """What ORDER BY says, every direction in full."""
    found: list[tuple[Expression, str]] = []
    for item in items:
        here.context.only(item, "this", "desc", "nulls_first")
        found.append((untyped(expression(item.this, here)), direction(item)))
    return tuple(found)
