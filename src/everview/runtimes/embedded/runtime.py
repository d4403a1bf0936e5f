"""One process, any number of shards: ticks in, changes of the views out.

A tick encodes its rows, runs the program's stages over the shards, and only when everything has succeeded publishes the
epoch: in a state directory first, where there is one, then in memory. How an epoch is begun, undone and completed, also
when an exception comes from outside, is said in `everview.runtimes.epoch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Self

from everview.circuit.blame import blame_views
from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary, Mark
from everview.doors import doors, inside
from everview.errors import EverviewError, StoreError
from everview.operators.operator import Context
from everview.process import FORKS, require_same
from everview.runtimes.embedded.arriving import Arriving
from everview.runtimes.embedded.durable import NOTHING, Durable, Note, check_plan, restore
from everview.runtimes.embedded.hydrate import hydrate
from everview.runtimes.embedded.prepare import check_shards, prepared
from everview.runtimes.embedded.rehearse import rehearse
from everview.runtimes.embedded.view import CircuitView, tell
from everview.runtimes.epoch import Epochs, nothing
from everview.runtimes.loops import Cells, StagePlace
from everview.runtimes.state import ProgramState, Pushed
from everview.runtimes.tables import Table
from everview.traces.store import Policy, Store
from everview.traces.trace import Trace
from everview.types import unknown_name
from everview.zset.batch import Batch

Done = Callable[[dict[str, Batch]], None]  # told the change of every view, when a tick counts; perhaps once more
FirstRows = Callable[[Program, ProgramState], Cells]  # of the sources of a program that is about to be gone on with
Noted = Callable[[Program, ProgramState], Note]  # what a turn to a program and its state commits besides
NO_OFFSETS: Mapping[str, Any] = {}
KEEP = "the last one is always kept: give 1 or more"


@doors()
class Embedded(Epochs):
    """A circuit at work.

    >>> circuit = Circuit()
    >>> orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
    >>> orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
    >>> run = Embedded(circuit)
    >>> list(run.tick({"orders": [(("Ada", 5), 1), (("Bob", 7), 1)]})["totals"])
    [(('Bob', 7), 1), (('Ada', 5), 1)]
    >>> sorted(run.tick({"orders": [(("Ada", 1), 1)]})["totals"])
    [(('Ada', 5), -1), (('Ada', 6), 1)]
    """

    _lazy: ClassVar[bool] = False  # whether what a directory holds is read only when it is asked for

    def __init__(
        self,
        circuit: Circuit,
        path: str | Path | None = None,
        *,
        shards: int = 1,
        check_functions: bool = False,
        policy: Policy | None = None,
        as_is: bool = False,
        tables: Mapping[str, Table] | None = None,
        every: float = 0.0,
        adopt: bool = False,
        loops: LoopBounds | None = None,
    ) -> None:
        """Run a circuit in memory, or with its state in a directory, which is opened if it exists.

        A query circuit is made incremental first; with ``as_is``, it takes every tick for whole Z-sets instead.
        ``check_functions`` calls every user function twice and compares; ``policy`` says how soon a tick is on disk.
        Of the sources named in ``tables`` the contents are kept, and their rows may come as `Commands`.

        Ticks are committed one by one; or, with ``every`` so many seconds, several as one. ``adopt`` takes the state
        of another circuit for this one's, as `turn` does; then joins may also read each other's traces, so that which
        traces there are depends on all views. ``loops`` bounds what a recursion may do in one tick.
        """
        check_shards(shards)
        self._ended = False
        self._refusal: str | None = None
        self._check_functions, self._as_is, self._every, self._reuse = check_functions, as_is, every, adopt
        self.tables = dict(tables or {})
        self.views: dict[str, CircuitView] = {}
        self.judge: Callable[[Mapping[str, Batch]], None] | None = None  # raises for changes that must not be
        program = prepared(circuit, self.tables, shards, as_is=as_is, stored=path is not None, reuse=adopt)
        self.durable = (
            None if path is None else Durable.open(path, program, policy or Policy(), adopt=adopt, lazy=self._lazy)
        )
        context = Context(self._new_dictionary(), dict(program.circuit.functions), check_functions)
        self.offsets = dict(self.saved_offsets) if self.durable else dict[str, Any]()  # how far sources have been read
        self._unsaved: dict[str, Any] = {}  # of those, what is not in the store yet
        self._last_saved = monotonic()
        state = ProgramState(program, context)
        foreign = adopt and self.durable is not None and self._is_foreign(self.durable, program)
        if self.durable and not foreign:
            self.durable.restore(state, context.dictionary)
        super().__init__(program, state, context, loops, self.durable.epoch if self.durable else 0)
        if self.durable and foreign:
            try:
                self._adopt(self.durable, program, state, context)
            except BaseException:
                self.durable.close()
                raise

    def _new_dictionary(self) -> Dictionary:
        """The dictionary to begin with, before a stored state is restored."""
        return Dictionary()

    def _is_foreign(self, durable: Durable, program: Program) -> bool:
        """Whether a stored state is that of another program."""
        return not durable.is_of(program)

    def _adopt(self, durable: Durable, program: Program, state: ProgramState, context: Context) -> None:
        """Turn the stored state of another circuit into that of this one, as it is opened."""
        durable.require_tables(program)
        held = durable.held(program, state, self.dictionary)
        self._saved = self.dictionary.mark()
        self._turn(program, held, context, self.tables, {})

    @inside
    def go_on(self, program: Program, state: ProgramState, context: Context) -> None:
        """From now on this program over this state, with listeners where views keep their columns."""
        super().go_on(program, state, context)
        self.arriving = Arriving(program, self.tables)
        views = {
            sink.name: CircuitView(
                self, sink.name, program.circuit.layout(sink.input).schema, sink.input if sink.keep else None
            )
            for sink in self._sinks.values()
        }
        for name, view in self.views.items():
            if name in views and views[name].schema == view.schema:
                views[name].listeners = view.listeners
        self.views = views

    def _prepared(self, circuit: Circuit, tables: Mapping[str, Table]) -> Program:
        stored = self.durable is not None
        return prepared(circuit, tables, self.shards, as_is=self._as_is, stored=stored, reuse=self._reuse)

    def turn(
        self,
        circuit: Circuit,
        *,
        tables: Mapping[str, Table] | None = None,
        says: Mapping[str, Any] | None = None,
        keeping: tuple[Circuit, Mapping[str, Table]] | None = None,
        first: FirstRows | None = None,
        done: Callable[[], None] = nothing,
        note: Noted | None = None,
    ) -> None:
        """Go on with another circuit over the same tables, or more, or fewer.

        Traces that both have are kept as they are; those that are new are computed from what the tables hold, and
        from nothing else. In a state directory that is one commit; should it fail, all is as it was. Views keep their
        listeners if they keep their columns; of the turn itself those are not told. With
        ``keeping``, a circuit and its tables, only traces that this circuit has, too, are kept. ``first`` gives rows of
        new sources that come with it; ``note`` says what else goes into the commit. ``done`` is called as soon as it
        counts, and perhaps once more, if an exception cuts it short.
        """
        self._require_open()
        self.save()
        tables = self.tables if tables is None else dict(tables)
        program = self._prepared(circuit, tables)
        rehearse(program, self.state.held())
        held = self.state.held()
        if keeping is not None:
            kept = self._prepared(*keeping).fingerprint
            held = {name: traces for name, traces in held.items() if name in kept}
        context = Context(self.dictionary, dict(program.circuit.functions), self._check_functions)
        self._turn(program, held, context, tables, says or {}, first, done, note)

    def _turn(
        self,
        program: Program,
        held: dict[str, list[Trace]],
        context: Context,
        tables: Mapping[str, Table],
        says: Mapping[str, Any],
        first: FirstRows | None = None,
        done: Callable[[], None] = nothing,
        note: Noted | None = None,
    ) -> None:
        with self.begin() as mark:
            state = ProgramState(program, context)
            self._hydrate(state, held, context, None if first is None else first(program, state))
            state.adopt(held)
            pushed, epoch = state.pushed(), self.epoch + 1
            beside = NOTHING if note is None else note(program, state)

            def turned(ids: tuple[int, ...]) -> None:
                state.close(ids, pushed if self.durable else ())
                self.epoch = epoch
                self.tables = dict(tables)
                self.go_on(program, state, context)
                if self.durable:
                    self.durable.turned(program)
                done()

            def write() -> None:
                if self.durable:
                    self.durable.turn(epoch, program, pushed, self.dictionary, self._saved, says, held, beside)

            self.act(write, partial(self._decide, epoch, mark, len(pushed), turned, beside.added))

    def _hydrate(
        self, state: ProgramState, held: dict[str, list[Trace]], context: Context, first: Cells | None
    ) -> None:
        """Compute the traces of a state that are not held."""
        hydrate(state.program, state, held, context, self.bounds, first or ())

    @property
    def shards(self) -> int:
        return self.program.shards

    def view(self, name: str) -> CircuitView:
        self.require_here()
        if name not in self.views:
            raise unknown_name("view", name, self.views)
        return self.views[name]

    def table(self, name: str) -> CircuitView:
        """The contents of a source that is kept."""
        self.require_here()
        if name not in self.tables:
            raise unknown_name("table", name, self.tables)
        trace = self.program.table(name)
        assert trace is not None, "a table is kept"
        return CircuitView(self, name, self.program.circuit.layout(trace).schema, trace)

    def tick(self, changes: Mapping[str, Any] | None = None) -> dict[str, Batch]:
        """Apply weighted rows to the sources, all at once; returns the change of every view.

        Rows come as (row, weight) pairs, as a table or frame that may have a ``_weight`` column, or for a table as
        `Commands`.
        """
        self._require_open()
        self._save_in_time()
        with self.begin() as mark:
            outputs = self.compute(self.arriving.encode(changes or {}, self.state, self.dictionary))
            self._publish(mark, NO_OFFSETS, nothing)
        tell(self.views, outputs, self.epoch)
        return outputs

    @inside
    def advance(
        self, cells: Cells, mark: Mark, offsets: Mapping[str, Any] = NO_OFFSETS, done: Done = nothing
    ) -> dict[str, Batch]:
        """`tick` with rows that are encoded already, since a mark in the dictionary; listeners are told nothing.

        With the tick is kept how far sources have been read, by name: both count, or neither. ``done`` is called as
        soon as it counts, and perhaps once more, if an exception cuts it short. `judge`, if there is one, may refuse
        the tick by what it changes in views.
        """
        if self.ending is not None or self._refusal is not None or self._made != FORKS[0]:
            self._require_open()
        if self._every:
            self._save_in_time()
        self.ending = partial(self.abandon, mark)
        try:
            outputs = self.compute(cells)
            if self.judge is not None:
                self.judge(outputs)
            if self.durable is None and not offsets:
                self.publish(done, outputs)
            else:
                self._publish(mark, offsets, partial(done, outputs))
        except BaseException:
            self.recover()
            raise
        return outputs

    def encode(self, changes: Mapping[str, Any]) -> Cells:
        """The rows of a tick as words, on the shards where they belong."""
        return self.arriving.encode(changes, self.state, self.dictionary)

    @inside
    def compute(self, cells: Cells, place: StagePlace | None = None) -> dict[str, Batch]:
        """Run the open epoch and return the change of every view; an error names the views concerned."""
        outputs = self.turned(cells) if place is None else None
        if outputs is not None:
            return outputs
        try:
            self.run(cells, place)
        except EverviewError as error:
            blame_views(self.program.circuit, error)
            raise
        return self.outputs(cells)

    def _publish(self, mark: Mark, offsets: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Let the open epoch count: on disk first, where there is one, then in memory."""
        if self.durable is None:
            self.publish(partial(self._note, offsets, done) if offsets else done)
            return
        epoch = self.epoch + 1
        if self._every:
            self.state.absorb()
            self.ending = partial(self._leave, epoch, offsets, done)
            self.recover()
            return
        pushed = self.state.pushed()
        self.act(
            partial(self.durable.commit, epoch, pushed, self.dictionary, self._saved, Note(offsets=offsets)),
            partial(self._decide, epoch, mark, len(pushed), partial(self._close, epoch, pushed, offsets, done)),
        )
        self.durable.settle(self.state)

    def _decide(
        self, epoch: int, mark: Mark, pushed: int, counts: Callable[[tuple[int, ...]], None], first: int = 0
    ) -> None:
        """Complete an act, with the ids of the pushed batches; undo the act if the store lacks its epoch.

        The ids of the batches are the ``first`` and later ones of those that the store has given out.
        """
        if self.durable is None:
            counts(())
            return
        self.durable.recover()
        if self.durable.epoch < epoch:
            self.abandon(mark)
        else:
            counts(self.durable.store.added[first : first + pushed])

    def _leave(self, epoch: int, offsets: Mapping[str, Any], done: Callable[[], None]) -> None:
        """The open epoch counts, and waits to be saved."""
        self.state.leave()
        self._unsaved = {**self._unsaved, **offsets}
        self.epoch = epoch
        self._note(offsets, done)

    def _close(
        self,
        epoch: int,
        pushed: list[Pushed],
        offsets: Mapping[str, Any],
        done: Callable[[], None],
        ids: tuple[int, ...],
    ) -> None:
        """The open epoch counts, and the store has it."""
        self.state.close(ids, pushed)
        self._saved = self.dictionary.mark()
        self.epoch = epoch
        self._note(offsets, done)

    def _note(self, offsets: Mapping[str, Any], done: Callable[[], None]) -> None:
        """The epoch counts: note how far sources have been read with it."""
        if offsets:
            self.offsets = {**self.offsets, **offsets}
        done()

    def save(self) -> None:
        """Commit what ticks have left to be committed later."""
        self.recover()
        # A store that is ahead has what this process has not taken in.
        if self.durable is None or self.durable.epoch >= self.epoch or self._refusal is not None:
            return
        waiting, epoch = self.state.waiting(), self.epoch
        self.act(
            partial(self.durable.commit, epoch, waiting, self.dictionary, self._saved, Note(offsets=self._unsaved)),
            partial(self._saved_until, epoch, waiting),
        )
        self.durable.settle(self.state)

    def _saved_until(self, epoch: int, waiting: list[Pushed]) -> None:
        assert self.durable is not None, "something is saved"
        self.durable.recover()
        if self.durable.epoch < epoch:
            return
        self.state.saved(self.durable.store.added[: len(waiting)], waiting)
        self._unsaved = {}
        self._saved, self._last_saved = self.dictionary.mark(), monotonic()

    def _save_in_time(self) -> None:
        # Before a tick, not after: should it fail, the tick has not been applied.
        if self._every and monotonic() - self._last_saved >= self._every:
            self.save()

    def vacuum(self, keep_epochs: int = 1) -> None:
        """Let go of dictionary entries that no row refers to, and of stored epochs before the last few."""
        self._require_open()
        if keep_epochs < 1:
            raise EverviewError(f"vacuum cannot keep {keep_epochs} epochs", hint=KEEP)
        self.save()
        if self.durable:
            self.durable.tidy(self.state)  # first: then what is stored has no rows that have cancelled here
        self.act(lambda: self.dictionary.sweep(self.state.references()), self._swept)
        if self.durable:
            self.durable.vacuum(self.durable.renewed(self.dictionary), keep_epochs)

    def _swept(self) -> None:
        self._saved = self.dictionary.mark()  # all that it holds is saved, and marks from before are void

    def close(self) -> None:
        """Let the next writer have the state directory."""
        require_same(self._made, "the state")
        if self.durable is None or self._ended:
            return
        try:
            if self._refusal is None:
                self.save()
        finally:
            self._refusal = "it is closed"
            self.durable.close()
            self._ended = True

    @classmethod
    def attach(
        cls,
        circuit: Circuit,
        path: str | Path,
        epoch: int | None = None,
        *,
        shards: int = 1,
        as_is: bool = False,
        tables: Mapping[str, Table] | None = None,
        adopt: bool = False,
    ) -> Self:
        """The views as they were at an epoch, the last by default; to read only. A writer may be at work.

        ``adopt`` says whether the writer was opened with it.
        """
        run = cls(circuit, shards=shards, as_is=as_is, tables=tables, adopt=adopt)
        with Store.attach(path, epoch) as reader:
            check_plan(reader, run.program)
            restore(reader, run.state, run.dictionary)
            run.epoch = reader.epoch
        run._refusal = "it is attached to read only"
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def require_here(self) -> None:
        """Refuse a process that was forked from the one that opened the state."""
        require_same(self._made, "the state")

    def _require_open(self) -> None:
        require_same(self._made, "the state")
        self.recover()
        if self._refusal is not None:
            raise StoreError(f"the state cannot change: {self._refusal}", hint="open it with Embedded(circuit, path)")

    @property
    def saved_offsets(self) -> Mapping[str, Any]:
        """The offsets of sources that a crash would leave."""
        return self.offsets if self.durable is None else self.durable.store.manifest.offsets
