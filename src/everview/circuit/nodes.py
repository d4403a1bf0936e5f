"""The nodes of a circuit: a closed union, each a frozen value that names its inputs by their local ids."""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.operators.operator import Layout, Moment, Operator, Port
from everview.types import Schema


@dataclass(frozen=True, slots=True)
class Read:
    """An edge from a trace: the `Arrange` node that owns it, and the moment at which it is read."""

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
    """

    name: str
    input: int
    keep: bool = True
    positive: bool = False


Node = Source | Apply | Feedback | Sink


def inputs_of(node: Node) -> tuple[int | None, ...]:
    match node:
        case Source():
            return ()
        case Apply():
            return node.inputs
        case Feedback() | Sink():
            return (node.input,)


def reads_of(node: Node) -> tuple[Read, ...]:
    return node.reads if isinstance(node, Apply) else ()


def ports_of(node: Node) -> tuple[Port, ...]:
    match node:
        case Apply():
            return node.operator.inputs
        case Feedback():
            return (Port(node.layout),)
        case Source() | Sink():
            return ()


def read_layouts(operator: Operator) -> tuple[Layout, ...]:
    """The layouts of the traces that an operator reads."""
    return getattr(operator, "reads", ())


def reconnected(node: Node, port: int, stream: int) -> Node:
    """The node with one input connected."""
    match node:
        case Apply():
            inputs = (*node.inputs[:port], stream, *node.inputs[port + 1 :])
            return replace(node, inputs=inputs)
        case Feedback():
            return replace(node, input=stream)
        case Source() | Sink():
            raise AssertionError("sources and sinks have no ports to connect")


def title(node: Node) -> str:
    match node:
        case Source():
            return f"source {node.name}"
        case Sink():
            return f"sink {node.name}"
        case Feedback():
            return "z⁻¹"
        case Apply():
            return type(node.operator).__name__
