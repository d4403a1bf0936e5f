"""Promises about time, carried along a circuit: what is known of every row that is still to come by a stream.

A watermark is a promise of a source: of rows to come, a column is not before it. `promises` carries that on from stream
to stream. A projection keeps it; a function that never falls turns ``ts >= w`` into ``f(ts) >= f(w)``; a sum of streams
keeps what all of them promise; groups keep what is promised of their columns, because a group that gets no row does not
change; and of joined rows is known what equal keys, or conditions between the times of both sides, say.

A promise is an expression of the watermark, so it can be computed whenever that moves, and printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Node, Source, inputs_of
from everview.lowering.distances import Distance, distances
from everview.lowering.frames import frame_span
from everview.lowering.rising import MOMENTS, rising_in
from everview.operators.aggregate import Weigh
from everview.operators.announce import Announce
from everview.operators.arrange import Arrange
from everview.operators.asof import AsofIncremental, Toward
from everview.operators.by_state import OverChanges
from everview.operators.exchange import Exchange
from everview.operators.explode import Explode
from everview.operators.index import Index
from everview.operators.join import LEFT, JoinIncremental
from everview.operators.linear import Filter, Inspect, Map, Matching, Minus, Negate, NotNull, Plus, Project, Recode
from everview.operators.multijoin import MultijoinIncremental
from everview.operators.operator import Operator
from everview.operators.present import Present
from everview.operators.semijoin import SemijoinIncremental
from everview.operators.where import Where
from everview.operators.window import SessionEdges, WindowIncremental
from everview.plan.timed import expired_of, watermark_of
from everview.plan.typing import call, literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Call, Column, Expression, Literal, rewritten
from everview.scalars.kinds import DAY_TIME
from everview.types import BIGINT, DATE, INTEGER, TIMESTAMP, Schema

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
    """What is known of rows to come: bounds of their fields, and of the elements of fields that are arrays."""

    fields: Facts = field(default_factory=dict[int, Bound])
    elements: Facts = field(default_factory=dict[int, Bound])


NOTHING: Final = PromisedBounds()
_SAME: Final = (Filter, Where, Present, NotNull, Matching, Negate, Inspect, Exchange, Announce, Arrange)


def promises(circuit: Circuit) -> dict[int, PromisedBounds]:
    """What is known of the rows to come by each stream of an incremental circuit's root."""
    known: dict[int, PromisedBounds] = {}
    near = distances(circuit)
    for node_id in circuit.order():
        node = circuit[node_id]
        known[node_id] = _of_node(circuit, node, known)
        if near.get(node_id):
            known[node_id] = _narrowed(circuit, known, known[node_id], near[node_id])
    return known


def either(bounds: Iterable[Bound | None]) -> Bound | None:
    """The bound of what has one of several bounds; None if one is not known."""
    every = list(bounds)
    if not every or any(bound is None for bound in every):
        return None
    return tuple(dict.fromkeys(promise for bound in every if bound is not None for promise in bound))


def earlier(bound: Bound | None, micros: int) -> Bound | None:
    return None if bound is None else tuple(promise.earlier_by(micros) for promise in bound)


def group_fields(operator: OverChanges) -> int:
    """How many first fields of the inputs tell groups apart."""
    schema = operator.inputs[0].layout.schema
    return next(n for n in range(len(schema) + 1) if _width(schema, n) == operator.group_words)


def _width(schema: Schema, fields: int) -> int:
    return Schema(schema.fields[:fields]).width


# -- one node


def _of_node(circuit: Circuit, node: Node, known: Mapping[int, PromisedBounds]) -> PromisedBounds:
    if isinstance(node, Source):
        return _of_source(circuit, node)
    if not isinstance(node, Apply):
        return NOTHING
    inputs = [known.get(-1 if i is None else i, NOTHING) for i in inputs_of(node)]
    operator = node.operator
    match operator:
        case Project() | Index():
            return _picked(inputs[0], operator.fields)
        case Weigh():
            return _picked(inputs[0], operator.group)
        case Recode():
            return _recoded(operator, inputs[0])
        case Map():
            return _mapped(circuit, operator, inputs[0])
        case Explode():
            return _exploded(operator, inputs[0])
        case WindowIncremental() if operator.sessions is None:
            return PromisedBounds(_of_frames(circuit, node, inputs[0].fields))
        case _ if isinstance(operator, _SAME):
            return inputs[0]
        case _:
            return PromisedBounds(_of_several(operator, [given.fields for given in inputs]))


def _of_source(circuit: Circuit, source: Source) -> PromisedBounds:
    clock = circuit.sources.get(watermark_of(source.name))
    if clock is None or expired_of(source.name) in circuit.sinks:  # what a table forgets goes after its time
        return NOTHING
    (time,) = circuit.layout(clock).schema.fields
    moment = Column(0, f"the watermark of {source.name}", time.type, nullable=False)
    return PromisedBounds({source.schema.index(time.name): (Promise(clock, moment),)})


def _of_several(operator: Operator, inputs: list[Facts]) -> Facts:
    match operator:
        case Plus() | Minus():
            return _agreed(inputs, range(len(operator.output.schema)))
        case WindowIncremental() if operator.sessions is not None:
            return _of_sessions(operator, operator.sessions, *inputs)
        case OverChanges():
            return _agreed(inputs, range(group_fields(operator)))
        case SemijoinIncremental():
            return _agreed(inputs, range(operator.left.key))
        case JoinIncremental():
            keys = _agreed(inputs, range(operator.left.key))
            return {place: keys[f] for place, (_, f) in enumerate(operator.picks) if f in keys}
        case AsofIncremental():
            return _of_asof(operator, *inputs)
        case MultijoinIncremental():
            seeds = [of_seed(operator, atom, facts) for atom, facts in enumerate(inputs)]
            values = _agreed(seeds, operator.join.select)
            return {place: values[v] for place, v in enumerate(operator.join.select) if v in values}
        case _:
            return NO_FACTS


def _agreed(inputs: list[Facts], fields: Iterable[int]) -> Facts:
    """The bounds of fields that all inputs have, each coming from one of them."""
    bounds = {field_: either(facts.get(field_) for facts in inputs) for field_ in fields}
    return {field_: bound for field_, bound in bounds.items() if bound is not None}


def of_seed(operator: MultijoinIncremental, atom: int, facts: Facts) -> Facts:
    """The bounds of the variables of a multiway join that changes of one atom bring."""
    fields = operator.join.queries[atom].indexes[atom].fields
    variables = operator.join.variables[atom]
    return {variables[field_]: facts[place] for place, field_ in enumerate(fields) if place in facts}


def _of_frames(circuit: Circuit, window: Apply, given: Facts) -> Facts:
    """A row changes those whose frames it is in: no further back than their frames reach ahead."""
    assert isinstance(window.operator, WindowIncremental), "frames are of windows"
    keys, span = _agreed([given], range(group_fields(window.operator))), frame_span(circuit, window)
    first = None if span is None else earlier(given.get(span.field), span.ahead)
    return keys if span is None or first is None else {**keys, span.field: first}


def _of_sessions(operator: WindowIncremental, edges: SessionEdges, given: Facts) -> Facts:
    """A row can join or split only sessions whose end is at most the gap before the row's time."""
    keys = _agreed([given], range(group_fields(operator)))
    last = earlier(given.get(edges.moment), edges.gap)
    return keys if last is None else {**keys, edges.last: last}


def _of_asof(operator: AsofIncremental, left: Facts, right: Facts) -> Facts:
    """A row of the right reaches left rows at its time or after it; ahead of it no further than the tolerance."""
    keys = dict(_agreed([left, right], range(operator.left.key)))
    at = operator.left.key
    time = either([left.get(at), reached(operator, right.get(at))])
    known = keys if time is None else {**keys, at: time}
    return {place: known[f] for place, (side, f) in enumerate(operator.picks) if side == LEFT and f in known}


def reached(operator: AsofIncremental, changed: Bound | None) -> Bound | None:
    """The earliest left rows that changes of right rows reach."""
    if operator.toward is Toward.BACKWARD:
        return changed
    if operator.tolerance is None or operator.left.schema.fields[operator.left.key].type != TIMESTAMP:
        return None
    return earlier(changed, operator.tolerance)


def _picked(given: PromisedBounds, fields: Iterable[int | None]) -> PromisedBounds:
    def of(facts: Facts) -> Facts:
        return {place: facts[f] for place, f in enumerate(fields) if f is not None and f in facts}

    fields = tuple(fields)
    return PromisedBounds(of(given.fields), of(given.elements))


def _recoded(operator: Recode, given: PromisedBounds) -> PromisedBounds:
    same = [
        place if one.type == other.type else None
        for place, (one, other) in enumerate(zip(operator.source.schema.fields, operator.schema.fields, strict=True))
    ]
    return _picked(given, same)


def _exploded(operator: Explode, given: PromisedBounds) -> PromisedBounds:
    kept = _picked(given, operator.keep)
    element = given.elements.get(operator.array)
    if element is None or operator.outer:
        return kept
    return PromisedBounds({**kept.fields, len(operator.output.schema) - 1: element}, kept.elements)


def _mapped(circuit: Circuit, operator: Map, given: PromisedBounds) -> PromisedBounds:
    kept = _picked(given, operator.keep)
    function = circuit.functions[operator.function].call
    if not isinstance(function, Evaluate):
        return kept
    width = len(operator.source.schema)
    arguments = operator.arguments if operator.arguments is not None else tuple(range(width))
    facts = {place: given.fields[f] for place, f in enumerate(arguments) if f in given.fields}
    fields, elements = dict(kept.fields), dict(kept.elements)
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
    """A bound of an expression, where it is a function of one column of which a bound is known, and never falls."""
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
