"""Promises about time, carried along a circuit: what is known of every row that is still to come by a stream.

A watermark is a promise of a source: of rows to come, a column is not before it. `promises` carries that on from stream
to stream. A projection keeps it; a function that never falls turns ``ts >= w`` into ``f(ts) >= f(w)``; a sum of streams
keeps what all of them promise; groups keep what is promised of their columns, because a group that gets no row does not
change; and of joined rows is known what equal keys, or conditions between the times of both sides, say.

A promise is an expression of the watermark, so it can be computed whenever that moves, and printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Node, Source, inputs_of
from everview.lowering.distances import Distance, distances
from everview.lowering.frames import frame_span
from everview.lowering.rising import MOMENTS, rising_in
from everview.operators.linear import Map
from everview.operators.operator import FieldOrigin, Origins
from everview.operators.window import WindowIncremental
from everview.plan.timed import expired_of, watermark_of
from everview.plan.typing import call, literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Call, Column, Expression, Literal, rewritten
from everview.scalars.kinds import DAY_TIME
from everview.types import BIGINT, DATE, INTEGER

TIMES: Final = (*MOMENTS, DATE)
COUNTED: Final = (*TIMES, BIGINT, INTEGER)  # what rows can be kept in the order of


@dataclass(frozen=True, slots=True)
class Promise:
    """A lower bound: an expression of a moment, which is column 0 of a stream of one row."""

    clock: int  # the node whose stream the moment comes by
    at_least: Expression

    def earlier_by(self, micros: int) -> Promise:
        """The promise of what may be so much earlier."""
        if micros == 0:
            return self
        return Promise(self.clock, call("subtract", self.at_least, literal(micros, DAY_TIME)))


Bound = tuple[Promise, ...]  # at least the earliest of several
Facts = Mapping[int, Bound]  # by field
NO_FACTS: Final[Facts] = {}


@dataclass(frozen=True, slots=True)
class PromisedBounds:
    """Lower bounds of the fields of rows to come, and of the elements of fields that are arrays."""

    fields: Facts = field(default_factory=dict[int, Bound])
    elements: Facts = field(default_factory=dict[int, Bound])


NOTHING: Final = PromisedBounds()


def promises(circuit: Circuit) -> dict[int, PromisedBounds]:
    """The promised bounds of each stream of an incremental circuit's root."""
    known: dict[int, PromisedBounds] = {}
    near = distances(circuit)
    for node_id in circuit.order():
        node = circuit[node_id]
        known[node_id] = _of_node(circuit, node, known)
        if near.get(node_id):
            known[node_id] = _narrowed(circuit, known, known[node_id], near[node_id])
    return known


def either(bounds: Iterable[Bound | None]) -> Bound | None:
    """The bound of a value to which one of several bounds applies; None if one of them is not known."""
    every = list(bounds)
    if not every or any(bound is None for bound in every):
        return None
    return tuple(dict.fromkeys(promise for bound in every if bound is not None for promise in bound))


def earlier(bound: Bound | None, micros: int) -> Bound | None:
    return None if bound is None else tuple(promise.earlier_by(micros) for promise in bound)


# -- one node


def _of_node(circuit: Circuit, node: Node, known: Mapping[int, PromisedBounds]) -> PromisedBounds:
    if isinstance(node, Source):
        return _of_source(circuit, node)
    if not isinstance(node, Apply):
        return NOTHING
    inputs = [known.get(-1 if i is None else i, NOTHING) for i in inputs_of(node)]
    if isinstance(node.operator, Map):
        return _mapped(circuit, node.operator, inputs[0])
    fields = bounds_of(node.operator.origins, inputs)
    if isinstance(node.operator, WindowIncremental):
        fields = {**fields, **_of_frames(circuit, node, inputs[0].fields)}
    return PromisedBounds(fields, _element_bounds(node.operator.origins, inputs))


def _of_source(circuit: Circuit, source: Source) -> PromisedBounds:
    clock = circuit.sources.get(watermark_of(source.name))
    if clock is None or expired_of(source.name) in circuit.sinks:  # what a table forgets goes after its time
        return NOTHING
    (time,) = circuit.layout(clock).schema.fields
    moment = Column(0, f"the watermark of {source.name}", time.type, nullable=False)
    return PromisedBounds({source.schema.index(time.name): (Promise(clock, moment),)})


def bounds_of(origins: Origins, inputs: Sequence[PromisedBounds]) -> Facts:
    """The bounds of values that come from fields of the inputs."""

    def bound(origin: FieldOrigin) -> Bound | None:
        given = inputs[origin.input]
        return earlier((given.elements if origin.element else given.fields).get(origin.field), origin.earlier)

    bounds = {place: either(map(bound, among)) for place, among in origins.items()}
    return {place: known for place, known in bounds.items() if known is not None}


def _element_bounds(origins: Origins, inputs: Sequence[PromisedBounds]) -> Facts:
    """The bounds of the elements of arrays that come from fields of the inputs."""
    bounds = {
        place: either(None if one.element else inputs[one.input].elements.get(one.field) for one in among)
        for place, among in origins.items()
    }
    return {place: known for place, known in bounds.items() if known is not None}


def _of_frames(circuit: Circuit, window: Apply, given: Facts) -> Facts:
    """A row changes those whose frames it is in: no further back than their frames reach ahead."""
    span = frame_span(circuit, window)
    first = None if span is None else earlier(given.get(span.field), span.ahead)
    return {} if span is None or first is None else {span.field: first}


def _mapped(circuit: Circuit, operator: Map, given: PromisedBounds) -> PromisedBounds:
    """The bounds of fields that pass, and of fields computed by expressions."""
    fields = dict(bounds_of(operator.origins, [given]))
    elements = dict(_element_bounds(operator.origins, [given]))
    function = circuit.functions[operator.function].call
    if not isinstance(function, Evaluate):
        return PromisedBounds(fields, elements)
    width = len(operator.source.schema)
    arguments = operator.arguments if operator.arguments is not None else tuple(range(width))
    facts = {place: given.fields[f] for place, f in enumerate(arguments) if f in given.fields}
    for place, expression in enumerate(function.expressions, len(operator.keep)):
        bound = lowest(expression, facts)
        if bound is not None:
            fields[place] = bound
        element = _first_element(expression, facts)
        if element is not None:
            elements[place] = element
    return PromisedBounds(fields, elements)


def _first_element(expression: Expression, facts: Facts) -> Bound | None:
    match expression:
        case Call("sequence", (first, _, Literal(step))) if isinstance(step, int) and step > 0:
            return lowest(first, facts)
        case _:
            return None


# -- functions that never fall


def lowest(expression: Expression, facts: Facts) -> Bound | None:
    """The bound of an expression that never falls as its one column grows, where the column has a bound."""
    column = rising_in(expression)
    if column is None or column.index not in facts:
        return None
    return tuple(
        Promise(promise.clock, _cancelled(rewritten(expression, lambda e: promise.at_least if e == column else e)))  # noqa: B023
        for promise in facts[column.index]
    )


def _cancelled(expression: Expression) -> Expression:
    """The expression without a span that it takes away and adds again: a session ends a gap after its last row."""
    match expression:
        case Call("add" | "add_time_to", (Call("subtract" | "subtract_time_to", (moment, less)), more)) if less == more:
            return moment
        case _:
            return expression


# -- conditions between the times of two sides


def _narrowed(
    circuit: Circuit, known: Mapping[int, PromisedBounds], own: PromisedBounds, near: tuple[Distance, ...]
) -> PromisedBounds:
    """The bounds of a join, narrowed by conditions that keep the times of joined rows near each other.

    Each result has a row that is new on one side: its own time is bounded, or that of its partner is.
    """
    fields = dict(own.fields)
    for distance in near:
        bound = either(
            [
                of_side(circuit, known, distance.join, distance.side, distance.field),
                earlier(of_side(circuit, known, distance.join, 1 - distance.side, distance.other), distance.micros),
            ]
        )
        if bound is not None:
            for place in distance.places:
                fields.setdefault(place, bound)
    return PromisedBounds(fields, own.elements)


def of_side(circuit: Circuit, known: Mapping[int, PromisedBounds], join: int, side: int, field_: int) -> Bound | None:
    """The bound of a field of one side of a join."""
    given = inputs_of(circuit[join])[side]
    assert given is not None, "a checked circuit is connected"
    return known[given].fields.get(field_)
