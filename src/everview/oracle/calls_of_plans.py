"""What aggregate calls of a plan mean, over the rows of a group."""

from __future__ import annotations

from typing import Any

from everview.errors import SchemaError
from everview.operators.aggregate import Call
from everview.operators.aggregate.call import FieldOrder
from everview.operators.index import Direction
from everview.oracle.aggregates import ordered, result
from everview.oracle.rows import Entry, Row
from everview.scalars.expressions import USER, AggregateCall, Expression, Literal
from everview.scalars.functions.user import registered
from everview.types import Field, Schema

# The functions of SQL by what the reference of aggregates calls them.
PLAIN = {
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "avg_double": "avg double",
    "min": "min",
    "max": "max",
    "variance": "variance",
    "var_samp": "variance",
    "var_pop": "variance pop",
    "stddev": "stddev",
    "stddev_samp": "stddev",
    "std": "stddev",
    "stddev_pop": "stddev pop",
    "bool_and": "bool_and",
    "every": "bool_and",
    "bool_or": "bool_or",
    "any": "bool_or",
    "some": "bool_or",
}


def called(call: AggregateCall, given: list[Entry]) -> Any:
    """A call over rows that hold its arguments, and then what it is ordered by; each with its weight."""
    name, count = call.function.lower(), len(call.arguments)
    schema = Schema(Field(f"c{at}", e.type) for at, e in enumerate((*call.arguments, *(by for by, _ in call.order))))
    order = tuple((count + at, direction(how)) for at, (_, how) in enumerate(call.order))
    match name:
        case _ if name.startswith(USER):
            return _users(call, schema, order, given)
        case "count":
            return _counted(call, given)
        case "count_if":
            return sum(w for row, w in given if row[0] is True)
        case _ if name in PLAIN:
            made = Call(PLAIN[name], (0,), call.distinct and name not in ("min", "max"))
        case "first" | "first_value" | "any_value" | "last" | "last_value":
            skips = count > 1 and constant(call.arguments[1])
            made = Call("last" if name.startswith("last") else "first", (0,), order=order, nulls=not skips)
        case "max_by" | "min_by":
            return _extreme_by(name, schema, given)
        case "mode":
            made = Call("mode", (0,), call.distinct, _own_order(call))
        case "median" | "percentile" | "percentile_cont" | "percentile_disc" | "percentile_approx":
            return _percentile(call, name, schema, given)
        case "array_agg" | "collect_list":
            made = Call("array", (0,), call.distinct, order)
        case "list":
            made = Call("array", (0,), call.distinct, order, nulls=True)
        case "collect_set":
            made = Call("array", (0,), True)
        case "listagg" | "string_agg":
            made = Call(
                "string", (0,), call.distinct, order, separator=constant(call.arguments[1]) if count > 1 else ""
            )
        case _:
            raise AssertionError(f"the oracle knows no {name}")
    return result(made, schema, given)


def _users(call: AggregateCall, schema: Schema, order: FieldOrder, given: list[Entry]) -> Any:
    """A user's function of the lists of one group; of no values NULL."""
    function = registered(call.function.removeprefix(USER)).function
    fields, returns = tuple(range(len(call.arguments))), Field("result", call.type)
    made = Call("user", fields, call.distinct, order, user=function.name, returns=returns)
    return result(made, schema, given, {function.name: function}) if ordered(made, schema, given) else None


def _counted(call: AggregateCall, given: list[Entry]) -> int:
    known = [(row, w) for row, w in given if None not in row[: len(call.arguments)]]
    if not call.distinct:
        return sum(w for _, w in known)
    sums: dict[Row, int] = {}
    for row, w in known:
        sums[row] = sums.get(row, 0) + w
    return sum(1 for w in sums.values() if w > 0)


def _extreme_by(name: str, schema: Schema, given: list[Entry]) -> Any:
    known = [(row, w) for row, w in given if row[1] is not None]
    function = "last" if name == "max_by" else "first"
    return result(Call(function, (0,), order=((1, Direction.ASC),), nulls=True), schema, known) if known else None


def _percentile(call: AggregateCall, name: str, schema: Schema, given: list[Entry]) -> Any:
    fraction = float(constant(call.arguments[-1])) if name != "median" else 0.5
    function = {"percentile_disc": "percentile discrete", "percentile_approx": "quantile"}.get(name, "percentile")
    return result(Call(function, (0,), call.distinct, _own_order(call), fraction=fraction), schema, given)


def _own_order(call: AggregateCall) -> FieldOrder:
    """The direction in which the values themselves are read."""
    return tuple((0, direction(how)) for _, how in call.order)


def constant(expression: Expression) -> Any:
    if not isinstance(expression, Literal):
        raise SchemaError(f"{expression} is no constant", hint="write a number")
    return expression.value


def direction(how: str) -> Direction:
    """``"desc nulls last"``; NULL is the least unless the words say otherwise."""
    descends, first = "desc" in how.lower(), "first" in how.lower()
    if "nulls" not in how.lower():
        return Direction.DESC if descends else Direction.ASC
    if descends:
        return Direction.DESC_NULLS_FIRST if first else Direction.DESC
    return Direction.ASC if first else Direction.ASC_NULLS_LAST
