"""Joins that read a trace which is there anyway, instead of one of their own.

A join reads the rows of a key, and takes some of their fields. Any trace of the same stream will do whose rows begin
with that key and have those fields: the trace of a table by its primary key, or a wider index of another view. So of
the indexes by one key the widest is kept, and the others are not. A join's changes still come by its own index: a
change of fields that it does not take is none for it.

``(a ⋈ b)^Δ = Δa ⋈ b_before + a_after ⋈ Δb`` takes the traces and the changes of both sides separately, and
projecting is linear: ``π(a) ⋈ b = π(a ⋈ b)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.circuit.rewrite import Copy, rewired
from everview.circuit.stream import Stream, StreamTrace
from everview.operators.arrange import Arrange
from everview.operators.index import Index
from everview.operators.join import LEFT, RIGHT, JoinIncremental, JoinTrace
from everview.operators.linear import Plus, Project
from everview.operators.operator import Layout, Moment

Fields = tuple[int, ...]


@dataclass(frozen=True)
class IndexTrace:
    """A trace of an index over a stream: the fields of the stream that its rows have, those of the key first."""

    node: int
    index: int  # the node whose rows it keeps
    stream: int
    fields: Fields
    key: int

    def serves(self, other: IndexTrace) -> bool:
        """Whether this index can replace another: readers find rows by the same key, with all of their fields."""
        same_key = self.key >= other.key and self.fields[: other.key] == other.fields[: other.key]
        return self.stream == other.stream and same_key and set(other.fields) <= set(self.fields)


def reuse_traces(circuit: Circuit) -> tuple[Circuit, dict[int, str]]:
    """The circuit with joins that read as few traces as will do; and the fingerprints of its streams.

    Those are of what the streams were before: what a stream holds does not depend on the trace it was read from. So
    a trace keeps its name when a view comes or goes that has a wider index.
    """
    prints = circuit.fingerprints()
    instead = _instead(circuit)
    if not instead:
        return circuit, prints

    def apply(copy: Copy, node: Apply) -> Stream:
        other = copy.old is circuit and any(read.node in instead for read in node.reads)
        return _divided(copy, node, instead) if other else copy.unchanged(node)

    after = {
        node_id: [instead[read.node].trace.node for read in reads_of(node) if read.node in instead]
        for node_id, node in enumerate(circuit)
    }
    new, at = rewired(circuit, apply, instead, after)
    return new, {stream.id: prints[node_id] for node_id, stream in at.items()}


@dataclass(frozen=True)
class _Instead:
    """A trace that is read in place of another, which is an index of the same stream."""

    trace: IndexTrace
    wanted: IndexTrace

    def field(self, field: int) -> int:
        """Where the trace has a field of the other one."""
        return self.trace.fields.index(self.wanted.fields[field])


def _instead(circuit: Circuit) -> dict[int, _Instead]:
    """For each trace that another one can replace, the replacement: of traces by the same key the widest is kept."""
    traces = list(_index_traces(circuit))
    free = _only_joined(circuit, {trace.node for trace in traces})
    traces.sort(key=lambda trace: (trace.node in free, -len(trace.fields), -trace.key, trace.node))
    kept: dict[int, list[IndexTrace]] = {}
    instead: dict[int, _Instead] = {}
    for trace in traces:
        others = kept.setdefault(trace.stream, [])
        if trace.node in free:
            fitting = [other for other in others if _fits(circuit, other, trace)]
            if fitting:
                instead[trace.node] = _Instead(min(fitting, key=lambda other: len(other.fields)), trace)
                continue
        others.append(trace)
    return instead


def _fits(circuit: Circuit, trace: IndexTrace, wanted: IndexTrace) -> bool:
    """Whether one trace serves in place of the other, also as its words go."""
    if not trace.serves(wanted):
        return False
    theirs, ours = circuit.layout(trace.node).schema.fields, circuit.layout(wanted.node).schema.fields
    return all(
        (mine.type, mine.nullable) == (other.type, other.nullable)
        for mine, place in zip(ours, wanted.fields, strict=True)
        for other in (theirs[trace.fields.index(place)],)
    )


def _index_traces(circuit: Circuit) -> Iterator[IndexTrace]:
    """The traces of indexes whose order is that of their words."""
    for node_id, node in enumerate(circuit):
        if not (isinstance(node, Apply) and isinstance(node.operator, Arrange) and not node.operator.spread):
            continue
        (indexed,) = node.inputs
        assert indexed is not None, "a checked circuit is connected"
        index = circuit[indexed]
        if isinstance(index, Apply) and isinstance(index.operator, Index) and not index.operator.order:
            stream, fields = _origin(circuit, index, index.operator.fields)
            yield IndexTrace(node_id, indexed, stream, fields, index.operator.key)


def _origin(circuit: Circuit, node: Apply, fields: Fields) -> tuple[int, Fields]:
    """The stream below an operator and all projections under it, and its fields that come as the given ones."""
    (below,) = node.inputs
    assert below is not None, "a checked circuit is connected"
    under = circuit[below]
    if isinstance(under, Apply) and isinstance(under.operator, Project):
        return _origin(circuit, under, tuple(under.operator.fields[field] for field in fields))
    return below, fields


def _only_joined(circuit: Circuit, traces: Collection[int]) -> set[int]:
    """Of some traces those that joins read, and nothing else does."""
    joined, others = set[int](), set[int]()
    for node in circuit:
        used = {i for i in inputs_of(node) if i is not None} | {read.node for read in reads_of(node)}
        join = isinstance(node, Apply) and isinstance(node.operator, JoinIncremental)
        (joined if join else others).update(used.intersection(traces))
    return joined - others


def _divided(copy: Copy, node: Apply, instead: Mapping[int, _Instead]) -> Stream:
    """``Δa ⋈ b_before + a_after ⋈ Δb`` as two joins with traces."""
    join = node.operator
    assert isinstance(join, JoinIncremental), "only joins read other traces"
    layouts = join.left, join.right
    sides = [
        _side(copy, _changes(copy, delta, instead), read.node, layout, instead.get(read.node))
        for delta, read, layout in zip(node.inputs, node.reads, layouts, strict=True)
    ]
    # A new view starts from an empty past, so that the side that is read before a tick is all that need be sorted.
    first = LEFT if sides[RIGHT].other is None else RIGHT
    parts: list[Stream] = []
    for probing, read in ((LEFT, RIGHT), (RIGHT, LEFT)):
        picks = tuple(
            (LEFT, field) if side == probing else (RIGHT, sides[read].field(field)) for side, field in join.picks
        )
        moment = Moment.AFTER if read == first else Moment.BEFORE
        operator = JoinTrace(layouts[probing], sides[read].layout, picks, join.schema)
        parts.append(copy.new.place(operator, [sides[probing].delta], [StreamTrace(sides[read].trace, moment)]))
    return copy.new.place(Plus(parts[0].layout), parts)


@dataclass(frozen=True)
class _Side:
    """One side of a join: its changes, and the trace it is read from."""

    delta: Stream
    trace: Stream
    layout: Layout  # of the trace, as it is read
    other: _Instead | None

    def field(self, field: int) -> int:
        """Where the trace has a field of the join's side."""
        return field if self.other is None else self.other.field(field)


def _changes(copy: Copy, node_id: int | None, instead: Mapping[int, _Instead]) -> Stream:
    """The stream of changes behind an input of a join, also if the trace of that input is not kept."""
    assert node_id is not None, "a checked circuit is connected"
    return copy.at[instead[node_id].wanted.index if node_id in instead else node_id]


def _side(copy: Copy, delta: Stream, node_id: int, layout: Layout, other: _Instead | None) -> _Side:
    if other is None:
        return _Side(delta, copy.at[node_id], layout, None)
    trace = replace(copy.old.layout(other.trace.node), key=layout.key)
    return _Side(delta, copy.at[other.trace.node], trace, other)
