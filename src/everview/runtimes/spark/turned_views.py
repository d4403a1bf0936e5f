"""The changes of views by a turn: their rows before it, against the rows of their traces after it.

Small changes are put together here, large ones are said by the epochs that they lie between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from everview.kernels.linear import negated
from everview.kernels.merge import merge
from everview.runtimes.embedded.turning import TurnPlan
from everview.runtimes.spark.passing import Received
from everview.runtimes.spark.stored import StoredRelation, contents, shards
from everview.runtimes.spark.stored_change import MOST_BYTES, StoredChange, shown_alike
from everview.runtimes.state import ProgramState
from everview.traces.store import Replace, SliceRef, Store
from everview.types import Schema
from everview.types.words import Matrix, Words


class TurnedViews:
    """The views of a state after a turn that is about to be committed; tasks may have ``written`` some traces."""

    def __init__(self, stored: Store, plan: TurnPlan, state: ProgramState, written: Iterable[Replace]) -> None:
        self._stored, self._plan, self._state = stored, plan, state
        self._written: dict[str, list[SliceRef]] = {}
        for edit in written:
            assert isinstance(edit.new, SliceRef), "tasks refer to what they wrote"
            self._written.setdefault(edit.name, []).append(edit.new)

    def change(self, view: str, before: StoredRelation | None) -> Words | Matrix | None:
        """What a commit keeps for sinks of a view that was ``before``; all rows, if its columns differ.

        None if nothing changes.
        """
        node = self._plan.program.contents(view)
        if node is None:
            return None
        if before is not None and before.trace == self._stored_name(node):
            return None
        schema = self._plan.program.circuit.layout(node).schema
        comparable = before if before is not None and before.schema == schema else None
        large = self._large(view, node, schema, comparable)
        if large is not None:
            return large.block
        rows = self._merged(node, schema, comparable)
        return rows if len(rows) else None

    def _large(self, view: str, node: int, schema: Schema, before: StoredRelation | None) -> StoredChange | None:
        """The change by reference, if it may be large and tasks can read it: they find both relations by the name."""
        rows = self._rows(node) + (self._plan.rows[before.trace] if before is not None else 0)
        renamed = before is not None and view in self._plan.renamed
        if rows * (schema.width + 1) * 8 <= MOST_BYTES or renamed or not shown_alike(schema):
            return None
        epoch = self._stored.epoch
        return StoredChange(self._stored.address, view, schema, 0 if before is None else epoch, epoch + 1, rows)

    def _rows(self, node: int) -> int:
        """The most rows that a trace has after the turn, without reading it."""
        name = self._plan.program.names[node]
        if name in self._plan.held:
            return self._plan.rows[self._stored_name(node)]
        made = sum(len(trace.after) for trace in self._state.of(node))
        return made + sum(ref.rows for ref in self._written.get(name, ()))

    def _stored_name(self, node: int) -> str:
        name = self._plan.program.names[node]
        return self._plan.moved.get(name, name)

    def _merged(self, node: int, schema: Schema, before: StoredRelation | None) -> Matrix:
        whole = np.empty((0, schema.width + 1), np.int64)
        for rows in self._whole(node):
            whole = merge(whole, rows)
        if before is None:
            return whole
        for shard in range(shards(self._stored)):
            whole = merge(whole, negated(contents(self._stored, before, shard)))
        return whole

    def _whole(self, node: int) -> Iterator[Matrix]:
        """The contents of a trace after the turn, in batches."""
        received = Received(self._stored.address)
        yield from (trace.after.consolidated() for trace in self._state.of(node))
        yield from (received.slice(ref) for ref in self._written.get(self._plan.program.names[node], ()))
