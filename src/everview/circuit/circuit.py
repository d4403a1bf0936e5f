"""A circuit: nodes that compute over streams, in an order that respects their edges.

A stream is a cell that holds the current tick's Z-set. Building the same operator over the same inputs gives the
same node, so indexes and traces are shared without asking. `check` refuses what is ill-formed, naming the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from everview.circuit.fingerprints import fingerprints
from everview.circuit.listed import line_of
from everview.circuit.nodes import (
    Apply,
    Child,
    Export,
    Feedback,
    Import,
    Node,
    Read,
    Sink,
    Source,
    inputs_of,
    ports_of,
    reads_of,
    reconnected,
    title,
)
from everview.circuit.order import order_of
from everview.circuit.stream import Stream, StreamTrace
from everview.doors import doors, inside
from everview.errors import CircuitError, shown
from everview.operators.arrange import Arrange
from everview.operators.functions import Function, Shape
from everview.operators.operator import Layout, Operator
from everview.types import Schema, unknown_name


class CircuitMark(NamedTuple):
    """A circuit at a moment of its construction."""

    nodes: tuple[Node, ...]
    known: dict[Node, int]
    named: dict[str, dict[str, int]]
    functions: dict[str, Function]
    children: tuple[tuple[Circuit, CircuitMark], ...]


@doors()
class Circuit:
    """A graph of nodes under construction; runtimes and passes read it.

    >>> circuit = Circuit()
    >>> edges = circuit.source("edge", Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL"))
    >>> circuit.sink("starts", edges.select("a").distinct())
    >>> print(circuit)
    0 source edge → [a, b]
    1 Project(0) → [a]
    2 Index(1) → [a → ]
    3 Distinct(2) → [a → ]
    4 sink starts(3)
    """

    def __init__(self, parent: Circuit | None = None) -> None:
        self._nodes: list[Node] = []
        self._known: dict[Node, int] = {}
        self._named: dict[str, dict[str, int]] = {"source": {}, "sink": {}, "table": {}}
        self._order: tuple[int, ...] | None = None  # until another node comes
        self._texts: dict[int, str] = {}  # what fingerprints say of nodes alone
        self.parent = parent
        self.at = -1  # of a child, its node in the parent
        self.incremental = False  # whether it is made to be fed with changes
        self.functions: dict[str, Function] = {} if parent is None else parent.functions

    def __getstate__(self) -> dict[str, Any]:
        """The state that pickling sends to tasks: without caches, which they can work out again."""
        return self.__dict__ | {"_order": None, "_texts": {}}

    # -- building

    def source(self, name: str, schema: Schema | str) -> Stream:
        """A stream of what arrives under this name."""
        schema = Schema.parse(schema) if isinstance(schema, str) else schema
        _check_name(name)
        if self.parent is not None:
            raise CircuitError(f"source {name} is inside a child", hint="let a source of the root enter the child")
        if name in self._named["source"]:
            raise CircuitError(f"there is a source {name} already", hint="sources have different names")
        return self._stream(self._put(Source(name, schema)))

    def sink(self, name: str, stream: Stream, *, keep: bool = True, positive: bool = False) -> None:
        """Hand the changes of a stream to the outside; ``keep`` its contents, too.

        A ``positive`` sink refuses a tick that would leave a row with negative weight.
        """
        _check_name(name)
        if self.parent is not None:
            raise CircuitError(f"sink {name} is inside a child", hint="let the stream leave the child first")
        if name in self._named["sink"]:
            raise CircuitError(f"there is a sink {name} already", hint="sinks have different names")
        self._own(stream)
        indexed = stream.index(*stream.schema.names)
        self._put(Sink(name, indexed.id, keep or positive, positive))

    def table(self, source: str, key: Sequence[str] = ()) -> None:
        """Keep what a source holds, indexed by its key; without one, by all columns."""
        if source not in self._named["source"]:
            raise unknown_name("source", source, self._named["source"])
        stream = self._stream(self._named["source"][source])
        self._put(Sink(source, stream.index(*(key or stream.schema.names)).id, table=True))

    def sink_again(self, sink: Sink, stream: Stream) -> None:
        """The sink of another circuit, on a stream of this one that is indexed as that one's was."""
        self._own(stream)
        self._put(replace(sink, input=stream.id))

    def drop_sink(self, name: str) -> None:
        """Let a sink's name go; its node stays, and `everview.circuit.rewrite.part` leaves it out."""
        if name not in self._named["sink"]:
            raise unknown_name("sink", name, self._named["sink"])
        del self._known[self._nodes[self._named["sink"].pop(name)]]

    def drop_source(self, name: str) -> None:
        """Let a source's name go, for one with other columns; what reads the old one is left out by `part`, too."""
        if name not in self._named["source"]:
            raise unknown_name("source", name, self._named["source"])
        del self._known[self._nodes[self._named["source"].pop(name)]]

    @inside
    def mark(self) -> CircuitMark:
        """What is built by now, for `back_to`."""
        named = {kind: dict(names) for kind, names in self._named.items()}
        children = tuple((node.circuit, node.circuit.mark()) for node in self._nodes if isinstance(node, Child))
        return CircuitMark(tuple(self._nodes), dict(self._known), named, dict(self.functions), children)

    @inside
    def back_to(self, mark: CircuitMark) -> None:
        """Forget what was built since a mark; streams of it must not be used any more."""
        self._nodes, self._known = list(mark.nodes), dict(mark.known)
        self._named = {kind: dict(names) for kind, names in mark.named.items()}
        self._order = None
        self._texts = {node_id: text for node_id, text in self._texts.items() if node_id < len(self._nodes)}
        self.functions.clear()
        self.functions.update(mark.functions)
        for child, then in mark.children:
            child.back_to(then)

    def feedback(self, schema: Schema | str) -> tuple[Stream, Callable[[Stream], None]]:
        """A z⁻¹ whose input is connected later: the stream of its output, and the function that connects it."""
        schema = Schema.parse(schema) if isinstance(schema, str) else schema
        node_id = self._append(Feedback(Layout(schema)))
        return self._stream(node_id), lambda stream: self.connect(node_id, 0, stream.under(schema))

    def child(self, name: str, *, limit: int | None = None, changes: bool = False, grows: bool = True) -> Circuit:
        """A circuit inside this one, for recursion: it runs to its fixed point within every step.

        ``limit`` is how many rounds it may take at most in one step; without one, the runtime's `LoopBounds` say, and
        allow more to one that does not ``grow``: that makes no new values, and so comes to an end.

        >>> circuit = Circuit()
        >>> edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
        >>> loop = circuit.child("closure")
        >>> inner = loop.enter(edge)
        >>> path, again = loop.feedback(edge.schema)
        >>> longer = path.join(inner, ("b", "a"), select=["left.a", "right.b"])
        >>> paths = (inner + longer).distinct()
        >>> again(paths)
        >>> loop.leave(paths).sink("path")
        """
        inner = Circuit(self)
        inner.at = self._append(Child(name, inner, limit, changes, grows))
        return inner

    def enter(self, stream: Stream) -> Stream:
        """Bring a stream of the parent (or of its parents) into this child."""
        if stream.circuit is self:
            return stream
        if self.parent is None:
            raise CircuitError(f"{stream!r} is not of a circuit around this one", hint="enter streams of the parent")
        outside = self.parent.enter(stream)
        return self._stream(self._put(Import(outside.layout, outside.id)))

    def leave(self, stream: Stream) -> Stream:
        """The value of a stream of this child at the fixed point, as a stream of the parent."""
        self._own(stream)
        if self.parent is None:
            raise CircuitError("the root has no parent to leave to", hint="circuit.child makes a child")
        return self.parent._stream(self.parent._put(Export(Layout(stream.schema), self.at, stream.id)))

    def delay(self, stream: Stream) -> Stream:
        """z⁻¹: the stream one tick late."""
        self._own(stream)
        return self._stream(self._put(Feedback(Layout(stream.schema), stream.id)))

    def add(self, operator: Operator, inputs: Sequence[Stream | None], reads: Sequence[StreamTrace] = ()) -> Stream:
        """A node for an operator; an input given as None is connected later."""
        return self.place(operator, inputs, reads)

    @inside
    def place(self, operator: Operator, inputs: Sequence[Stream | None], reads: Sequence[StreamTrace] = ()) -> Stream:
        """`add`, for passes from circuit to circuit, which place every node once."""
        for stream in (*inputs, *(t.stream for t in reads)):
            if stream is not None:
                self._own(stream)
        if self.parent is not None and operator.root_only is not None:
            why, instead = operator.root_only
            raise CircuitError(why, hint=instead)
        ids = tuple(None if s is None else s.id for s in inputs)
        node = Apply(operator, ids, tuple(Read(t.stream.id, t.moment) for t in reads))
        self._check_edges(node, title(node))
        return self._stream(self._append(node) if None in ids else self._put(node))

    @inside
    def copy_of(self, node: Apply, inputs: Sequence[int], reads: Sequence[int]) -> Stream:
        """The same operator on these streams and traces, for passes that copy nodes of a checked circuit."""
        moments = (read.moment for read in node.reads)
        traces = tuple(Read(read, moment) for read, moment in zip(reads, moments, strict=True))
        return self._stream(self._put(Apply(node.operator, tuple(inputs), traces)))

    def connect(self, node: int, port: int, stream: Stream) -> None:
        """Connect an input that was left open."""
        self._own(stream)
        old = self._node(node)
        if not 0 <= port < len(inputs_of(old)) or isinstance(old, Sink):
            raise CircuitError(f"{self.label(node)} has no port {port}", hint=f"it has {len(inputs_of(old))} inputs")
        if inputs_of(old)[port] is not None:
            raise CircuitError(f"port {port} of {self.label(node)} is connected already", hint="add another node")
        new = reconnected(old, port, stream.id)
        self._check_edges(new, self.label(node))
        self._nodes[node] = new
        self._order = None

    def function(self, call: Callable[..., Any] | Function, shape: Shape, name: str | None = None) -> str:
        """Register a user's function and return the name operators know it by."""
        if isinstance(call, Function):
            return self.function(call.call, call.shape, call.name)
        if name is None:
            name = str(getattr(call, "__qualname__", type(call).__name__)).replace("<locals>.", "")
        known = self.functions.get(name)
        if known is not None and (known.call != call or known.shape != shape):
            return self.function(call, shape, _next_name(name))
        self.functions[name] = Function(name, call, shape)
        return name

    # -- reading

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, node_id: int) -> Node:
        return self._nodes[node_id]

    @property
    def sources(self) -> dict[str, int]:
        return dict(self._named["source"])

    @property
    def sinks(self) -> dict[str, int]:
        return dict(self._named["sink"])

    @property
    def tables(self) -> dict[str, int]:
        """The sinks that keep what sources hold, by the names of the sources."""
        return dict(self._named["table"])

    def stream(self, node_id: int) -> Stream:
        """The output of a node."""
        if isinstance(self._node(node_id), Sink | Child):
            raise CircuitError(f"{self.label(node_id)} has no output", hint="read a stream that feeds it")
        return self._stream(node_id)

    def global_id(self, node_id: int) -> tuple[int, ...]:
        """The path of local ids from the root to the node."""
        return (node_id,) if self.parent is None else (*self.parent.global_id(self.at), node_id)

    def label(self, node_id: int) -> str:
        return f"node {'.'.join(map(str, self.global_id(node_id)))} ({title(self._node(node_id))})"

    def layout(self, node_id: int) -> Layout:
        node = self._node(node_id)
        assert not isinstance(node, Sink | Child), "sinks and children have no output"
        return node.output

    def _node(self, node_id: int) -> Node:
        if not 0 <= node_id < len(self._nodes):
            raise CircuitError(
                f"there is no node {shown(node_id)}", hint=f"there are {len(self._nodes)} nodes, from 0 on"
            )
        return self._nodes[node_id]

    def order(self) -> tuple[int, ...]:
        """The nodes in order of evaluation: each after its needs of the same tick, else in order of building."""
        if self._order is None:
            self._order = order_of(self)
        return self._order

    def check(self) -> None:
        """Refuse an ill-formed circuit."""
        self.order()
        for node_id, node in enumerate(self._nodes):
            self._check_edges(node, self.label(node_id))
            if isinstance(node, Child):
                node.circuit.check()

    def fingerprint(self, node_id: int) -> str:
        """A name for what a node computes, the same in every run: the hash of its whole subcircuit."""
        self._node(node_id)
        return self.fingerprints()[node_id]

    def user_functions(self, node_id: int) -> tuple[str, ...]:
        """The user functions that a node depends on."""
        functions: dict[str, None] = {}
        seen: set[int] = set()
        waiting = [node_id]
        while waiting:
            waiting_id = waiting.pop()
            if waiting_id in seen:
                continue
            seen.add(waiting_id)
            node = self._node(waiting_id)
            if isinstance(node, Apply):
                functions |= dict.fromkeys(node.operator.functions)
            waiting += [i for i in inputs_of(node) if i is not None]
            waiting += [r.node for r in reads_of(node)]
            if isinstance(node, Export):
                child = self._nodes[node.child]
                assert isinstance(child, Child)
                functions |= dict.fromkeys(child.circuit.user_functions(node.node))
        return tuple(functions)

    def line(self, node_id: int) -> str:
        """A node as `str` shows it; a child with its own nodes."""
        self._node(node_id)
        return line_of(self, node_id)

    def __str__(self) -> str:
        return "\n".join(line_of(self, node_id) for node_id in range(len(self._nodes)))

    def to_dot(self) -> str:
        """The circuit for Graphviz."""
        from everview.circuit.draw import to_dot

        return to_dot(self)

    def to_mermaid(self) -> str:
        """The circuit for Mermaid."""
        from everview.circuit.draw import to_mermaid

        return to_mermaid(self)

    def to_svg(self) -> str:
        """The circuit as an SVG picture, which needs nothing else to be shown."""
        from everview.circuit.draw import to_svg

        return to_svg(self)

    def _repr_html_(self) -> str:
        from everview.circuit.draw import to_html

        return to_html(self)

    # -- inside

    def _put(self, node: Node) -> int:
        node_id = self._known.get(node)
        return self._append(node) if node_id is None else node_id

    def _append(self, node: Node) -> int:
        node_id = self._known[node] = len(self._nodes)
        self._nodes.append(node)
        self._order = None
        if isinstance(node, Source):
            self._named["source"][node.name] = node_id
        elif isinstance(node, Sink):
            self._named["table" if node.table else "sink"][node.name] = node_id
        return node_id

    def _stream(self, node_id: int) -> Stream:
        return Stream(self, node_id)

    def _own(self, stream: Stream) -> None:
        if stream.circuit is not self:
            raise CircuitError(
                f"{stream} belongs to another circuit",
                hint="build with streams of one circuit; a child takes its parent's by enter",
            )

    def _check_edges(self, node: Node, label: str) -> None:
        ports = ports_of(node)
        if isinstance(node, Apply):
            _check_arity(label, "inputs", len(node.inputs), len(ports))
            wanted_reads = node.operator.reads
            _check_arity(label, "traces", len(node.reads), len(wanted_reads))
            for read, layout in zip(node.reads, wanted_reads, strict=True):
                self._check_trace(label, read, layout)
        for port, (stream, wanted) in enumerate(zip(inputs_of(node), ports, strict=False)):
            if stream is not None:
                self._check_layout(f"port {port} of {label}", self.layout(stream), wanted.layout)

    def _check_trace(self, label: str, read: Read, layout: Layout) -> None:
        owner = self._nodes[read.node]
        if not (isinstance(owner, Apply) and isinstance(owner.operator, Arrange)):
            raise CircuitError(f"{label} reads a trace of {self.label(read.node)}, which keeps none", hint="arrange it")
        self._check_layout(label, owner.output, layout)

    def _check_layout(self, where: str, given: Layout, wanted: Layout) -> None:
        same = given.schema.types == wanted.schema.types and given.width == wanted.width
        ordered = not wanted.sorted or (given.sorted and given.by_value == wanted.by_value)
        if not same or given.key < wanted.key or not ordered:
            raise CircuitError(
                f"{where} takes {wanted} of ({wanted.schema}), not {given} of ({given.schema})",
                hint="index or select the stream so that its layout fits",
            )

    def fingerprints(self, outer: Mapping[int, str] | None = None) -> dict[int, str]:
        """The fingerprints of all nodes; a child's depend on the fingerprints of the parent's nodes entering it."""
        return fingerprints(self, self._texts, outer)


def _check_arity(label: str, what: str, given: int, wanted: int) -> None:
    if given != wanted:
        raise CircuitError(f"{label} takes {wanted} {what}, not {given}", hint="see the operator's ports")


def _check_name(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise CircuitError(f"the name {name!r} is no valid text", hint="it has half of a character") from None


def _next_name(name: str) -> str:
    stem, _, number = name.rpartition("~")
    return f"{stem}~{int(number) + 1}" if stem and number.isdigit() else f"{name}~2"
