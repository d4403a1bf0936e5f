"""Mirrors: the sources and views of a Spark pipeline as a database in memory, kept up to date from its state directory.

The pipeline's process writes; this one, which needs no Spark, reads what each committed epoch has changed: slices of
the state that two epochs have in common are not read again. An epoch of the pipeline is one tick here, under the same
number, so that whoever has seen an epoch goes on from there, whichever server they ask. Each view has a table behind
it, in the schema ``pipeline``; sources that are kept are tables. How views were written is told by a `PipelineModel`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from everview.codes import decode
from everview.database import Database, connect
from everview.database.catalog import Catalog
from everview.database.defining import DESCRIPTION
from everview.database.following import StateFollower
from everview.database.snapshots import core_of
from everview.errors import StoreError
from everview.plan.timed import is_companion
from everview.runtimes.embedded.history import StateReader, attached, has_state
from everview.runtimes.spark.epoch_notes import EpochNotes
from everview.runtimes.spark.node_work import WorkNote
from everview.runtimes.spark.stored import (
    StoredDefinition,
    StoredRelation,
    changes,
    definitions,
    dictionary_for,
    shards,
    tables,
    views,
)
from everview.serve.pipeline_model import HOME, PipelineModel, plain_name, shown_as_kept
from everview.serve.timeline import EpochSeen
from everview.types import Schema
from everview.types.words import Matrix

AT_ONCE: Final = 64  # epochs that one call takes in; the next goes on
Kind = tuple[str, Schema]  # of a relation: among the views or the tables, and its columns


def is_pipeline(path: Path) -> bool:
    """Whether a directory is the state of a pipeline, and not that of a database."""
    if not has_state(path):
        return False
    with attached(path) as state:
        return state.epoch > 0 and DESCRIPTION not in state.manifest.meta and "views" in state.manifest.meta


class PipelineMirror:
    """A database that shows the sources and views of a pipeline's state."""

    def __init__(self, path: Path) -> None:
        """Show the last epoch of a state directory; `follow` moves on to later ones."""
        self._path, self._notes, self._work = path, EpochNotes(path), WorkNote(path)
        self._state: StateReader | None = None  # the epoch that is shown; its slices are not vacuumed meanwhile
        self._known: dict[str, Kind] = {}
        self._written: list[StoredDefinition] = []
        self._plain: Catalog | None = None  # the definitions by which rows are kept, where others are shown
        self.model: PipelineModel | None = None  # of the epoch that is shown
        self.database = connect()
        core_of(self.database).follower = StateFollower(path, _never_read)
        self.database.sql(f"CREATE SCHEMA {HOME}")
        self.follow(self.database)

    def epochs(self, count: int) -> list[EpochSeen]:
        """The last epochs, as the pipeline has noted them; see `everview.serve.timeline`."""
        return [EpochSeen.of_pipeline(said) for said in self._notes.last(count)]

    def follow(self, database: Database) -> None:
        """Take in the epochs that the pipeline has committed since, one by one."""
        for epoch in self._later():
            before, self._state = self._state, epoch
            try:
                self._take_in(database, before, epoch)
            except BaseException:
                self._state = before
                epoch.close()
                raise
            if before is not None:
                before.close()

    def _later(self) -> Iterator[StateReader]:
        """The states of later epochs, each to be closed by whoever takes it; what was vacuumed comes with the next."""
        known = self._state
        if known is None:
            yield attached(self._path)
            return
        last = known.at()
        if last.epoch < known.epoch:  # the state was taken back to an earlier epoch: all is read anew
            self._define(self.database, {})
            yield last
            return
        for number in range(known.epoch + 1, min(last.epoch, known.epoch + AT_ONCE)):
            assert self._state is not None, "an epoch is shown"
            try:
                yield self._state.at(number)
            except StoreError:
                continue
        if known.epoch < last.epoch <= known.epoch + AT_ONCE:
            yield last
        else:
            last.close()

    def _take_in(self, database: Database, before: StateReader | None, after: StateReader) -> None:
        """Change the tables as an epoch has, in one tick under its number."""
        relations = _relations(after)
        if after.epoch and not relations:
            raise StoreError(f"{self._path} keeps no views", hint="a pipeline keeps a view unless it is told not to")
        anew = self._define(database, relations)
        self._explain(database, after)
        core = core_of(database)
        core.run.epoch = max(after.epoch - 1, 0)
        with core.transactions.block() as tx:
            for name, (what, relation) in relations.items():
                matrix = _changed(None if name in anew else before, after, name, what)
                if len(matrix):
                    states = [after] if before is None else [after, before]
                    dictionary = dictionary_for(relation.schema, matrix, states)
                    rows = decode(relation.schema, matrix[:, :-1], dictionary)
                    tx.add_rows(_table(name, what), rows, matrix[:, -1])
        core.run.epoch = after.epoch

    def _define(self, database: Database, relations: dict[str, tuple[str, StoredRelation]]) -> set[str]:
        """Have a table for each relation of the pipeline, a view for each of its views, and no others; the new ones."""
        wanted = {name: (what, relation.schema) for name, (what, relation) in relations.items()}
        if wanted == self._known:
            return set()
        self._keep_plainly(database)
        for name in [name for name, kind in self._known.items() if wanted.get(name) != kind]:
            database.drop(_table(name, self._known.pop(name)[0]), cascade=True)
        anew = wanted.keys() - self._known.keys()
        for name in [name for name in wanted if name in anew]:
            what, schema = self._known[name] = wanted[name]
            if what == "views":
                shown_as_kept(database, name, schema)
            else:
                database.create_table(_table(name, what), schema)
        return set(anew)

    def _keep_plainly(self, database: Database) -> None:
        """Show the definitions by which rows are kept: others must not be built into the circuit."""
        if self._plain is not None:
            core_of(database).definitions.catalog = self._plain
        self._plain = None

    def _explain(self, database: Database, state: StateReader) -> None:
        """Show how the views of a state were written, unless that is shown already."""
        written = definitions(state)
        if self._plain is not None and written == self._written:
            return
        self._keep_plainly(database)
        views = {name: schema for name, (what, schema) in self._known.items() if what == "views"}
        self.model, self._written = PipelineModel(state, views, self._work.read), written
        core = core_of(database)
        self._plain = core.catalog
        core.definitions.catalog = self.model.explaining(core.catalog)


def _relations(state: StateReader) -> dict[str, tuple[str, StoredRelation]]:
    """The kept views and sources of a state, each with where it is listed; a view goes before a source of its name."""
    kept = {name: ("tables", relation) for name, relation in tables(state).items() if not is_companion(name)}
    return kept | {name: ("views", relation) for name, relation in views(state).items()}


def _changed(before: StateReader | None, after: StateReader, name: str, what: Any) -> Matrix:
    """The changes of a relation in an epoch, on all shards."""
    count = shards(after if before is None else before)
    return np.concatenate([changes(before, after, name, shard, what) for shard in range(count)])


def _table(name: str, what: str) -> str:
    return f"{HOME}.{plain_name(name)}" if what == "views" else plain_name(name)


def _never_read() -> Any:
    raise AssertionError("a mirror is moved by its epochs")
