"""Rows on their way to the sources of a program: encoded as words, on the shards where they belong."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from everview.circuit.program import Program
from everview.codes import encode_pairs
from everview.codes.dictionary import Dictionary
from everview.operators.exchange import Exchange
from everview.operators.operator import Layout
from everview.runtimes.loops import Cells
from everview.runtimes.state import ProgramState
from everview.runtimes.tables import Commands, Table, resolvers
from everview.types import unknown_name


class Arriving:
    """The sources of a program: the node and schema of each, where its rows belong, and how commands are resolved."""

    def __init__(self, program: Program, tables: Mapping[str, Table]) -> None:
        circuit = program.circuit
        self.shards = program.shards
        self.resolvers = resolvers(program, tables)
        self._tables = tables
        self._sources = {name: (node, circuit.layout(node).schema) for name, node in circuit.sources.items()}
        self._exchanges = {
            name: Exchange(Layout(schema), program.arrival(name)) for name, (_, schema) in self._sources.items()
        }

    def encode(self, changes: Mapping[str, Any], state: ProgramState, dictionary: Dictionary) -> Cells:
        """The rows of a tick, by source, as the cells that it begins with."""
        cells: Cells = [{} for _ in range(self.shards)]
        for name, rows in changes.items():
            if name not in self._sources:
                raise unknown_name("source", name, self._sources)
            if isinstance(rows, Commands):
                self._resolve(name, rows, cells, state, dictionary)
                continue
            node, schema = self._sources[name]
            delta = encode_pairs(schema, rows, dictionary)
            for shard, part in enumerate(self._exchanges[name].spread(delta, self.shards)):
                cells[shard][node] = part
        return cells

    def _resolve(
        self, name: str, commands: Commands, cells: Cells, state: ProgramState, dictionary: Dictionary
    ) -> None:
        if name not in self._tables:
            raise unknown_name("table", name, self._tables)
        node, schema = self._sources[name]
        resolver, rows = self.resolvers[node], commands.encode(schema, dictionary)
        for shard, part in enumerate(self._exchanges[name].spread(rows, self.shards)):
            cells[shard] |= resolver.resolve(part, partial(state.before, shard), whole=commands.whole)
