"""Passes that prepare a circuit for a runtime: traces for what views hold, and exchanges where rows must move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Child, Export, Feedback, Import, Node, Sink, Source, inputs_of, reads_of
from everview.circuit.rewrite import Copy, NodeRules, rewrite
from everview.circuit.stream import Stream, StreamTrace
from everview.operators.arrange import Arrange
from everview.operators.exchange import Exchange
from everview.operators.index import Index
from everview.operators.linear import Minus, Project, Recode
from everview.operators.multijoin import Deal, MultijoinIncremental
from everview.operators.operator import Anywhere, ByKey, Layout, Moment, OnEveryShard, Partition, Port, Single
from everview.operators.semijoin import SemijoinIncremental
from everview.operators.top import TopIncremental


def keep_contents(circuit: Circuit, tables: Mapping[str, Sequence[str]] | None = None) -> Circuit:
    """An `Arrange` before every sink that keeps its contents; shared with a trace that is there already.

    Of ``tables`` too, which are sources: a trace of what each holds, by its key (without one, by all columns).
    """

    def sink(copy: Copy, node: Sink) -> None:
        stream = copy.at[node.input]
        copy.new.sink_again(node, _arranged(stream) if node.keep else stream)

    new = rewrite(circuit, NodeRules(sink=sink), checked=True)
    for source, key in (tables or {}).items():
        stream = new.stream(new.sources[source])
        indexed = stream.index(*(key or stream.schema.names))
        new.sink_again(Sink(source, indexed.id, table=True), _arranged(indexed))
    return new


def _arranged(stream: Stream) -> Stream:
    return stream.circuit.add(Arrange(stream.layout), [stream])


Places = dict[tuple[Circuit, int], Partition]  # of the new circuit's streams


def spread_tops(circuit: Circuit) -> Circuit:
    """The first rows of all: those of each shard first, so that only they move to one place.

    ``top(a + b) = top(top(a) + top(b))`` where ``a`` and ``b`` have no row in common, as shards have not.
    """
    ends = {node_id: chain for node_id in range(len(circuit)) if (chain := _top_of_all(circuit, node_id))}
    chained = {node_id for chain in ends.values() for node_id in chain}

    def apply(copy: Copy, node: Apply) -> Stream:
        if copy.old is not circuit or (copy.here not in ends and copy.here not in chained):
            return copy.unchanged(node)
        operator = node.operator
        assert isinstance(operator, Index | Arrange | TopIncremental)
        if not isinstance(operator, TopIncremental):
            return copy.new.add(replace(operator, spread=True), copy.inputs(node))
        local = replace(operator, skip=0, limit=operator.skip + operator.limit, spread=True)
        firsts = copy.new.add(local, copy.inputs(node), copy.traces(node))
        fields = tuple(range(len(operator.source.schema)))
        indexed = copy.new.add(Index(firsts.layout, fields, 0, operator.order), [firsts])
        kept = copy.new.add(Arrange(indexed.layout), [indexed])
        return copy.new.add(operator, [kept], [StreamTrace(kept, Moment.BEFORE)])

    return rewrite(circuit, NodeRules(apply), checked=True) if ends else circuit


def _top_of_all(circuit: Circuit, node_id: int) -> tuple[int, int] | None:
    """The index and the trace behind a `Top` without groups, if nobody else reads them."""
    node = circuit[node_id]
    if not (isinstance(node, Apply) and isinstance(node.operator, TopIncremental)) or node.operator.source.key:
        return None
    (arranged,) = node.inputs
    assert arranged is not None
    arrange = circuit[arranged]
    assert isinstance(arrange, Apply)
    (indexed,) = arrange.inputs
    assert indexed is not None
    index = circuit[indexed]
    alone = _readers(circuit, arranged) == {node_id} and _readers(circuit, indexed) == {arranged}
    return (indexed, arranged) if alone and isinstance(index, Apply) and isinstance(index.operator, Index) else None


def _readers(circuit: Circuit, node_id: int) -> set[int]:
    return {
        other
        for other, node in enumerate(circuit)
        if node_id in inputs_of(node) or any(read.node == node_id for read in reads_of(node))
    }


def place_exchanges(circuit: Circuit) -> Circuit:
    """An `Exchange` before every port whose rows are not where the operator needs them.

    The rows of a source with a table arrive on the shards of their keys, the others anywhere.
    """
    where: Places = {}

    def source(copy: Copy, node: Source) -> Stream:
        stream = copy.new.source(node.name, node.schema)
        if node.name in circuit.tables:
            where[copy.new, stream.id] = ByKey(table_key(circuit, node.name))
        return stream

    def apply(copy: Copy, node: Apply) -> Stream:
        alone = _reads_alone(copy.old, copy.here, node)
        inputs = [
            _moved(stream, port, where, alone=alone)
            for stream, port in zip(copy.inputs(node), node.operator.inputs, strict=True)
        ]
        if isinstance(node.operator, Minus) and (whole := _as_semijoined(copy, node)) is not None:
            inputs[0] = whole
        stream = copy.new.add(node.operator, inputs, copy.traces(node))
        where[copy.new, stream.id] = _partition(stream, where)
        return stream

    return rewrite(circuit, NodeRules(apply, source=source), checked=True)


def places(circuit: Circuit) -> Places:
    """Where the rows of every stream are, of a circuit that has its exchanges, and of its children."""
    where: Places = {}
    _find_places(circuit, where)
    return where


def _find_places(circuit: Circuit, where: Places) -> None:
    for node_id in circuit.order():
        match node := circuit[node_id]:
            case Source() if node.name in circuit.tables:
                where[circuit, node_id] = ByKey(table_key(circuit, node.name))
            case Apply():
                where[circuit, node_id] = _partition(circuit.stream(node_id), where)
            case Child():
                _find_places(node.circuit, where)
            case _:
                pass


def _as_semijoined(copy: Copy, node: Apply) -> Stream | None:
    """The ``a`` of ``a − a ⋉ b``, taken from where the semijoin has its rows; None if they are not the same.

    Then a row that comes and finds a partner cancels on its shard, and no expression is evaluated on it.
    """
    whole, met = node.inputs
    semijoin = _below(copy.old, met)
    if semijoin is None or not isinstance(semijoin.operator, SemijoinIncremental):
        return None
    arranged = semijoin.inputs[0]
    assert arranged is not None and whole is not None, "a checked circuit is connected"
    index = _below(copy.old, arranged)
    if index is None or not isinstance(index.operator, Index) or index.operator.order:
        return None
    fields = _fields_of(copy.old, whole, index.inputs[0])
    if fields is None or not set(fields) <= set(index.operator.fields):
        return None
    stream, places = copy.at[arranged], tuple(index.operator.fields.index(field) for field in fields)
    return copy.new.add(Project(stream.layout, places, copy.old.layout(whole).schema), [stream])


def _below(circuit: Circuit, node_id: int | None) -> Apply | None:
    """The operator whose rows a stream has, under projections and traces."""
    assert node_id is not None, "a checked circuit is connected"
    node = circuit[node_id]
    while isinstance(node, Apply) and isinstance(node.operator, Project | Recode | Arrange):
        (below,) = node.inputs
        assert below is not None, "a checked circuit is connected"
        node = circuit[below]
    return node if isinstance(node, Apply) else None


def _fields_of(circuit: Circuit, node_id: int, source: int | None) -> tuple[int, ...] | None:
    """The fields of ``source`` that a stream carries, if the stream is the source or a projection of it; else None."""
    if node_id == source:
        return tuple(range(len(circuit.layout(node_id).schema)))
    node = circuit[node_id]
    if isinstance(node, Apply) and isinstance(node.operator, Project) and node.inputs == (source,):
        return node.operator.fields
    return None


def deal_seeds(circuit: Circuit, shards: int) -> Circuit:
    """The seeds of delta queries are dealt to all shards, whatever their keys; each looks up keys on all shards."""

    def apply(copy: Copy, node: Apply) -> Stream:
        operator = node.operator
        if not isinstance(operator, MultijoinIncremental):
            return copy.unchanged(node)
        traces = dict(zip(operator.readings, copy.traces(node), strict=True))
        index = {(reading.atom, reading.order): trace.delay() for reading, trace in traces.items()}
        seeds: list[Stream] = []
        for seed, stream in enumerate(copy.inputs(node)):
            deal = Deal(operator.join, seed, shards)
            reads = [index[reading.atom, reading.order] for reading in deal.readings]
            seeds.append(copy.new.add(deal, [stream], reads))
        return copy.new.add(replace(operator, dealt=True), seeds, list(traces.values()))

    return rewrite(circuit, NodeRules(apply), checked=True)


def table_key(circuit: Circuit, source: str) -> tuple[int, ...]:
    """The fields of a source that its table is indexed by."""
    sink = circuit[circuit.tables[source]]
    assert isinstance(sink, Sink)
    layout = circuit.layout(sink.input)
    wanted = circuit.layout(circuit.sources[source]).schema
    return tuple(wanted.index(name) for name in layout.schema.names[: layout.key])


def _found(stream: Stream, where: Places) -> Partition:
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
        case Source() | Apply() | Feedback() | Sink() | Child():
            return where.get((circuit, stream.id), Anywhere())
        case _:
            assert_never(node)


def _alone(circuit: Circuit, node_id: int) -> bool:
    """Whether a stream is never matched with another, so that any partition that keeps its groups together will do."""
    return all(_reads_alone(circuit, other, circuit[other]) for other in _readers(circuit, node_id))


def _reads_alone(circuit: Circuit, node_id: int, node: Node) -> bool:
    match node:
        case Sink():
            return True
        case Apply():
            return node.operator.alone or (node.operator.relays and _alone(circuit, node_id))
        case Source() | Feedback() | Import() | Child() | Export():
            return False
        case _:
            assert_never(node)


def _together(present: Partition, wanted: Partition) -> bool:
    """Whether a partition already keeps the wanted groups together: rows that agree on all fields agree on some."""
    if isinstance(present, Single):
        return True
    return isinstance(present, ByKey) and isinstance(wanted, ByKey) and set(present.fields) <= set(wanted.fields)


def _moved(stream: Stream, port: Port, where: Places, *, alone: bool) -> Stream:
    wanted, present = port.partition, _found(stream, where)
    if isinstance(wanted, Anywhere) or isinstance(present, OnEveryShard) or wanted == present:
        return stream
    if alone and _together(present, wanted):
        return stream
    moved = stream.circuit.add(Exchange(Layout(stream.schema), wanted), [stream])
    where[stream.circuit, moved.id] = wanted
    if not port.layout.sorted:
        return moved
    assert not port.layout.by_value, f"{stream} is in the order of values, and moving would undo that"
    again = Index(Layout(stream.schema), tuple(range(len(stream.schema))), port.layout.key)
    sorted_again = stream.circuit.add(again, [moved])
    where[stream.circuit, sorted_again.id] = wanted
    return sorted_again


def _partition(stream: Stream, where: Places) -> Partition:
    """Where the rows of an operator's output are, given where its inputs' are."""
    circuit = stream.circuit
    node = circuit[stream.id]
    assert isinstance(node, Apply)
    inputs = [_found(circuit.stream(i), where) for i in node.inputs if i is not None]
    reads = [_found(circuit.stream(read.node), where) for read in node.reads]
    return node.operator.output_partition(inputs, reads)
