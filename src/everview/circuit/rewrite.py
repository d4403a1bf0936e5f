"""Copying a circuit node by node: what every pass from circuit to circuit is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Feedback, Read, Sink, Source
from everview.circuit.stream import Stream, Trace


@dataclass
class Copy:
    """A circuit on its way into another; ``at`` says which stream an old node became."""

    old: Circuit
    new: Circuit = field(default_factory=Circuit)
    at: dict[int, Stream] = field(default_factory=dict[int, Stream])

    def inputs(self, node: Apply) -> list[Stream]:
        return [self.at[i] for i in node.inputs if i is not None]

    def traces(self, node: Apply) -> list[Trace]:
        return [self.trace(read) for read in node.reads]

    def trace(self, read: Read) -> Trace:
        return Trace(self.at[read.node], read.moment)

    def unchanged(self, node: Apply) -> Stream:
        return self.new.add(node.operator, self.inputs(node), self.traces(node))


def rewrite(
    old: Circuit,
    apply: Callable[[Copy, Apply], Stream] = Copy.unchanged,
    sink: Callable[[Copy, Sink], None] | None = None,
    source: Callable[[Copy, Source], Stream] | None = None,
) -> Circuit:
    """A new circuit with every operator node replaced by what ``apply`` makes of it."""
    copy = Copy(old)
    copy.new.functions.update(old.functions)
    loops: list[tuple[int, Callable[[Stream], None]]] = []
    for at in _traces_first(old):
        node = old[at]
        match node:
            case Source():
                copy.at[at] = source(copy, node) if source else copy.new.source(node.name, node.schema)
            case Feedback():
                copy.at[at], connect = copy.new.feedback(node.layout.schema)
                assert node.input is not None, "a checked circuit is connected"
                loops.append((node.input, connect))
            case Sink():
                stream = copy.at[node.input]
                if sink:
                    sink(copy, node)
                else:
                    copy.new.sink(node.name, stream, keep=node.keep, positive=node.positive)
            case Apply():
                copy.at[at] = apply(copy, node)
    for input_, connect in loops:
        connect(copy.at[input_])
    return copy.new


def _traces_first(circuit: Circuit) -> list[int]:
    """An order in which also a trace that is read before the tick comes before its reader, as building needs it."""
    circuit.check()
    done: dict[int, None] = {}

    def visit(at: int) -> None:
        if at in done:
            return
        node = circuit[at]
        done[at] = None
        if isinstance(node, Feedback):
            done[at] = done.pop(at)
            return
        needed = [r.node for r in node.reads] if isinstance(node, Apply) else []
        inputs = node.inputs if isinstance(node, Apply) else (node.input,) if isinstance(node, Sink) else ()
        for other in (*inputs, *needed):
            assert other is not None
            visit(other)
        done[at] = done.pop(at)

    for at in circuit.order():
        visit(at)
    return list(done)
