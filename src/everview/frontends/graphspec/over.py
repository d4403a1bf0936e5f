"""A graph over the sources of a circuit: its relations are sources of the same names, its outputs streams.

Sources may be bags and have typed columns; the graph is about sets, so it sees each row once. A relation names columns
of its source, perhaps not all. A pointwise predicate is asked again when a tuple leaves, so it must be pure, as every
function in a view; a provider whose truth changes is for the kernel, which keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.errors import GraphError
from everview.frontends.graphspec.build import build
from everview.frontends.graphspec.check import Graph, RelationShape, check
from everview.frontends.graphspec.model import PointwiseSpec, parse
from everview.frontends.graphspec.predicate import Verdicts
from everview.lowering.lower import Lowering
from everview.operators.functions import Function
from everview.plan.nodes import Scan
from everview.plan.nullary import any_of
from everview.types import unknown_name


def graph(
    circuit: Circuit, spec: str | Mapping[str, Any], providers: Mapping[str, Any] | None = None
) -> dict[str, Stream]:
    """A stream for each output of a graph whose relations are sources of a circuit.

    >>> circuit = Circuit()
    >>> source = circuit.source("edge", "src STRING NOT NULL, dst STRING NOT NULL, since DATE")
    >>> spec = {
    ...     "relations": [{"name": "edge", "schema": ["src", "dst"]}],
    ...     "nodes": [
    ...         {"id": "e", "op": "Scan", "rel": "edge"},
    ...         {"id": "two", "op": "Join", "inputs": ["e", "e"], "vo": ["a", "b", "c"],
    ...          "atoms": [{"vars": ["a", "b"]}, {"vars": ["b", "c"]}]},
    ...     ],
    ...     "outputs": [{"name": "paths", "from": "two"}],
    ... }
    >>> print(graph(circuit, spec)["paths"].schema)
    a STRING NOT NULL, b STRING NOT NULL, c STRING NOT NULL
    """
    schemas = {name: circuit.layout(node).schema for name, node in circuit.sources.items()}
    known = {name: RelationShape(name, schema.names, ("any",) * len(schema)) for name, schema in schemas.items()}
    checked = check(parse(spec), known)
    judged = _judged(checked, dict(providers or {}))
    rehearsal = Circuit()  # so that what is refused leaves nothing behind
    _built(checked, {name: rehearsal.source(name, schema) for name, schema in schemas.items()}, judged)
    return _built(checked, {name: circuit.stream(node) for name, node in circuit.sources.items()}, judged)


def _built(checked: Graph, streams: Mapping[str, Stream], judged: Mapping[str, Any]) -> dict[str, Stream]:
    read = {name: _relation(checked.relations[name], streams) for name in (*checked.scanned, *checked.enumerated)}

    def judge(node: PointwiseSpec, candidates: Stream) -> Stream:
        what = f'node "{node.id}", relation "{node.rel}"'
        verdicts = Verdicts(what, judged[node.rel].eval_many, candidates.schema)
        return candidates.filter(Function(f"eval_many of {node.rel}", verdicts))

    return build(checked, read, judge)


def _relation(relation: RelationShape, streams: Mapping[str, Stream]) -> Stream:
    if relation.name not in streams:
        hint = unknown_name("", relation.name, streams).hint
        raise GraphError(f'relation "{relation.name}" is no source', hint=hint)
    stream = streams[relation.name]
    for name in relation.columns:
        if name not in stream.schema:
            raise GraphError(
                f'relation "{relation.name}" has column "{name}", which its source has not',
                hint=f"the source has {', '.join(stream.schema.names)}; rename in the atoms of a join, or by Rename",
            )
    if not relation.columns:
        return Lowering(stream.circuit, {relation.name: stream}).of(any_of(Scan(relation.name, stream.schema)))
    return stream.select(*relation.columns).distinct()


def _judged(checked: Graph, providers: dict[str, Any]) -> dict[str, Any]:
    """The providers of pointwise relations; refuses any other."""
    for name in checked.enumerated:
        if name in providers:
            raise GraphError(
                f'relation "{name}" is enumerable, and here that is a source: it has no provider',
                hint=f"leave the provider out, and let the source {name} have its tuples",
            )
    judged = {node.rel: node for node in checked.pointwise}
    for name, provider in providers.items():
        if name not in checked.computed:
            hint = unknown_name("", str(name), checked.computed).hint
            raise GraphError(f'a provider of "{name}" is given, which no node asks', hint=hint)
        if name in judged and hasattr(provider, "flips_since"):
            raise GraphError(
                f"{_asks(judged[name])} a provider whose truth changes by itself",
                hint="a view asks a pure predicate: without flips_since; everview.Kernel keeps truth that flips",
            )
    for name, node in judged.items():
        if not callable(getattr(providers.get(name), "eval_many", None)):
            raise GraphError(
                f"{_asks(node)} a provider that is not given", hint=f'providers={{"{name}": one with eval_many}}'
            )
    return providers


def _asks(node: PointwiseSpec) -> str:
    return f'node "{node.id}" (Compute) asks for "{node.rel}"'
