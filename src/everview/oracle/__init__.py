"""The meaning of a query circuit: every operator by its definition, over all rows at once, from scratch.

The incremental circuit is held to this: after every tick, a view's contents are `evaluate` of all that its
sources were given. So the oracle shares nothing with what it checks: rows are tuples of Python values, Z-sets
are plain dictionaries, there are no words, kernels, traces or steps, and operators are read as data only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Sink, Source
from everview.oracle.rows import Rows
from everview.oracle.streams import CircuitStreams, reached
from everview.types import Schema, unknown_name
from everview.zset import ZSet

Entries = Iterable[tuple[Any, int]]  # a Z-set, a batch, or pairs: rows with their weights

__all__ = ["contents", "evaluate", "schema_of", "sources_of"]


def evaluate(circuit: Circuit, inputs: Mapping[str, Entries], views: Iterable[str] | None = None) -> dict[str, ZSet]:
    """The rows that sinks of a query circuit hold when its sources hold ``inputs``, as a view shows them.

    ``views`` names the sinks; by default all of them.

    >>> circuit = Circuit()
    >>> orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
    >>> orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
    >>> evaluate(circuit, {"orders": ZSet({("Ada", 5): 1, ("Ada", 1): 2, ("Bob", 7): 1})})
    {'totals': ZSet({('Ada', 7): 1, ('Bob', 7): 1})}
    """
    held = contents(circuit, inputs, circuit.sinks if views is None else views)
    return {name: ZSet.of(rows.outside(schema_of(circuit, name))) for name, rows in held.items()}


def contents(circuit: Circuit, inputs: Mapping[str, Entries], views: Iterable[str]) -> dict[str, Rows]:
    """`evaluate`, with rows as the oracle holds them."""
    wanted = {name: _sink(circuit, name).input for name in views}
    given = {node: _entered(circuit, node, inputs.get(name, ())) for name, node in circuit.sources.items()}
    streams = CircuitStreams(circuit, wanted.values()).given(given)
    return {name: streams[stream] for name, stream in wanted.items()}


def schema_of(circuit: Circuit, view: str) -> Schema:
    """The columns of a view."""
    return circuit.layout(_sink(circuit, view).input).schema


def sources_of(circuit: Circuit, views: Iterable[str]) -> list[str]:
    """The sources that some views depend on."""
    needed = reached(circuit, (_sink(circuit, name).input for name in views))
    return [name for name, node in circuit.sources.items() if node in needed]


def _entered(circuit: Circuit, node: int, entries: Entries) -> Rows:
    source = circuit[node]
    assert isinstance(source, Source)
    return Rows.inside(source.schema, entries)


def _sink(circuit: Circuit, name: str) -> Sink:
    if name not in circuit.sinks:
        raise unknown_name("view", name, list(circuit.sinks))
    sink = circuit[circuit.sinks[name]]
    assert isinstance(sink, Sink)
    return sink
