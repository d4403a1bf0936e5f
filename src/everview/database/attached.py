"""Tables that follow sources: copied when a source is attached, then updated by `poll`, each change exactly once.

The position up to which a source has been read is stored with the tick that took in its changes, so both count or
neither. Only then is the source told that it may forget them. After a crash before the tick the changes are read
again; after a crash behind the tick the source goes on from the stored position, and nothing is read twice.

Changes of a source are checked like every change of a table, and a refused tick leaves table and source as they
were. Nobody else changes a table that follows a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from everview.blocks import Busy
from everview.database.definitions import TableDefinition, check_name, find_name
from everview.database.tentative import Tentative, undoing_table
from everview.errors import DefinitionError, DuplicateKey, LostPosition, SchemaDrift, SourceError, shown
from everview.later import Later
from everview.types import unknown_name
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.catalog import Catalog
    from everview.database.core import Core
    from everview.database.counting import counted
    from everview.database.rejects import insert_fitting, prepare_rejects
    from everview.database.transaction import OpenTransaction
    from everview.runtimes.pull import PullPipeline
    from everview.sources.feed import Feed, FollowedFeed, Renewed, Step
    from everview.sources.protocol import Followed, Position, Source
else:
    PullPipeline = Later("everview.runtimes.pull", "PullPipeline")
    Feed = Later("everview.sources.feed", "Feed")
    FollowedFeed = Later("everview.sources.feed", "FollowedFeed")
    Renewed = Later("everview.sources.feed", "Renewed")
    Followed = Later("everview.sources.protocol", "Followed")
    Position = Later("everview.sources.protocol", "Position")
    Source = Later("everview.sources.protocol", "Source")
    counted = Later("everview.database.counting", "counted")
    insert_fitting = Later("everview.database.rejects", "insert_fitting")
    prepare_rejects = Later("everview.database.rejects", "prepare_rejects")


@dataclass
class Fed:
    """A table and the feed that fills it."""

    table: TableDefinition
    feed: Feed
    stale: bool = False  # whether it must be told where to go on

    @property
    def offset(self) -> str:
        return f"feed:{self.table.fed}"


@dataclass
class SourceTurns:
    """Open turns of sources: the sources that have begun one, and, once all are read, their positions."""

    busy: Busy
    begun: list[Fed] = field(default_factory=list[Fed])
    positions: dict[str, str] | None = None


class Attached:
    """The sources attached to a database, whether they feed tables or are only read."""

    def __init__(self, database: Core) -> None:
        self._database = database
        self.pulls = False  # whether there has been such a source: else nobody need ask the pipeline
        self._fed: dict[str, Fed] = {}
        self._turns: SourceTurns | None = None

    @property
    def sources(self) -> Mapping[str, Source]:
        """The sources that are not kept, by name."""
        return self.pipeline.sources if self.pulls else {}

    def names(self) -> list[str]:
        """The names of all sources, whether they feed tables or are only read."""
        return [*self._fed, *self.sources]

    @cached_property
    def pipeline(self) -> PullPipeline:
        """The views over sources that are not kept."""
        return PullPipeline(lock=self._database.still)

    # -- attaching

    def attach(self, name: str, source: Any, *, keep: bool, resync: bool = False) -> None:
        """See `Database.attach`."""
        check_name("table", name)
        with self._database.definitions.changing():
            self._let_go()
            if name in self._fed or name in self.sources:
                raise DefinitionError(f'a source is attached as "{name}" already', hint="give it another name")
            self._require_new(source)
            if keep:
                self._follow(name, feed_of(source), resync)
            else:
                self._database.catalog.require_free("source", name)
                self.pulls = True
                self.pipeline.add(name, _source(source))

    def _require_new(self, source: Any) -> None:
        """Refuse a source that is attached already: only the first polled of its two names would get the changes."""
        known = {**self.sources, **{name: _origin(fed.feed) for name, fed in self._fed.items()}}
        for name, each in known.items():
            if each is source:
                raise DefinitionError(f'the source is attached as "{name}" already', hint="make another of the same")

    def require_apart(self, catalog: Catalog) -> None:
        """Refuse relations with the name, in any case, of a source that is not kept: a query could mean either."""
        taken = {name.casefold(): name for name in self.sources}
        for name in catalog.relations:
            if name.casefold() in taken:
                raise DefinitionError(
                    f'a source is attached as "{taken[name.casefold()]}" already', hint="give one another name"
                )

    def detach(self, name: str) -> None:
        """Let a source go and close it; its table stays as it is, and can be attached to the source again."""
        with self._database.definitions.changing():
            if name in self.sources:
                self.pipeline.drop(name).close()
            else:
                self._fed.pop(find_name("source", name, self._fed)).feed.close()

    def close(self) -> None:
        """End all views over sources, and close all sources, even if one of them raises."""
        fed, self._fed = self._fed, {}
        with ExitStack() as closing:
            for each in (*self.sources.values(), *(each.feed for each in fed.values())):
                closing.callback(each.close)
            if "pipeline" in vars(self):
                closing.callback(self.pipeline.close)

    def _follow(self, name: str, feed: Feed, resync: bool) -> None:
        known = self._database.catalog.tables.get(name)
        if known is not None:
            self._follow_again(Fed(known, feed), resync)
            return
        table = TableDefinition.of(name, feed.schema, feed.key, fed=uuid4().hex)
        with Tentative(self._database, undoing_table(self._database, name)):
            self._database.definitions.define_table(table)
            prepare_rejects(self._database, feed)
            self._load(Fed(self._database.catalog.tables[name], feed))

    def _follow_again(self, fed: Fed, resync: bool) -> None:
        self._require_alike(fed)
        prepare_rejects(self._database, fed.feed)
        position = self._database.run.offsets.get(fed.offset)
        if position is None:
            self._load(fed)  # what is there is from an attempt that did not come to its end: nothing
            return
        try:
            fed.feed.resume(Position(position))
        except LostPosition:
            if not resync or not isinstance(fed.feed, Renewed):
                raise
            fed.feed.renew()
            self._load(fed)
            return
        self._fed[fed.table.name] = fed

    def _require_alike(self, fed: Fed) -> None:
        table, feed = fed.table, fed.feed
        if not table.fed:
            raise DefinitionError(f'there is a table "{table.name}" that follows no source', hint="give another name")
        new = TableDefinition.of(table.name, feed.schema, feed.key)
        if new.schema != table.schema or new.key != table.key:
            raise SchemaDrift(
                f'table "{table.name}" is ({table.schema}) with the key ({", ".join(table.key)}), and the source now'
                f" ({new.schema}) with the key ({', '.join(new.key)})",
                hint="drop the table, and attach the source anew",
            )

    def _load(self, fed: Fed) -> None:
        """Copy all rows of a source into its table, as one tick."""
        if fed.feed.loads:
            self._take_in([fed], None)
        self._fed[fed.table.name] = fed

    # -- following

    def poll(self, names: Sequence[str], limit: int | None = None) -> dict[str, Batch]:
        """See `Database.poll`."""
        if limit is not None and (not isinstance(limit, int) or limit < 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SourceError(f"{shown(limit)} is no limit", hint="give how many are to be taken in at most, or None")
        with self._database.still.writing():
            self._database.access.ready_to_write()
            self._database.access.require_open()
            self._let_go()
            fed = [self._find(name) for name in names if name not in self.sources]
            changes = self._take_in(fed if names else [*self._fed.values()], limit)
            if self.pulls and (not names or len(fed) < len(names)):
                self.pipeline.poll()
            return changes

    def _let_go(self) -> None:
        """Detach the sources whose tables have been dropped."""
        tables = self._database.catalog.tables
        for name, fed in [*self._fed.items()]:
            if name not in tables or tables[name].fed != fed.table.fed:
                self._fed.pop(name).feed.close()

    def _find(self, name: str) -> Fed:
        if name in self._fed:
            return self._fed[name]
        table = self._database.catalog.tables.get(name)
        if table is not None and table.fed:
            raise SourceError(f'the source of table "{name}" is not attached', hint=f'db.attach("{name}", source)')
        raise unknown_name("attached source", name, self._fed)

    def _take_in(self, feeds: Sequence[Fed], limit: int | None) -> dict[str, Batch]:
        self._end_turns()
        busy = Busy()
        with busy:
            turns = self._turns = SourceTurns(busy)
            try:
                steps = {fed.table.name: self._read(fed, turns.begun, limit) for fed in feeds}
                turns.positions = {fed.offset: fed.feed.position() for fed in feeds}
                if self._counts(turns):
                    self._end_turns()
                    return {}
                return self._database.transactions.tick(_feeding(steps, turns.positions), self._end_turns)
            finally:
                self._end_turns()

    def _counts(self, turns: SourceTurns) -> bool:
        """Whether the tick counts: the stored positions are those up to which the sources were read."""
        known = self._database.run.offsets
        return turns.positions is not None and all(
            known.get(name) == position for name, position in turns.positions.items()
        )

    def _end_turns(self) -> None:
        """End the open turns of sources, if any: commit them if the tick counts, else roll them back.

        An exception may have cut short an earlier attempt, so the next caller repeats it.
        """
        turns = self._turns
        if turns is None:
            return
        if self._counts(turns):
            self._commit(turns)
        while turns.begun:
            turns.begun[-1].feed.rollback()
            turns.begun.pop()
        self._turns = None

    def _read(self, fed: Fed, begun: list[Fed], limit: int | None) -> list[Step]:
        if fed.stale:
            fed.feed.resume(Position(self._database.run.offsets[fed.offset]))
            fed.stale = False
        begun.append(fed)  # first: should it begin, and an exception come, it is ended
        try:
            fed.feed.begin()
        except Exception:
            begun.remove(fed)
            raise
        return fed.feed.read(limit)

    def _commit(self, turns: SourceTurns) -> None:
        """Commit the turns of a tick that counts, and let the sources forget what no crash can ask for again."""
        stored = self._database.run.saved_offsets
        feeds = list(turns.begun)
        try:
            while turns.begun:
                turns.begun[0].feed.commit()
                turns.begun.pop(0)
        except Exception:
            for fed in feeds:  # some may share a transaction, so it is not known which were committed
                fed.stale = True
            turns.begun.pop(0)  # a source that could not commit has ended its turn
            raise
        for fed in feeds:
            if fed.offset in stored:
                fed.feed.settle(Position(stored[fed.offset]))


def feed_of(source: Any) -> Feed:
    """The feed that fills a table from a source; raises if the source is of no kind that can."""
    if isinstance(source, Followed):
        return FollowedFeed(source)
    if isinstance(source, Feed):
        return source
    raise SourceError(
        f"{shown(source)} is no source",
        hint="everview.sources has Memory, SQLite, Postgres, PostgresReplica, Files, Iterator and Lines",
    )


def _origin(feed: Feed) -> Any:
    return feed.source if isinstance(feed, FollowedFeed) else feed


def _source(source: Any) -> Source:
    if isinstance(source, Source):
        return source
    raise SourceError(f"{shown(source)} cannot be pulled from", hint="attach it with keep=True")


def _feeding(steps: Mapping[str, list[Step]], positions: Mapping[str, str]) -> Callable[[OpenTransaction], None]:
    def change(tx: OpenTransaction) -> None:
        tx.feeding = True
        tx.offsets.update(positions)
        for table, each in steps.items():
            for step in each:
                _take_step_from(tx, table, step)

    return change


def _take_step_from(tx: OpenTransaction, table: str, step: Step) -> None:
    try:
        _take_step(tx, table, step)
    except DuplicateKey as error:
        if step.origin is None:
            raise
        if step.origin.rejects is None or step.kind != "insert":
            raise step.origin.duplicate(error) from error
        refused = insert_fitting(tx, table, step.rows)
        _take_step(tx, table, step.origin.refused(refused))


def _take_step(tx: OpenTransaction, table: str, step: Step) -> None:
    match step.kind:
        case "become":
            tx.become(table, counted(step.rows, f"copying {table}"))
        case "apply":
            tx.apply({table: step.rows})
        case "insert":
            tx.insert(table, step.rows)
        case "upsert":
            tx.upsert(table, step.rows)
        case "delete":
            tx.delete(table, step.rows)
        case "replace":
            tx.become(table, step.rows)
        case "patch":
            for key, changed in step.rows:
                _patch(tx, table, key, changed)
        case "reject":
            tx.insert(step.table, step.rows)


def _patch(tx: OpenTransaction, table: str, key: tuple[Any, ...], changed: Mapping[str, Any]) -> None:
    """Change some columns of the row with a key, and perhaps the key itself."""
    for row in tx.rows_with(table, [key]):
        tx.delete(table, [key])
        tx.upsert(table, [{**row, **changed}])
