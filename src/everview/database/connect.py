"""Opening a database: a new one in memory or in a directory, or the one that a directory describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everview.circuit.bounds import LoopBounds
from everview.database.catalog import Assembled, Catalog
from everview.database.clock import kind_of
from everview.database.constants import literal_from_json
from everview.database.core import Core
from everview.database.database import Database
from everview.database.defining import DESCRIPTION
from everview.database.definitions import Build, TableDefinition, ViewDefinition
from everview.database.frontends import read_sql, reader_of
from everview.database.rules import Ruleset
from everview.doors import door
from everview.errors import DefinitionError, EverviewError, ForeignState, StoreError, UnknownName
from everview.later import Later
from everview.plan.catalog import StoredFunction
from everview.runtimes.embedded import Embedded
from everview.runtimes.embedded.prepare import check_shards, use_threads
from everview.scalars.session_zone import UTC, check_zone
from everview.traces.store import Store

if TYPE_CHECKING:
    from everview.database.following import CommittedEpoch, StateFollower
    from everview.database.guards import guarded
else:
    CommittedEpoch = Later("everview.database.following", "CommittedEpoch")
    StateFollower = Later("everview.database.following", "StateFollower")
    guarded = Later("everview.database.guards", "guarded")

NEVER: Final = float("inf")
PERIOD: Final = 0.1  # seconds
MODES: Final = ("tick", "periodic", "none")


@door
def connect(
    path: str | Path | None = None,
    *,
    durability: str = "tick",
    period: float = PERIOD,
    shards: int | None = None,
    views: Mapping[str, Build] | None = None,
    loops: LoopBounds | None = None,
    threads: int | None = None,
    clock: str | bool = "told",
    timezone: str | None = None,
    read_only: bool = False,
) -> Database:
    """A database, in memory or with its state in a directory, which is made if it does not exist.

    ``durability`` says when a tick is on disk: with ``"tick"`` before it returns; with ``"periodic"`` together with
    others, at most ``period`` seconds later; with ``"none"`` when the database is closed or `checkpoint` is called.
    A crash loses the ticks that are not on disk, the last ones, and nothing else.

    A directory knows its definitions. Only views that Python functions make must be given again, by ``views``.

    ``loops`` bounds what a recursion may do in one tick before it is an `EndlessLoop`; without it, the environment does
    (``EVERVIEW_LOOP_ROUNDS``, ``EVERVIEW_LOOP_ROWS``, ``EVERVIEW_LOOP_MEMORY``), and else what a laptop survives.

    ``threads`` is how many threads large work may use: loads, views over many rows, large ticks. All cores by default;
    what is given holds for the process. Answers do not depend on it.

    ``clock`` says what moves the current time of kept views: ``"told"``, only `Database.advance`; ``"wall"``, or True,
    every tick, to the time of the machine.

    ``timezone`` is the zone in which SQL reads timestamps that name none, and in which days begin and hours are
    counted; UTC by default. A directory keeps the zone that it was made with. Rows show timestamps in UTC in any case.

    With ``read_only`` another process may write to the directory, and this one shows an epoch that it has committed,
    until `Database.refresh` moves on to its last one; `Database.run` does that in the background.
    """
    kind = kind_of(clock)
    if read_only:
        return _reader(path, views or {}, threads)
    if threads is not None:
        use_threads(threads)
    if durability not in MODES:
        raise EverviewError(f"durability {durability!r} is not known", hint=f"one of {', '.join(map(repr, MODES))}")
    if not 0 < period < NEVER:
        raise EverviewError(f"a period of {period} s cannot be", hint="give a positive number of seconds")
    every = {"tick": 0.0, "periodic": period, "none": NEVER}[durability] if path is not None else 0.0
    said = None if path is None else _description(path)
    shards = _shards(path, said, shards)
    catalog = _catalog(said, views or {}, timezone)
    assembled = Assembled.of(catalog)
    run = Embedded(assembled.circuit, path, shards=shards, tables=catalog.keys, every=every, adopt=True, loops=loops)
    return Database(Core(run, catalog, assembled, every=every, clock=kind))


def _reader(path: str | Path | None, views: Mapping[str, Build], threads: int | None) -> Database:
    """A database that only reads a directory, to which another process may write."""
    if path is None or not Store.exists(path):
        hint = "give the directory of a database that was made without read_only"
        raise StoreError(f"there is no database to read at {path}", hint=hint)
    if threads is not None:
        use_threads(threads)
    where = Path(path)
    follower = StateFollower(where, partial(_committed, where, views))
    first = follower.read()
    follower.shown = first.state
    core = Core(first.run, first.catalog, first.assembled)
    core.follower, core.access.read_only = follower, True
    return Database(core)


def _committed(path: Path, views: Mapping[str, Build]) -> CommittedEpoch:
    """The last epoch of a directory, read whole: while it is read, its writer cannot vacuum it."""
    state = Store.attach(path)
    try:
        epoch, said = state.epoch, dict(state.manifest.meta)
        if epoch == 0:
            catalog = Catalog()
            run = Embedded(Assembled.of(catalog).circuit, adopt=True)
            return CommittedEpoch(run, catalog, Assembled.of(catalog), state)
        if DESCRIPTION not in said:
            raise _foreign(path)
        catalog = described(said[DESCRIPTION], views)
        assembled = Assembled.of(catalog)
        run = Embedded.attach(assembled.circuit, path, epoch, shards=said["shards"], tables=catalog.keys, adopt=True)
        return CommittedEpoch(run, catalog, assembled, state)
    except BaseException:
        state.close()
        raise


def _catalog(said: Mapping[str, Any] | None, views: Mapping[str, Build], timezone: str | None) -> Catalog:
    """The catalog of a state directory, or a new one, in a time zone."""
    if timezone is not None:
        check_zone(timezone)
    if said is None:
        return Catalog(timezone=timezone or UTC)
    catalog = described(said[DESCRIPTION], views)
    if timezone not in (None, catalog.timezone):
        hint = "its views were made in that zone; open it without timezone, or make another database"
        raise EverviewError(f"the time zone of this database is {catalog.timezone}, not {timezone}", hint=hint)
    return catalog


def described(said: Mapping[str, Any], views: Mapping[str, Build]) -> Catalog:
    """The catalog that a state directory describes."""
    rules = tuple(map(Ruleset.from_json, said.get("rules", ())))
    functions = {name: StoredFunction(name, text, dialect) for name, text, dialect in said.get("functions", ())}
    zone = said.get("timezone", UTC)
    catalog = Catalog(rules=rules, schemas=tuple(said.get("schemas", ())), functions=functions, timezone=zone)
    for name, table in said["tables"]:
        catalog = catalog.with_table(TableDefinition.from_json(name, table))
    for table in catalog.tables.values():
        catalog = guarded(catalog, table) if table.constraints else catalog
    stored, guards = dict(said["views"]), {name: catalog.views[name] for name in catalog.guards}
    for name in _each_after_what_it_reads(stored):
        catalog = catalog.with_view(_view(catalog, name, stored[name], views.get(name)))
    return replace(catalog, views={**{name: catalog.views[name] for name in stored}, **guards})


def _each_after_what_it_reads(stored: Mapping[str, Any]) -> Iterable[str]:
    reads = {name: [other for other in view["reads"] if other in stored] for name, view in stored.items()}
    return TopologicalSorter(reads).static_order()


def _view(catalog: Catalog, name: str, said: Mapping[str, Any], build: Build | None) -> ViewDefinition:
    if said["text"] is not None:
        try:
            given = {mark: literal_from_json(value) for mark, value in said.get("parameters", {}).items()}
            sizes: Mapping[str, int] = said.get("sizes", {})
            read = reader_of(said["dialect"])
            read = partial(read_sql, parameters=given, sizes=sizes) if given or sizes else read
            return replace(read(catalog, name, said["text"], said["dialect"]), comments=said.get("comments", {}))
        except UnknownName as error:
            raise UnknownName(f'view "{name}": {error.message}', hint=error.hint) from error
    if build is None:
        raise DefinitionError(
            f'view "{name}" is made by a Python function, which a state directory does not keep',
            hint=f"give the function again: connect(path, views={{{name!r}: function}})",
        )
    return catalog.view(name, build, materialized=said["materialized"])


def _description(path: str | Path) -> Mapping[str, Any] | None:
    """The description that a state directory holds; None if there is no directory, or nothing in it yet."""
    if not Store.exists(path):
        return None
    with Store.attach(path) as state:
        if state.epoch == 0:
            return None
        if DESCRIPTION not in state.manifest.meta:
            raise _foreign(path)
        return dict(state.manifest.meta)


def _foreign(path: str | Path) -> ForeignState:
    return ForeignState(
        f"{path} holds the state of a circuit or a pipeline, not of a database",
        hint="open it with what it was made with; everview serve shows the views of a pipeline",
    )


def _shards(path: str | Path | None, said: Mapping[str, Any] | None, shards: int | None) -> int:
    if shards is not None:
        check_shards(shards)
    if said is None:
        return 1 if shards is None else shards
    if shards is not None and shards != said["shards"]:
        raise ForeignState(f"{path} has {said['shards']} shards, not {shards}", hint="leave shards out to open it")
    return said["shards"]
