"""One epoch in two places: pieces and iterations run where they are cheaper, over the same state.

The driver and the tasks see what the other has appended in the open epoch: before tasks run, what the driver has
appended inside a child is written to a segment; before the driver runs, what tasks have written is mapped. At the root
nothing appended in a tick is read in the same tick except as a cell, so there is nothing to share.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from everview.circuit.program import Program
from everview.circuit.stepping import Owed, Ran
from everview.runtimes.embedded.durable import Note
from everview.runtimes.in_process import InProcess
from everview.runtimes.loops import Cells, Left
from everview.runtimes.pending import At
from everview.runtimes.spark.cluster import Cluster
from everview.runtimes.spark.passing import Received
from everview.runtimes.spark.placement import Decision, Placement
from everview.runtimes.state import Path
from everview.traces.store import SegmentWriter, SliceRef
from everview.traces.trace import Trace

MADE_HERE = 64 << 20  # bytes that the driver appends inside loops before it lets go of them
Owned = tuple[Path, int, int]  # a trace of a child: its path, its node, and a shard


class Adaptive:
    """A `StagePlace` that chooses for every piece and every iteration."""

    def __init__(self, here: InProcess, there: Cluster, placement: Placement, first: Decision) -> None:
        self.here, self.there, self.placement = here, there, placement
        self.decisions = [first]
        self._names = {
            (path, node_id): name for path, program in here.program.nested() for node_id, name in program.names.items()
        }
        self._mine: list[tuple[Owned, Any]] = []  # appended by the driver, not yet seen by tasks
        self._theirs: list[tuple[Owned, SliceRef]] = []  # appended by tasks, not yet seen by the driver
        self._bytes = 0  # of what the driver has appended, and holds
        self._received = Received(there.path)

    def run(self, first: int, last: int, cells: Cells) -> None:
        needed = self.here.program.needed(first, last)
        decision = self.decisions[0] if first == 0 else self.placement.tick(_rows(cells, needed))
        if first > 0:
            self.decisions.append(decision)
        if decision.where == "cluster":
            self.there.run(first, last, cells)
        else:
            self.there.fetch(self.here.program, cells, needed | self.here.program.shared(first, last))
            self.here.run(first, last, cells)

    def run_at(self, program: Program, path: Path, stage: int, at: At, cells: Cells, due: Sequence[Owed]) -> list[Ran]:
        rows = _rows(cells, program.needed(stage, stage)) + sum(
            m.shape[0] for d in due for m in (*d.held.values(), *d.woken.values())
        )
        decision = self.placement.iteration(rows)
        if decision.where != self.decisions[-1].where:
            self.decisions.append(decision)
        start = perf_counter()
        if decision.where == "cluster":
            self._share()
            ran = self.there.run_at(program, path, stage, at, cells, due)
            self.placement.round.learn(rows, perf_counter() - start)
        else:
            self._take()
            self.there.fetch(program, cells, program.needed(stage, stage) | program.shared(stage, stage))
            ran = self.here.run_at(program, path, stage, at, cells, self.there.fetch_due(due))
            self.placement.here.learn(rows, perf_counter() - start)
        return ran

    def push(self, path: Path, appends: Sequence[tuple[int, dict[int, Any]]]) -> None:
        for shard, batches in appends:
            for node, appended in batches.items():
                owned = path, node, shard
                if isinstance(appended, SliceRef):
                    self.there.push(path, [(shard, {node: appended})])
                    self._theirs.append((owned, appended))
                else:
                    self.here.push(path, [(shard, {node: appended})])
                    self._mine.append((owned, appended))
                    self._bytes += appended.nbytes
        if self._bytes > MADE_HERE:
            self._let_go()

    def fetch(self, program: Program, cells: Cells, nodes: Collection[int]) -> None:
        self.there.fetch(program, cells, nodes)

    def put_aside(self, left: Left) -> Left:
        return self.there.put_aside(left) if self.there.jobs else left

    def note(self, offsets: dict[str, Any]) -> Note | None:
        """The note to commit if tasks have taken part; None if the driver was alone."""
        if not self.there.jobs and not self.there.written:
            return None
        self._share()
        refs = [ref for refs_of_trace in self.there.written.values() for ref in refs_of_trace]
        refs += [ref for chunk in self.there.chunks for ref in chunk]
        return Note(tuple(self.there.edits), tuple(refs), offsets)

    def _share(self) -> None:
        """Let tasks see what the driver has appended."""
        summed: dict[Owned, Trace] = {}
        for owned, batch in self._mine:
            path, node, _ = owned
            like = self.here.state.traces[path, node][0]
            summed.setdefault(owned, Trace(like.columns, like.order)).push(batch)
        waiting = [(owned, batch) for owned, trace in summed.items() if (batch := trace.sum()) is not None]
        self._mine.clear()
        if not waiting:
            return
        with SegmentWriter(self.there.path, self.there.epoch + 1, "driver") as writer:
            refs = [
                writer.add(self._names[path, node], shard, np.ascontiguousarray(batch))
                for (path, node, shard), batch in waiting
            ]
            writer.finish()
        for ref in refs:
            self.there.written.setdefault(ref.key, []).append(ref)

    def _let_go(self) -> None:
        """Write the driver's appends to files, and map these instead of holding the rows in memory."""
        self._take()
        mine = {owned for owned, _ in self._mine}
        self._share()
        self._bytes = 0
        for path, node, shard in mine:
            refs = self.there.written.get((self._names[path, node], shard), ())
            self.here.state.traces[path, node][shard].reopen(self._received.slice(ref) for ref in refs)

    def _take(self) -> None:
        """Let the driver see what tasks have appended."""
        for (path, node, shard), ref in self._theirs:
            self.here.state.push(shard, path, {node: self._received.slice(ref)})
        self._theirs.clear()


def _rows(cells: Cells, nodes: frozenset[int]) -> int:
    return sum(matrix.shape[0] for shard in cells for node, matrix in shard.items() if node in nodes)
