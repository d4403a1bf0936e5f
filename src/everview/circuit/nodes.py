"""The nodes of a circuit: a closed union, each a frozen value that names its inputs by their local ids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from everview.operators.operator import Layout, Moment, Operator, Port
from everview.types import Schema

if TYPE_CHECKING:
    from everview.circuit.circuit import Circuit


@dataclass(frozen=True, slots=True)
class Read:
    """An edge from a trace: the `Arrange` node owning the trace, and the moment of reading."""

    node: int
    moment: Moment


@dataclass(frozen=True, slots=True)
class Source:
    """Emits what arrives from outside under a name."""

    name: str
    schema: Schema

    @property
    def output(self) -> Layout:
        return Layout(self.schema)


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator on streams; an input that is not connected yet is None."""

    operator: Operator
    inputs: tuple[int | None, ...]
    reads: tuple[Read, ...] = ()

    @property
    def output(self) -> Layout:
        return self.operator.output


@dataclass(frozen=True, slots=True)
class Feedback:
    """z⁻¹: its output in a tick is its input of the tick before. It may close a cycle."""

    layout: Layout
    input: int | None = None

    @property
    def output(self) -> Layout:
        return self.layout


@dataclass(frozen=True, slots=True)
class Sink:
    """Hands a stream's changes to the outside under a name.

    ``keep`` asks the runtime for a trace of their sum, the contents; ``positive`` refuses negative weights in it.
    The sink of a ``table`` is no view: it keeps what the source of that name holds, indexed by its key.
    """

    name: str
    input: int
    keep: bool = True
    positive: bool = False
    table: bool = False


@dataclass(frozen=True, slots=True)
class Import:
    """Brings a stream of the parent into a child circuit: all of it at the first iteration."""

    layout: Layout
    parent: int  # the stream's node in the parent

    @property
    def output(self) -> Layout:
        return self.layout


@dataclass(frozen=True, slots=True)
class Child:
    """A circuit that runs to its fixed point within every step of its parent.

    With ``changes``, its streams carry changes and an import arrives once; without, whole Z-sets that are
    computed anew in every iteration until nothing changes. ``limit`` bounds the iterations; without one,
    `LoopBounds` do, and by whether it ``grows``, making new values.
    """

    name: str
    circuit: Circuit
    limit: int | None
    changes: bool = False
    grows: bool = True

    @property
    def output(self) -> Layout:
        raise AssertionError("a child's streams leave it by exports")


@dataclass(frozen=True, slots=True)
class Export:
    """A stream of a child, as its parent sees it: its value at the fixed point."""

    layout: Layout
    child: int
    node: int  # the stream's node in the child

    @property
    def output(self) -> Layout:
        return self.layout


Node = Source | Apply | Feedback | Sink | Import | Child | Export


def inputs_of(node: Node) -> tuple[int | None, ...]:
    match node:
        case Source() | Import():
            return ()
        case Apply():
            return node.inputs
        case Feedback() | Sink():
            return (node.input,)
        case Child():
            return tuple(inner.parent for inner in node.circuit if isinstance(inner, Import))
        case Export():
            return (node.child,)
        case _:
            assert_never(node)


def reads_of(node: Node) -> tuple[Read, ...]:
    return node.reads if isinstance(node, Apply) else ()


def ports_of(node: Node) -> tuple[Port, ...]:
    match node:
        case Apply():
            return node.operator.inputs
        case Feedback():
            return (Port(node.layout),)
        case Source() | Sink() | Import() | Child() | Export():
            return ()
        case _:
            assert_never(node)


def reconnected(node: Node, port: int, stream: int) -> Node:
    """The node with one input connected."""
    match node:
        case Apply():
            inputs = (*node.inputs[:port], stream, *node.inputs[port + 1 :])
            return replace(node, inputs=inputs)
        case Feedback():
            return replace(node, input=stream)
        case Source() | Sink() | Import() | Child() | Export():
            raise AssertionError("only operators and feedbacks have ports to connect")
        case _:
            assert_never(node)


def title(node: Node) -> str:
    match node:
        case Source():
            return f"source {node.name}"
        case Sink():
            return f"{'table' if node.table else 'sink'} {node.name}"
        case Feedback():
            return "z⁻¹"
        case Import():
            return "import"
        case Child():
            return f"child {node.name}"
        case Export():
            return "export"
        case Apply():
            return type(node.operator).__name__
        case _:
            assert_never(node)
