"""Reading a stored state without its circuit: what its views hold at an epoch, and how they changed between two.

The manifest says which trace holds a view, and with which columns. A trace is a sum of slices, shard by shard, and
every row is on one shard, so shards are read apart. A slice that two epochs have in common contributes nothing to
their difference: it is not read.

Dictionaries are large and views often small, so only the values that occur are taken from the dictionary.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np

from everview.codes import references
from everview.codes.dictionary import Dictionary
from everview.errors import SchemaError, StoreError, WeightOverflow
from everview.kernels.linear import negated
from everview.kernels.merge import merge
from everview.kernels.sort import arrange, is_batch
from everview.runtimes.embedded.stored_entries import StoredEntries
from everview.traces.store import ManifestEntry, Reader, State, Store
from everview.traces.store.objects import require_scheme
from everview.types import NULL_WORD, Schema, unknown_name
from everview.types.words import Matrix

SMALL = 4096  # rows; smaller slices are sorted together, larger ones are merged
Relations = Literal["views", "tables"]
AT_ONCE = 64  # epochs; each has a file open
DEFINITIONS = "definitions"  # under which a state says how its views were written
KEYS = "keys"  # under which a state says the keys of its sources
ZONE = "timezone"  # under which a state says which time zone its views were made in, unless that is UTC


class StoredRelation(NamedTuple):
    """A view or table of a stored state: the trace that holds its rows, and its columns."""

    trace: str
    schema: Schema


# -- which state


def directory(path: str) -> str:
    """The directory that a path or a ``file:`` URL names, or the URL of an object store.

    >>> directory("file:///state/a%20bank"), directory("/state/bank"), directory("s3://state/bank")
    ('/state/a bank', '/state/bank', 's3://state/bank')
    >>> directory("ftp://state/bank")
    Traceback (most recent call last):
    everview.errors.StoreError: a state cannot be at ftp://state/bank: Everview knows no store ftp://
      hint: give a path, or a URL that begins with s3://, gs://, abfss:// or hdfs://
    """
    url = urlsplit(path)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return unquote(url.path)
    if url.scheme == "file" and "://" in path:
        hint = "give a path, a file: URL without a host, or the URL of an object store"
        raise StoreError(f"{path} is not a directory of this machine", hint=hint)
    if "://" in path:
        require_scheme(path)
    return path


def opened(path: str, epoch: int | None = None) -> Reader:
    """A state to read, at its last epoch or an older one."""
    try:
        return Store.attach(path, epoch)
    except StoreError:
        kept = Store.history(path)  # raises what is wrong with the state, if that is it
        if epoch is None or epoch in kept:
            raise
        hint = f"it has epochs {kept[0]} to {kept[-1]}; vacuum removes older ones"
        raise StoreError(f"epoch {epoch} is not in {path}", hint=hint) from None


@contextmanager
def between(path: str, since: int, until: int) -> Generator[tuple[Reader | None, Reader]]:
    """A state at two epochs, to read; at epoch 0 there was nothing, so none is needed for that."""
    with ExitStack() as open_:
        before = open_.enter_context(opened(path, since)) if since else None
        yield before, open_.enter_context(opened(path, until) if before is None else before.at(until))


def epochs_between(path: str, since: int, until: int) -> tuple[int, ...]:
    """The epochs after one and up to another that can be opened."""
    return tuple(epoch for epoch in Store.history(path) if since < epoch <= until)


# -- what it holds


def views(state: State) -> dict[str, StoredRelation]:
    """The views of a state whose contents it keeps, by name."""
    if state.epoch and "views" not in state.manifest.meta:
        raise StoreError(
            f"{state.place} does not say which views it has",
            hint="it was written without their names: open it with its circuit",
        )
    return _relations(state, "views")


def tables(state: State) -> dict[str, StoredRelation]:
    """The sources whose contents a state keeps, by name."""
    return _relations(state, "tables")


def rows_in(state: State, trace: str) -> int:
    """The most rows that a trace has on all shards, without reading them."""
    return sum(
        entry.ref.rows for (name, _), slices in state.manifest.slices.items() if name == trace for entry in slices
    )


def view(state: State, name: str, what: Relations = "views") -> StoredRelation:
    """A view by its name; or a source whose contents are kept, if it is to be one of the ``tables``."""
    known = _known(state, what)
    if name in known:
        return known[name]
    if what == "tables":
        raise unknown_name("table", name, known)
    if name in state.manifest.meta.get("views", {}):
        raise StoreError(f"view {name} keeps no contents", hint="build its sink with keep=True")
    raise unknown_name("view", name, known)


def _known(state: State, what: Relations) -> dict[str, StoredRelation]:
    return views(state) if what == "views" else tables(state)


def _relations(state: State, what: Relations) -> dict[str, StoredRelation]:
    described: Mapping[str, Mapping[str, str] | None] = state.manifest.meta.get(what, {})
    return {
        name: StoredRelation(kept["trace"], Schema.parse(kept["schema"])) for name, kept in described.items() if kept
    }


class StoredDefinition(NamedTuple):
    """A view as it was written; without a text, the dialect says why there is none that says all."""

    name: str
    text: str = ""
    dialect: str = "spark"


# Views without a text, by what takes the place of a dialect.
BY_FRAME = "by a DataFrame"
BY_EPOCHS = "by rules that read the epoch before"
WITH_VALUES = "with parameters"
ON_CLOSE = "to be told when windows close"
RENAMED = "under another name"


def definitions(state: State) -> list[StoredDefinition]:
    """The views of a state in the order of their definitions; none in states that do not say them."""
    said: Sequence[Sequence[str]] = state.manifest.meta.get(DEFINITIONS, ())
    return [StoredDefinition(*each) for each in said]


def shards(state: State) -> int:
    """The number of shards of a state."""
    said = state.manifest.meta.get("shards")
    return int(said) if said else 1 + max((shard for _, shard in state.manifest.slices), default=0)


# -- sums of slices


def contents(state: State, relation: StoredRelation, shard: int) -> Matrix:
    """The contents of a relation on a shard, as a batch."""
    return total(relation.schema, [state.array(entry) for entry in _entries(state, relation, shard)])


class Difference(NamedTuple):
    """The slices of one shard that two epochs do not share."""

    before: State | None
    after: State
    name: str
    schema: Schema
    gone: tuple[ManifestEntry, ...]
    new: tuple[ManifestEntry, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of the slices to read."""
        return sum(entry.ref.nbytes for entry in (*self.gone, *self.new))

    def rows(self) -> Matrix:
        """The change, as a batch."""
        plus = total(self.schema, [self.after.array(entry) for entry in self.new])
        if self.before is None or not self.gone:
            return plus
        minus = total(self.schema, [self.before.array(entry) for entry in self.gone])
        try:
            return merge(plus, negated(minus))
        except OverflowError as error:
            raise WeightOverflow(f"{error}: in the change of view {self.name}") from None

    @property
    def states(self) -> tuple[State, ...]:
        """The states whose dictionaries know the rows."""
        return (self.after,) if self.before is None else (self.before, self.after)


def difference(before: State | None, after: State, name: str, shard: int, what: Relations = "views") -> Difference:
    """The changes of a view on a shard from one epoch to another; without a first, since the beginning."""
    now = view(after, name, what)
    then = _known(before, what).get(name) if before is not None else None
    if before is not None and then is not None:
        _require_same_words(name, now.schema, then.schema, before.epoch)
    split = shards(before) if before is not None else shards(after)  # shards may have been split since
    old = _entries(before, then, shard) if before is not None and then is not None else ()
    together = range(shard, shards(after), split) if shard < split else ()
    new = tuple(entry for each in together for entry in _entries(after, now, each))
    both = {entry.identity for entry in old} & {entry.identity for entry in new}
    gone, come = (tuple(entry for entry in side if entry.identity not in both) for side in (old, new))
    return Difference(before, after, name, now.schema, gone, come)


def changes(before: State | None, after: State, name: str, shard: int, what: Relations = "views") -> Matrix:
    """The change of a view on a shard from one epoch to another, as a batch: ``after - before``."""
    return difference(before, after, name, shard, what).rows()


def sizes(before: State | None, after: State, name: str, what: Relations = "views") -> list[int]:
    """The bytes of slices behind a change, shard by shard."""
    return [difference(before, after, name, shard, what).nbytes for shard in range(shards(after))]


def total(schema: Schema, slices: Sequence[Matrix]) -> Matrix:
    """The sum of slices, largest and oldest first, as one batch."""
    try:
        return _total(schema, slices)
    except OverflowError:
        pass
    # A sum in another order can leave the range although no state ever did: from the oldest on, each was one.
    whole = _nothing(schema)
    try:
        for rows in slices:
            whole = merge(whole, _in_order(rows, schema))
    except OverflowError as error:
        raise WeightOverflow(f"{error}: of rows ({schema})") from None
    return whole


def _total(schema: Schema, slices: Sequence[Matrix]) -> Matrix:
    small = [rows for rows in slices if rows.shape[0] < SMALL]
    whole = _in_order(small[0] if len(small) == 1 else np.concatenate([_nothing(schema), *small]), schema)
    for rows in sorted((rows for rows in slices if rows.shape[0] >= SMALL), key=len):
        whole = merge(_in_order(rows, schema), whole) if whole.shape[0] else _in_order(rows, schema)
    return whole


def _in_order(rows: Matrix, schema: Schema) -> Matrix:
    """Sort rows by words: slices may be in the order of values."""
    return rows if is_batch(rows) else arrange(rows, np.arange(schema.width))


def _nothing(schema: Schema) -> Matrix:
    return np.empty((0, schema.width + 1), np.int64)


def _entries(state: State, relation: StoredRelation, shard: int) -> tuple[ManifestEntry, ...]:
    return state.manifest.slices.get((relation.trace, shard), ())


def _require_same_words(name: str, schema: Schema, other: Schema, epoch: int) -> None:
    """Refuse to add up rows whose words mean different things; columns may have been renamed."""
    if [(f.type, f.nullable) for f in schema] != [(f.type, f.nullable) for f in other]:
        hint = f"its columns are now ({schema}); read its contents at each epoch instead"
        raise SchemaError(f"view {name} had other columns at epoch {epoch}: ({other})", hint=hint)


class Run(NamedTuple):
    """The changes of a few epochs that follow each other, and the states whose dictionaries know their rows."""

    changes: list[tuple[int, Matrix]]
    states: list[Reader]


def by_epoch(
    path: str, name: str, schema: Schema, shards: Sequence[int], since: int, epochs: Sequence[int]
) -> Iterator[Run]:
    """The change of a view of these columns in each of these epochs, on these shards.

    What happened in an epoch that was vacuumed meanwhile comes with the next; the last must be there. The states of a
    run are open until the next one is asked for.
    """
    for start in range(0, len(epochs), AT_ONCE):
        with ExitStack() as open_:
            before = open_.enter_context(opened(path, since)) if since else None
            run = Run([], [] if before is None else [before])
            for epoch in epochs[start : start + AT_ONCE]:
                after = _reached(path, before, epoch)
                if after is None and epoch != epochs[-1]:
                    continue
                after = open_.enter_context(opened(path, epoch) if after is None else after)
                _require_same_words(name, schema, view(after, name).schema, epoch)
                run.changes.extend((epoch, changes(before, after, name, shard)) for shard in shards)
                run.states.append(after)
                before, since = after, epoch
            yield run


def _reached(path: str, before: Reader | None, epoch: int) -> Reader | None:
    """The state at an epoch; None if a vacuum has taken it away."""
    try:
        return Store.attach(path, epoch) if before is None else before.at(epoch)
    except StoreError:
        if epoch in Store.history(path):
            raise
        return None


# -- values


def dictionary_for(schema: Schema, rows: Matrix, states: Iterable[State]) -> Dictionary:
    """A dictionary with the values in these rows, taken from the states; only for lookups, not for interning."""
    wanted = {kind: codes[codes != NULL_WORD] for kind, codes in references(schema, rows).items()}
    dictionary = Dictionary()
    for state in states:
        source = StoredEntries(lambda state=state: state)
        for kind in [kind for kind, codes in wanted.items() if len(codes)]:
            entries = source.find(kind, wanted[kind])
            if len(entries):
                # Entries that block an exception's hash matter only for interning, so no exception is to look for them.
                dictionary.load(replace(entries, exceptions=np.zeros(len(entries), np.uint8)))
                wanted[kind] = np.setdiff1d(wanted[kind], entries.codes, assume_unique=True)
    return dictionary
