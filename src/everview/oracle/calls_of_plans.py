"""The meaning of a plan's aggregate calls, over the rows of a group."""

from __future__ import annotations

from typing import Any, assert_never

from everview.errors import SchemaError
from everview.operators.aggregate import Call
from everview.operators.aggregate.call import FieldOrder
from everview.operators.aggregate.registry import AggregateFunction, aggregate_of
from everview.operators.index import Direction
from everview.oracle.aggregates import ordered, result
from everview.oracle.rows import Entry, Row
from everview.scalars.expressions import USER, AggregateCall, Expression, Literal
from everview.scalars.functions.user import registered
from everview.types import Field, Schema


def called(call: AggregateCall, given: list[Entry]) -> Any:
    """The result of a call over weighted rows that hold its arguments and then its ORDER BY keys."""
    name, count = call.function.lower(), len(call.arguments)
    schema = Schema(Field(f"c{n}", e.type) for n, e in enumerate((*call.arguments, *(by for by, _ in call.order))))
    order = tuple((count + n, direction(how)) for n, (_, how) in enumerate(call.order))
    if name.startswith(USER):
        return _users(call, schema, order, given)
    line = aggregate_of(name)
    match line.form:
        case "count":
            return _counted(call, given)
        case "count if":
            return sum(w for row, w in given if row[0] is True)
        case "by":
            return _extreme_by(line.computed, schema, given)
        case _:
            return result(_operators_call(call, line, order), schema, given)


def _operators_call(call: AggregateCall, line: AggregateFunction, order: FieldOrder) -> Call:
    """The operator's call that means the same as a call of the plan."""
    count = len(call.arguments)
    match line.form:
        case "values" | "different values":
            return Call(line.computed, (0,), call.distinct and line.form == "values")
        case "end":
            skips = count > 1 and constant(call.arguments[1])
            return Call(line.computed, (0,), order=order, nulls=not skips)
        case "mode":
            return Call("mode", (0,), call.distinct, _own_order(call))
        case "percentile" | "median":
            fraction = float(constant(call.arguments[-1])) if line.form == "percentile" else 0.5
            return Call(line.computed, (0,), call.distinct, _own_order(call), fraction=fraction)
        case "array":
            return Call("array", (0,), call.distinct, order)
        case "array with nulls":
            return Call("array", (0,), call.distinct, order, nulls=True)
        case "set":
            return Call("array", (0,), True)
        case "text":
            separator = constant(call.arguments[1]) if count > 1 else ""
            return Call("string", (0,), call.distinct, order, separator=separator)
        case "pair":
            return Call(line.computed, (0, 1))
        case "count" | "count if" | "by":
            raise AssertionError(f"the meaning of {call.function} is no call of the operator")
        case "count different" | "grouping" | "derived":
            raise AssertionError(f"a plan has no {call.function}")
        case _:
            assert_never(line.form)


def _users(call: AggregateCall, schema: Schema, order: FieldOrder, given: list[Entry]) -> Any:
    """The result of a user's function for the lists of one group; NULL if there are no values."""
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


def _extreme_by(function: str, schema: Schema, given: list[Entry]) -> Any:
    known = [(row, w) for row, w in given if row[1] is not None]
    return result(Call(function, (0,), order=((1, Direction.ASC),), nulls=True), schema, known) if known else None


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
