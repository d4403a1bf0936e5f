"""Epochs of a program over its traces: each is begun, run, and then published or abandoned.

- `begin` says what undoes the open epoch, from the rows that are encoded for it on.
- `run` computes all streams from those of the sources; what traces get is appended to the open epoch.
- `outputs` are the changes of the views, which are refused if a row would be there less often than not at all.
- `publish` lets the epoch count, and `abandon` forgets it: traces and dictionary are as they were.

Whatever fails before an epoch counts, in the rows, in a user's function or in a weight, leaves all as it was. An
exception may also come from outside, at any moment: of a signal handler, or for lack of memory. So every act says
beforehand, in one assignment, what undoes it, and when it counts, what completes it; that may be repeated. Whoever
comes next calls `recover`, and so does the act itself, whether it was cut short or not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from everview.circuit.bounds import LoopBounds
from everview.circuit.nodes import Sink
from everview.circuit.program import Program
from everview.codes.dictionary import Mark
from everview.doors import inside
from everview.errors import NegativeWeight
from everview.operators.operator import Context
from everview.process import FORKS, forks, require_same
from everview.runtimes.compiled import Compiled
from everview.runtimes.in_process import InProcess
from everview.runtimes.loops import Cells, Loops, StagePlace, exchange
from everview.runtimes.state import ProgramState
from everview.types.words import Matrix
from everview.zset.batch import Batch


def nothing(*_: object) -> None:
    """What is to be done when there is nothing to do."""


class Attempt:
    """A ``with`` block for one epoch: when an exception leaves the block, the act under way is undone or completed."""

    __slots__ = ("_epochs", "_mark")

    def __init__(self, epochs: Epochs, mark: Mark) -> None:
        self._epochs, self._mark = epochs, mark

    def __enter__(self) -> Mark:
        return self._mark

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._epochs.recover()
        self._epochs.ending = None


class Epochs:
    """The epochs of a program, of which one is open; when that has been published or abandoned, the next one is.

    >>> from everview.circuit import Circuit, incrementalize
    >>> from everview.codes import Dictionary
    >>> circuit = Circuit()
    >>> circuit.source("t", "n BIGINT NOT NULL").distinct().sink("v")
    >>> program, context = Program(incrementalize(circuit)), Context(Dictionary(), {})
    >>> epochs = Epochs(program, ProgramState(program, context), context)
    >>> def tick(n):
    ...     cells = [{program.circuit.sources["t"]: np.array([[n, 1]])}]
    ...     epochs.run(cells)
    ...     return list(epochs.outputs(cells)["v"])
    >>> with epochs.begin() as mark:
    ...     tick(7)
    ...     epochs.abandon(mark)
    [((7,), 1)]
    >>> with epochs.begin():
    ...     tick(7)
    ...     epochs.publish()
    [((7,), 1)]
    >>> with epochs.begin():
    ...     tick(7), epochs.epoch
    ([], 1)
    """

    def __init__(
        self, program: Program, state: ProgramState, context: Context, bounds: LoopBounds | None = None, epoch: int = 0
    ) -> None:
        self.bounds = LoopBounds.given() if bounds is None else bounds
        self.epoch = epoch  # how many have been published
        self._made = forks()
        self.ending: Callable[[], None] | None = None  # what undoes or completes the act under way
        self.go_on(program, state, context)

    @inside
    def go_on(self, program: Program, state: ProgramState, context: Context) -> None:
        """From now on the epochs are those of this program over this state. It may be repeated."""
        self.program, self.state, self.context = program, state, context
        self.dictionary = context.dictionary
        self._saved = context.dictionary.mark()  # entries before it are in the store, if there is one
        self._place = InProcess(program, state, context)
        nodes = enumerate(program.circuit)
        self._sinks = {node_id: node for node_id, node in nodes if isinstance(node, Sink) and not node.table}
        layouts = {sink.name: program.circuit.layout(sink.input) for sink in self._sinks.values()}
        self._in_order = {name for name, layout in layouts.items() if layout.sorted and not layout.by_value}
        self._unchanged = {
            sink.name: Batch(layouts[sink.name].schema, program.empty(sink.input), self.dictionary)
            for sink in self._sinks.values()
        }
        self._shown = [(node_id, sink.name, layouts[sink.name].schema) for node_id, sink in self._sinks.items()]
        (first, last), *others = program.pieces
        alone = not others and not program.stages[first].moves and not program.loops[last]
        self._only = (first, last) if alone else None  # the only piece of a program without loops
        self._straight: Compiled | None = None  # the program, once it has run as code of one piece

    # -- the open epoch

    @inside
    def begin(self, mark: Mark | None = None) -> Attempt:
        """Let whatever raises inside of a block leave traces and dictionary as they were, at a mark or now."""
        if self.ending is not None:
            self.recover()
        mark = self.dictionary.mark() if mark is None else mark
        self.ending = partial(self.abandon, mark)
        return Attempt(self, mark)

    @inside
    def begin_by(self, counts: Callable[[], bool]) -> None:
        """Begin an epoch decided elsewhere: `recover` publishes it in memory if ``counts()``, and else undoes it."""
        self.recover()
        self.ending = partial(self._decided, counts, self.dictionary.mark(), self.epoch + 1)

    def _decided(self, counts: Callable[[], bool], mark: Mark, epoch: int) -> None:
        if counts():
            self._published(epoch, nothing)
        else:
            self.abandon(mark)

    @inside
    def run(self, cells: Cells, place: StagePlace | None = None) -> None:
        """Fill the cells of all streams from those of the sources, here or where stages have their place."""
        if place is None and self._only is not None:
            self._place.run(*self._only, cells)
            self._straighten(*self._only)
            return
        program, place = self.program, self._place if place is None else place
        loops: Loops | None = None
        for first, last in program.pieces:
            stage = program.stages[first]
            if stage.moves:
                exchange(program, stage, cells)
            place.run(first, last, cells)
            for loop in program.loops[last]:
                if place is self._place and self._place.run_loop(loop, self.bounds, cells):
                    continue
                loops = Loops(program, place, self.bounds) if loops is None else loops
                loops.run(loop, cells)
        if place is not self._place:
            place.fetch(program, cells, [sink.input for sink in self._sinks.values()])

    @inside
    def turned(self, cells: Cells) -> dict[str, Batch] | None:
        """The change of every view by a few rows, straight from compiled code; None if `run` has to be called."""
        compiled = self._straight
        if compiled is None or not compiled.turn(cells[0]):
            return None
        outputs = self._unchanged.copy()
        for node_id, name, schema in self._shown:
            rows = compiled.change_of(node_id)
            if rows is not None:
                outputs[name] = Batch.in_order(schema, rows, self.dictionary)
        return outputs

    def _straighten(self, first: int, last: int) -> None:
        """Let the next epochs be `turned`, if this one ran as compiled code over the state's own traces."""
        compiled = self._place.compiled
        if self._straight is not compiled and compiled is not None:
            compiled.straighten(first, last)
        self._straight = compiled

    @inside
    def outputs(self, cells: Cells) -> dict[str, Batch]:
        """The change of every view."""
        compiled = self._place.compiled
        if compiled is None or compiled.suspect:
            return {sink.name: self._output(node_id, sink, cells) for node_id, sink in self._sinks.items()}
        outputs, streams = self._unchanged.copy(), cells[0]
        for node_id, name, schema in self._shown:
            rows = streams.get(node_id)
            if rows is not None:
                outputs[name] = Batch.in_order(schema, rows, self.dictionary)
        return outputs

    @inside
    def publish(self, done: Callable[..., None] = nothing, *given: Any) -> None:
        """Let the open epoch count, in memory; ``done`` is called then, and again if an exception cuts it short."""
        epoch = self.epoch + 1
        self.ending = partial(self._published, epoch, done, *given)
        if self._made != FORKS[0]:
            self.recover()  # which refuses a forked process
        self._published(epoch, done, *given)
        self.ending = None

    def _published(self, epoch: int, done: Callable[..., None], *given: Any) -> None:
        self.state.close()
        self.epoch = epoch
        done(*given)

    @inside
    def abandon(self, mark: Mark) -> None:
        """Forget the open epoch, and what the dictionary has learnt since a mark. It may be repeated."""
        self.state.abandon()
        if self._saved.entries > mark.entries:
            self._saved = mark  # what was saved of an epoch that is undone is saved again when it is needed
        self.dictionary.rollback(mark)

    # -- acts that an exception may cut short

    @inside
    def act(self, does: Callable[[], object], ends: Callable[[], None]) -> None:
        """Do something of which ``ends`` undoes or completes whatever has been done; that may be repeated."""
        self.ending = ends
        try:
            does()
        finally:
            self.recover()

    def recover(self) -> None:
        """Undo or complete the act under way, which an exception may have cut short. Does nothing if there is none."""
        ending = self.ending
        if ending is not None:
            require_same(self._made, "the state")
            ending()
            self.ending = None

    # -- inside

    def _output(self, node_id: int, sink: Sink, cells: Cells) -> Batch:
        """The change of a view, checked and consolidated, by compiled code or here."""
        unchanged, compiled = self._unchanged[sink.name], self._place.compiled
        if sink.positive and (compiled is None or compiled.suspect):
            if compiled is not None:
                compiled.fetch(cells[0], [sink.input])
            self._check_positive(sink, cells)
        if compiled is not None:
            rows = cells[0].get(node_id)
            return unchanged if rows is None else Batch(unchanged.schema, rows, self.dictionary)
        parts = [shard[sink.input] for shard in cells if sink.input in shard]
        if not parts:
            return unchanged
        if len(parts) > 1:
            return Batch.consolidated(unchanged.schema, np.concatenate(parts), self.dictionary)
        made = Batch if sink.name in self._in_order else Batch.consolidated
        return made(unchanged.schema, parts[0], self.dictionary)

    def _check_positive(self, sink: Sink, cells: Cells) -> None:
        for shard, streams in enumerate(cells):
            delta = streams.get(sink.input)
            if delta is None:
                continue
            after = self.state.before(shard, sink.input).plus(delta).weights(delta, delta.shape[1] - 1)
            if (after < 0).any():
                raise self._negative(sink, delta[np.flatnonzero(after < 0)[:1]], int(after.min()))

    def _negative(self, sink: Sink, row: Matrix, weight: int) -> NegativeWeight:
        (element,) = Batch.consolidated(self._unchanged[sink.name].schema, row, self.dictionary).elements()
        functions = self.program.circuit.user_functions(sink.input)
        suspects = f"function {' or '.join(functions)} may not be pure, or " if functions else ""
        check = "run with check_functions=True to call every function twice and compare"
        cause = f"{suspects}a row that was not there was deleted"
        return NegativeWeight(
            f"view {sink.name} would hold {element} with weight {weight}: {cause}",
            hint=check if functions else "check the deletes",
        )
