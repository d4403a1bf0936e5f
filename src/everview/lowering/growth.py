"""Whether each trace of a circuit is bounded or grows with the data, and why: what `explain` says of expiry."""

from __future__ import annotations

from collections.abc import Mapping

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Feedback, Sink, Source, inputs_of, reads_of
from everview.lowering.expiry import Reading, is_clock, readings
from everview.lowering.promises import PromisedBounds, promises
from everview.operators.by_state import OverChanges
from everview.operators.expired import Expired
from everview.operators.linear import Plus, Project, Recode
from everview.plan.timed import expired_of, tells_time
from everview.types import STRING


def growth(circuit: Circuit) -> dict[int, str]:
    """Of each trace of a prepared circuit, whether it is bounded, and why."""
    said: dict[int, str] = {}
    promised = promises(circuit)
    for reading in readings(circuit):
        trace = reading.trace
        expired = _expired(circuit, trace)
        if expired is not None:
            said[trace] = f"bounded: rows go once {expired.says}"
        elif is_clock(circuit, trace):
            said[trace] = "bounded: a row for each watermark"
        elif not reading.unread:
            said.setdefault(trace, _by_ttl(circuit, trace) or f"unbounded: {_why(circuit, reading, promised)}")
    for node in circuit:
        if isinstance(node, Sink) and (node.keep or node.table):
            said[node.input] = "the rows of the table" if node.table else "the rows of the view"
    return said


def _by_ttl(circuit: Circuit, trace: int) -> str | None:
    """How the TTLs of tables bound a trace; None if one of them has none."""
    sources, seen, waiting = set[str](), set[int](), [trace]
    while waiting:
        node_id = waiting.pop()
        if node_id in seen:
            continue
        seen.add(node_id)
        node = circuit[node_id]
        if isinstance(node, Source):
            sources.add(node.name)
        waiting += [i for i in inputs_of(node) if i is not None]
        waiting += [read.node for read in reads_of(node)]
    tables = sorted(name for name in sources if not tells_time(name))
    if not tables:
        return "bounded: it depends on no table"
    if any(expired_of(name) not in circuit.sinks for name in tables):
        return None
    return f"bounded by the TTL of {', '.join(tables)}: its rows go, and answers forget them"


def _expired(circuit: Circuit, trace: int) -> Expired | None:
    """The operator that takes expired rows of a trace back, or None."""
    stream: int | None = trace
    while stream is not None:
        node = circuit[stream]
        if isinstance(node, Apply) and isinstance(node.operator, Plus):
            return next((expired for i in node.inputs if (expired := _behind(circuit, i)) is not None), None)
        stream = inputs_of(node)[0] if len(inputs_of(node)) == 1 else None
    return None


def _behind(circuit: Circuit, stream: int | None) -> Expired | None:
    while (
        stream is not None
        and isinstance(node := circuit[stream], Apply)
        and isinstance(node.operator, Project | Recode)
    ):
        (stream,) = node.inputs
    if stream is None or not isinstance(circuit[stream], Feedback):
        return None
    while stream is not None:
        node = circuit[stream]
        if isinstance(node, Apply) and isinstance(node.operator, Expired):
            return node.operator
        stream = inputs_of(node)[0] if inputs_of(node) else None
    return None


def _is_by_text(node: Apply, groups: int, promised: Mapping[int, PromisedBounds]) -> bool:
    """Whether groups have a time that a watermark bounds, but as text."""
    facts = [promised[i].fields for i in node.inputs if i is not None]
    types = node.operator.inputs[0].layout.schema.types[:groups]
    return any(type_ == STRING and all(f in known for known in facts) for f, type_ in enumerate(types))


def _why(circuit: Circuit, reading: Reading, promised: Mapping[int, PromisedBounds]) -> str:
    """Why a reader may ask for any row of a trace."""
    node = circuit[reading.reader]
    assert isinstance(node, Apply), "operators read traces"
    if isinstance(node.operator, OverChanges) and _is_by_text(node, node.operator.group_fields, promised):
        return "its groups are told apart by a text, which has no order: group by date_trunc, and write the text above"
    return node.operator.asked_again
