"""Sessions that are over, and are taken out of the traces that sessions are computed from.

A session is the rows of a key whose moments follow each other by at most a gap. If rows to come have moments from ``w``
on, they are neither in a session whose last moment is before ``w - gap``, nor near enough to be joined to it: it can
neither grow nor merge, split or end earlier. So such a session is taken out of the rows whole, and its results, which
the window functions take back then, are added again. With ``over`` the results of sessions that are over:

    open = windows(x - z⁻¹(over))
    out  = open + z⁻¹(over)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, inputs_of, reads_of
from everview.circuit.rewrite import Copy
from everview.circuit.stream import Stream, StreamTrace
from everview.lowering.promises import Bound, PromisedBounds
from everview.lowering.rows import picked
from everview.operators.arrange import Arrange
from everview.operators.expired import Expired
from everview.operators.index import Index
from everview.operators.linear import Minus, Plus
from everview.operators.operator import Layout, Moment
from everview.operators.window import WindowIncremental


def closing(circuit: Circuit, known: Mapping[int, PromisedBounds]) -> dict[int, Bound]:
    """The windows of sessions that end by a watermark, each with the bound of the last moments of open sessions."""
    closes: dict[int, Bound] = {}
    for node_id, node in enumerate(circuit):
        if not (isinstance(node, Apply) and isinstance(node.operator, WindowIncremental)):
            continue
        edges, bounds = node.operator.sessions, known[node_id].fields
        if edges is not None and edges.last in bounds and _index(circuit, node) is not None:
            closes[node_id] = bounds[edges.last]
    return closes


def only_for(circuit: Circuit, readers: Mapping[int, Bound]) -> set[int]:
    """The traces and indexes that are read by these windows alone, and are replaced with them."""
    dropped = set[int]()
    for below in range(2):  # first the traces, then their indexes
        candidates = {_input(circuit, circuit[node_id]) for node_id in (dropped if below else readers)}
        others = {node_id for node_id in range(len(circuit)) if node_id not in readers and node_id not in dropped}
        read = {
            i
            for node_id in others
            for i in (*inputs_of(circuit[node_id]), *(r.node for r in reads_of(circuit[node_id])))
        }
        dropped |= candidates - read - set(circuit.sinks.values())
    return dropped


def until_closed(copy: Copy, node: Apply, bounds: Stream, promises: int, says: str) -> Stream:
    """The stream of windows of sessions, whose traces hold the open ones."""
    window, index = node.operator, _index(copy.old, node)
    assert isinstance(window, WindowIncremental) and window.sessions is not None and index is not None
    arranged = copy.old[_input(copy.old, node)]
    assert isinstance(arranged, Apply) and isinstance(arranged.operator, Arrange), "windows read an Arrange"
    rows = copy.at[_input(copy.old, copy.old[_input(copy.old, arranged)])]
    over, connect = copy.new.feedback(window.schema)
    taken = picked(over, [index.fields.index(field) for field in range(len(rows.schema))], rows.schema.names)
    kept = copy.new.place(Plus(Layout(rows.schema)), [rows, taken.under(rows.schema)])
    indexed = copy.new.place(replace(index, source=kept.layout), [kept])
    trace = copy.new.place(replace(arranged.operator, source=indexed.layout), [indexed])
    shown = copy.new.place(window, [trace], [StreamTrace(trace, read.moment) for read in node.reads])
    connect(_over(copy, shown, window.sessions.last, bounds, promises, says))
    return copy.new.place(Minus(shown.layout), [shown, over])


def _over(copy: Copy, shown: Stream, last: int, bounds: Stream, promises: int, says: str) -> Stream:
    """The results of sessions that are over, with their weights negated."""
    fields = (last, *(f for f in range(len(shown.schema)) if f != last))
    in_time = copy.new.place(Index(shown.layout, fields, 1, spread=True), [shown])
    trace = copy.new.place(Arrange(in_time.layout, spread=True), [in_time])
    expired = Expired(in_time.layout, bounds.layout, promises, says)
    reads = [StreamTrace(trace, Moment.AFTER), StreamTrace(bounds, Moment.AFTER)]
    rows = copy.new.place(expired, [trace, bounds], reads)
    return picked(rows, [fields.index(f) for f in range(len(fields))], shown.schema.names).under(shown.schema)


def _index(circuit: Circuit, window: Apply) -> Index | None:
    """The index of all fields that a window reads."""
    below = circuit[_input(circuit, circuit[_input(circuit, window)])]
    if not (isinstance(below, Apply) and isinstance(below.operator, Index)):
        return None
    index = below.operator
    return index if sorted(index.fields) == list(range(len(index.source.schema))) else None


def _input(circuit: Circuit, node: object) -> int:
    (given,) = inputs_of(node)  # pyright: ignore[reportArgumentType]
    assert given is not None, "a checked circuit is connected"
    return given
