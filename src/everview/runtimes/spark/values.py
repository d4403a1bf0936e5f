"""Interned values in a task: the epoch's, those of the open epoch that arrived with the task, and its own.

A task that never looks behind the codes needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everview.circuit.nodes import Apply
from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary, Entries
from everview.runtimes.spark.wire import Row, RowKind, pack_entries, unpack_entries
from everview.runtimes.spark.worker import Replica


class TaskDictionary:
    """The dictionary of one task; it goes back to what the epoch says when the task is done."""

    def __init__(self, state: Replica, blocks: Sequence[Row], *, needed: bool) -> None:
        self._blocks = blocks
        self.dictionary = state.dictionary() if needed else Dictionary()
        self._committed = self.dictionary.mark()
        for row in blocks if needed else ():
            self.dictionary.load(unpack_entries(row.payload))
        self._arrived = self.dictionary.mark()

    def close(self) -> None:
        self.dictionary.rollback(self._committed)

    def rows(self, partitions: int, *, later: bool) -> Iterator[Row]:
        """Rows with the task's new entries: one for the driver and, if needed ``later``, one for each partition."""
        if later:
            yield from self._blocks  # every task has them all, so each keeps its own
        entries = self.dictionary.export(self._arrived)
        if not len(entries):
            return
        block = pack_entries(entries).data
        yield Row(RowKind.NEW, -1, 0, 0, block)
        if later:
            yield from (Row(RowKind.ENTRIES, -1, partition, 0, block) for partition in range(partitions))


def entries_for(entries: Entries, partitions: int) -> Iterator[Row]:
    """Dictionary entries of the open epoch as rows for every task."""
    if len(entries):
        block = pack_entries(entries).data
        yield from (Row(RowKind.ENTRIES, -1, partition, 0, block) for partition in range(partitions))


def reads_values(program: Program, first: int, last: int) -> bool:
    """Whether an operator of these stages looks up values, and so needs the dictionary."""
    nodes = (program.circuit[node_id] for stage in program.stages[first : last + 1] for node_id in stage.nodes)
    return any(isinstance(node, Apply) and node.operator.reads_values for node in nodes)
