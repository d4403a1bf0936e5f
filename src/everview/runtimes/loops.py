"""Recursion in an epoch: children of a program, each repeated on all shards until it reaches its fixed point."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from everview.circuit.blame import NODE
from everview.circuit.bounds import LoopBounds
from everview.circuit.nodes import Apply
from everview.circuit.program import Loop, Program, Stage
from everview.circuit.stepping import Owed, Ran
from everview.errors import EverviewError, WeightOverflow
from everview.kernels.sort import arrange, is_batch
from everview.operators.exchange import Exchange
from everview.runtimes.growth import Grown, Growth
from everview.runtimes.pending import At, Pending, together
from everview.runtimes.state import Path
from everview.types.words import Matrix

Cells = list[
    dict[int, Any]
]  # one a shard; by stream a matrix, or where tasks take part what stands for files of theirs
ASIDE = 16 << 20  # bytes of rows that have left a loop, after which its place may put them elsewhere


Left = list[dict[int, list[Any]]]  # one a shard; by export, its cells of the iterations so far


class StagePlace(Protocol):
    """Where the stages of a program run, and where their traces are: in this process, or in tasks elsewhere."""

    def run(self, first: int, last: int, cells: Cells) -> None:
        """Some stages of the root on all shards, with the exchanges between them.

        It fills those cells that are wanted later, and appends to the open epoch.
        """
        ...

    def run_at(self, program: Program, path: Path, stage: int, at: At, cells: Cells, due: Sequence[Owed]) -> list[Ran]:
        """A stage of a child at a nested time on all shards; it fills the cells."""
        ...

    def push(self, path: Path, appends: Sequence[tuple[int, dict[int, Any]]]) -> None:
        """Append the batches from the stages of one time, shard by shard; only later times see them."""
        ...

    def fetch(self, program: Program, cells: Cells, nodes: Collection[int]) -> None:
        """Make some cells matrices, wherever their rows are."""
        ...

    def put_aside(self, left: Left) -> Left:
        """The cells that have left a loop, in memory or elsewhere until the loop has ended."""
        ...


class Loops:
    """The children of a program in the open epoch: where they run, and the work that is pending for later times."""

    def __init__(self, program: Program, place: StagePlace, bounds: LoopBounds) -> None:
        self.place, self.bounds = place, bounds
        self.grown = Grown()
        self.pending = Pending(program.shards)

    def run(self, loop: Loop, cells: Cells) -> None:
        """Run a child of the root to its fixed point; what leaves it goes to the cells."""
        try:
            self._loop(loop, cells, (), ())
        except OverflowError as error:
            raise _too_often(loop) from error
        except EverviewError as error:
            setattr(error, NODE, loop.at)  # of the root, which knows the views
            raise

    def _loop(self, loop: Loop, cells: Cells, at: At, path: Path) -> None:
        """Run a child to its fixed point and hand its exports to the parent's cells."""
        run = self._changes if loop.changes else self._whole
        for shard, exports in enumerate(run(loop, cells, at, (*path, loop.at))):
            cells[shard] |= exports

    def _changes(self, loop: Loop, cells: Cells, at: At, path: Path) -> Cells:
        """A child on changes: imports arrive at iteration 0, and what leaves is the sum over all iterations."""
        left: Left = [{} for _ in cells]
        left_bytes = 0  # bytes of what has left
        inside = _imported(loop, cells)
        growth = Growth(loop, self.bounds, self.grown)
        iteration = 0 if _any_rows(inside) else self.pending.next(path, at, -1)
        while iteration is not None:
            growth.check(iteration)
            self._iterate(loop, inside, (*at, iteration), path)
            for shard, inner_cells in enumerate(inside):
                for export, node in loop.exports:
                    if node in inner_cells and inner_cells[node].shape[0]:
                        left[shard].setdefault(export, []).append(cell := inner_cells[node])
                        left_bytes += cell.nbytes if isinstance(cell, np.ndarray) else 0
            if left_bytes > ASIDE:
                left, left_bytes = self.place.put_aside(left), 0
            inside = _fed_back(loop, inside)
            fed = growth.feed(inside)
            iteration = iteration + 1 if fed else self.pending.next(path, at, iteration)
        return [{export: together(parts) for export, parts in shard.items()} for shard in left]

    def _iterate(self, loop: Loop, cells: Cells, at: At, path: Path) -> None:
        """All stages of a child at one time; what they append is seen from the next iteration on."""
        program = loop.program
        appends: list[tuple[int, dict[int, Any]]] = []
        for number, stage in enumerate(program.stages):
            exchange(program, stage, cells)
            due = [self.pending.due(path, at, shard, stage.nodes) for shard in range(len(cells))]
            for shard, ran in enumerate(self.place.run_at(program, path, number, at, cells, due)):
                self.pending.note(path, shard, ran, len(at))
                appends.append((shard, ran.appends))
                self.grown.add(ran.appends)
            for inner in program.loops[number]:
                self._loop(inner, cells, at, path)
        self.place.push(path, appends)

    def _whole(self, loop: Loop, cells: Cells, at: At, path: Path) -> Cells:
        """Run a child on whole Z-sets, anew until nothing changes; returns the exports of the last iteration."""
        entered = _imported(loop, cells)
        back: Cells = [{} for _ in cells]
        growth = Growth(loop, self.bounds, self.grown)
        iteration = 0
        while True:
            growth.check(iteration)
            inside = [shard | fed for shard, fed in zip(entered, back, strict=True)]
            self._iterate(loop, inside, (*at, iteration), path)
            self.place.fetch(loop.program, inside, loop.program.outputs)
            again = _fed_back(loop, inside)
            growth.feed(again, whole=True)
            if _same(again, back):
                return [{e: shard[node] for e, node in loop.exports if node in shard} for shard in inside]
            back, iteration = again, iteration + 1


def exchange(program: Program, stage: Stage, cells: Cells) -> None:
    """Hand every shard its incoming rows at the beginning of a stage; tasks have moved the cells held by tasks."""
    for move in stage.moves:
        node = program.circuit[move]
        assert isinstance(node, Apply) and isinstance(node.operator, Exchange)
        source = program.moved(move)
        moving = [c[source] for c in cells if source in c and isinstance(c[source], np.ndarray) and len(c[source])]
        parts = [node.operator.split(delta, program.shards) for delta in moving]
        for target, target_cells in enumerate(cells):
            arrived = [p[target] for p in parts if p[target].shape[0]]
            if move in target_cells and not isinstance(target_cells[move], np.ndarray):
                arrived.append(target_cells[move])
            target_cells[move] = together(arrived) if arrived else program.empty(move)


def _too_often(loop: Loop) -> WeightOverflow:
    error = WeightOverflow(
        f"loop {loop.name}: a row is derived more often than 64 bits count",
        hint="does the recursion go round in a circle? UNION in place of UNION ALL counts every row once",
    )
    setattr(error, NODE, loop.at)
    return error


def _imported(loop: Loop, cells: Cells) -> Cells:
    return [{inner: shard[outer] for inner, outer in loop.imports if outer in shard} for shard in cells]


def _fed_back(loop: Loop, cells: Cells) -> Cells:
    """The feedbacks' outputs in the next iteration; consolidated, so that rows that cancel do not go round for ever."""
    return [
        {feedback: consolidated(shard[node]) for feedback, node in loop.feedbacks if node in shard} for shard in cells
    ]


def consolidated(delta: Any) -> Any:
    """A cell with equal rows added up; tasks add up their own cells before feeding them back."""
    if not isinstance(delta, np.ndarray) or is_batch(delta):
        return delta
    return arrange(delta, np.arange(delta.shape[1] - 1))


def _any_rows(cells: Iterable[dict[int, Matrix]]) -> bool:
    return any(m.shape[0] for shard in cells for m in shard.values())


def _same(a: Cells, b: Cells) -> bool:
    """Whether two iterations fed back the same; a feedback without rows is as good as none."""
    return all(
        np.array_equal(x.get(node, _NOTHING), y.get(node, _NOTHING))
        or not (len(x.get(node, ())) or len(y.get(node, ())))
        for x, y in zip(a, b, strict=True)
        for node in x.keys() | y.keys()
    )


_NOTHING = np.empty((0, 0), np.int64)
