"""A circuit ready to run: its nodes in order, cut into stages where rows move between shards.

A stage is what one shard does without hearing from the others; it is the unit that a runtime places: a loop
over shards in one process, a task on a cluster. `Program.run` is pure, like the steps it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Feedback, Read, Sink, Source, inputs_of, reads_of
from everview.circuit.place import keep_contents, place_exchanges
from everview.errors import WeightOverflow
from everview.kernels.linear import negated
from everview.kernels.sort import arrange
from everview.operators.arrange import Arrange
from everview.operators.exchange import Exchange
from everview.operators.operator import Context, Layout, Matrix, Moment, nothing
from everview.traces.view import View

Before = Callable[[int], View]  # the trace of a node as it was before the tick


@dataclass(frozen=True, slots=True)
class Stage:
    """Nodes that run together on a shard, and the streams that cross from earlier stages."""

    nodes: tuple[int, ...]
    moves: tuple[int, ...]  # Exchange nodes whose rows arrive here from all shards
    stays: tuple[int, ...]  # earlier streams of the same shard that are still needed


@dataclass(slots=True)
class Ran:
    """What a stage gave on one shard: every stream's cell, and what is to be appended to which trace."""

    cells: dict[int, Matrix] = field(default_factory=dict[int, Matrix])
    appends: dict[int, Matrix] = field(default_factory=dict[int, Matrix])


class Program:
    """The stages of a circuit for a number of shards."""

    def __init__(self, circuit: Circuit, shards: int = 1) -> None:
        circuit = keep_contents(circuit)
        self.circuit = place_exchanges(circuit) if shards > 1 else circuit
        self.shards = shards
        self.order = self.circuit.order()
        self.traces = {at: self._trace_layout(at) for at in self.order if self._owns_trace(at)}
        self.names = {at: self.circuit.fingerprint(at) for at in self.traces}
        self.stages = self._cut()
        self._empty = {
            at: nothing(self.circuit.layout(at).width) for at in self.order if not isinstance(self.circuit[at], Sink)
        }

    @property
    def fingerprint(self) -> dict[str, str]:
        """The name of each trace, and what it holds."""
        return {name: str(self.traces[at].schema) for at, name in self.names.items()}

    def contents(self, sink: str) -> int | None:
        """The node whose trace holds what a sink shows."""
        node = self.circuit[self.circuit.sinks[sink]]
        assert isinstance(node, Sink)
        return node.input if node.keep else None

    def empty(self, at: int) -> Matrix:
        return self._empty[at]

    def run(self, stage: Stage, cells: dict[int, Matrix], before: Before, context: Context) -> Ran:
        """One stage of one shard: ``cells`` holds what has arrived, and gets what is computed."""
        ran = Ran(cells)
        for at in stage.nodes:
            node = self.circuit[at]
            match node:
                case Apply():
                    self._apply(at, node, ran, before, context)
                case Feedback():
                    cells[at] = before(at).consolidated()
                case Source():
                    cells.setdefault(at, self._empty[at])
                case Sink():
                    pass
        return ran

    def close(self, cells: Mapping[int, Matrix], before: Before) -> dict[int, Matrix]:
        """What the feedbacks of a shard remember for the next tick: this input in place of the last one."""
        appends: dict[int, Matrix] = {}
        for at, node in enumerate(self.circuit):
            if isinstance(node, Feedback):
                assert node.input is not None
                forgotten = negated(before(at).consolidated())
                change = np.concatenate([forgotten, cells.get(node.input, self._empty[at])])
                appends[at] = arrange(change, np.arange(change.shape[1] - 1))
        return appends

    def _apply(self, at: int, node: Apply, ran: Ran, before: Before, context: Context) -> None:
        cells = ran.cells
        deltas = [cells.get(i, self._empty[i]) for i in node.inputs if i is not None]
        if deltas and not any(d.shape[0] for d in deltas):
            return
        views = [self._view(read, cells, before) for read in node.reads]
        try:
            step = node.operator.step(deltas, views, context)
        except OverflowError as error:
            where = self.circuit.label(at)
            raise WeightOverflow(f"{error}, at {where}", hint="the tick was not applied") from None
        cells[at] = step.out
        if step.append is not None:
            ran.appends[at] = step.append

    def _view(self, read: Read, cells: Mapping[int, Matrix], before: Before) -> View:
        view = before(read.node)
        if read.moment is Moment.BEFORE or read.node not in cells:
            return view
        return view.plus(cells[read.node])

    def _owns_trace(self, at: int) -> bool:
        node = self.circuit[at]
        return isinstance(node, Feedback) or (isinstance(node, Apply) and isinstance(node.operator, Arrange))

    def _trace_layout(self, at: int) -> Layout:
        return self.circuit.layout(at)

    def _cut(self) -> tuple[Stage, ...]:
        level: dict[int, int] = {}
        for at in self.order:
            node = self.circuit[at]
            needed = [level[i] for i in self._same_tick(at)]
            moves = isinstance(node, Apply) and isinstance(node.operator, Exchange)
            level[at] = max(needed, default=0) + moves
        return tuple(self._stage(n, level) for n in range(max(level.values(), default=0) + 1))

    def _stage(self, number: int, level: dict[int, int]) -> Stage:
        nodes = tuple(at for at in self.order if level[at] == number)
        moves = tuple(at for at in nodes if self._is_exchange(at))
        nodes = tuple(at for at in nodes if at not in moves)
        needed = {i for at in nodes for i in self._same_tick(at)}
        return Stage(nodes, moves, tuple(sorted(i for i in needed if level[i] < number)))

    def _is_exchange(self, at: int) -> bool:
        node = self.circuit[at]
        return isinstance(node, Apply) and isinstance(node.operator, Exchange)

    def _same_tick(self, at: int) -> list[int]:
        """The streams that a node needs of this tick."""
        node = self.circuit[at]
        if isinstance(node, Feedback):
            return []
        after = [r.node for r in reads_of(node) if r.moment is Moment.AFTER]
        return [i for i in inputs_of(node) if i is not None] + after

