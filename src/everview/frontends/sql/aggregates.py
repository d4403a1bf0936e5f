"""Aggregates: from calls as they are written to the calls of the plan that mean them.

The registry of aggregates has names and forms; this module reads a call of each form. Some calls stand for others:
``count_if(c)`` counts the rows where c holds, ``median(x)`` is a percentile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.frontends.sql import percentiles
from everview.frontends.sql.casts import untyped
from everview.frontends.sql.expressions import Site, condition, expression, handles
from everview.frontends.sql.unordered import group_key, refuse_unordered
from everview.frontends.sql.written import NAMES, RANKS, SqlCall, ordering, read
from everview.operators.aggregate.registry import AggregateFunction, Form, Takes
from everview.plan.aggregates import aggregate_call
from everview.plan.typing import call, implicit, is_integer, is_number, literal
from everview.scalars.expressions import USER, AggregateCall, Expression, Literal, Order
from everview.types import BIGINT, BOOLEAN, DOUBLE, INTERVALS, STRING, TINYINT, VARIANT, MapType, Type


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate after its arguments are bound; the same over groups and over windows."""

    function: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    order: Order = ()
    filter: Expression | None = None
    type: Type | None = None  # of a user's aggregate
    shares: tuple[float, ...] | None = None  # of percentiles that are asked for together, as an array
    nothing: bool = False  # whether an empty array is to be NULL
    flat: bool = False  # whether values were collected as arrays of one
    most: int | None = None  # how many values of an array are kept
    counted: Type | None = None  # the interval whose smallest units are counted in the values


Reader = Callable[[SqlCall, Site], BoundAggregate]
Placing = Callable[[AggregateCall], Expression]  # a call over a group as it is, or over a window

_MOST = 100_000  # values of `max_by(x, y, n)`, as in Spark

INDICATORS: dict[str, Type] = {"grouping": TINYINT, "grouping_id": BIGINT}


# -- aggregates


def aggregate(node: exp.Expr, site: Site) -> Expression | None:
    """A call of an aggregate over a group; None when it is something else."""
    written = read(node, site)
    if written is None:
        return None
    if written.name in RANKS:
        hint = f"write {written.name}(…) OVER (PARTITION BY … ORDER BY …)"
        raise site.context.error(f"{written.name} without a window", node, hint)
    if not site.aggregates:
        hint = "an aggregate stands in SELECT, HAVING and ORDER BY, and not in another one"
        raise site.context.error(f"the aggregate {written.name} in {site.clause}", node, hint)
    inside = site.inside(f"the aggregate {written.name}")
    if written.name in NAMES and NAMES[written.name].form == "derived":
        return formula(written, inside, over_group)
    return typed(made_of(written, inside), over_group)


def over_group(whole: AggregateCall) -> Expression:
    """A call as it is."""
    return whole


def formula(written: SqlCall, site: Site, placing: Placing) -> Expression:
    """A formula of several aggregates."""
    from everview.frontends.sql.derived import derived

    kept = None if written.filter is None else condition(written.filter, replace(site, clause="FILTER"))
    return derived(written, kept, site, placing)


def typed(made: BoundAggregate, placing: Placing) -> Expression:
    """The value of a bound aggregate; several percentiles are one array, NULL if there are no values."""
    if made.nothing:
        whole = placing(_typed_call(made))
        value = call("flatten", whole) if made.flat else whole
        value = value if made.most is None else call("slice", value, literal(1), literal(made.most))
        return call("if", call("equal", call("size", value), literal(0)), Literal(None, value.type), value)
    if made.shares is None:
        return _as_interval(placing(_typed_call(made)), made.counted)
    calls = (_typed_call(replace(made, arguments=(made.arguments[0], literal(share, DOUBLE)))) for share in made.shares)
    each = [_as_interval(placing(one), made.counted) for one in calls]
    value = call("array", *each)
    return call("if", call("is_null", each[0]), Literal(None, value.type), value)


def _as_interval(value: Expression, counted: Type | None) -> Expression:
    if counted is None:
        return value
    from everview.frontends.sql.interval_casts import as_interval

    return as_interval(value, counted)


def _typed_call(made: BoundAggregate) -> AggregateCall:
    """The call of the plan, with its type."""
    if made.type is not None:
        return AggregateCall(made.function, made.arguments, made.distinct, made.filter, made.order, made.type, True)
    if made.function in INDICATORS:
        type_ = INDICATORS[made.function]
        return AggregateCall(made.function, made.arguments, made.distinct, made.filter, made.order, type_, False)
    return aggregate_call(made.function, made.arguments, distinct=made.distinct, filter=made.filter, order=made.order)


def made_of(written: SqlCall, site: Site) -> BoundAggregate:
    if written.name in ("min", "max") and len(written.arguments) == 2 and site.context.dialect == "duckdb":
        value, count = written.arguments  # the n least or greatest values
        written = replace(written, name=f"{written.name}_by", arguments=(value, value, count))
    kept = None if written.filter is None else condition(written.filter, replace(site, clause="FILTER"))
    made = _READERS.get(written.name, _user)(written, site)
    if made.function == "count" and made.distinct:
        made = replace(made, arguments=tuple(group_key(a, written.node, site.context) for a in made.arguments))
        return replace(made, filter=_both(kept, made.filter))
    compared = made.arguments if made.distinct or made.function in ("min", "max", "mode") else made.arguments[1:]
    keys = [key for key, _ in made.order] if written.order else []
    refuse_unordered((a.type for a in (*compared, *keys)), f"{written.name} of", written.node, site.context)
    return replace(made, filter=_both(kept, made.filter))


def _both(a: Expression | None, b: Expression | None) -> Expression | None:
    return b if a is None else a if b is None else call("and", a, b)


def _bound(written: SqlCall, site: Site, least: int, most: int) -> list[Expression]:
    count = len(written.arguments)
    if not least <= count <= most:
        takes = str(least) if least == most else f"{least} to {most}"
        raise site.context.error(f"{written.name} takes {takes} arguments, and was given {count}", written.node)
    return [expression(argument, site) for argument in written.arguments]


def _plain(line: AggregateFunction) -> Reader:
    """The reader of calls with one argument, whose order does not matter."""
    wanted = _ARGUMENTS[line.takes]

    def make(written: SqlCall, site: Site) -> BoundAggregate:
        (argument,) = _bound(written, site, 1, 1)
        _check_no_order(written, site)
        function = line.duckdb if line.duckdb and site.context.dialect == "duckdb" else line.name
        return BoundAggregate(function, (wanted(written.name, argument),), written.distinct)

    return make


def _check_no_order(written: SqlCall, site: Site) -> None:
    if written.order and written.name not in ("min", "max", "sum", "avg", "count"):
        raise site.context.error(f"{written.name} does not depend on an order", written.node, "leave ORDER BY out")


_OF_INTERVALS = ("sum", "avg", "mean", "try_sum", "try_avg")  # aggregates of numbers, and of intervals


def _number(name: str, argument: Expression) -> Expression:
    if is_number(argument.type) or (argument.type in INTERVALS and name in _OF_INTERVALS):
        return argument
    return implicit(argument, DOUBLE, name)


def _truth(name: str, argument: Expression) -> Expression:
    return implicit(argument, BOOLEAN, name)


def any_value(name: str, argument: Expression) -> Expression:
    return untyped(argument)


def _text(name: str, argument: Expression) -> Expression:
    return implicit(argument, STRING, name)


def _integer(name: str, argument: Expression) -> Expression:
    return argument if is_integer(argument.type) else implicit(argument, BIGINT, name)


_ARGUMENTS: dict[Takes, Callable[[str, Expression], Expression]] = {
    "anything": any_value,
    "numbers": _number,
    "truths": _truth,
    "texts": _text,
    "integers": _integer,
}


def _count(written: SqlCall, site: Site) -> BoundAggregate:
    arguments = written.arguments
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star) and not written.distinct:
        site.context.only(arguments[0])
        return BoundAggregate("count", ())
    if not arguments:
        if written.distinct or site.context.dialect == "spark":
            raise site.context.error("count of what?", written.node, "write count(*)")
        return BoundAggregate("count", ())
    bound = tuple(any_value(written.name, expression(a, site)) for a in arguments)
    if written.distinct:
        return BoundAggregate("count", bound, distinct=True)
    if len(bound) > 1:
        return BoundAggregate("count", (), filter=call("and", *(call("is_not_null", b) for b in bound)))
    return BoundAggregate("count", bound) if any(b.nullable for b in bound) else BoundAggregate("count", ())


def _count_if(written: SqlCall, site: Site) -> BoundAggregate:
    (test,) = _bound(written, site, 1, 1)
    return BoundAggregate("count", (), filter=_truth(written.name, test))


def _count_different(written: SqlCall, site: Site) -> BoundAggregate:
    return BoundAggregate("count", tuple(_bound(written, site, 1, 2)[:1]), distinct=True)


def _some(line: AggregateFunction) -> Reader:
    """The reader of `first` and `last`: by ORDER BY if there is one, else the least or the greatest value."""
    end = line.name

    def make(written: SqlCall, site: Site) -> BoundAggregate:
        value, *more = _bound(written, site, 1, 2)
        skips = written.skips_nulls or (bool(more) and more[0] == literal(True))
        value = any_value(written.name, value)
        if not written.order and value.type in (VARIANT, *_maps(value.type)):
            return _some_incomparable(end, value)
        if not written.order:
            return BoundAggregate("min" if end == "first" else "max", (value,))
        rest = (literal(True),) if skips else ()
        return BoundAggregate(end, (value, *rest), order=ordering(written.order, site))

    return make


def _maps(type_: Type) -> tuple[Type, ...]:
    return (type_,) if isinstance(type_, MapType) else ()


def _some_incomparable(end: str, value: Expression) -> BoundAggregate:
    """Any map or variant, as these have no order of their own: by their entries, or by their text as JSON."""
    key = call("map_entries", value) if isinstance(value.type, MapType) else call("to_json", value)
    how = "asc nulls last" if end == "first" else "desc nulls last"
    return BoundAggregate("first", (value,), order=((key, how),), filter=call("is_not_null", value))


def _by(line: AggregateFunction) -> Reader:
    """The reader of `max_by` and `min_by`; ORDER BY chooses among rows whose second argument ties."""
    function = line.name

    def make(written: SqlCall, site: Site) -> BoundAggregate:
        value, by, *count = (any_value(written.name, b) for b in _bound(written, site, 2, 3))
        skips = site.context.dialect == "duckdb" and value.nullable
        kept = call("is_not_null", value) if skips else None
        if not written.order and not count:
            return BoundAggregate(function, (value, by), filter=kept)
        how = "desc nulls last" if function == "max_by" else "asc nulls last"
        order = ((by, how), *(ordering(written.order, site) or ((value, how),)))
        kept = _both(kept, call("is_not_null", by))
        if not count:
            return BoundAggregate("first", (value,), order=order, filter=kept)
        most = _count_of_values(written, count[0], site)
        return BoundAggregate(
            "collect_list", (call("array", value),), order=order, filter=kept, nothing=True, flat=True, most=most
        )

    return make


def _count_of_values(written: SqlCall, count: Expression, site: Site) -> int:
    """The number of values that `max_by(x, y, n)` is to give."""
    if written.distinct:
        hint = "take the different rows in a subquery"
        raise site.context.error(f"{written.name} of several distinct values", written.node, hint)
    value = count.value if isinstance(count, Literal) and is_integer(count.type) else None
    if value is None or not 1 <= value <= _MOST:
        hint = f"give a constant from 1 to {_MOST}"
        raise site.context.error(f"{written.name} of {count} values", written.node, hint)
    return value


def _array(line: AggregateFunction) -> Reader:
    """The reader of `array_agg`: Spark drops NULLs and gives ``[]`` for no rows, others keep NULLs and give NULL."""
    distinct = line.form == "set"

    def make(written: SqlCall, site: Site) -> BoundAggregate:
        (value,) = (any_value(written.name, b) for b in _bound(written, site, 1, 1))
        order = ordering(written.order, site)
        _check_order_of_different(written, order, (value,), site)
        if site.context.dialect == "spark":
            return BoundAggregate("collect_list", (value,), distinct or written.distinct, order)
        if not value.nullable:
            return BoundAggregate("collect_list", (value,), written.distinct, order, nothing=True)
        if written.filter is None:
            return BoundAggregate("list", (value,), written.distinct, order, nothing=True)
        # The filter of a call turns a value into NULL, which is to be told from a value that was NULL before.
        return BoundAggregate("collect_list", (call("array", value),), written.distinct, order, nothing=True, flat=True)

    return make


def _check_order_of_different(written: SqlCall, order: Order, values: tuple[Expression, ...], site: Site) -> None:
    """Refuse DISTINCT with an ORDER BY of anything but the values: a value that is kept once has no one place there."""
    if written.distinct and any(by not in values for by, _ in order):
        hint = "order by what it is of, or leave ORDER BY out"
        raise site.context.error(f"{written.name} of distinct values in the order of others", written.node, hint)


def _string(written: SqlCall, site: Site) -> BoundAggregate:
    """Texts joined by a separator, by default an empty one in Spark and a comma elsewhere."""
    value, *rest = _bound(written, site, 1, 2)
    separator = rest[0] if rest else literal("" if site.context.dialect == "spark" else ",")
    if isinstance(separator, Literal) and separator.value is None:
        separator = literal("")
    if not isinstance(separator, Literal) or separator.type != STRING:
        raise site.context.error("the separator is a text that is written down", written.node, "as in ', '")
    text, order = implicit(value, STRING, written.name), ordering(written.order, site)
    _check_order_of_different(written, order, (value, text), site)
    return BoundAggregate("listagg", (text, separator), written.distinct, order)


def _percentile(written: SqlCall, site: Site) -> BoundAggregate:
    """``percentile(x, 0.9)``, or ``percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC)``."""
    asked = percentiles.read(written, _bound(written, site, 1, 3), ordering(written.order, site), site)
    arguments = (asked.value, Literal(asked.shares[0], DOUBLE))
    shares = asked.shares if asked.several else None
    return BoundAggregate(
        asked.function, arguments, written.distinct, asked.order, shares=shares, counted=asked.counted
    )


def _median(written: SqlCall, site: Site) -> BoundAggregate:
    (value,) = _bound(written, site, 1, 1)
    counted = value.type if value.type in INTERVALS else None
    value = _number(written.name, value) if counted is None else percentiles.counted_units(value)
    return BoundAggregate("percentile_cont", (value, Literal(0.5, DOUBLE)), written.distinct, counted=counted)


def _mode(written: SqlCall, site: Site) -> BoundAggregate:
    """``mode(x)``, ``mode(x, true)``, or ``mode() WITHIN GROUP (ORDER BY x DESC)``: of several, the first in the order.

    Without an order it is the least; Spark then takes any, and DuckDB the one that came first.
    """
    if not written.within:
        value = any_value(written.name, _bound(written, site, 1, 2)[0])
        return BoundAggregate("mode", (value,), written.distinct)
    _bound(written, site, 0, 0)
    value, way = percentiles.one_order(ordering(written.order, site), written, site)
    return BoundAggregate("mode", (value,), written.distinct, () if way.startswith("asc") else ((value, way),))


def _pair(line: AggregateFunction) -> Reader:
    """The reader of calls of two numbers."""

    def make(written: SqlCall, site: Site) -> BoundAggregate:
        pair = _bound(written, site, 2, 2)
        _check_no_order(written, site)
        if written.distinct:
            raise site.context.unsupported(
                f"{written.name} of distinct pairs", written.node, "take them from a subquery"
            )
        return BoundAggregate(line.name, tuple(implicit(b, DOUBLE, written.name) for b in pair))

    return make


def _grouping(written: SqlCall, site: Site) -> BoundAggregate:
    """Which columns a group has; outside of Spark ``grouping(a, b)`` is its ``grouping_id(a, b)``."""
    if written.name == "grouping" and site.context.dialect == "spark":
        return BoundAggregate(written.name, tuple(_bound(written, site, 1, 1)))
    least = 1 if written.name == "grouping" else 0
    return BoundAggregate("grouping_id", tuple(_bound(written, site, least, 63)))


def _user(written: SqlCall, site: Site) -> BoundAggregate:
    """An aggregate that the user wrote: of all rows where no argument is NULL."""
    user = site.context.catalog.function(written.name)
    assert user is not None, "a call was read as one of a user's aggregate"
    count = None if user.arguments is None else len(user.arguments)
    bound = tuple(_bound(written, site, count or 1, count or len(written.arguments) or 1))
    if user.arguments is not None:
        bound = tuple(implicit(b, type_, written.name) for b, type_ in zip(bound, user.arguments, strict=True))
    arguments = tuple(any_value(written.name, b) for b in bound)
    order = ordering(written.order, site)
    _check_order_of_different(written, order, arguments, site)
    return BoundAggregate(f"{USER}{user.name}", arguments, written.distinct, order, type=user.type)


# How a call of each form is read; formulas are no calls.
_FORMS: dict[Form, Callable[[AggregateFunction], Reader]] = {
    "count": lambda line: _count,
    "count if": lambda line: _count_if,
    "count different": lambda line: _count_different,
    "values": _plain,
    "different values": _plain,
    "end": _some,
    "by": _by,
    "percentile": lambda line: _percentile,
    "median": lambda line: _median,
    "mode": lambda line: _mode,
    "array": _array,
    "set": _array,
    "text": lambda line: _string,
    "grouping": lambda line: _grouping,
    "pair": _pair,
}
_READERS: dict[str, Reader] = {name: _FORMS[line.form](line) for name, line in NAMES.items() if line.form in _FORMS}


@handles(exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Any, args="*")
def _dressed(node: exp.Expr, site: Site) -> Expression:
    inner = aggregate(node, site)
    if inner is None:
        raise site.context.unsupported(f"{node.key.upper()} here", node)
    return inner
