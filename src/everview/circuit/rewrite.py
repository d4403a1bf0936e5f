"""Copying a circuit node by node: what every pass from circuit to circuit is made of."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Read, Sink, Source, inputs_of, reads_of
from everview.circuit.stream import Stream, StreamTrace
from everview.errors import CircuitError


@dataclass
class Copy:
    """A circuit on its way into another; ``at`` says which stream an old node became."""

    old: Circuit
    new: Circuit = field(default_factory=Circuit)
    at: dict[int, Stream] = field(default_factory=dict[int, Stream])
    here: int = -1  # the old node that is being copied

    def inputs(self, node: Apply) -> list[Stream]:
        return [self.at[i] for i in node.inputs if i is not None]

    def traces(self, node: Apply) -> list[StreamTrace]:
        return [self.trace(read) for read in node.reads]

    def trace(self, read: Read) -> StreamTrace:
        return StreamTrace(self.at[read.node], read.moment)

    def unchanged(self, node: Apply) -> Stream:
        """The same operator in the new circuit, over the copies of its inputs, whose layouts have not changed."""
        inputs = [self.at[i].id for i in node.inputs if i is not None]
        return self.new.copy_of(node, inputs, [self.at[read.node].id for read in node.reads])


ApplyRule = Callable[[Copy, Apply], Stream]
SinkRule = Callable[[Copy, Sink], None]
SourceRule = Callable[[Copy, Source], Stream]
NONE_BESIDE: Mapping[int, Sequence[int]] = {}


def _same_sink(copy: Copy, node: Sink) -> None:
    copy.new.sink_again(node, copy.at[node.input])


def _same_source(copy: Copy, node: Source) -> Stream:
    return copy.new.source(node.name, node.schema)


@dataclass(frozen=True)
class NodeRules:
    """The rule of a pass for each kind of node; ``changes`` says that children of the new circuit work on changes."""

    apply: ApplyRule = Copy.unchanged
    sink: SinkRule = _same_sink
    source: SourceRule = _same_source
    changes: bool | None = None


def rewrite(old: Circuit, rules: NodeRules, *, checked: bool = False) -> Circuit:
    """A new circuit with every node replaced by what the rules make of it, children included.

    One that another pass has made is ``checked`` already.
    """
    if not checked:
        old.check()
    copy = Copy(old)
    copy.new.functions.update(old.functions)
    _fill(copy, rules, None)
    return copy.new


def part(old: Circuit, streams: Iterable[int], sinks: Iterable[str]) -> tuple[Circuit, dict[int, Stream]]:
    """The part of a circuit that some streams and sinks need, as a circuit of its own, with the new streams.

    The new circuit keeps all registered functions, so that another function of the same name gets another name.
    """
    wanted = (*streams, *(old.sinks[name] for name in sinks))
    copy = Copy(old)
    copy.new.functions.update(old.functions)
    behind = _behind(old, wanted)
    _fill(copy, NodeRules(), None, [node_id for node_id in _traces_first(old) if node_id in behind])
    return copy.new, copy.at


def rewired(
    old: Circuit, apply: ApplyRule, dropped: Container[int], after: Mapping[int, Sequence[int]]
) -> tuple[Circuit, dict[int, Stream]]:
    """A checked circuit under another rule for its operators, without some that nothing reads any more.

    ``after`` names nodes that must be there before a node is copied, beside those that it reads. With the new streams
    of the root's nodes.
    """
    copy = Copy(old)
    copy.new.functions.update(old.functions)
    _fill(copy, NodeRules(apply), None, [node_id for node_id in _traces_first(old, after) if node_id not in dropped])
    return copy.new, copy.at


def _behind(circuit: Circuit, wanted: Iterable[int]) -> set[int]:
    """Some nodes and all that they depend on."""
    behind: set[int] = set()
    waiting = list(wanted)
    while waiting:
        node_id = waiting.pop()
        if node_id not in behind:
            behind.add(node_id)
            waiting += [i for i in inputs_of(circuit[node_id]) if i is not None]
            waiting += [read.node for read in reads_of(circuit[node_id])]
    return behind


def _fill(copy: Copy, rules: NodeRules, outer: Copy | None, nodes: Iterable[int] | None = None) -> None:
    loops: list[tuple[int, Callable[[Stream], None]]] = []
    children: dict[int, Copy] = {}
    for node_id in _traces_first(copy.old) if nodes is None else nodes:
        node, copy.here = copy.old[node_id], node_id
        match node:
            case Source():
                copy.at[node_id] = rules.source(copy, node)
            case Feedback():
                copy.at[node_id], connect = copy.new.feedback(node.layout.schema)
                assert node.input is not None, "a checked circuit is connected"
                loops.append((node.input, connect))
            case Sink():
                rules.sink(copy, node)
            case Apply():
                copy.at[node_id] = rules.apply(copy, node)
            case Import():
                assert outer is not None, "imports are inside a child"
                copy.at[node_id] = copy.new.enter(outer.at[node.parent])
            case Child():
                changes = node.changes if rules.changes is None else rules.changes
                child = copy.new.child(node.name, limit=node.limit, changes=changes, grows=node.grows)
                inner = Copy(node.circuit, child)
                _fill(inner, rules, copy)
                children[node_id] = inner
            case Export():
                inner = children[node.child]
                copy.at[node_id] = inner.new.leave(inner.at[node.node])
            case _:
                assert_never(node)
    for input_, connect in loops:
        connect(copy.at[input_])


def _traces_first(circuit: Circuit, after: Mapping[int, Sequence[int]] = NONE_BESIDE) -> list[int]:
    """The nodes in an order for building: also a trace that is read before the tick precedes its reader.

    ``after`` names others that precede a node.
    """
    done: dict[int, None] = {}
    under_way: set[int] = set()

    def visit(node_id: int) -> None:
        if node_id in done:
            return
        node = circuit[node_id]
        if node_id in under_way:
            raise CircuitError(
                f"{circuit.label(node_id)} depends on a trace of what it puts out",
                hint="close the cycle with circuit.feedback",
            )
        under_way.add(node_id)
        needed = () if isinstance(node, Feedback) else inputs_of(node)
        for other in (*needed, *(r.node for r in reads_of(node)), *after.get(node_id, ())):
            assert other is not None
            visit(other)
        done[node_id] = None

    for node_id in circuit.order():
        visit(node_id)
    return list(done)
