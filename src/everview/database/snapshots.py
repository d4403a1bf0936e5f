"""Snapshots: a committed epoch of a database as a database of its own, for readers in other threads.

A snapshot is taken between two changes, and costs a glance at every table and view: batches of traces are never changed
in place, and a fork of the dictionary shares its arrays. Reading it needs no lock of the writer's, so neither waits for
the other. It answers queries, `find` and contents of tables and views; what looks into the circuit, as `explain` and
`verify` do, needs the database itself. `why` reads the traces of joins and loops, too, which a `whole` snapshot has.

>>> from everview import connect
>>> db = connect()
>>> db.create_table("t", "n BIGINT NOT NULL")
>>> db.apply({"t": [((1,), 1)]})
{}
>>> snapshot = snapshot_of(db)
>>> db.apply({"t": [((2,), 1)]})
{}
>>> snapshot.epoch, db.epoch
(2, 3)
>>> snapshot.reader().sql("SELECT sum(n) FROM t")[0], db.sql("SELECT sum(n) FROM t")[0]
((1,), (3,))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from everview.circuit.bounds import LoopBounds
from everview.codes.dictionary import Dictionary
from everview.codes.forked import ForkedDictionary
from everview.database.catalog import Assembled, Catalog
from everview.database.core import Core
from everview.database.database import Database
from everview.database.defining import Definitions
from everview.database.following import StateFollower
from everview.runtimes.embedded.frozen import FrozenState
from everview.runtimes.embedded.relation import KeptTable
from everview.runtimes.embedded.view import CircuitView
from everview.types import Schema

if TYPE_CHECKING:
    from everview.circuit.program import Program
    from everview.runtimes.embedded import Embedded


@dataclass(frozen=True, slots=True)
class DatabaseSnapshot:
    """A committed epoch: its definitions, the batches of its tables and views, and the values interned by then."""

    epoch: int
    catalog: Catalog
    assembled: Assembled
    program: Program
    state: FrozenState
    _dictionary: ForkedDictionary
    relations: Mapping[str, KeptTable]
    views: Mapping[str, tuple[Schema, int | None]]
    bounds: LoopBounds
    path: Path | None

    def reader(self) -> Database:
        """A database that shows this epoch, to read only, for one thread; it is cheap to make."""
        run = EpochRun(self, self._dictionary.again())
        return Database(SnapshotCore(cast("Embedded", run), self))

    def dictionary(self) -> Dictionary:
        """The values that were interned by then, for one thread."""
        return self._dictionary.again()


class EpochRun:
    """A snapshot in the place of an `Embedded`, for code that only reads contents."""

    ending = None
    judge = None
    durable = None

    def __init__(self, snapshot: DatabaseSnapshot, dictionary: ForkedDictionary) -> None:
        self.epoch, self.dictionary, self.bounds = snapshot.epoch, dictionary, snapshot.bounds
        self.state: Any = snapshot.state
        self.program: Any = snapshot.program
        self.views = ViewsOfEpoch(self, snapshot.views)

    def recover(self) -> None:
        """Do nothing: nothing is ever under way."""

    def save(self) -> None:
        """Do nothing: what is committed is saved."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class ViewsOfEpoch(Mapping[str, CircuitView]):
    """The views of a snapshot, made when they are asked for."""

    def __init__(self, run: EpochRun, views: Mapping[str, tuple[Schema, int | None]]) -> None:
        self._run, self._views = run, views

    def __getitem__(self, name: str) -> CircuitView:
        schema, node = self._views[name]
        return CircuitView(cast("Embedded", self._run), name, schema, node)

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)


class TablesOfEpoch(Mapping[str, KeptTable]):
    """The tables of a snapshot, in words of a reader's own dictionary, made when they are asked for."""

    def __init__(self, tables: Mapping[str, KeptTable], dictionary: Dictionary) -> None:
        self._tables, self._dictionary = tables, dictionary

    def __getitem__(self, name: str) -> KeptTable:
        return replace(self._tables[name], dictionary=self._dictionary)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


class SnapshotCore(Core):
    """The core of a database that shows a snapshot: it reads only, and reaches no files."""

    def __init__(self, run: Embedded, snapshot: DatabaseSnapshot) -> None:
        self._snapshot = snapshot
        super().__init__(run, snapshot.catalog, snapshot.assembled)
        self.access.read_only = self.sealed = True
        if snapshot.path is not None:
            self.follower = StateFollower(snapshot.path, _never_read)

    def defined(self, catalog: Catalog, assembled: Assembled) -> Definitions:
        return FrozenDefinitions(self, catalog, assembled, TablesOfEpoch(self._snapshot.relations, self.run.dictionary))


class FrozenDefinitions(Definitions):
    """The definitions of a snapshot, over tables that do not change."""

    def __init__(self, core: Core, catalog: Catalog, assembled: Assembled, relations: Mapping[str, KeptTable]) -> None:
        self._frozen = relations
        super().__init__(core, catalog, assembled)

    def take(self, catalog: Catalog, assembled: Assembled) -> None:
        self.catalog, self.assembled = catalog, assembled
        self.relations = cast("dict[str, KeptTable]", self._frozen)


def _never_read() -> Any:
    raise AssertionError("a snapshot does not move on")


def core_of(database: Database) -> Core:
    """The core of a database, for a server."""
    return database._core  # pyright: ignore[reportPrivateUsage]


def snapshot_of(database: Database, known: DatabaseSnapshot | None = None, *, whole: bool = False) -> DatabaseSnapshot:
    """A snapshot of the last committed epoch; ``known`` is an earlier one, of which is kept what has not changed.

    A ``whole`` one has all traces, a glance at each of which it costs.
    """
    core = core_of(database)
    with core.still:
        if core.access.open is None:
            core.access.ready()
        run = core.run
        if known is not None and known.epoch == run.epoch and known.program is run.program:
            return known
        mark = run.dictionary.mark() if core.access.open is None else core.access.open.mark
        kept = core.definitions.relations
        views = {name: (view.schema, view.node) for name, view in run.views.items()}
        nodes = {table.resolver.trace for table in kept.values()} | {node for _, node in views.values()}
        return DatabaseSnapshot(
            run.epoch,
            core.catalog,
            core.definitions.assembled,
            run.program,
            FrozenState.whole(run.state)
            if whole
            else FrozenState.of_nodes(run.state, (node for node in nodes if node is not None)),
            ForkedDictionary(run.dictionary, mark),
            dict(kept),
            views,
            run.bounds,
            _path_of(core),
        )


def _path_of(core: Core) -> Path | None:
    if core.follower is not None:
        return core.follower.path
    return None if core.run.durable is None else core.run.durable.store.path
