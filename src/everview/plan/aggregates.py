"""Calls of aggregates, with the type that the registry says they give."""

from __future__ import annotations

from typing import Any

from everview.operators.aggregate.call import Call
from everview.operators.aggregate.registry import IN_PLANS, aggregate_of
from everview.scalars.expressions import AggregateCall, Expression, Order
from everview.types import Field, Schema


def aggregate_call(
    function: str,
    arguments: tuple[Expression, ...],
    *,
    distinct: bool = False,
    filter: Expression | None = None,
    order: Order = (),
) -> AggregateCall:
    """A call by its name in plans.

    >>> from everview.scalars.expressions import Column
    >>> from everview.types import INTEGER
    >>> aggregate_call("avg", (Column(0, "x", INTEGER, nullable=False),)).type
    DOUBLE
    """
    line = aggregate_of(function)
    schema = Schema(Field(f"a{number}", a.type, a.nullable) for number, a in enumerate(arguments))
    field = Call(line.computed, tuple(range(len(schema)))).result(schema, "x")
    nullable = line.of_nothing is None and (field.nullable or filter is not None or line.nullable)
    return AggregateCall(function, arguments, distinct, filter, order, field.type, nullable)


def of_nothing(call: AggregateCall) -> Any:
    """The result of a call over no rows."""
    line = IN_PLANS.get(call.function.lower())  # none of a user's aggregate
    return None if line is None else line.of_nothing
