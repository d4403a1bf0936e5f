"""From a checked graph to the streams of a circuit: one operator of ours for each of its nodes.

Relations are sets and nodes give sets: a join of sets is one, as is what is left of one; what may give a tuple twice,
a union or a projection, is made distinct. A cycle becomes a child circuit, which runs to its fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream, wider
from everview.errors import EverviewError, GraphError
from everview.frontends.graphspec.check import Graph
from everview.frontends.graphspec.model import (
    Diff,
    Enumerable,
    Join,
    Node,
    Pointwise,
    Project,
    Rename,
    Scan,
    Union,
)
from everview.multiway.joins import Atom, join
from everview.types import Field, Schema

Judge = Callable[[Pointwise, Stream], Stream]
Streams = dict[str, Stream]
Fields = dict[str, Field]


def build(graph: Graph, relations: Mapping[str, Stream], judge: Judge) -> Streams:
    """A stream for each output, given one for each relation, a set with its columns in order.

    ``judge`` makes of a stream of candidates, a set, the stream of those for which a node's predicate is true.
    """
    found: Streams = {}
    for part in graph.order:
        if graph.is_cycle(part):
            found |= _loop(graph, part, found)
            continue
        node = graph.nodes[part[0]]
        if isinstance(node, Scan | Enumerable):
            found[node.id] = _named(relations[node.rel], graph.variables[node.id])
        else:
            found[node.id] = _guarded(node, [found[source] for source in node.sources], judge)
    return {name: found[node] for name, node in graph.outputs.items()}


def _guarded(node: Node, inputs: Sequence[Stream], judge: Judge) -> Stream:
    """The stream of a node; what does not fit, types of columns perhaps, is told with its name."""
    try:
        return _stream(node, inputs, judge)
    except EverviewError as error:
        if isinstance(error, GraphError):
            raise
        raise GraphError(f'node "{node.id}" ({node.op}): {error.message}', hint=error.hint) from error


def _stream(node: Node, inputs: Sequence[Stream], judge: Judge) -> Stream:
    match node:
        case Join():
            return _joined(node, inputs)
        case Union():
            return inputs[0].plus(*inputs[1:]).distinct()
        case Diff():
            return inputs[0].antijoin(inputs[1], node.key)
        case Project():
            return _projected(inputs[0], node.attrs)
        case Rename():
            return inputs[0].rename(node.names)
        case Pointwise():
            true = judge(node, _projected(inputs[0], node.variables))
            return inputs[0].semijoin(true, node.variables)
        case Scan() | Enumerable():
            raise AssertionError("relations are given")


def _joined(node: Join, inputs: Sequence[Stream]) -> Stream:
    """The join in the planner's order. Variables go by numbers, so that no name means anything to it."""
    if len(inputs) == 1 and len({*node.atoms[0].vars}) == len(node.vo) == len(node.atoms[0].vars):
        return _named(inputs[0], node.atoms[0].vars).select(*node.vo)
    numbered = {name: f"v{at}" for at, name in enumerate(node.vo)}
    atoms = [
        Atom(stream, [numbered[name] for name in atom.vars]) for stream, atom in zip(inputs, node.atoms, strict=True)
    ]
    order = list(numbered.values())
    return _named(join(atoms, select=order, order=order), node.vo)


def _projected(stream: Stream, names: Sequence[str]) -> Stream:
    kept = stream.select(*names)
    return kept if len(names) == len(stream.schema) else kept.distinct()


def _named(stream: Stream, names: Sequence[str]) -> Stream:
    """The same columns under other names."""
    return stream.under(Schema(Field(n, f.type, f.nullable) for n, f in zip(names, stream.schema.fields, strict=True)))


# -- cycles


def _loop(graph: Graph, part: Sequence[str], outside: Mapping[str, Stream]) -> Streams:
    """The streams of nodes that read each other: at their least fixed point, found within every tick."""
    schemas = _schemas(graph, part, outside)
    entering = [outside[source] for one in part for source in graph.nodes[one].sources if source not in part]
    circuit: Circuit = entering[0].circuit
    child = circuit.child(", ".join(part))
    done: Streams = {}
    again: dict[str, tuple[Stream, Callable[[Stream], None]]] = {}

    def read(source: str) -> Stream:
        if source in outside:
            return child.enter(outside[source])
        if source not in done and source not in again:
            again[source] = child.feedback(schemas[source])
        return done[source] if source in done else again[source][0]

    for one in part:
        node = graph.nodes[one]
        done[one] = _guarded(node, [read(source) for source in node.sources], _never)
    for source, (_, connect) in again.items():
        connect(done[source])
    return {one: child.leave(stream) for one, stream in done.items()}


def _never(node: Pointwise, candidates: Stream) -> Stream:
    raise AssertionError("no predicate stands in a cycle")


def _schemas(graph: Graph, part: Sequence[str], outside: Mapping[str, Stream]) -> dict[str, Schema]:
    """What nodes of a cycle hold: the narrowest types that hold what enters it, wherever that goes."""
    known: dict[str, Fields] = {one: {} for one in part}
    for one in {source for inner in part for source in graph.nodes[inner].sources if source in outside}:
        known[one] = dict(zip(graph.variables[one], outside[one].schema.fields, strict=True))
    changed = True
    while changed:
        changed = False
        for one in part:
            for name, field in _passed(graph, graph.nodes[one], known):
                old = known[one].get(name)
                new = field if old is None else wider(old, field, f'of node "{one}", the inputs of {name}')
                if old is None or (new.type, new.nullable) != (old.type, old.nullable):
                    known[one][name], changed = new, True
    for one in part:
        unknown = [name for name in graph.variables[one] if name not in known[one]]
        if unknown:
            raise GraphError(
                f'nothing says what values {", ".join(unknown)} of node "{one}" may have: the cycle '
                f"{', '.join(map(repr, part))} only gives them to itself",
                hint="a cycle needs an input from outside for every variable",
            )
    return {one: Schema(_renamed(known[one][name], name) for name in graph.variables[one]) for one in part}


def _passed(graph: Graph, node: Node, known: Mapping[str, Fields]) -> list[tuple[str, Field]]:
    """The variables of a node with the fields that its inputs give them, as far as those are known."""
    match node:
        case Join():
            pairs = zip(node.inputs, node.atoms, strict=True)
            places = [
                (name, source, column)
                for source, atom in pairs
                for name, column in zip(atom.vars, graph.variables[source], strict=True)
            ]
        case Rename():
            places = [(node.names.get(name, name), node.inputs[0], name) for name in graph.variables[node.inputs[0]]]
        case Union() | Project():
            places = [(name, source, name) for source in node.inputs for name in graph.variables[node.id]]
        case Scan() | Enumerable() | Diff() | Pointwise():
            raise AssertionError("a cycle is positive")
    return [(name, known[source][column]) for name, source, column in places if column in known[source]]


def _renamed(field: Field, name: str) -> Field:
    return Field(name, field.type, field.nullable)
