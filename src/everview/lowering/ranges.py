"""Lower plans that depend on the order of rows: the first rows, and windows.

Ties are broken by the values of all columns, so that the result is a function of the rows. Windows with the same
partition and order are one operator; the others follow, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from everview.circuit.stream import Stream
from everview.errors import SchemaError
from everview.later import Later
from everview.lowering.aggregates import Wanted, direction, wanted_of
from everview.lowering.rows import extended, picked, projected
from everview.operators.aggregate import Call
from everview.operators.aggregate.call import ADDED_UP
from everview.operators.aggregate.registry import IN_PLANS
from everview.operators.index import Direction, Index
from everview.operators.operator import Layout
from everview.operators.window import COPIES, NEVER_NULL, RANKS, SESSIONS, AggregateOver, FramedOver, Over
from everview.operators.window import Window as WindowOperator
from everview.plan.nodes import Top, Window
from everview.plan.typing import call as called
from everview.plan.typing import cast
from everview.scalars.expressions import (
    TRUE,
    AggregateCall,
    AggregateWindowCall,
    Column,
    ExcludingFrame,
    Expression,
    Literal,
    WindowCall,
)
from everview.types import BOOLEAN, DOUBLE, INTEGER, Field, Schema, unknown_name

if TYPE_CHECKING:
    from everview.plan.reaches import is_distance, reaches
else:
    is_distance = Later("everview.plan.reaches", "is_distance")
    reaches = Later("everview.plan.reaches", "reaches")

ALL = 1 << 62  # more places than there are rows
# What the operator calls the aggregates of plans that windows compute.
AGGREGATES = {
    name: f"{line.computed}_value" if line.form == "end" else line.computed
    for name, line in IN_PLANS.items()
    if line.by_spans and line.form != "count if"
}
KNOWN = (*RANKS, *COPIES, *SESSIONS, "min", "max", *ADDED_UP)


def first(plan: Top, stream: Stream) -> Stream:
    """The stream of `Top`."""
    width = len(stream.schema)
    stream, places = extended(stream, plan.expressions)
    names = stream.schema.names
    order = [(names[column], how) for column, (_, how) in zip(places, plan.order, strict=True)]
    limit, skip = ALL if plan.limit is None else min(plan.limit, ALL), min(plan.offset, ALL - 1)
    rows = stream.top(limit, order, by=[names[column] for column in plan.partition], skip=skip)
    return picked(rows, range(width))


def over(plan: Window, stream: Stream) -> Stream:
    """The stream of `Window`."""
    width = len(stream.schema)
    where: list[int] = [0] * len(plan.calls)
    for numbers in by_window(plan.calls):
        start = len(stream.schema)
        stream = _windowed(stream, [plan.calls[number_] for number_ in numbers])
        for place, number in enumerate(numbers):
            where[number] = start + place
    rows = picked(stream, [*range(width), *where], plan.schema.names)
    if rows.schema.types == plan.schema.types:
        return rows
    declared = [
        cast(Column(number_, f.name, f.type, f.nullable), wanted.type)
        for number_, (f, wanted) in enumerate(zip(rows.schema.fields, plan.schema.fields, strict=True))
    ]
    return projected(rows, declared, plan.schema.names)


def by_window(calls: Sequence[WindowCall]) -> list[list[int]]:
    """The numbers of the calls with the same partition and order."""
    windows: dict[object, list[int]] = {}
    for number, call in enumerate(calls):
        windows.setdefault((call.partition, call.order), []).append(number)
    return list(windows.values())


def _windowed(stream: Stream, calls: Sequence[WindowCall]) -> Stream:
    """The stream with the results of calls over one window after its columns."""
    width, window = len(stream.schema), calls[0]
    reads = [_CallReads.of(call) for call in calls]
    keys = [*window.partition, *(by for by, _ in window.order)]
    read = [*chain(*(each.arguments for each in reads)), *chain(*(each.reached for each in reads))]
    stream, places = extended(stream, [*keys, *read])
    index, peers = _in_order(stream, calls, places)
    indexed = stream.circuit.add(index, [stream])
    rest = (index.fields.index(place) for place in places[len(keys) :])
    arguments = [list(islice(rest, len(each.arguments))) for each in reads]
    reached = [list(islice(rest, len(each.reached))) for each in reads]
    functions = tuple(
        each.function(fields, reach, indexed, number)
        for number, (each, fields, reach) in enumerate(zip(reads, arguments, reached, strict=True))
    )
    operator = WindowOperator(indexed.layout, index.order, peers, functions)
    results = stream.circuit.add(operator, [indexed])
    back = [index.fields.index(column) for column in range(width)]
    return picked(results, [*back, *range(len(index.fields), len(results.schema))], [
        *stream.schema.names[:width], *(function.result.name for function in functions)
    ])  # fmt: skip


def _in_order(stream: Stream, calls: Sequence[WindowCall], places: Sequence[int]) -> tuple[Index, int]:
    """The index of a window's partitions in their order, and how many fields of it tell peers.

    ``places`` begin with the columns of the partition and of the order.
    """
    window, start = calls[0], len(calls[0].partition)
    partition = list(dict.fromkeys(places[:start]))
    directions: dict[int, Direction] = {}
    for column, (_, how) in zip(places[start:], window.order, strict=False):
        directions.setdefault(column, direction(how))
    ordered = [column for column in directions if column not in partition]
    fields = tuple(dict.fromkeys([*partition, *ordered, *range(len(stream.schema))]))
    # Ties are told apart by all other columns, in an order that depends on values alone; to sessions they are the same.
    telling = ordered if all(_name(call) in SESSIONS for call in calls) else fields[len(partition) :]
    order = tuple(
        (place, directions.get(column, Direction.ASC)) for place, column in enumerate(fields) if column in telling
    )
    return Index(Layout(stream.schema), fields, len(partition), order), len(ordered)


@dataclass(frozen=True, slots=True)
class _CallReads:
    """A call with the expressions that it reads of each row: its arguments, and the bounds of its frame."""

    call: WindowCall
    aggregate: Wanted | None  # what it asks of the rows of its frame, if it is an aggregate that groups have, too
    arguments: tuple[Expression, ...]
    reached: tuple[Expression, ...]

    @staticmethod
    def of(call: WindowCall) -> _CallReads:
        asked = _aggregate_of(call)
        return _CallReads(call, asked, _arguments(call) if asked is None else asked.expressions, _reached(call))

    def function(self, fields: Sequence[int], reached: Sequence[int], indexed: Stream, number: int) -> Over:
        """The call over the fields of an index that its expressions have become."""
        if self.aggregate is None:
            return _over(self.call, fields, reached, indexed.schema, number)
        asked = self.aggregate.call(fields, indexed.circuit)
        return _aggregate_over(self.call, asked, reached, indexed.schema, number)


def _aggregate_of(call: WindowCall) -> Wanted | None:
    """The aggregate call behind a window call, or None."""
    if not isinstance(call, AggregateWindowCall):
        return None
    return wanted_of(
        AggregateCall(call.function, call.arguments, call.distinct, call.filter, call.inner, call.type, call.nullable)
    )


def _aggregate_over(
    call: WindowCall, asked: Call, reached: Sequence[int], schema: Schema, number: int
) -> AggregateOver:
    result = Field(_fresh(schema, f"window {number}"), asked.result(schema, "").type, asked.function != "count")
    frame = _frame(call)
    plain = asked.function, asked.fields, result, *frame, 1, False
    framed = _framed(call, plain, reached) if reached else FramedOver(*plain)
    return AggregateOver(*(getattr(framed, field.name) for field in fields_of(FramedOver)), call=asked)


def _name(call: WindowCall) -> str:
    if isinstance(call, AggregateWindowCall):
        return call.function.lower()
    name = AGGREGATES.get(call.function.lower(), call.function.lower())
    if name not in KNOWN:
        raise unknown_name("window function", call.function, KNOWN)
    return name


def _arguments(call: WindowCall) -> tuple[Expression, ...]:
    """The expressions that a call reads of each row."""
    name = _name(call)
    if name in RANKS:
        return ()
    if name in COPIES and call.filter not in (None, TRUE) and not _skips(call, name):
        raise SchemaError(f"{call.function} with a filter", hint="filter the rows, or use min or max")
    if name in ("lag", "lead"):
        value = call.arguments[0]
        return (value,) if len(call.arguments) < 3 else (value, cast(call.arguments[2], value.type))
    if name in COPIES or name in SESSIONS:
        return call.arguments[:1]
    if not call.arguments:
        return () if call.filter is None else (called("if", call.filter, TRUE, Literal(None, BOOLEAN)),)
    (value,) = call.arguments
    return (value if call.filter is None else called("if", call.filter, value, Literal(None, value.type)),)


def _over(call: WindowCall, fields: Sequence[int], reached: Sequence[int], schema: Schema, number: int) -> Over:
    name = _name(call)
    nullable = name not in NEVER_NULL
    if name in RANKS:
        type_ = DOUBLE if name in ("percent_rank", "cume_dist") else INTEGER
    elif name in COPIES or name in SESSIONS or name in ("min", "max"):
        type_ = schema.fields[fields[0]].type
    else:
        type_ = Call(name, tuple(fields)).result(schema, "").type
    result = Field(_fresh(schema, f"window {number}"), type_, nullable)
    unit, start, end = _frame(call)
    plain = name, tuple(fields), result, unit, start, end, _number(call, name), _skips(call, name)
    return _framed(call, plain, reached) if reached else Over(*plain)


def _framed(call: WindowCall, plain: tuple[Any, ...], reached: Sequence[int]) -> FramedOver:
    """The function over a frame that is more than a number of rows; ``reached`` has the fields of `_reached`."""
    assert call.frame is not None, "only a frame that is written is one of distances"
    rest = iter(reached[1:])
    low, high = (next(rest) if _has_distance(call, edge) else -1 for edge in (call.frame.start, call.frame.end))
    key = reached[0] if low >= 0 or high >= 0 else -1
    descending = bool(call.order) and call.order[0][1].lower().startswith("desc")
    exclude = call.frame.exclude if isinstance(call.frame, ExcludingFrame) else ""
    return FramedOver(*plain, key=key, low=low, high=high, descending=descending, exclude=exclude)


def _has_distance(call: WindowCall, edge: Any) -> bool:
    return call.frame is not None and call.frame.unit == "range" and is_distance(edge)


def _reached(call: WindowCall) -> tuple[Expression, ...]:
    """The expressions by which a frame of distances, or one with exclusions, is found; none for a simple frame."""
    frame = call.frame
    if frame is None or _name(call) in (*RANKS, "lag", "lead"):
        return ()
    if not any(_has_distance(call, edge) for edge in (frame.start, frame.end)):
        return (TRUE,) if isinstance(frame, ExcludingFrame) else ()
    (by, how), *_ = call.order
    reach = reaches(by, frame.start, frame.end, descending=how.lower().startswith("desc"))
    return (reach.key, *(e for e in (reach.low, reach.high) if e is not None))


def _fresh(schema: Schema, name: str) -> str:
    while name in schema:
        name += "'"
    return name


def _frame(call: WindowCall) -> tuple[str, int | None, int | None]:
    """The unit and the bounds; of a distance only whether it goes back (-1) or on (1)."""
    if call.frame is None:
        return ("range", None, 0) if call.order else ("range", None, None)
    unit, start, end = call.frame.unit, call.frame.start, call.frame.end
    if unit != "range":
        return unit, start, end
    return unit, _side(start), _side(end)


def _side(edge: Any) -> int | None:
    if not is_distance(edge):
        return edge
    return -1 if (edge.value if isinstance(edge, Literal) else edge) < 0 else 1


def _number(call: WindowCall, name: str) -> int:
    place = 0 if name == "ntile" else 1
    if name not in (*SESSIONS, "lag", "lead", "nth_value", "ntile") or len(call.arguments) <= place:
        return 1
    argument = call.arguments[place]
    if not isinstance(argument, Literal) or not isinstance(argument.value, int):
        raise SchemaError(f"{call.function} by {argument}", hint="give a constant")
    if name in ("ntile", "nth_value") and argument.value < 1:
        raise SchemaError(f"{call.function} of {argument}", hint="give 1 or more")
    return argument.value


def _skips(call: WindowCall, name: str) -> bool:
    """Whether NULLs are passed over: by a second argument, or by a filter of values that are not NULL."""
    if name not in COPIES:
        return False
    if call.filter not in (None, TRUE):
        return call.filter == called("is_not_null", call.arguments[0])
    if name not in ("first_value", "last_value") or len(call.arguments) < 2:
        return False
    flag = call.arguments[1]
    return isinstance(flag, Literal) and flag.value is True
