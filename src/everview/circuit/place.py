"""Passes that prepare a circuit for a runtime: traces for what views hold, and exchanges where rows must move."""

from __future__ import annotations

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Child, Export, Import, Sink
from everview.circuit.rewrite import Copy, Rules, rewrite
from everview.circuit.stream import Stream
from everview.operators.aggregate import Aggregate, AggregateIncremental, Weigh
from everview.operators.arrange import Arrange, Consolidate
from everview.operators.distinct import Distinct, DistinctIncremental
from everview.operators.exchange import Exchange
from everview.operators.index import Index
from everview.operators.join import JoinIncremental, JoinStream, JoinTrace
from everview.operators.linear import Filter, Inspect, Map, Minus, Negate, NotNull, Plus, Project
from everview.operators.operator import Anywhere, ByKey, Layout, Partition, Port
from everview.operators.semijoin import Semijoin, SemijoinIncremental
from everview.operators.top import Top, TopIncremental


def keep_contents(circuit: Circuit) -> Circuit:
    """An `Arrange` before every sink that keeps its contents; shared with a trace that is there already."""

    def sink(copy: Copy, node: Sink) -> None:
        stream = copy.at[node.input]
        if node.keep:
            stream = copy.new.add(Arrange(stream.layout), [stream])
        copy.new.sink(node.name, stream, keep=node.keep, positive=node.positive)

    return rewrite(circuit, Rules(sink=sink))


Where = dict[tuple[Circuit, int], Partition]  # of the new circuit's streams


def place_exchanges(circuit: Circuit) -> Circuit:
    """An `Exchange` before every port whose rows are not where the operator needs them."""
    where: Where = {}

    def apply(copy: Copy, node: Apply) -> Stream:
        inputs = [
            _moved(stream, port, where) for stream, port in zip(copy.inputs(node), node.operator.inputs, strict=True)
        ]
        stream = copy.new.add(node.operator, inputs, copy.traces(node))
        where[copy.new, stream.id] = _partition(stream, where)
        return stream

    return rewrite(circuit, Rules(apply))


def _found(stream: Stream, where: Where) -> Partition:
    """Where a stream's rows are; an import has those of its parent's stream, an export those of its child's."""
    circuit = stream.circuit
    node = circuit[stream.id]
    match node:
        case Import():
            assert circuit.parent is not None
            return _found(circuit.parent.stream(node.parent), where)
        case Export():
            child = circuit[node.child]
            assert isinstance(child, Child)
            return _found(child.circuit.stream(node.node), where)
        case _:
            return where.get((circuit, stream.id), Anywhere())


def _moved(stream: Stream, port: Port, where: Where) -> Stream:
    wanted = port.partition
    if isinstance(wanted, Anywhere) or wanted == _found(stream, where):
        return stream
    assert not port.layout.sorted, f"{stream} is sorted, and moving would undo that"
    moved = stream.circuit.add(Exchange(Layout(stream.schema), wanted), [stream])
    where[stream.circuit, moved.id] = wanted
    return moved


def _partition(stream: Stream, where: Where) -> Partition:
    """Where the rows of an operator's output are, given where its inputs' are."""
    circuit = stream.circuit
    node = circuit[stream.id]
    assert isinstance(node, Apply)
    inputs = [_found(circuit.stream(i), where) for i in node.inputs if i is not None]
    match node.operator:
        case Filter() | NotNull() | Inspect() | Negate() | Arrange() | Distinct() | DistinctIncremental():
            return inputs[0]
        case Top() | TopIncremental() | Semijoin() | SemijoinIncremental():
            return inputs[0]
        case Plus() | Minus():
            return inputs[0] if all(i == inputs[0] for i in inputs) else Anywhere()
        case Project(_, fields, _) | Index(_, fields, _, _):
            return _renumbered(inputs[0], {f: at for at, f in reversed(list(enumerate(fields)))})
        case Map(_, _, _, keep, _):
            return _renumbered(inputs[0], {f: at for at, f in reversed(list(enumerate(keep)))})
        case Weigh(_, group, _):
            return _renumbered(inputs[0], {f: at for at, f in reversed(list(enumerate(group)))})
        case Aggregate() | AggregateIncremental():
            return inputs[0]
        case JoinStream() | JoinTrace() | JoinIncremental():
            return _renumbered(inputs[0], _key_places(node.operator))
        case Consolidate():
            return _found(circuit.stream(node.reads[0].node), where)
        case Exchange(_, partition):
            return partition
        case _:
            return Anywhere()


def _key_places(join: JoinStream | JoinTrace | JoinIncremental) -> dict[int, int]:
    """Where each key field stands in a join's result, taken from either side."""
    places: dict[int, int] = {}
    for at, (_, field) in enumerate(join.picks):
        if field < join.left.key:
            places.setdefault(field, at)
    return places


def _renumbered(partition: Partition, places: dict[int, int]) -> Partition:
    if not isinstance(partition, ByKey):
        return partition
    if any(f not in places for f in partition.fields):
        return Anywhere()
    return ByKey(tuple(places[f] for f in partition.fields))
