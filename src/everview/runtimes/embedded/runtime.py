"""One process, any number of shards: ticks in, changes of the views out.

A tick encodes its rows, runs the program's stages over the shards, and only when everything has succeeded closes the
epoch. Whatever fails before that, in the rows, in a user's function or in a weight, leaves all as it was.

An exception may also come from outside, at any moment: of a signal handler, or for lack of memory. So every act says
beforehand, in one assignment, what undoes it, and when it counts, what completes it; that may be repeated. Whoever
comes next calls `recover`, and so does the act itself, whether it was cut short or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from everview.circuit.blame import blame_views
from everview.circuit.bounds import LoopBounds
from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import incrementalize
from everview.circuit.nodes import Sink
from everview.circuit.program import Program
from everview.codes import encode_pairs
from everview.codes.dictionary import Dictionary, Mark
from everview.doors import doors, inside
from everview.errors import EverviewError, FunctionError, ListenerError, NegativeWeight, StoreError, shown
from everview.operators.exchange import Exchange
from everview.operators.operator import Context, Layout
from everview.process import forks, require_same
from everview.runtimes.embedded.durable import Durable, Note, check_plan, restore
from everview.runtimes.embedded.hydrate import hydrate
from everview.runtimes.embedded.rehearse import rehearse
from everview.runtimes.embedded.state import Pushed, State
from everview.runtimes.embedded.tick import Cells, Here, Tick
from everview.runtimes.embedded.view import View
from everview.runtimes.tables import Commands, Table, resolvers
from everview.traces.store import Policy, Store
from everview.traces.trace import Trace
from everview.types import unknown_name
from everview.zset.batch import Batch

Matrix = NDArray[np.int64]
Done = Callable[[dict[str, Batch]], None]  # told the change of every view, when a tick counts; perhaps once more
FirstRows = Callable[[Program, State], Cells]  # of the sources of a program that is about to be gone on with
NO_OFFSETS: Mapping[str, Any] = {}


def _nothing(*_: object) -> None:
    """What is to be done when there is nothing to do."""


MOST_SHARDS: Final = 4096


def check_shards(shards: int) -> None:
    """Refuse numbers of shards that cannot be."""
    if not 1 <= shards <= MOST_SHARDS:
        raise EverviewError(
            f"there are 1 to {MOST_SHARDS:,} shards, not {shown(shards)}", hint="leave shards out for one"
        )


@doors()
class Embedded:
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
        of another circuit for this one's, as `turn` does. ``loops`` bounds what a recursion may do in one tick.
        """
        self.bounds = LoopBounds.given() if loops is None else loops
        check_shards(shards)
        self.dictionary = Dictionary()
        self._made = forks()
        self._ended = False
        self._step: Callable[[], None] | None = None  # what undoes or completes the act under way
        self._refusal: str | None = None
        self._check_functions, self._as_is, self._every = check_functions, as_is, every
        self.tables = dict(tables or {})
        program = self._prepared(circuit, self.tables, shards, stored=path is not None)
        context = self._context(program.circuit)
        self.durable = None if path is None else Durable.open(path, program, policy or Policy(), adopt=adopt)
        self.epoch = self.durable.epoch if self.durable else 0
        self.offsets = dict(self.saved_offsets) if self.durable else dict[str, Any]()  # how far sources have been read
        self._unsaved: dict[str, Any] = {}  # of those, what is not in the store yet
        self._last_saved = monotonic()
        state = State(program, context)
        foreign = adopt and self.durable is not None and not self.durable.is_of(program)
        if self.durable and not foreign:
            self.durable.restore(state, self.dictionary)
        self._go_on(program, state, context)
        if self.durable and foreign:
            try:
                held = self.durable.held(program, state, self.dictionary)
                self._saved = self.dictionary.mark()
                self._turn(program, held, context, self.tables, {})
            except BaseException:
                self.durable.close()
                raise

    def _prepared(self, circuit: Circuit, tables: Mapping[str, Table], shards: int, *, stored: bool) -> Program:
        as_is = circuit.incremental or self._as_is
        if as_is:
            circuit.check()  # else it is when it is made incremental
        if stored:
            _require_names(circuit)
        self._require_sources(circuit, tables)
        incremental = circuit if as_is else incrementalize(circuit)
        return Program(incremental, shards, {name: table.key for name, table in tables.items()})

    def _context(self, circuit: Circuit) -> Context:
        return Context(self.dictionary, dict(circuit.functions), self._check_functions)

    def _go_on(self, program: Program, state: State, context: Context) -> None:
        """From now on this program over this state."""
        before = getattr(self, "views", dict[str, View]())
        self.program, self.state, self.context = program, state, context
        self.resolvers = resolvers(program, self.tables)
        self._saved = self.dictionary.mark()  # entries before it are in the store
        built = program.circuit
        self._sources = {name: (at, built.layout(at).schema) for name, at in built.sources.items()}
        self._arrivals = {
            name: Exchange(Layout(schema), program.arrival(name)) for name, (_, schema) in self._sources.items()
        }
        self._sinks = [node for node in built if isinstance(node, Sink) and not node.table]
        self.views = {
            node.name: View(self, node.name, built.layout(node.input).schema, node.input if node.keep else None)
            for node in self._sinks
        }
        for name, view in before.items():
            if name in self.views and self.views[name].schema == view.schema:
                self.views[name].listeners = view.listeners
        self._unchanged = {
            node.name: Batch(self.views[node.name].schema, program.empty(node.input), self.dictionary)
            for node in self._sinks
        }

    def turn(
        self,
        circuit: Circuit,
        *,
        tables: Mapping[str, Table] | None = None,
        says: Mapping[str, Any] | None = None,
        keeping: tuple[Circuit, Mapping[str, Table]] | None = None,
        first: FirstRows | None = None,
        done: Callable[[], None] = _nothing,
    ) -> None:
        """Go on with another circuit over the same tables, or more, or fewer.

        Traces that both have are kept as they are; those that are new are computed from what the tables hold, and
        from nothing else. In a state directory that is one commit; should it fail, all is as it was. Views keep their
        listeners if they keep their columns; of the turn itself those are not told. With
        ``keeping``, a circuit and its tables, only traces that this circuit has, too, are kept. ``first`` gives rows of
        new sources that come with it. ``done`` is called as soon as it counts, and perhaps once more, if an exception
        cuts it short.
        """
        self._require_open()
        self.save()
        tables = self.tables if tables is None else dict(tables)
        program = self._prepared(circuit, tables, self.shards, stored=self.durable is not None)
        rehearse(program, self.state.held())
        held = self.state.held()
        if keeping is not None:
            kept = self._prepared(*keeping, self.shards, stored=self.durable is not None).fingerprint
            held = {name: traces for name, traces in held.items() if name in kept}
        self._turn(program, held, self._context(program.circuit), tables, says or {}, first, done)

    def _turn(
        self,
        program: Program,
        held: dict[str, list[Trace]],
        context: Context,
        tables: Mapping[str, Table],
        says: Mapping[str, Any],
        first: FirstRows | None = None,
        done: Callable[[], None] = _nothing,
    ) -> None:
        with self.attempt() as mark:
            state = State(program, context)
            hydrate(program, state, held, context, self.bounds, () if first is None else first(program, state))
            state.adopt(held)
            pushed, epoch = state.pushed(), self.epoch + 1

            def turned(ids: tuple[int, ...]) -> None:
                state.close(ids, pushed if self.durable else ())
                self.epoch = epoch
                self.tables = dict(tables)
                self._go_on(program, state, context)
                if self.durable:
                    self.durable.turned(program)
                done()

            self._step = partial(self._decide, epoch, mark, len(pushed), turned)
            if self.durable:
                self.durable.turn(epoch, program, pushed, self.dictionary, self._saved, says, held)
            self.recover()

    @property
    def shards(self) -> int:
        return self.program.shards

    def view(self, name: str) -> View:
        self.require_here()
        if name not in self.views:
            raise unknown_name("view", name, self.views)
        return self.views[name]

    def table(self, name: str) -> View:
        """What a source holds, if that is kept."""
        self.require_here()
        if name not in self.tables:
            raise unknown_name("table", name, self.tables)
        trace = self.program.table(name)
        assert trace is not None, "a table is kept"
        return View(self, name, self.program.circuit.layout(trace).schema, trace)

    def tick(self, changes: Mapping[str, Any] | None = None) -> dict[str, Batch]:
        """Apply weighted rows to the sources, all at once; returns the change of every view.

        Rows come as (row, weight) pairs, as a table or frame that may have a ``_weight`` column, or for a table as
        `Commands`.
        """
        self._require_open()
        self._save_in_time()
        with self.attempt() as mark:
            outputs = self._advance(self.encode(changes or {}), mark)
        self._notify(outputs)
        return outputs

    @inside
    def advance(
        self, cells: Cells, mark: Mark, offsets: Mapping[str, Any] | None = None, done: Done = _nothing
    ) -> dict[str, Batch]:
        """`tick` with rows that are encoded already, since a mark in the dictionary; listeners are told nothing.

        With the tick is kept how far sources have been read, by name: both count, or neither. ``done`` is called as
        soon as it counts, and perhaps once more, if an exception cuts it short.
        """
        self._require_open()
        self._save_in_time()
        self._step = partial(self.rollback, mark)
        try:
            return self._advance(cells, mark, offsets or {}, done)
        except BaseException:
            self.recover()
            raise

    def _advance(
        self, cells: Cells, mark: Mark, offsets: Mapping[str, Any] = NO_OFFSETS, done: Done = _nothing
    ) -> dict[str, Batch]:
        try:
            Tick(self.program, Here(self.program, self.state, self.context), self.bounds).run(cells)
        except EverviewError as error:
            blame_views(self.program.circuit, error)
            raise
        outputs = self.outputs(cells)
        self._commit(mark, offsets, partial(done, outputs))
        return outputs

    def _commit(self, mark: Mark, offsets: Mapping[str, Any], done: Callable[[], None]) -> None:
        """End the epoch: on disk first, where there is one, then in memory."""
        epoch = self.epoch + 1
        if self.durable is None or self._every:
            self._step = partial(self._close, epoch, offsets, done)
            self.recover()
            return
        pushed = self.state.pushed()
        self._step = partial(
            self._decide, epoch, mark, len(pushed), partial(self._closed, epoch, pushed, offsets, done)
        )
        self.durable.commit(epoch, pushed, self.dictionary, self._saved, Note(offsets=offsets))
        self.recover()
        self.durable.settle(self.state)

    def _decide(self, epoch: int, mark: Mark, pushed: int, counts: Callable[[tuple[int, ...]], None]) -> None:
        """Complete an act, by the ids of what was pushed; undo it if there is a store that has not its epoch."""
        if self.durable is None:
            counts(())
            return
        self.durable.recover()
        if self.durable.epoch < epoch:
            self.rollback(mark)
        else:
            counts(self.durable.store.added[:pushed])

    def _close(self, epoch: int, offsets: Mapping[str, Any], done: Callable[[], None]) -> None:
        """The open epoch counts, in memory; if there is a store, it waits to be saved."""
        if self.durable is None:
            self.state.close()
        else:
            self.state.leave()
            self._unsaved = {**self._unsaved, **offsets}
        self._count(epoch, offsets, done)

    def _closed(
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
        self._count(epoch, offsets, done)

    def _count(self, epoch: int, offsets: Mapping[str, Any], done: Callable[[], None]) -> None:
        if offsets:
            self.offsets = {**self.offsets, **offsets}
        self.epoch = epoch
        done()

    def recover(self) -> None:
        """Undo or complete the act under way, which an exception may have cut short. Does nothing if there is none."""
        step = self._step
        if step is not None:
            require_same(self._made, "the state")
            step()
            self._step = None

    @inside
    def begin_by(self, counts: Callable[[], bool]) -> None:
        """Begin an act in memory on which another decides: `recover` completes it if it ``counts``, else undoes it."""
        self.recover()
        self._step = partial(self._decided, counts, self.dictionary.mark(), self.epoch + 1)

    def _decided(self, counts: Callable[[], bool], mark: Mark, epoch: int) -> None:
        if counts():
            self._close(epoch, NO_OFFSETS, _nothing)
        else:
            self.rollback(mark)

    @inside
    def rollback(self, mark: Mark) -> None:
        """Forget the open epoch, and what the dictionary has learnt since a mark."""
        self.state.abandon()
        if self._saved.entries > mark.entries:
            self._saved = mark  # what was saved of an epoch that is undone is saved again when it is needed
        self.dictionary.rollback(mark)

    def save(self) -> None:
        """Commit what ticks have left to be committed later."""
        self.recover()
        # A store that is ahead has what this process has not taken in.
        if self.durable is None or self.durable.epoch >= self.epoch or self._refusal is not None:
            return
        waiting, epoch = self.state.waiting(), self.epoch
        self._step = partial(self._saved_until, epoch, waiting)
        try:
            self.durable.commit(epoch, waiting, self.dictionary, self._saved, Note(offsets=self._unsaved))
        finally:
            self.recover()
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

    @contextmanager
    def attempt(self, mark: Mark | None = None) -> Generator[Mark]:
        """Within this, whatever raises leaves the traces and the dictionary as they were, at a mark or now."""
        self.recover()
        mark = self.dictionary.mark() if mark is None else mark
        self._step = partial(self.rollback, mark)
        try:
            yield mark
        except BaseException:
            self.recover()
            raise
        self._step = None

    def vacuum(self, keep_epochs: int = 1) -> None:
        """Let go of dictionary entries that no row refers to, and of stored epochs before the last few."""
        self._require_open()
        if keep_epochs < 1:
            raise EverviewError(
                f"vacuum cannot keep {keep_epochs} epochs", hint="the last one is always kept: give 1 or more"
            )
        self.save()
        self._step = self._swept
        try:
            self.dictionary.sweep(self.state.references())
        finally:
            self.recover()
        if self.durable:
            self.durable.vacuum(self.state, self.dictionary, keep_epochs)

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
    ) -> Self:
        """The views as they were at an epoch, the last by default; to read only. A writer may be at work."""
        run = cls(circuit, shards=shards, as_is=as_is, tables=tables)
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
        self.require_here()
        self.recover()
        if self._refusal is not None:
            raise StoreError(f"the state cannot change: {self._refusal}", hint="open it with Embedded(circuit, path)")

    @property
    def saved_offsets(self) -> Mapping[str, Any]:
        """How far sources have been read by what would be there after a crash."""
        return self.offsets if self.durable is None else self.durable.store.manifest.offsets

    def encode(self, changes: Mapping[str, Any]) -> Cells:
        """The rows of a tick as words, on the shards where they belong."""
        cells: Cells = [{} for _ in range(self.shards)]
        for name, rows in changes.items():
            if name not in self._sources:
                raise unknown_name("source", name, self._sources)
            at, schema = self._sources[name]
            if isinstance(rows, Commands):
                self._resolve(name, rows, cells)
                continue
            delta = encode_pairs(schema, rows, self.dictionary)
            for shard, part in enumerate(self._arrivals[name].spread(delta, self.shards)):
                cells[shard][at] = part
        return cells

    def _resolve(self, name: str, commands: Commands, cells: Cells) -> None:
        if name not in self.tables:
            raise unknown_name("table", name, self.tables)
        at, schema = self._sources[name]
        resolver, rows = self.resolvers[at], commands.encode(schema, self.dictionary)
        for shard, part in enumerate(self._arrivals[name].spread(rows, self.shards)):
            contents = self.state.before(shard, resolver.trace)
            cells[shard][at] = resolver.change(part, contents, whole=commands.whole)

    @inside
    def outputs(self, cells: Cells) -> dict[str, Batch]:
        """The change of every view."""
        return {node.name: self._output(node, cells) for node in self._sinks}

    def _output(self, sink: Sink, cells: Cells) -> Batch:
        parts = [shard[sink.input] for shard in cells if sink.input in shard]
        if sink.positive:
            self._check_positive(sink, cells)
        if not parts:
            return self._unchanged[sink.name]
        delta = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return Batch.consolidated(self.views[sink.name].schema, delta, self.dictionary)

    def _check_positive(self, sink: Sink, cells: Cells) -> None:
        for shard, found in enumerate(cells):
            delta = found.get(sink.input)
            if delta is None:
                continue
            after = self.state.before(shard, sink.input).plus(delta).weights(delta, delta.shape[1] - 1)
            if (after < 0).any():
                self._negative(sink, delta[np.flatnonzero(after < 0)[:1]], int(after.min()))

    def _negative(self, sink: Sink, row: Matrix, weight: int) -> None:
        schema = self.views[sink.name].schema
        (element,) = Batch.consolidated(schema, row, self.dictionary).elements()
        functions = self.program.circuit.user_functions(sink.input)
        suspects = f"function {' or '.join(functions)} may not be pure, or " if functions else ""
        check = "run with check_functions=True to call every function twice and compare"
        cause = f"{suspects}a row that was not there was deleted"
        raise NegativeWeight(
            f"view {sink.name} would hold {element} with weight {weight}: {cause}",
            hint=check if functions else "check the deletes",
        )

    def _notify(self, outputs: Mapping[str, Batch]) -> None:
        """Tell every listener, whatever the others do."""
        raised: list[tuple[str, Exception]] = []
        for name, changes in outputs.items():
            for listener in tuple(self.views[name].listeners) if len(changes) else ():
                try:
                    listener(changes, self.epoch)
                except Exception as error:  # noqa: BLE001, whatever it is, the others are told
                    raised.append((name, error))
        if raised:
            name, error = raised[0]
            raise ListenerError(
                f"a listener of view {name} raised {type(error).__name__}: {error}",
                hint=f"epoch {self.epoch} has been applied, and all listeners were told",
            ) from error

    @staticmethod
    def _require_sources(circuit: Circuit, tables: Mapping[str, Table]) -> None:
        for name in tables:
            if name not in circuit.sources:
                raise unknown_name("source", name, circuit.sources)


def _require_names(circuit: Circuit) -> None:
    """A stored state knows functions by name: all lambdas have the same, and others that had to be numbered, too."""
    nameless = [name for name in circuit.functions if "<lambda>" in name or re.search(r"~\d+$", name)]
    if nameless:
        raise FunctionError(
            f"a state directory cannot tell {', '.join(nameless)} from other functions",
            hint="define it with def, or wrap it: Function('name', function, 'columns')",
        )
