"""A circuit whose definitions change: its stored state is turned to the new ones, in one commit.

With the commit go the changes that the turn makes to views with sinks: a new view comes into being whole, a view that
is defined otherwise goes from what it held to what it holds now. So the turn is an epoch to sinks as any other. Large
changes go by reference to the epochs that they lie between, and no process puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from everview.circuit.circuit import Circuit
from everview.circuit.program import Program
from everview.codes.backed import BackedDictionary
from everview.codes.dictionary import Dictionary, Mark
from everview.doors import inside
from everview.errors import EverviewError
from everview.operators.digests import digest_of, is_changed
from everview.operators.operator import Context
from everview.runtimes.embedded.arriving import Arriving
from everview.runtimes.embedded.durable import DIGESTS, Durable, Note
from everview.runtimes.embedded.prepare import prepared
from everview.runtimes.embedded.rehearse import rehearse
from everview.runtimes.embedded.runtime import KEEP, Embedded, FirstRows
from everview.runtimes.embedded.stored_entries import StoredEntries
from everview.runtimes.embedded.turning import TurnPlan
from everview.runtimes.loops import Cells
from everview.runtimes.spark.stored import dictionary_for, shards, views
from everview.runtimes.spark.stored_change import Change, StoredChange
from everview.runtimes.spark.sweeping import Sweep
from everview.runtimes.spark.turned_views import TurnedViews
from everview.runtimes.state import ProgramState
from everview.runtimes.tables import Table
from everview.traces.store import Manifest, Replace, State, Store
from everview.traces.trace import Trace
from everview.types import Schema
from everview.types.words import Matrix
from everview.zset.batch import Batch

StoredState: TypeAlias = Store  # a state that is about to be turned
Fed = Callable[[Mapping[str, Any]], Collection[str]]  # the sources that were read, as the offsets of a state say
Ready = Callable[[TurnPlan, Store], None]  # called before a turn, with the state as it is; it may refuse
MERGED_HERE = 1 << 20  # rows of a batch that the driver merges with others; tasks merge larger ones
CACHED = 64 << 20  # bytes of values, after which the driver forgets them, and reads again what it needs
Elsewhere = Callable[["EvolvingRun", TurnPlan, Context], "list[Replace] | None"]  # computes new traces, if it can
Swept = Callable[[Sweep], Iterable[Replace]]  # finds the edits of a sweep, here or by tasks
RENAMED = "renamed"  # under which a state says which views had another name before


def nothing_fed(_: Mapping[str, Any]) -> Collection[str]:
    """No source was read."""
    return ()


def only_here(_: EvolvingRun, __: TurnPlan, ___: Context) -> None:
    """No other process computes new traces."""


def always_ready(_: TurnPlan, __: Store) -> None:
    """Nothing has to be done before a turn."""


class EvolvingRun(Embedded):
    """A circuit at work on a state that was perhaps another circuit's: opening turns it to this one's."""

    _lazy: ClassVar[bool] = True

    def __init__(
        self,
        circuit: Circuit,
        path: str,
        *,
        delivered: Collection[str] = (),
        fed: Fed = nothing_fed,
        ready: Ready = always_ready,
        elsewhere: Elsewhere = only_here,
        **options: Any,
    ) -> None:
        self.delivered, self._fed, self._ready, self._elsewhere = delivered, fed, ready, elsewhere
        self._turning: TurnPlan | None = None
        self._written: list[Replace] = []  # what tasks have written for the turn under way
        self.entries = StoredEntries(lambda: self._stored)
        if circuit.functions and Store.exists(path):
            with Store.attach(path) as stored:
                revise(circuit, stored.meta)
        super().__init__(circuit, path, adopt=True, **options)

    def _new_dictionary(self) -> Dictionary:
        """A dictionary that reads entries from the store on demand."""
        dictionary = BackedDictionary(self.entries)
        self.entries.load_small(dictionary)
        return dictionary

    def planned(self, circuit: Circuit, tables: Mapping[str, Table]) -> TurnPlan:
        """The plan for going on with a circuit."""
        revise(circuit, self._stored.meta)
        return self._plan(self._stored, self._prepared(circuit, tables), tables)

    def redefine(self, circuit: Circuit, tables: Mapping[str, Table], delivered: Collection[str]) -> None:
        """Go on with another circuit, whole or not at all; a circuit of the same meaning makes no epoch."""
        self._require_open()
        plan = self.planned(circuit, tables)
        if self.epoch and not plan.changes and circuit.sources.keys() == self.program.circuit.sources.keys():
            self.delivered = delivered
            return
        plan.require()
        self._ready(plan, self._stored)
        self.save()
        rehearse(plan.program, {*self.state.held(), *plan.moved})
        held = self.state.held()
        held |= {new: held[old] for new, old in plan.moved.items()}
        context = Context(self.dictionary, dict(plan.program.circuit.functions), self._check_functions)
        self._go_over(plan, held, context, tables, delivered)
        self.delivered = delivered

    def follow(self, trace: Trace, name: str, shard: int) -> None:
        """Let a trace be what the store says now: when it is asked for, or at once if compiled code knows its place."""
        assert self.durable is not None, "the state is stored"
        if self._is_compiled:
            trace.restore(self.durable.stored(name, shard))
        else:
            self.durable.defer(trace, name, shard)

    @inside
    def go_on(self, program: Program, state: ProgramState, context: Context) -> None:
        """From now on this program over this state, whose large batches tasks merge."""
        super().go_on(program, state, context)
        for trace, _, _ in state:
            trace.leave_large(MERGED_HERE)

    def shed(self) -> None:
        """Let go of batches that were made here: the store has them, and they are read again when they are needed."""
        assert self.durable is not None, "the state is stored"
        self.recover()
        self.durable.tidy(self.state)
        for trace, name, shard in self.state:
            if trace.is_loaded:
                self.follow(trace, name, shard)

    @property
    def _is_compiled(self) -> bool:
        return vars(self.state).get("compiled") is not None

    @inside
    def abandon(self, mark: Mark) -> None:
        """Forget the open epoch, with the chunks of values that its tasks have written. It may be repeated."""
        super().abandon(mark)
        self.entries.also = ()

    def vacuum(self, keep_epochs: int = 1, swept: Swept = Sweep.here) -> None:
        """Let go of values that no row refers to, and of stored epochs before the last few; ``swept`` finds the edits.

        The dictionary here forgets everything first, and loads nothing before that is done: it must not take for stored
        what is about to go.
        """
        self._require_open()
        if keep_epochs < 1:
            raise EverviewError(f"vacuum cannot keep {keep_epochs} epochs", hint=KEEP)
        assert self.durable is not None, "the state is stored"
        self.durable.tidy(self.state)
        durable, sweep = self.durable, self._sweep()

        def let_go() -> None:
            self._forget_values()
            durable.vacuum(swept(sweep), keep_epochs)

        self.act(let_go, self._forgotten)

    def _sweep(self) -> Sweep:
        assert self.durable is not None, "the state is stored"
        changes = [(changes_of(name), view.schema) for name, view in self.views.items()]
        ways = self.dictionary.exceptions()
        kept = {kind: ways.codes[ways.kinds == kind] for kind in np.unique(ways.kinds).tolist()}
        where = self._stored.address, self.epoch, self.shards, self.durable.divisions
        return Sweep(*where, (*self.state.schemas.values(), *changes), kept)

    def make_room(self) -> None:
        """Forget the values of the dictionary if they are many: the store has them."""
        if self.dictionary.nbytes > CACHED:
            self.recover()
            self.act(self._forget_values, self._forgotten)

    def _forget_values(self) -> None:
        if not self._is_compiled:
            for trace, name, shard in self.state:
                if trace.order is not None and trace.is_loaded:  # it needs the values by which it is ordered
                    self.follow(trace, name, shard)
        self.entries.forget()
        self._values.forget()

    def _forgotten(self) -> None:
        """Finish forgetting: exceptions must be here, and what loaded traces compare. It may be repeated."""
        self.entries.load_small(self._values)
        for trace, _, _ in self.state:
            if trace.order is not None and trace.is_loaded:
                for batch in trace.past.batches:
                    trace.order.admit(batch)
        self.note_saved()

    @property
    def _values(self) -> BackedDictionary:
        assert isinstance(self.dictionary, BackedDictionary), "a stored state has the values"
        return self.dictionary

    def note_saved(self) -> None:
        """Note that the store has all entries of the dictionary."""
        self._saved = self.dictionary.mark()

    def _is_foreign(self, durable: Durable, program: Program) -> bool:
        return self._plan(durable.store, program, self.tables).changes

    def _adopt(self, durable: Durable, program: Program, state: ProgramState, context: Context) -> None:
        plan = self._plan(durable.store, program, self.tables)
        plan.require()
        self._ready(plan, durable.store)
        held = durable.held(program, state, self.dictionary)
        self.note_saved()
        for trace, name, shard in state:
            if name in plan.moved:
                durable.defer(trace, plan.moved[name], shard)
        held |= {name: traces for name, traces in state.held().items() if name in plan.moved}
        self._go_over(plan, held, context, self.tables, self.delivered)

    def _go_over(
        self,
        plan: TurnPlan,
        held: dict[str, list[Trace]],
        context: Context,
        tables: Mapping[str, Table],
        delivered: Collection[str],
    ) -> None:
        """Go over to the program of a plan, with the traces that are held by its names."""

        def moved() -> None:
            """Let traces that were renamed, or computed by tasks, refer to their slices in the store."""
            elsewhere = plan.moved.keys() | {edit.name for edit in self._written}
            for trace, name, shard in self.state:
                if name in elsewhere:
                    self.follow(trace, name, shard)
            self.entries.also = ()

        self._turning, self._written = plan, []
        first, says = self._reshaped(plan, tables), self._says(plan)
        note = partial(self._note_changes, plan, delivered)
        self._turn(plan.program, held, context, tables, says, first, moved, note)

    def _hydrate(
        self, state: ProgramState, held: dict[str, list[Trace]], context: Context, first: Cells | None
    ) -> None:
        """Compute new traces: by tasks, if those can and there is much to read, else here."""
        assert self._turning is not None, "a turn has a plan"
        written = None if first is not None else self._elsewhere(self, self._turning, context)
        if written is None:
            super()._hydrate(state, held, context, first)
        else:
            self._written = written

    @property
    def renamed(self) -> Mapping[str, str]:
        """The earlier names of renamed views, by the new ones."""
        return self._stored.meta.get(RENAMED, {})

    def _says(self, plan: TurnPlan) -> Mapping[str, Any]:
        return {RENAMED: {**self.renamed, **plan.renamed}} if plan.renamed else {}

    @property
    def _stored(self) -> Store:
        assert self.durable is not None, "definitions change over a stored state"
        return self.durable.store

    def _plan(self, stored: State, program: Program, tables: Mapping[str, Table]) -> TurnPlan:
        return turn_plan(stored.manifest, program, tables, self._fed)

    def _reshaped(self, plan: TurnPlan, tables: Mapping[str, Table]) -> FirstRows | None:
        """The rows of tables that have other columns now, as the first ones of their sources."""
        if not plan.reshapes:
            return None
        stored, dictionary = self._stored, self.dictionary

        def first(program: Program, state: ProgramState) -> Cells:
            rows = {each.name: each.rows(stored, dictionary) for each in plan.reshapes}
            return Arriving(program, tables).encode(rows, state, dictionary)

        return first

    # -- the changes that a turn makes

    def _note_changes(self, plan: TurnPlan, delivered: Collection[str], program: Program, state: ProgramState) -> Note:
        edits = self._edits(plan, delivered, program, state)
        return Note((*self._written, *_moves(self._stored, plan.moved), *edits))

    def _edits(
        self, plan: TurnPlan, delivered: Collection[str], program: Program, state: ProgramState
    ) -> Iterator[Replace]:
        """Edits that put the changes of the turn in place of those of the epoch before; a new name is no change."""
        stored, before = self._stored, views(self._stored)
        turned = TurnedViews(stored, plan, state, self._written)
        for view in {**before, **dict.fromkeys(delivered)}:
            name, then = changes_of(view), before.get(plan.renamed.get(view, view))
            old = tuple(entry.id for entry in stored.manifest.slices.get((name, 0), ()))
            words = turned.change(view, then) if view in delivered else None
            if old or words is not None:
                yield Replace(name, 0, old, words)


def _moves(stored: Store, moved: Mapping[str, str]) -> Iterator[Replace]:
    """Edits that let the slices of traces be those of other names, without moving their bytes."""
    for new, old in moved.items():
        for shard in range(shards(stored)):
            for entry in stored.manifest.slices.get((old, shard), ()):
                kept = stored.array(entry) if entry.ref.inline else entry.ref._replace(name=new)
                yield Replace(new, shard, (), kept)


def turn_plan(manifest: Manifest, program: Program, tables: Mapping[str, Table], fed: Fed) -> TurnPlan:
    """The plan for turning a state to a program."""
    return TurnPlan(manifest, program, tables, frozenset(fed(manifest.offsets)))


def revise(circuit: Circuit, meta: Mapping[str, Any]) -> None:
    """Let the functions of a circuit have revisions by what a state says of those of the same names.

    One whose code is as the state knows it has the revision that the state has; one whose code is another has its
    digest. So traces that a changed function takes part in have other names, and are computed anew.
    """
    said: Mapping[str, tuple[str, str]] = meta.get(DIGESTS, {})
    for name, function in circuit.functions.items():
        before, revision = said.get(name, ("", ""))
        now = digest_of(function.call)
        circuit.functions[name] = replace(function, revision=now if before and is_changed(before, now) else revision)


def planned_turn(path: str, circuit: Circuit, tables: Mapping[str, Table], shards: int, fed: Fed) -> TurnPlan:
    """The plan for turning the state in a directory to a circuit; nothing is opened to be written."""
    with Store.attach(path) as stored:
        revise(circuit, stored.meta)
        program = prepared(circuit, tables, shards, as_is=False, stored=True)
        return turn_plan(stored.manifest, program, tables, fed)


def changes_of(view: str) -> str:
    """The name of the block of a state that has the last changes of a view."""
    return f"change of {view}"


def last_changes(stored: State, schemas: Mapping[str, Schema], dictionary: Dictionary) -> dict[str, Change]:
    """The changes of the last epoch, of views with a sink."""
    return {view: _last_change(stored, view, schema, lambda _: dictionary) for view, schema in schemas.items()}


def stored_changes(stored: State, schemas: Mapping[str, Schema]) -> dict[str, Change]:
    """`last_changes` of a state whose dictionary is not loaded: the values that occur are taken from it."""
    return {
        view: _last_change(stored, view, schema, lambda rows, schema=schema: dictionary_for(schema, rows, [stored]))
        for view, schema in schemas.items()
    }


def _last_change(stored: State, view: str, schema: Schema, values: Callable[[Matrix], Dictionary]) -> Change:
    slices = [part.array for part in stored.slices(changes_of(view))]
    if slices and slices[0].ndim == 1:
        return StoredChange.of_block(stored.address, view, schema, slices[0])
    rows = np.asarray(slices[0]) if slices else np.empty((0, schema.width + 1), np.int64)
    return Batch(schema, rows, values(rows))
