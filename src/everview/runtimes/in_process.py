"""Stages in this process, one shard after the other, over traces in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from everview.circuit.bounds import LoopBounds
from everview.circuit.nodes import Read
from everview.circuit.program import Loop, Program
from everview.circuit.stepping import Owed, Ran, close_feedbacks, run_stage, run_stage_at
from everview.kernels.timed import stamped
from everview.operators.operator import Context, Moment
from everview.runtimes.compiled import FOR_TICKS, Compiled
from everview.runtimes.loops import Cells, Left, exchange
from everview.runtimes.pending import At
from everview.runtimes.state import Path, ProgramState
from everview.traces.wide import Wide
from everview.types.words import Words

MANY = 1 << 18  # rows of an epoch, from which on operators' own steps, which use threads, are the faster way


class Once(dict[Read, Wide]):
    """Reads of all shards, each made when it is first asked for; most stages never ask."""

    def __init__(self, made: Callable[[Read], Wide]) -> None:
        super().__init__()
        self._made = made

    def __missing__(self, read: Read) -> Wide:
        made = self[read] = self._made(read)
        return made

    def __call__(self, read: Read) -> Wide:
        return self[read]


class InProcess:
    """Stages in this process, one shard after the other, over traces in memory."""

    def __init__(self, program: Program, state: ProgramState, context: Context, *, alone: bool = True) -> None:
        """``alone`` says that no stage runs elsewhere, so that compiled code may keep rows to itself."""
        self.program, self.state, self.context, self._alone = program, state, context, alone
        self.compiled: Compiled | None = None  # the program as compiled code, if the open epoch runs by it

    def run(self, first: int, last: int, cells: Cells) -> None:
        if first == 0:
            self.compiled = self._chosen(cells)
        if self.compiled is not None:
            appends = self.compiled.run(first, last, cells, self._reads)
            if appends:
                self.state.push(0, (), appends)
            return
        for number in range(first, last + 1):
            stage = self.program.stages[number]
            if number > first:
                exchange(self.program, stage, cells)
            everywhere = self._reads(cells)
            for shard, shard_cells in enumerate(cells):
                before = lambda node, s=shard: self.state.before(s, node)  # noqa: E731
                ran = run_stage(self.program, stage, shard_cells, before, everywhere, self.context)
                remembered = close_feedbacks(self.program, shard_cells, before, stage)
                self.state.push(shard, (), ran.appends | remembered if remembered else ran.appends)

    def _chosen(self, cells: Cells) -> Compiled | None:
        """Compiled code for an epoch of few rows; operators' own steps for many, and for a part of a program."""
        if not self._alone or self.state.program is not self.program or sum(map(len, cells[0].values())) >= MANY:
            return None
        return self.state.compiled if FOR_TICKS.over or FOR_TICKS.is_over() else None

    def run_loop(self, loop: Loop, bounds: LoopBounds, cells: Cells) -> bool:
        """A child of the root to its fixed point; False if its rounds are to be run one by one."""
        return self.compiled is not None and self.compiled.run_loop(loop, bounds, cells[0])

    def run_at(self, program: Program, path: Path, stage: int, at: At, cells: Cells, due: Sequence[Owed]) -> list[Ran]:
        running_stage, now = program.stages[stage], np.array(at, np.int64)
        everywhere = Once(lambda read: self._everywhere_at(read, path, now, cells))
        return [
            run_stage_at(
                program,
                *(running_stage, now, shard_cells, lambda n, s=shard: self.state.reading(s, path, n), everywhere),
                *(due[shard], self.context),
            )
            for shard, shard_cells in enumerate(cells)
        ]

    def push(self, path: Path, appends: Sequence[tuple[int, dict[int, Any]]]) -> None:
        for shard, batches in appends:
            self.state.push(shard, path, batches)

    def fetch(self, program: Program, cells: Cells, nodes: Collection[int]) -> None:
        """All cells are here."""

    def put_aside(self, left: Left) -> Left:
        return left

    def _reads(self, cells: Cells) -> Once:
        return Once(lambda read: self._everywhere(read, cells))

    def _everywhere(self, read: Read, cells: Cells) -> Wide:
        """A trace on all shards; after the tick, with what each shard has appended."""
        views = [self.state.before(shard, read.node) for shard in range(len(cells))]
        if read.moment is Moment.AFTER:
            views = [view.plus(c[read.node]) if read.node in c else view for view, c in zip(views, cells, strict=True)]
        return Wide(views)

    def _everywhere_at(self, read: Read, path: Path, now: Words, cells: Cells) -> Wide:
        """A trace of a child on all shards, as a nested time sees it."""
        views = [self.state.traces[path, read.node][shard].after for shard in range(len(cells))]
        if read.moment is Moment.AFTER:
            views = [
                view.plus(stamped(c[read.node], now)) if read.node in c else view
                for view, c in zip(views, cells, strict=True)
            ]
        return Wide(views)
