"""Traces that drop what can never be read again.

A trace is read by the keys of changes. If something is promised of a time in all changes to come (see
`everview.lowering.promises`), then the rows of the trace that only earlier changes could have found are of no use any
more, and they go as the watermark passes. Answers stay what they are; a trace for which there is no such proof is kept
whole, and `growth` says why.

A stream ``x`` whose traces expire is kept as ``kept = x + z⁻¹(expired(kept))``, in the order of its time, and the
traces are of ``kept``. Operators still get the changes of ``x`` alone: that a row expires is no change.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Source, inputs_of, reads_of
from everview.circuit.rewrite import Copy, rewired
from everview.circuit.stream import Stream, StreamTrace
from everview.lowering.distances import Distance, demanded
from everview.lowering.frames import frame_span
from everview.lowering.promises import (
    COUNTED,
    NO_FACTS,
    NOTHING,
    Bound,
    Facts,
    Promise,
    PromisedBounds,
    bounds_of,
    earlier,
    either,
    of_side,
    promises,
)
from everview.lowering.rising import MOMENTS
from everview.lowering.rows import picked, projected
from everview.lowering.sessions import closing, only_for, until_closed
from everview.operators.announce import Announce
from everview.operators.arrange import Arrange
from everview.operators.due import DueIncremental
from everview.operators.exchange import Exchange
from everview.operators.expired import Expired
from everview.operators.index import Index
from everview.operators.linear import Map, Plus, Project
from everview.operators.operator import Layout, Moment
from everview.operators.window import WindowIncremental
from everview.plan.timed import CLOCK, is_watermark, tells_time
from everview.plan.typing import call, literal
from everview.scalars.expressions import Call, Column, Expression, Literal
from everview.scalars.kinds import DAY_TIME


@dataclass(frozen=True, slots=True)
class Expiry:
    """When rows of a trace expire: once a field is before a bound."""

    field: int
    bound: Bound

    def says(self, circuit: Circuit, trace: int) -> str:
        """In words which rows are dropped."""
        name = circuit.layout(trace).schema.names[self.field]
        name = "their time" if name.startswith("computed ") else name
        return f"{name} < {_all_shown(self.bound)}"


@dataclass(frozen=True, slots=True)
class Reading:
    """Bounds below which one reader of a trace ignores rows, by field."""

    reader: int
    trace: int
    unread: Facts


def expiring(circuit: Circuit, *, steady_clock: bool = False) -> Circuit:
    """An incremental circuit whose traces drop what promises prove is never read again.

    With a ``steady_clock``, the clock of views never goes back, as watermarks do not.
    """
    sessions = closing(circuit, promises(circuit))
    expiries = _expiries(circuit, sessions, steady_clock=steady_clock)
    if not expiries and not sessions:
        return circuit
    kept: dict[int, Stream] = {}

    def apply(copy: Copy, node: Apply) -> Stream:
        if copy.old is not circuit:
            return copy.unchanged(node)
        if copy.here in expiries:
            kept[copy.here] = _kept(copy, node, expiries[copy.here])
            (changes,) = copy.inputs(node)
            return changes
        if copy.here in sessions:
            bound = sessions[copy.here]
            says = f"the last moment of their session < {_all_shown(bound)}"
            return until_closed(copy, node, _bounds(copy, bound), len(bound), says)
        traces = [StreamTrace(kept.get(read.node, copy.at[read.node]), read.moment) for read in node.reads]
        return copy.new.place(node.operator, copy.inputs(node), traces)

    bounds = {node_id: expiry.bound for node_id, expiry in expiries.items()} | sessions
    after = {node_id: [promise.clock for promise in bound] for node_id, bound in bounds.items()}
    new, _ = rewired(circuit, apply, only_for(circuit, sessions), after)
    new.incremental = circuit.incremental
    return new


# -- which rows a trace can do without


def _expiries(circuit: Circuit, sessions: Container[int], *, steady_clock: bool) -> dict[int, Expiry]:
    by_trace: dict[int, list[Facts]] = {}
    for reading in readings(circuit, steady_clock=steady_clock):
        if reading.reader in sessions:  # they have traces of their own
            continue
        by_trace.setdefault(reading.trace, []).append(reading.unread)
    expiries: dict[int, Expiry] = {}
    for trace, unread in by_trace.items():
        expiry = _common(circuit, trace, unread)
        if expiry is not None and _can_be_kept(circuit, trace):
            expiries[trace] = expiry
    return expiries


def _common(circuit: Circuit, trace: int, unread: Sequence[Facts]) -> Expiry | None:
    """The time by which all readers leave rows of a trace unread: by the simplest bound, a moment before a number."""
    types = circuit.layout(trace).schema.types
    bounds = {f: either(facts.get(f) for facts in unread) for f in unread[0]}
    known = [Expiry(f, bound) for f, bound in bounds.items() if bound is not None]
    return min(known, key=lambda e: (len(e.bound), COUNTED.index(types[e.field]), e.field), default=None)


def _can_be_kept(circuit: Circuit, trace: int) -> bool:
    """Whether rows can be indexed once more as the trace has them."""
    return isinstance(_input(circuit, trace), Index) or not circuit.layout(trace).by_value


def _input(circuit: Circuit, trace: int) -> object:
    (given,) = inputs_of(circuit[trace])
    assert given is not None, "a checked circuit is connected"
    node = circuit[given]
    return node.operator if isinstance(node, Apply) else None


def readings(circuit: Circuit, *, steady_clock: bool = False) -> Iterator[Reading]:
    """Every reading of a trace of the root, with what it leaves unread."""
    known, near = promises(circuit), demanded(circuit)
    for node_id, node in enumerate(circuit):
        if not isinstance(node, Apply) or not node.reads:
            continue
        if isinstance(node.operator, DueIncremental):
            unread = [_passed(circuit, node, steady_clock=steady_clock), NO_FACTS]
        else:
            unread = _unread(circuit, node_id, node, known, near.get(node_id, ()))
        for read, facts in zip(reads_of(node), unread, strict=True):
            types = circuit.layout(read.node).schema.types
            yield Reading(node_id, read.node, {f: bound for f, bound in facts.items() if types[f] in COUNTED})


def _unread(
    circuit: Circuit, node_id: int, node: Apply, known: Mapping[int, PromisedBounds], near: Sequence[Distance]
) -> Sequence[Facts]:
    """For each trace that a node reads, the bounds of rows that no change to come finds.

    Rows of one side of a join, the traces of which are read in their order, are found at no greater distance, too; and
    rows of a window are read no further back than its frames reach.
    """
    given = [known[i] if i is not None else NOTHING for i in node.inputs]
    frames = _before_frames(circuit, node, given[0].fields) if isinstance(node.operator, WindowIncremental) else {}
    unread = [{**frames, **bounds_of(lookup, given)} for lookup in node.operator.lookups]
    for distance in near:
        partner = of_side(circuit, known, node_id, 1 - distance.side, distance.other)
        bound = earlier(partner, distance.micros)
        if bound is not None:
            unread[distance.side].setdefault(distance.field, bound)
    return unread


def _before_frames(circuit: Circuit, window: Apply, given: Facts) -> Facts:
    """The bound of rows that are in no frame that a row to come changes."""
    span = frame_span(circuit, window)
    bound = None if span is None or span.back is None else earlier(given.get(span.field), span.ahead + span.back)
    return {} if span is None or bound is None else {span.field: bound}


def _passed(circuit: Circuit, node: Apply, *, steady_clock: bool) -> Facts:
    """Rows whose moment has come are not looked up any more, if the clock never goes back."""
    given = node.inputs[1]
    stream = given
    while stream is not None:
        below = circuit[stream]
        if isinstance(below, Source):
            if not (is_watermark(below.name) or (steady_clock and below.name == CLOCK)):
                return NO_FACTS
            (time,) = circuit.layout(_below_trace(circuit, given)).schema.fields
            if time.type not in MOMENTS:
                return NO_FACTS
            now = Column(0, "now()" if below.name == CLOCK else below.name, time.type, nullable=False)
            later = call("add", now, literal(1, DAY_TIME))
            return {0: (Promise(_below_trace(circuit, given), later),)}
        if not isinstance(below, Apply) or not isinstance(
            below.operator, Announce | Index | Arrange | Map | Project | Exchange
        ):
            return NO_FACTS
        (stream,) = below.inputs
    return NO_FACTS


def _below_trace(circuit: Circuit, stream: int | None) -> int:
    """The stream of a clock before it is announced to all shards, indexed and kept."""
    assert stream is not None, "a checked circuit is connected"
    node = circuit[stream]
    if isinstance(node, Apply) and isinstance(node.operator, Announce | Index | Arrange):
        return _below_trace(circuit, node.inputs[0])
    return stream


# -- the circuit of a trace that expires


def _kept(copy: Copy, node: Apply, expiry: Expiry) -> Stream:
    """The trace of what is kept, in place of an `Arrange` of all."""
    trace = node.operator
    assert isinstance(trace, Arrange), "traces are of Arrange"
    (given,) = node.inputs
    assert given is not None, "a checked circuit is connected"
    says = expiry.says(copy.old, copy.here)
    below = copy.old[given]
    if isinstance(below, Apply) and isinstance(below.operator, Index):
        (source,) = below.inputs
        assert source is not None, "a checked circuit is connected"
        index, rows, time = below.operator, copy.at[source], below.operator.fields[expiry.field]
    else:
        layout = copy.old.layout(given)
        index = Index(layout, tuple(range(len(layout.schema))), layout.key, spread=trace.spread)
        rows, time = copy.at[given], expiry.field
    in_time = index if _begins_with(index, time) and index.spread == trace.spread else None
    kept = _expiring(copy, rows, time, expiry.bound, says, in_time)
    indexed = copy.new.place(replace(index, source=kept.layout), [kept])
    return copy.new.place(replace(trace, source=indexed.layout), [indexed])


def _begins_with(index: Index, time: int) -> bool:
    """Whether an index has all fields as they are, the time first: then its trace is in the order of time."""
    every = sorted(index.fields) == list(range(len(index.source.schema)))
    return every and index.fields[0] == time and index.key > 0 and not index.order


def _expiring(copy: Copy, rows: Stream, time: int, bound: Bound, says: str, index: Index | None) -> Stream:
    """A stream's changes, followed by a deletion of each row once it has expired.

    They are found by an ``index`` that is there anyway, or by one of their own.
    """
    schema = rows.schema
    bounds = _bounds(copy, bound)
    known = [
        at
        for at, other in enumerate(copy.new)
        if isinstance(other, Apply) and isinstance(other.operator, Expired) and other.inputs[1] == bounds.id
    ]
    for at in known:  # the same stream may have several traces
        kept = _kept_by(copy.new, at, rows.id, time)
        if kept is not None:
            return kept
    back, connect = copy.new.feedback(schema)
    kept = copy.new.place(Plus(Layout(schema)), [rows, back])
    if index is None:
        index = Index(kept.layout, (time, *(f for f in range(len(schema)) if f != time)), 1, spread=True)
    in_time, fields = copy.new.place(replace(index, source=kept.layout), [kept]), index.fields
    trace = copy.new.place(Arrange(in_time.layout, spread=index.spread), [in_time])
    operator = Expired(in_time.layout, bounds.layout, len(bound), says, index.spread)
    reads = [StreamTrace(trace, Moment.AFTER), StreamTrace(bounds, Moment.AFTER)]
    expired = copy.new.place(operator, [trace, bounds], reads)
    connect(picked(expired, [fields.index(f) for f in range(len(schema))], schema.names).under(schema))
    return kept


def _kept_by(circuit: Circuit, expired: int, rows: int, time: int) -> Stream | None:
    """The kept stream whose rows an `Expired` takes back, if it is of these rows and this time."""
    trace = circuit[inputs_of(circuit[expired])[0] or 0]
    index = circuit[inputs_of(trace)[0] or 0]
    assert isinstance(index, Apply) and isinstance(index.operator, Index), "rows expire in the order of an index"
    kept = index.inputs[0]
    assert kept is not None, "a checked circuit is connected"
    return circuit.stream(kept) if index.operator.fields[0] == time and rows in inputs_of(circuit[kept]) else None


def _bounds(copy: Copy, bound: Bound) -> Stream:
    """The trace of the moments that promises come to, a row for each."""
    streams = [projected(copy.at[promise.clock], (promise.at_least,), ("bound",)) for promise in bound]
    schema = streams[0].schema
    alike = [stream.under(schema) for stream in streams]
    whole = alike[0] if len(alike) == 1 else copy.new.place(Plus(alike[0].layout, len(alike)), alike)
    announced = copy.new.place(Announce(Layout(whole.schema)), [whole])
    indexed = announced.index()
    return copy.new.place(Arrange(indexed.layout), [indexed])


def _all_shown(bound: Bound) -> str:
    return " and ".join(shown(promise.at_least) for promise in bound)


def shown(bound: Expression) -> str:
    """A bound in words: the function that rounds to windows is long."""
    match bound:
        case Call("timestamp_micros", (Call("subtract", (Call("unix_micros", (moment,)), Call("pmod", (_, size)))),)):
            span = Literal(size.value, DAY_TIME) if isinstance(size, Literal) else size
            return f"{shown(moment)} rounded down to {span}"
        case Call(("add" | "subtract" | "add_time_to" | "subtract_time_to") as how, (moment, Literal() as span)):
            return f"{shown(moment)} {'+' if how.startswith('add') else '-'} {span}"
        case Column(_, name):
            return name
        case _:
            return str(bound)


def is_clock(circuit: Circuit, trace: int) -> bool:
    """Whether a trace is that of a clock or a watermark, or of bounds by these."""
    stream = _below_trace(circuit, trace)
    node = circuit[stream]
    while isinstance(node, Apply) and isinstance(node.operator, Map | Project | Plus):
        stream = node.inputs[0] or 0
        node = circuit[stream]
    return isinstance(node, Source) and tells_time(node.name)
