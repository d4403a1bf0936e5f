"""The circuit of an aggregate: its entries are weighed, and its orders indexed, each once for all calls.

Of the different values of a column the circuit weighs `distinct`, and adds those entries to the others:
``Weigh(rows) + Weigh(distinct(group, x))``. So counting distinct values costs what the change does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.operators.aggregate import Aggregate, Call, Slot, Weigh, orderings, slots
from everview.operators.distinct import Distinct
from everview.operators.index import Index
from everview.operators.linear import Plus
from everview.operators.operator import Layout
from everview.types import Schema

if TYPE_CHECKING:
    from everview.circuit.stream import Stream


def aggregated(stream: Stream, by: Sequence[str], calls: Mapping[str, Call]) -> Stream:
    """One row a group: the columns that tell groups apart, and the results of the calls under their names."""
    schema, made = stream.schema, tuple(calls.values())
    group = tuple(map(schema.index, by))
    results = [call.result(schema, name) for name, call in calls.items()]
    output = Schema([*(schema.fields[g] for g in group), *results])
    summed = slots(schema, made)
    entries = _entries(stream, group, summed)
    indexes = [
        stream.circuit.add(ordering.index(schema, group), [_present(stream, ordering.present)])
        for ordering in orderings(schema, made)
    ]
    layouts = tuple(index.layout for index in indexes)
    operator = Aggregate(entries.layout, schema, made, summed, layouts, output)
    return stream.circuit.add(operator, [entries, *indexes])


def _present(stream: Stream, fields: Sequence[int]) -> Stream:
    for field in fields:
        if stream.schema.fields[field].nullable:
            stream = stream.not_null(stream.schema.names[field])
    return stream


def _entries(stream: Stream, group: tuple[int, ...], summed: Sequence[Slot]) -> Stream:
    rows = Weigh(Layout(stream.schema), group, tuple(slot for slot in summed if not slot.distinct))
    parts = [stream.circuit.add(rows, [stream])]
    for fields in dict.fromkeys(slot.distinct for slot in summed if slot.distinct):
        parts.append(_distinct_entries(stream, group, fields, summed))
    if len(parts) == 1:
        return parts[0]
    layout = parts[0].layout
    added = stream.circuit.add(Plus(Layout(layout.schema), len(parts)), parts)
    return stream.circuit.add(Index(Layout(layout.schema), tuple(range(layout.key + 1)), layout.key), [added])


def _distinct_entries(
    stream: Stream, group: tuple[int, ...], fields: tuple[int, ...], summed: Sequence[Slot]
) -> Stream:
    """The entries of the slots that add up the different values of some fields."""
    circuit = stream.circuit
    chosen = tuple(dict.fromkeys((*group, *fields)))
    values = circuit.add(Index(Layout(stream.schema), chosen, len(chosen)), [_present(stream, fields)])
    different = circuit.add(Distinct(values.layout), [values])
    own_slots = tuple(
        replace(slot, field=chosen.index(slot.field) if slot.field >= 0 else -1, distinct=())
        for slot in summed
        if slot.distinct == fields
    )
    return circuit.add(Weigh(Layout(different.schema), tuple(range(len(group))), own_slots), [different])
