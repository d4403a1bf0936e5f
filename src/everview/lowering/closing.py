"""``EMIT ON WINDOW CLOSE``: views whose rows come once they are final, and never change after that.

A row is final when a column of it is before what the watermarks promise of rows to come. So the view is a `During`: its
clock is that promise, an expression of the watermarks, and a row is there once the clock has passed its column.
"""

from __future__ import annotations

from dataclasses import replace

from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import incrementalize
from everview.circuit.nodes import Sink, Source
from everview.circuit.rewrite import part
from everview.circuit.stream import Stream
from everview.errors import DefinitionError
from everview.lowering.promises import TIMES, Bound, Promise, promises
from everview.plan.catalog import NamedPlan
from everview.plan.forgotten import just_after
from everview.plan.node import Plan
from everview.plan.nodes import During, Filter, Join, Project, Scan
from everview.plan.timed import is_companion, is_watermark
from everview.plan.typing import call
from everview.scalars.expressions import Expression, moved


def on_close(named: NamedPlan, stream: Stream) -> NamedPlan:
    """The view with each row from when on it is final; ``stream`` is that of its rows as they change."""
    circuit = stream.circuit
    beside = [node for name, node in circuit.sources.items() if is_watermark(name)]
    alone, at = part(circuit, [stream.id, *beside], [name for name in circuit.sinks if is_companion(name)])
    alone.sink(named.name, at[stream.id].under(named.schema), keep=False)
    incremental = incrementalize(alone)
    sink = incremental[incremental.sinks[named.name]]
    assert isinstance(sink, Sink), "a view has a sink"
    known = promises(incremental)[sink.input].fields
    times = [(field, bound) for field, bound in known.items() if named.schema.types[field] in TIMES]
    if not times:
        raise DefinitionError(
            f"view {named.name} emits on window close, and no watermark says when its rows are final",
            hint="group by a window of a column that has a WATERMARK and no TTL, and select its start or end",
        )
    field, bound = min(times, key=lambda time: (len(time[1]), time[0]))
    clock, watermarks = _clock(incremental, bound)
    return replace(
        named,
        plan=_closed(named.plan, field, clock),
        optimized=_closed(named.optimized, field, clock),
        reads=tuple(dict.fromkeys((*named.reads, *watermarks))),
    )


def _clock(circuit: Circuit, bound: Bound) -> tuple[Plan, list[str]]:
    """The relation of the moment before which rows are final, once all of its watermarks are known."""
    clock: Plan | None = None
    earliest: list[Expression] = []
    names: list[str] = []
    for promise in bound:
        scan = _scan(circuit, promise)
        place = 0 if clock is None else len(clock.schema)
        names.append(scan.relation)
        earliest.append(moved(promise.at_least, lambda _, place=place: place))
        clock = scan if clock is None else Join(clock, scan, "inner", None)
    assert clock is not None, "a bound has a promise"
    value = earliest[0] if len(earliest) == 1 else call("least", *earliest)
    return Project(clock, (value,), ("closed",)), names


def _scan(circuit: Circuit, promise: Promise) -> Scan:
    source = circuit[promise.clock]
    assert isinstance(source, Source), "promises of views come from watermarks"
    return Scan(source.name, source.schema)


def _closed(plan: Plan, field: int, clock: Plan) -> Plan:
    time = plan.columns[field]
    known = Filter(plan, call("is_not_null", time)) if time.nullable else plan
    return During(known, clock, just_after(known.columns[field]))
