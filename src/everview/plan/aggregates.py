"""Calls of aggregates, with the type that the registry says they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from everview.operators.aggregate.call import Call
from everview.operators.aggregate.registry import IN_PLANS, Form, aggregate_of
from everview.scalars.expressions import (
    AggregateCall,
    AggregateWindowCall,
    Expression,
    Frame,
    Order,
    WindowCall,
)
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


# Aggregates whose result depends on the order of their values, which a window has.
_IN_ORDER: Final[tuple[Form, ...]] = ("array", "array with nulls", "text")


@dataclass(frozen=True)
class WindowOfRows:
    """The rows that a window function sees: its partition, its order and its frame."""

    partition: tuple[Expression, ...]
    order: Order
    frame: Frame | None

    def over(self, call: AggregateCall) -> WindowCall:
        """An aggregate over the window instead of a group; lists are in the order of the window unless they say one."""
        line = IN_PLANS.get(call.function.lower())  # none of a user's aggregate
        nullable = call.nullable or (self.frame is not None and (line is None or line.of_nothing is None))
        spoken = call.function, call.arguments, self.partition, self.order, self.frame, call.type, nullable, call.filter
        if line is not None and line.by_spans and not call.order and not call.distinct:
            return WindowCall(*spoken)
        listed = line is None or line.form in _IN_ORDER
        inner = self.order if listed and not call.order and not call.distinct else call.order
        return AggregateWindowCall(*spoken, distinct=call.distinct, inner=inner)
