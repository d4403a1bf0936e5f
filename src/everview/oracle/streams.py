"""The contents of a circuit's streams, node by node; a child is iterated until nothing changes.

A stream whose inputs have not changed is not computed again. So a stream that does not depend on a loop is computed
once for all its iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Sink, Source, inputs_of
from everview.errors import CircuitError, EndlessLoop
from everview.operators.aggregate import Aggregate, Weigh
from everview.oracle.aggregates import aggregated
from everview.oracle.meanings import MEANINGS, Inputs
from everview.oracle.rows import Rows

SHOWN = 8  # iterations whose sizes an error shows


class CircuitStreams:
    """The streams of a circuit that some wanted ones depend on, ready to be evaluated many times."""

    def __init__(self, circuit: Circuit, wanted: Iterable[int]) -> None:
        self.circuit = circuit
        needed = reached(circuit, wanted)
        self._order = [number for number in circuit.order() if number in needed]
        self._known: dict[int, tuple[Inputs, Rows]] = {}
        self._loops = {
            number: FixedPoint(circuit, number) for number in self._order if isinstance(circuit[number], Child)
        }

    def given(self, outside: Mapping[int, Rows]) -> dict[int, Rows]:
        """The contents of every stream, given those from outside or from an iteration before."""
        held = dict(outside)
        for number in self._order:
            node = self.circuit[number]
            match node:
                case Apply():
                    held[number] = self._applied(number, node, tuple(held[i] for i in _needs(self.circuit, number)))
                case Child():
                    self._loops[number].run(held)
                case Export(_, child, stream):
                    held[number] = self._loops[child].found[stream]
                case Source() | Import() | Feedback() | Sink():
                    if number not in held:
                        raise _no_query(self.circuit, number)
                case _:
                    assert_never(node)
        return held

    def _applied(self, number: int, node: Apply, inputs: Inputs) -> Rows:
        known = self._known.get(number)
        if known is None or any(a is not b for a, b in zip(known[0], inputs, strict=True)):
            known = self._known[number] = inputs, self._apply(number, node, inputs)
        return known[1]

    def _apply(self, number: int, node: Apply, inputs: Inputs) -> Rows:
        operator, functions = node.operator, self.circuit.functions
        if isinstance(operator, Aggregate):
            return aggregated(operator, _weighed(self.circuit, number)[0].group, inputs[0], functions)
        meaning = MEANINGS.get(type(operator))
        if meaning is None:
            raise _no_query(self.circuit, number)
        return meaning(operator, inputs, functions)


class FixedPoint:
    """A child circuit at its fixed point: feedbacks begin empty, and iterations go on until none changes."""

    def __init__(self, parent: Circuit, number: int) -> None:
        child = parent[number]
        assert isinstance(child, Child)
        if child.changes:
            raise _no_query(parent, number)
        self.child = child
        nodes = list(enumerate(child.circuit))
        self.imports = {i: node.parent for i, node in nodes if isinstance(node, Import)}
        self.feedbacks = {i: _connected(node.input) for i, node in nodes if isinstance(node, Feedback)}
        exported = [node.node for node in parent if isinstance(node, Export) and node.child == number]
        self.streams = CircuitStreams(child.circuit, [*self.feedbacks.values(), *exported])
        self.entered: dict[int, Rows] | None = None
        self.found: dict[int, Rows] = {}

    def run(self, outer: Mapping[int, Rows]) -> None:
        """Compute the fixed point, unless the entering streams are those of the last run."""
        entered = {i: outer[stream] for i, stream in self.imports.items()}
        if self.entered is None or any(self.entered[i] is not rows for i, rows in entered.items()):
            self.found = self._fixed_point(entered)
            self.entered = entered

    def _fixed_point(self, entered: dict[int, Rows]) -> dict[int, Rows]:
        fed, sizes = dict.fromkeys(self.feedbacks, Rows({})), list[int]()
        limit = LoopBounds.given().of(self.child.limit, grows=self.child.grows)
        for _ in range(limit):
            held = self.streams.given(entered | fed)
            again = {i: _unless_same(held[stream], fed[i]) for i, stream in self.feedbacks.items()}
            if all(again[i] is fed[i] for i in fed):
                return held
            fed = again
            sizes = [*sizes[1 - SHOWN :], sum(map(len, fed.values()))]
        last = ", ".join(f"{n:,}" for n in sizes)
        raise EndlessLoop(
            f"loop {self.child.name} has not ended after {limit:,} iterations; "
            f"in its last iterations it fed back {last} rows",
            hint="does it make new values for ever? Bound them by a condition, or raise the limit of the child",
        )


def _unless_same(rows: Rows, before: Rows) -> Rows:
    return before if rows.weights == before.weights else rows


def reached(circuit: Circuit, wanted: Iterable[int]) -> set[int]:
    """The wanted nodes and all nodes that they depend on."""
    nodes, waiting = set[int](), list(wanted)
    while waiting:
        number = waiting.pop()
        if number not in nodes:
            nodes.add(number)
            waiting += _needs(circuit, number)
    return nodes


def _needs(circuit: Circuit, number: int) -> tuple[int, ...]:
    """The nodes whose contents give a node its meaning; for an aggregate, the rows before they are weighed."""
    node = circuit[number]
    match node:
        case Apply() if isinstance(node.operator, Aggregate):
            return (_weighed(circuit, number)[1],)
        case Source() | Import() | Feedback():
            return ()
        case Apply() | Sink() | Child() | Export():
            return tuple(_connected(i) for i in inputs_of(node))
        case _:
            assert_never(node)


def _weighed(circuit: Circuit, number: int) -> tuple[Weigh, int]:
    """The first `Weigh` before an aggregate, and the stream of all rows that it weighs."""
    node = circuit[number]
    assert isinstance(node, Apply), "an aggregate reads weighed entries"
    operator, source = node.operator, _connected(node.inputs[0])
    return (operator, source) if isinstance(operator, Weigh) else _weighed(circuit, source)


def _connected(stream: int | None) -> int:
    assert stream is not None, "an ordered circuit is connected"
    return stream


def _no_query(circuit: Circuit, number: int) -> CircuitError:
    if isinstance(circuit[number], Feedback):
        return CircuitError(
            f"{circuit.label(number)} is of the tick before, and a query over whole Z-sets has only one",
            hint="delays mean something to a circuit at work, or inside a child; leave out the views that have them",
        )
    return CircuitError(
        f"{circuit.label(number)} is no part of a query over whole Z-sets",
        hint="evaluate the circuit as it was before `incrementalize`, without traces",
    )
