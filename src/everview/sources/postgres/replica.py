"""A table of PostgreSQL that is copied once, and then followed by logical replication, without triggers.

```python
db.attach("item", PostgresReplica("dbname=shop", "item"))
```

The first copy is of the moment at which the slot begins. From then on a turn looks at the transactions that the slot
tells next; the place after the last of them is stored with the tick that took them in, and only when that is durable
may the server forget them. What was looked at and not stored is told again, and what was stored is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.adapt import Transformer

from everview.doors import doors
from everview.errors import LostPosition, SchemaDrift, SourceError
from everview.sources.feed import FeedStep
from everview.sources.postgres.asking import asking
from everview.sources.postgres.columns import columns_of, primary_key
from everview.sources.postgres.dialect import quoted
from everview.sources.postgres.messages import UNCHANGED, Begun, Changed, Described, Emptied, Ended, Told, read_message
from everview.sources.postgres.net import NetChanges
from everview.sources.postgres.slot import SETTINGS, ReplicationSlot
from everview.sources.postgres.source import connected, find_table, schema_of
from everview.sources.protocol import RESYNC, Position, Row
from everview.sources.values import keyed, rows_of
from everview.types import Schema

MOST: Final = 100_000  # changes of a turn, unless a limit is given; a transaction is never divided
IDLE: Final = 16 * 2**20  # bytes of the server's log without a change of the table, after which it may be forgotten
FETCHED: Final = 2048  # rows at a time of the first copy


@doors(SourceError)
class PostgresReplica:
    """A table of a PostgreSQL database that is followed by logical replication.

    The columns and the key are those of the table; ``columns`` names fewer, or gives them with their types. The
    ``publication`` must have the table; without one it is made, which takes the table's owner. ``slot`` names the slot,
    which one database reads; `uninstall` drops it, and while nobody reads it the server keeps its log for it.
    """

    loads = True

    def __init__(
        self,
        dsn: str,
        table: str,
        schema: str = "public",
        columns: Schema | str | Sequence[str] | None = None,
        *,
        slot: str | None = None,
        publication: str | None = None,
    ) -> None:
        self.name, self._place = f'table "{table}"', (schema, table)
        self._connection = connected(dsn)
        try:
            with asking(self.name):
                self._connection.execute(SETTINGS)
                self._oid = find_table(self._connection, self._place)
                self._open(columns)
                made = self._publication() if publication is None else publication
                self._require_published(made)
        except BaseException:
            self._connection.close()
            raise
        self._slot = ReplicationSlot(dsn, self._connection, slot or f"everview_{uuid4().hex[:12]}", made)
        self._own = publication is None
        self._read_to = self._next = 0  # places of the log: up to the last turn, and up to this one
        self._whole, self._holder = True, None
        self._columns: dict[str, int] = {}  # the places of columns in messages

    def _open(self, columns: Schema | str | Sequence[str] | None) -> None:
        known = {column.name: column for column in columns_of(self._connection, self._oid)}
        self.schema, names, has_key = keyed(
            schema_of(known, columns, self.name), primary_key(self._connection, self._oid)
        )
        self.key = names if has_key else ()
        for name in self.schema.names:
            if known[name].computed:
                hint = "leave it out: columns=[...]; a view can compute it again"
                raise SourceError(f'{self.name}: column "{name}" is computed, and not replicated', hint=hint)
        self._row_of = rows_of(self.schema, self.name)
        self._types = {name: known[name].typename for name in self.schema.names}
        identity = self._connection.execute("SELECT relreplident FROM pg_class WHERE oid = %s", (self._oid,)).fetchone()
        self._full = identity is not None and identity[0] in ("f", b"f")
        if not self._full and (not self.key or identity is None or identity[0] not in ("d", b"d")):
            hint = f"give it a primary key, or ALTER TABLE {quoted(*self._place)} REPLICA IDENTITY FULL"
            raise SourceError(f"{self.name} does not tell which rows change", hint=hint)

    # -- publications

    def _publication(self) -> str:
        name = f"everview_{self._oid}"
        known = self._connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (name,)).fetchone()
        if known is None:
            table = sql.Identifier(*self._place)
            self._connection.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(name), table))
        return name

    def _require_published(self, publication: str) -> None:
        published = self._connection.execute(
            "SELECT 1 FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s",
            (publication, *self._place),
        ).fetchone()
        if published is None:
            hint = f'ALTER PUBLICATION "{publication}" ADD TABLE {quoted(*self._place)}'
            raise SourceError(f'publication "{publication}" does not have {self.name}', hint=hint)

    # -- turns

    def begin(self) -> None:
        if self._connection.closed:
            hint = "detach the source, and attach one with a new connection: it goes on where it was"
            raise SourceError("the connection to PostgreSQL is lost, or closed", hint=hint)
        self._next = self._read_to

    def read(self, limit: int | None = None) -> list[FeedStep]:
        """All rows the first time, then what the slot tells next."""
        if self._whole:
            self._next, snapshot, self._holder = self._slot.make()
            return [FeedStep("become", self._copy(snapshot))]
        written = self._slot.written()
        messages = self._slot.peek(MOST if limit is None else max(1, limit))
        net = self._net(messages)
        if not messages and written - self._next > IDLE:
            self._next = written  # nothing of the table lies before it
        return net.steps()

    def _copy(self, snapshot: str) -> Iterator[Row]:
        """The rows as they were when the slot was made."""
        columns = sql.SQL(", ").join(map(sql.Identifier, self.schema.names))
        with asking(self.name):
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            with self._connection.cursor("everview_copy") as cursor:
                cursor.execute(sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(*self._place)))
                while rows := cursor.fetchmany(FETCHED):
                    yield from map(self._row_of, rows)

    def position(self) -> Position:
        return Position(f"{self._slot.name}/{self._next}")

    def commit(self) -> None:
        self._end_copy()
        self._read_to, self._whole = self._next, False

    def rollback(self) -> None:
        self._end_copy()
        if self._whole:
            with suppress(SourceError):
                self._slot.drop()  # the next attempt makes another

    def _end_copy(self) -> None:
        if self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                self._connection.execute("ROLLBACK")
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def resume(self, position: Position) -> None:
        """Go on after the place that was stored."""
        name, _, place = position.rpartition("/")
        if not name or not place.isdigit():
            raise LostPosition(f"{self.name} was followed in another way before", hint=RESYNC)
        self._slot.name, self._read_to, self._whole = name, int(place), False
        self._slot.require(self._read_to)

    def renew(self) -> None:
        """Begin anew with all rows, after a position was lost."""
        self._whole = True

    def settle(self, position: Position) -> None:
        """Let the server forget what is stored here for good."""
        self._slot.advance(int(position.rpartition("/")[2]))

    def uninstall(self) -> None:
        """Drop the slot, and the publication if it was made here."""
        self._slot.drop()
        if self._own:
            with asking(self.name):
                name = sql.Identifier(self._slot.publication)
                self._connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(name))

    def close(self) -> None:
        """Close the connection; the slot stays, to go on from."""
        self._end_copy()
        self._connection.close()

    # -- messages

    def _net(self, messages: list[tuple[bytes]]) -> NetChanges:
        """The net change of whole transactions; those that were stored already are skipped."""
        net, known = NetChanges(self.schema, self.key), False
        for (data,) in messages:
            match read_message(data):
                case Begun(at):
                    known = at < self._read_to
                case Ended(next):
                    self._next = max(self._next, next)
                case Described() as table if table.relation == self._oid:
                    self._describe(table)
                case Changed() as change if change.relation == self._oid and not known:
                    self._enter(change, net)
                case Emptied(relations) if self._oid in relations and not known:
                    net.empty()
                case _:
                    pass
        return net

    def _describe(self, table: Described) -> None:
        """Take note of where the columns are, and refuse a table that is another one than was attached."""
        there = {name: (place, kind) for place, (name, kind) in enumerate(table.columns)}
        gone = [name for name in self.schema.names if name not in there]
        other = [name for name in self.schema.names if name in there and _type(there[name][1]) != self._types[name]]
        if gone or other:
            what = f"has no column {', '.join(gone)} any more" if gone else f"has another type of {', '.join(other)}"
            hint = "detach it, drop the table here, and attach it anew: views that read it are made again"
            raise SchemaDrift(f"{self.name} {what}", hint=hint)
        self._columns = {name: there[name][0] for name in self.schema.names}
        self._loads = Transformer(self._connection)
        self._loads.set_loader_types([there[name][1] for name in self.schema.names], psycopg.pq.Format.TEXT)

    def _enter(self, change: Changed, net: NetChanges) -> None:
        old = None if change.old is None else self._values(change.old)
        new = None if change.new is None else self._values(change.new)
        if new is not None and old is not None and change.whole:
            new = tuple(o if n is UNCHANGED else n for o, n in zip(old, new, strict=True))
        net.enter(self._checked(old) if change.whole else old, self._checked(new))

    def _checked(self, row: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        """A row whose values fit its columns; rows with unsent values are checked once they are complete."""
        return row if row is None or UNCHANGED in row else self._row_of(row)

    def _values(self, told: tuple[Told, ...]) -> tuple[Any, ...]:
        """The values of our columns, which PostgreSQL writes as text."""
        picked = [told[self._columns[name]] for name in self.schema.names]
        sent = [None if value is UNCHANGED else value for value in picked]
        with asking(self.name):
            values = self._loads.load_sequence(sent)  # pyright: ignore[reportArgumentType]
        return tuple(UNCHANGED if v is UNCHANGED else one for v, one in zip(picked, values, strict=True))


def _type(oid: int) -> str:
    """PostgreSQL's name of a type."""
    known = psycopg.adapters.types.get(oid)
    return "" if known is None else known.name
