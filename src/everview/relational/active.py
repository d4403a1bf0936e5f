"""An active graph: its circuit, and the providers that it asks.

Relations enter by sources, as exact deltas. An enumerable provider's tuples do, too, by a table that makes them
exact. A pointwise node watches its candidates: they leave by a sink, so that the provider can be told, and flips come
back by a source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.errors import GraphError
from everview.frontends.graphspec.build import build
from everview.frontends.graphspec.check import Graph
from everview.frontends.graphspec.model import EnumerableSpec
from everview.frontends.graphspec.model import PointwiseSpec as Judged
from everview.frontends.graphspec.predicate import Verdicts
from everview.frontends.graphspec.tuples import Order, Tuples, Watched
from everview.operators.pointwise import Pointwise
from everview.relational.delta import Delta
from everview.relational.providers import Asking
from everview.relational.relation import KernelRelation, commands, shown_rows
from everview.relational.ticking import SharedVerdict, run_tick
from everview.runtimes.embedded import Embedded
from everview.runtimes.tables import Table
from everview.zset.batch import Batch

RELATION, COMPUTED, FLIPS = "relation", "computed", "flips"  # sources, with a name after it
OUTPUT, WATCHED = "output", "watched"  # sinks


class Active:
    """An active graph: the runtime of its circuit, and its providers."""

    def __init__(
        self,
        graph: Graph,
        relations: Mapping[str, KernelRelation],
        providers: Mapping[str, Any],
        order: Order,
        *,
        check_types: bool,
    ) -> None:
        self.graph = graph
        self.scanned = frozenset(graph.scanned)
        self._order = order
        self._exact = [rel for rel in graph.scanned if relations[rel].exact]
        asked = {node.rel: node for node in graph.nodes.values() if isinstance(node, EnumerableSpec)}
        self._listed = {
            rel: Asking(node.id, relations[rel], providers[rel], check_types=check_types) for rel, node in asked.items()
        }
        self._judges = {
            node.id: Asking(node.id, relations[node.rel], providers[node.rel], check_types=check_types)
            for node in graph.pointwise
        }
        self._watched = {node: Watched() for node, asking in self._judges.items() if asking.flipping}
        self._seen: dict[str, Delta] = {}  # the change of each watched set, while it does not count yet
        self._asked = False
        self.circuit = Circuit()
        streams = {rel: self.circuit.source(f"{RELATION} {rel}", relations[rel].schema) for rel in graph.scanned}
        streams |= {rel: self.circuit.source(f"{COMPUTED} {rel}", relations[rel].schema) for rel in graph.enumerated}
        for name, stream in build(graph, streams, self._judged).items():
            stream.sink(f"{OUTPUT} {name}", positive=True)
        tables = {f"{COMPUTED} {rel}": Table(relations[rel].schema.names) for rel in graph.enumerated}
        self.run = Embedded(self.circuit, tables=tables)

    def _judged(self, node: Judged, candidates: Stream) -> Stream:
        """The candidates that are true, by an operator to which the provider's truth comes back as a source."""
        asking, circuit = self._judges[node.id], candidates.circuit
        indexed = candidates.index(*candidates.schema.names)
        trace = indexed.trace()
        flips = circuit.source(f"{FLIPS} {node.id}", asking.relation.schema).under(indexed.schema)
        verdicts = Verdicts(asking.what, asking.true, candidates.schema)
        function = circuit.function(verdicts, "columns", f"eval_many of {node.rel} at {node.id}")
        back, again = circuit.feedback(indexed.schema)
        truth = circuit.add(
            Pointwise(indexed.layout, function),
            [trace.stream, flips.index(*indexed.schema.names)],
            [trace.delay(), back.trace()],
        )
        again(truth)
        if node.id in self._watched:
            indexed.sink(f"{WATCHED} {node.id}", keep=False)
        return truth

    # -- asking

    def first(self) -> dict[str, Any]:
        """The tuples of providers at the start, as changes of sources."""
        return {
            f"{COMPUTED} {rel}": commands(asking.relation.schema, delta)
            for rel, asking in self._listed.items()
            if (delta := asking.all())
        }

    def ask(self, handle: int) -> dict[str, Any]:
        """The changes that providers tell since a handle, as changes of sources."""
        self._asked = True
        verdicts: dict[str, Any] = {
            f"{COMPUTED} {rel}": commands(asking.relation.schema, delta)
            for rel, asking in self._listed.items()
            if (delta := asking.since(handle))
        }
        for node, watched in self._watched.items():
            flips = self._judges[node].flips(handle, watched)
            if flips:
                pairs = [(row, -1) for row in flips.removes.unordered]
                pairs += [(row, 1) for row in flips.adds.unordered]
                verdicts[f"{FLIPS} {node}"] = pairs
        return verdicts

    # -- ticking

    def tick(self, changes: Mapping[str, Any], verdict: SharedVerdict) -> dict[str, Delta]:
        """The change of every output, which counts if the verdict is so."""
        self._seen = {}
        if not changes:
            return {name: Delta() for name in self.graph.outputs}
        out = run_tick(self.run, changes, verdict)
        self._seen = {node: self._delta(out[f"{WATCHED} {node}"]) for node in self._watched}
        return {name: self._delta(out[f"{OUTPUT} {name}"], name) for name in self.graph.outputs}

    def end(self, verdict: SharedVerdict) -> None:
        """What was ticked counts, or is undone. It may be repeated."""
        self.run.recover()
        if verdict.counts:
            for asking in self._listed.values():
                if self._asked:
                    asking.close()
            for node, delta in self._seen.items():
                self._watched[node].change(delta.adds.unordered, delta.removes.unordered)
        self._asked, self._seen = False, {}

    def contents(self, output: str) -> Tuples:
        """The tuples of an output."""
        rows = self.run.view(f"{OUTPUT} {output}").contents().elements()
        return Tuples.of_rows(shown_rows(rows, self._variables(output)), self._order)

    def _variables(self, output: str) -> Sequence[str]:
        return self.graph.variables[self.graph.outputs[output]]

    def _delta(self, batch: Batch, output: str | None = None) -> Delta:
        if (np.abs(batch.weights) != 1).any():
            raise GraphError(
                f"relations with exact deltas ({', '.join(self._exact) or 'none'}) were given deltas that are not",
                hint="add a tuple only where it is not there, and remove it only where it is; or leave out exact=True",
            )
        rows, adds = batch.elements(), (batch.weights > 0).tolist()
        if output is not None:
            rows = shown_rows(rows, self._variables(output))
        return Delta(
            Tuples.of_rows((row for row, add in zip(rows, adds, strict=True) if add), self._order),
            Tuples.of_rows((row for row, add in zip(rows, adds, strict=True) if not add), self._order),
        )
