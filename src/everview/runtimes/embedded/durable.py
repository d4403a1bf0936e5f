"""State that outlives the process: what every tick appends goes to a store before the tick counts.

The dictionary's new entries travel with the batches that refer to them. Merges change nothing that is true, so the
store learns of them only now and then, when they have saved it enough slices.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from everview.circuit.program import Program
from everview.codes.dictionary import Dictionary, Mark
from everview.errors import ForeignState, StoreError
from everview.later import Later
from everview.runtimes.embedded import interned
from everview.runtimes.state import ProgramState, Pushed
from everview.traces.slots import HeldBatch
from everview.traces.store import Fingerprints, Policy, Replace, SliceRef, Store
from everview.traces.store.manifest import Manifest
from everview.traces.store.reader import State as Stored
from everview.traces.trace import StoredBatches, Trace

if TYPE_CHECKING:
    from everview.operators.digests import digest_of
else:
    digest_of = Later("everview.operators.digests", "digest_of")

log = logging.getLogger("everview.store")
DIGESTS = "digests"  # under which a state says the digest and the revision of each function that its circuit has
Says = Mapping[str, Any]  # what a state says of itself
# When so much has been appended, or so many slices, or as many as there were, the store is told of merges. Until then
# it holds every slice of every commit, and a merged batch the ids of all that it was made of.
TIDY_BYTES = 4 << 20
TIDY_SLICES = 4096


@dataclass(frozen=True, slots=True)
class Note:
    """The part of a commit that is not appended by this process.

    Slices that tasks have written, and how far the sources have been read.
    """

    replaces: Sequence[Replace] = ()
    segments: Sequence[SliceRef] = ()
    offsets: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def added(self) -> int:
        """The number of slices in the replacements; the store numbers these before others."""
        return sum([replace.new is not None for replace in self.replaces])


NOTHING = Note()


class Durable:
    """The store behind a runtime."""

    def __init__(self, store: Store, program: Program, *, lazy: bool = False) -> None:
        """With ``lazy``, what the store holds is read when it is asked for, and not when a state is restored."""
        self.store = store
        self._lazy = lazy
        self._says = contents(program)
        self._besides: Says = {}  # what else the store is to say of itself
        self._shards = program.shards
        self._agreed: Says = {}  # what the store said of itself when all of `_says` was in it
        self._untidy = self._slices = 0  # bytes and slices appended since merges were written
        self._tidy_slices = TIDY_SLICES
        # While merges are written: those that are about to have new ids, and the manifest without them.
        self._tidying: tuple[list[HeldBatch], Manifest] | None = None

    @classmethod
    def open(
        cls, path: str | Path, program: Program, policy: Policy, *, adopt: bool = False, lazy: bool = False
    ) -> Durable:
        """The state in a directory, which is made if it does not exist; one of another circuit is refused.

        With ``adopt`` it is opened as it is, to `turn` it into that of the program.
        """
        plan = fingerprints(program)
        if not Store.exists(path):
            return cls(Store.create(path, plan, policy), program, lazy=lazy)
        empty = _is_empty(path)
        if adopt and not empty:
            return cls(Store.open(path, policy=policy), program, lazy=lazy)
        store = Store.open(path, plan if empty else None, policy=policy, adopt=empty)
        try:
            check_plan(store, program)
        except ForeignState:
            store.close()
            raise
        return cls(store, program, lazy=lazy)

    @property
    def epoch(self) -> int:
        return self.store.epoch

    def is_of(self, program: Program) -> bool:
        """Whether this is the state of a program."""
        return self.store.manifest.plan.plan == fingerprints(program).plan

    @property
    def meta(self) -> Mapping[str, Any]:
        """The description that a state carries; see `contents`."""
        return self.store.meta

    def held(self, program: Program, state: ProgramState, dictionary: Dictionary) -> dict[str, list[Trace]]:
        """The stored traces that a program has, too, loaded as its state has them."""
        kept = fingerprints(program).kept_from(self.store.manifest.plan)
        self._restore(state, dictionary, kept)
        return {name: shards for name, shards in state.held().items() if name in kept}

    def require_tables(self, program: Program) -> None:
        """Refuse a program that would keep a table otherwise than it is stored: views alone can be computed again."""
        ours = contents(program)["tables"]
        for name, said in self.meta.get("tables", {}).items():
            if said is not None and ours.get(name) != said:
                raise ForeignState(
                    f"table {name} was stored as ({said['schema']}) in another way than it would be now",
                    hint="open it with the version of Everview that it was made with",
                )

    def turn(
        self,
        epoch: int,
        program: Program,
        pushed: Sequence[Pushed],
        dictionary: Dictionary,
        mark: Mark,
        says: Says,
        held: Container[str],
        note: Note = NOTHING,
    ) -> None:
        """Make the state that of another program, and this epoch durable, in one act.

        Traces that are not ``held`` are new, whatever the store has by their names. What the ``note`` replaces comes
        first among the ids that the store gives out.
        """
        self.recover()
        appends = [*_appends(pushed), *interned.appended(dictionary.export(mark), self.divisions)]
        meta = {**contents(program), **self._besides, **says}
        again = [key for key in self.store.manifest.slices if key[0] in program.fingerprint and key[0] not in held]
        gone = [Replace(*key, tuple(e.id for e in self.store.manifest.slices[key]), None) for key in again]
        replaces = [*gone, *note.replaces]
        self.store.commit(
            epoch, appends, replaces=replaces, offsets=note.offsets, meta=meta, plan=fingerprints(program)
        )

    def reshard(self, epoch: int, program: Program, edits: Sequence[Replace]) -> None:
        """Make the state that of the same program over more shards, in one act; values stay divided as they are."""
        self.recover()
        meta = {**contents(program), interned.DIVIDED: self.divisions}
        self.store.commit(epoch, replaces=edits, meta=meta, plan=fingerprints(program))

    def also_say(self, says: Says) -> None:
        """Let the store say something else of itself from the next commit on."""
        self._besides, self._agreed = {**self._besides, **says}, {}

    def turned(self, program: Program) -> None:
        """Finish a `turn`: from now on this is the state of that program."""
        self._says, self._shards, self._agreed = contents(program), program.shards, {}

    def recover(self) -> None:
        """Undo or complete what an exception has cut short, in the store and here. It may be repeated."""
        self.store.recover()
        if self._tidying is not None:
            self._tidied()

    def restore(self, state: ProgramState, dictionary: Dictionary) -> None:
        """Fill the traces and the dictionary with what the store holds."""
        self._restore(state, dictionary)

    def _restore(self, state: ProgramState, dictionary: Dictionary, names: Container[str] | None = None) -> None:
        if not self._lazy:
            restore(self.store, state, dictionary, names)
            return
        for trace, name, shard in state:
            if names is None or name in names:
                self.defer(trace, name, shard)

    def defer(self, trace: Trace, name: str, shard: int) -> None:
        """Let a trace be what the store says, when someone asks for it."""
        trace.defer(partial(self.stored, name, shard))

    def stored(self, name: str, shard: int) -> StoredBatches:
        """The batches of a trace, as the store lists them now."""
        entries = self.store.manifest.slices.get((name, shard), ())
        return [(self.store.array(entry), (entry.id,)) for entry in entries]

    @property
    def divisions(self) -> int:
        """The number of divisions of interned codes, where many are stored at once."""
        return int(self.store.meta.get(interned.DIVIDED) or self._shards)

    def commit(
        self, epoch: int, pushed: Sequence[Pushed], dictionary: Dictionary, mark: Mark, note: Note = NOTHING
    ) -> tuple[int, ...]:
        """Make an epoch durable; the ids of what was pushed."""
        if self._tidying is not None:
            self.recover()  # first: merges have the ids that they were given, and not those of this commit
        appends = _appends(pushed)
        if dictionary.mark() != mark:
            appends += interned.appended(dictionary.export(mark), self.divisions)
        ids = self.store.commit(
            epoch, appends, segments=note.segments, replaces=note.replaces, offsets=note.offsets, meta=self._unsaid()
        )
        self._untidy += sum([array.nbytes for _, _, array in appends])
        self._slices += len(appends)
        return ids[note.added : note.added + len(pushed)]

    def _unsaid(self) -> Says | None:
        """The part of the description that the store does not hold yet."""
        known = self.store.meta
        if known is self._agreed:
            return None
        unsaid = {key: value for key, value in {**self._says, **self._besides}.items() if known.get(key) != value}
        if not unsaid:
            self._agreed = known
        return unsaid

    def settle(self, state: ProgramState) -> None:
        """Call `tidy` after a commit, if it is time; the epoch is durable even if that fails."""
        if self._untidy <= TIDY_BYTES and self._slices <= self._tidy_slices:
            return
        try:
            self.tidy(state)
        except StoreError as error:
            self.recover()
            log.warning("%s: merges were not written, and will be later", error.message)

    def tidy(self, state: ProgramState) -> None:
        """Tell the store of merges since the last time, and start a new log."""
        self.recover()
        loaded = [(trace, name, shard) for trace, name, shard in state if trace.is_loaded]  # the others have no merges
        for trace, _, _ in loaded:
            trace.past.harden()  # so that the slices of its levels become one
        merges = [(held, name, shard) for trace, name, shard in loaded for held in trace.past.merges()]
        self._begin_to_tidy([held for held, *_ in merges])
        for held, name, shard in merges:  # first: the ids that the store gives out come in this order
            self.store.replace(name, shard, held.ids, held.batch)
        for trace, name, shard in loaded:
            gone = trace.past.gone()
            if gone:
                self.store.replace(name, shard, gone, None)
        for each in interned.coalesced(self.store):
            self.store.replace(*each)
        self.store.checkpoint()
        self._tidied()
        self._untidy = self._slices = 0
        self._tidy_slices = max(TIDY_SLICES, sum(1 for _ in self.store.manifest.entries()))

    def _begin_to_tidy(self, merges: list[HeldBatch]) -> None:
        self._tidying = merges, self.store.manifest

    def _tidied(self) -> None:
        """Note the new ids of merges that the store has been told of; no others are pending."""
        assert self._tidying is not None, "something is tidied"
        merges, before = self._tidying
        self.store.forget_queued()
        if self.store.manifest is not before:
            for held, id_ in zip(merges, self.store.added, strict=False):
                held.ids = (id_,)
        self._tidying = None

    def renewed(self, dictionary: Dictionary) -> Iterable[Replace]:
        """Edits that put the present entries of a dictionary in place of the stored ones.

        Stored slices have no other values: they were tidied before the dictionary let go of any.
        """
        return interned.renewed(self.store, dictionary.export(), self.divisions)

    def vacuum(self, edits: Iterable[Replace], keep_epochs: int) -> None:
        """Edit the stored dictionary, and keep the last few epochs."""
        self.edit(edits)
        self.store.vacuum(keep_epochs)

    def edit(self, edits: Iterable[Replace]) -> None:
        """Put slices in place of others that mean the same."""
        self.recover()
        self._begin_to_tidy([])
        for each in edits:
            self.store.replace(each.name, each.shard, each.old, each.new)
        self.store.checkpoint()
        self._tidied()

    def close(self) -> None:
        self.store.close()


def _appends(pushed: Sequence[Pushed]) -> list[tuple[str, int, NDArray[Any]]]:
    return [(name, shard, batch) for _, name, shard, batch in pushed]


def _is_empty(path: str | Path) -> bool:
    """Whether nothing was ever committed to a state: then it may become that of any circuit."""
    with Store.attach(path) as state:
        return state.epoch == 0


def contents(program: Program) -> dict[str, Any]:
    """The description of a state, by which it can be read without its circuit: views, tables, sources, shards."""
    circuit = program.circuit

    def described(node: int | None) -> dict[str, str] | None:
        return None if node is None else {"trace": program.names[node], "schema": str(circuit.layout(node).schema)}

    views = {name: described(program.contents(name)) for name in circuit.sinks}
    tables = {name: described(program.table(name)) for name in circuit.tables}
    sources = {name: str(circuit.layout(node).schema) for name, node in circuit.sources.items()}
    said = {"views": views, "tables": tables, "sources": sources, "shards": program.shards}
    functions = {name: [digest_of(each.call), each.revision] for name, each in circuit.functions.items()}
    return said | ({DIGESTS: functions} if functions else {})


def fingerprints(program: Program) -> Fingerprints:
    """The fingerprints that the state of a program has."""
    traces = program.fingerprint
    text = "\n".join([str(program.shards), *sorted(f"{name} {schema}" for name, schema in traces.items())])
    return Fingerprints(hashlib.blake2b(text.encode(), digest_size=16).hexdigest(), traces)


def check_plan(reader: Stored, program: Program) -> None:
    """Refuse the state of another circuit."""
    if reader.manifest.plan.plan != fingerprints(program).plan:
        raise ForeignState(
            f"{reader.path} holds the state of another circuit, or of another number of shards",
            hint="open it with the circuit it was made with, or give another directory",
        )


def restore(reader: Stored, state: ProgramState, dictionary: Dictionary, names: Container[str] | None = None) -> None:
    """Fill traces, all or those of some names, and a dictionary with what a stored epoch holds."""
    # The dictionary first: traces that follow values are merged by what it says.
    entries = interned.stored(reader)
    if entries is not None:
        dictionary.load(entries)
    for trace, name, shard in state:
        if names is None or name in names:
            trace.restore([(s.array, (s.id,)) for s in reader.slices(name, shard)])
