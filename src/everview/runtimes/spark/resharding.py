"""More shards for a state that has grown: every shard is split, and one commit makes the state that of the new number.

A row's shard is a hash of its key modulo the number of shards. If that number becomes a multiple of what it was, rows
of a shard go to a few new ones and nowhere else, so shards are split apart from each other, by tasks. Slices keep their
order and their sizes' proportions. Rows that belong to no shard in particular stay where they are.

Before the commit nothing has happened; after it the state is opened with the new number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from everview.circuit.place import places
from everview.circuit.program import Program
from everview.errors import PipelineError
from everview.kernels.shard import split
from everview.operators.operator import ByKey, OnEveryShard, word_columns
from everview.runtimes.spark.stages import reporting
from everview.runtimes.spark.values import attempt
from everview.runtimes.spark.wire import Row, RowKind, edit_of, edit_row, from_batches, to_batches
from everview.runtimes.spark.worker import Replica, settle
from everview.traces.store import Replace, SegmentWriter, SliceRef
from everview.types.words import Matrix


class TraceSplit(NamedTuple):
    """How a trace is divided anew: its name before and after, and the words that say the shard of a row.

    Without words, rows stay on their shards; those of a trace that is ``everywhere`` are on new ones, too.
    """

    old: str
    new: str
    words: tuple[int, ...] | None
    everywhere: bool = False


def require_multiple(before: int, shards: int) -> None:
    """Refuse a number of shards that is no multiple of the present one."""
    if before == 1:
        hint = "make the pipeline anew with more shards, in another directory"
        raise PipelineError("a state of one shard cannot be split", hint=hint)
    if shards <= before or shards % before:
        raise PipelineError(
            f"{before} shards cannot become {shards}: each is split into as many as every other",
            hint=f"give a multiple: {', '.join(str(before * times) for times in (2, 3, 4))}, …",
        )


def splits(before: Program, after: Program) -> tuple[TraceSplit, ...]:
    """How the traces of a program are divided by the same program over more shards."""
    where = places(after.circuit)
    splits: list[TraceSplit] = []
    for (_, old), (_, new) in zip(before.nested(), after.nested(), strict=True):
        assert old.traces.keys() == new.traces.keys(), "the number of shards does not change which traces there are"
        for node, layout in new.traces.items():
            place = where.get((new.circuit, node))
            words = tuple(word_columns(layout.schema, place.fields).tolist()) if isinstance(place, ByKey) else None
            splits.append(TraceSplit(old.names[node], new.names[node], words, isinstance(place, OnEveryShard)))
    return tuple(splits)


@dataclass(frozen=True, slots=True)
class Resharding:
    """The order to the tasks: read the state at ``epoch``, and write the split shards as the next epoch."""

    path: str
    epoch: int
    before: int
    shards: int
    traces: tuple[TraceSplit, ...]

    def rows(self) -> Iterator[Row]:
        """A row for each shard that is to be split."""
        return (Row(RowKind.WAKE, -1, shard) for shard in range(self.before))

    def run(self, rows: Iterable[Row], attempt: str) -> Iterator[Row]:
        """Split the shards that have arrived, and yield the edits."""
        state, edits = Replica(self.path).at(self.epoch), list[Replace]()
        with SegmentWriter(self.path, self.epoch + 1, attempt) as writer:
            for row in rows:
                for trace in self.traces:
                    for part in state.slices(trace.old, row.shard):
                        edits += self._split(writer, trace, row.shard, part.id, part.array)
            writer.finish()
        yield from (edit_row(edit.shard, edit) for edit in edits)

    def _split(
        self, writer: SegmentWriter, trace: TraceSplit, shard: int, number: int, rows: Matrix
    ) -> Iterator[Replace]:
        old = (number,) if trace.old == trace.new else ()  # a trace of another name is a new one
        parts = dict(self._parts(trace, shard, rows))
        stays = parts.pop(shard, rows[:0])
        if not old or len(stays) < len(rows):
            yield Replace(trace.new, shard, old, self._written(writer, trace, shard, stays))
        for target, part in parts.items():
            if len(part):
                yield Replace(trace.new, target, (), self._written(writer, trace, target, part))

    def _parts(self, trace: TraceSplit, shard: int, rows: Matrix) -> Iterator[tuple[int, Matrix]]:
        targets = range(shard, self.shards, self.before)
        if trace.words is not None:
            moved, bounds = split(np.ascontiguousarray(rows), np.array(trace.words, np.int64), self.shards)
            yield from ((target, moved[bounds[target] : bounds[target + 1]]) for target in targets)
            return
        yield shard, rows
        if trace.everywhere:
            yield from ((target, rows) for target in targets if target != shard)

    def _written(self, writer: SegmentWriter, trace: TraceSplit, shard: int, rows: Matrix) -> SliceRef | None:
        return writer.add_trace(trace.new, shard, rows) if len(rows) else None

    def here(self) -> list[Replace]:
        """The edits, found in this process."""
        return [edit_of(row) for row in self.run(self.rows(), "reshard")]


def resharding(told: Resharding) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The splitting of shards as a function for `mapInArrow`."""

    def run_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(from_batches(batches))
        yield from to_batches(reporting(-1, lambda: told.run(rows, attempt("reshard"))))
        settle()

    return run_task
