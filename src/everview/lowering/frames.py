"""The reach of window frames in time: the results that a later row can change, and the rows behind those results.

A frame ``RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND INTERVAL 1 MINUTE FOLLOWING`` has rows at most five minutes
before its own row, and one minute after it. If rows to come are not before ``w``, then they are in frames of rows from
``w - 1 minute`` on; and those have no rows before ``w - 6 minutes``. What is before that may leave the trace of the
window: of the rows that are left, the first ones then see less than they did, before a change as well as after it, so
their results cancel out.

A frame of so many rows, a rank, and lag and lead reach any time, and no watermark bounds what they read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, inputs_of
from everview.lowering.distances import constant_micros
from everview.lowering.rising import MOMENTS
from everview.operators.arrange import Arrange
from everview.operators.exchange import Exchange
from everview.operators.index import Direction, Index
from everview.operators.linear import Map
from everview.operators.window import RANKS, SESSIONS, FramedOver, Over, WindowIncremental
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Call, Column, Expression, rewritten
from everview.types import TIMESTAMP


@dataclass(frozen=True, slots=True)
class FrameSpan:
    """How far before and after its row's time a frame has rows, in microseconds; None is any distance."""

    field: int
    back: int | None
    ahead: int


def frame_span(circuit: Circuit, node: Apply) -> FrameSpan | None:
    """The widest frame of a window in the order of a time; None if a row may change others at any distance."""
    window = node.operator
    assert isinstance(window, WindowIncremental), "frames are of windows"
    if not window.peers or not window.order:
        return None
    field, direction = window.order[0]
    if direction not in (Direction.ASC, Direction.ASC_NULLS_LAST) or window.source.schema.types[field] not in MOMENTS:
        return None
    values = _values(circuit, node)
    spans = [_of_call(call, field, values) for call in window.calls]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return FrameSpan(field, _widest(span.back for span in known), max(span.ahead for span in known))


def _widest(distances: Iterable[int | None]) -> int | None:
    every = list(distances)
    return None if None in every else max(distance for distance in every if distance is not None)


def _of_call(call: Over, field: int, values: list[Expression]) -> FrameSpan | None:
    if call.unit != "range" or call.end is None or call.function in (*RANKS, *SESSIONS, "lag", "lead"):
        return None
    low, high = (call.low, call.high) if isinstance(call, FramedOver) else (-1, -1)
    before = 0 if low < 0 else _distance(values[low], values[field])
    after = 0 if high < 0 else _distance(values[high], values[field])
    if before is None or after is None:
        return None
    return FrameSpan(field, None if call.start is None else max(0, -before), max(0, after))


def _distance(moved: Expression, moment: Expression) -> int | None:
    """By how much a moment is moved, in microseconds; None if it is not moved by a constant."""
    if moved == moment:
        return 0
    match moved:
        case Call(("add" | "add_time_to" | "subtract" | "subtract_time_to") as how, (inner, constant)):
            rest, micros = _distance(inner, moment), constant_micros(constant)
            if rest is None or micros is None:
                return None
            return rest + (micros if how.startswith("add") else -micros)
        case _:
            return None


def _values(circuit: Circuit, node: Apply) -> list[Expression]:
    """What a window's fields are, as expressions of the rows that they are computed from."""
    assert isinstance(node.operator, WindowIncremental), "frames are of windows"
    places = range(len(node.operator.source.schema))
    fields = list(places)
    (stream,) = inputs_of(node)
    while stream is not None and isinstance(below := circuit[stream], Apply):
        match below.operator:
            case Arrange() | Exchange():
                pass
            case Index(fields=picked):
                fields = [picked[field] for field in fields]
            case Map() as made:
                return [_value(circuit, made, field) for field in fields]
            case _:
                break
        stream = inputs_of(below)[0]
    return [Column(field, "", TIMESTAMP) for field in fields]


def _value(circuit: Circuit, made: Map, field: int) -> Expression:
    function = circuit.functions[made.function].call
    if field < len(made.keep):
        return Column(made.keep[field], "", TIMESTAMP)
    if not isinstance(function, Evaluate):
        return Column(-1 - field, "", TIMESTAMP)
    arguments = made.arguments if made.arguments is not None else range(len(made.source.schema))

    def plain(part: Expression) -> Expression:
        return Column(arguments[part.index], "", TIMESTAMP) if isinstance(part, Column) else part

    return rewritten(function.expressions[field - len(made.keep)], plain)
