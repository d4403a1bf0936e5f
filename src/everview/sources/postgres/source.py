"""A table of PostgreSQL, with filters, orders and limits done there, and changes by triggers, whoever makes them.

```python
tracks = Postgres("dbname=shop", "track")
list(tracks.pull(Request(order=(("rating", "desc"),), limit=10)))
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from typing import Any, Final

import psycopg

from everview.doors import doors
from everview.errors import SourceError
from everview.sources.link import Link
from everview.sources.postgres.asking import asking
from everview.sources.postgres.columns import PostgresColumn, columns_of, primary_key
from everview.sources.postgres.dialect import PostgresDialect, quoted
from everview.sources.postgres.log import PostgresLog, PostgresMark
from everview.sources.protocol import Row
from everview.sources.sql import Sql
from everview.sources.table import TableSource
from everview.sources.values import keyed
from everview.types import Field, Schema

WEEK: Final = 7 * 24 * 3600.0
FIRST, MOST = 16, 2048  # rows that are fetched at a time: few first, as a reader may stop
NOWHERE: Final = PostgresMark("", "", "1:1:")


@doors(SourceError)
class Postgres(TableSource[PostgresMark]):
    """A table of a PostgreSQL database, by connection string or by connection.

    The columns and the key are those of the table; ``columns`` names fewer, or gives them with their types. Watching
    installs triggers, and a log beside the table in its ``schema``, which `uninstall` removes; without ``watch`` the
    table is only read, and its changes are not noticed. Of what all readers have read the log is trimmed after every
    ``trim_every`` entries; a reader that has not come for ``keep`` seconds does not count.

    A turn is a transaction of REPEATABLE READ. A connection that is given must be in autocommit mode, as turns begin
    and end transactions themselves; sources that share one are written in one transaction.
    """

    def __init__(
        self,
        database: str | psycopg.Connection[Any],
        table: str,
        schema: str = "public",
        key: str | Sequence[str] | None = None,
        columns: Schema | str | Sequence[str] | None = None,
        *,
        watch: bool = True,
        keep: float = WEEK,
        trim_every: int = 1000,
    ) -> None:
        own = isinstance(database, str)
        connection = connected(database) if isinstance(database, str) else database
        if not connection.autocommit:
            hint = "connect with autocommit=True: turns begin and end transactions themselves"
            raise SourceError("the connection to PostgreSQL is not in autocommit mode", hint=hint)
        self.link = Link.of(_PostgresSession(connection), own=own)
        try:
            with asking(f'table "{table}"'):
                self._open(connection, (schema, table), key, columns)
                if watch:
                    self._watch((schema, table), keep, trim_every)
        except BaseException:
            self.link.leave()
            raise

    def _open(
        self,
        connection: psycopg.Connection[Any],
        place: tuple[str, str],
        key: str | Sequence[str] | None,
        columns: Schema | str | Sequence[str] | None,
    ) -> None:
        self.name, self.table = f'table "{place[1]}"', quoted(*place)
        self._oid = find_table(connection, place)
        known = {column.name: column for column in columns_of(connection, self._oid)}
        schema = schema_of(known, columns, self.name)
        if key is None:
            key = primary_key(connection, self._oid)
        self.schema, self.key, self.keyed = keyed(schema, key)
        self.dialect = PostgresDialect(self.schema, known)
        self.computed = frozenset(column.name for column in known.values() if column.computed)
        self.inserting = " OVERRIDING SYSTEM VALUE"
        self.mark, self.log = NOWHERE, None
        super().__init__()

    def _watch(self, place: tuple[str, str], keep: float, trim_every: int) -> None:
        log = PostgresLog(self.link, place, self._oid, self.schema, keep=keep, trim_every=trim_every)
        self.log, self.mark = log, log.install()

    # -- inside

    def _fetch(self, query: Sql, limit: int | None) -> Iterator[Row]:
        text, values = query
        connection = self.link.session.connection
        name = None if limit is not None else f"everview_{next(_NAMES)}"
        cursor = connection.cursor() if name is None else connection.cursor(name)
        with closing(cursor), asking(self.name):
            cursor.execute(text.encode(), values)
            size = FIRST
            while rows := cursor.fetchall() if name is None else cursor.fetchmany(size):
                self.rows_read += len(rows)
                yield from map(self._given, rows)
                if name is None:
                    return
                size = min(2 * size, MOST)

    def _execute(self, statement: Sql) -> int:
        with asking(self.name):
            return self.link.session.connection.execute(statement[0].encode(), statement[1]).rowcount

    def one_of(self, where: str) -> str:
        return f"ctid = (SELECT ctid FROM {self.table} WHERE {where} LIMIT 1)"


_NAMES: Final = count(1)


class _PostgresSession:
    """Transactions of a PostgreSQL connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def start(self, *, write: bool) -> None:
        self._require_open()
        if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            raise SourceError("a transaction of the connection is open already", hint="commit it first")
        with asking("PostgreSQL"):
            self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")

    def _require_open(self) -> None:
        if self.connection.closed:
            hint = "detach the source, and attach one with a new connection: it goes on where it was"
            raise SourceError("the connection to PostgreSQL is lost, or closed", hint=hint)

    def start_aside(self) -> None:
        self._require_open()
        with asking("PostgreSQL"):
            self.connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")

    def finish(self) -> None:
        with asking("PostgreSQL"):
            self.connection.execute("COMMIT")

    def abandon(self) -> None:
        status = self.connection.info.transaction_status
        if status not in (psycopg.pq.TransactionStatus.IDLE, psycopg.pq.TransactionStatus.UNKNOWN):
            with asking("PostgreSQL"):
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()


def connected(dsn: str) -> psycopg.Connection[Any]:
    """A connection of one's own."""
    with asking("PostgreSQL"):
        return psycopg.connect(dsn, autocommit=True)


def find_table(connection: psycopg.Connection[Any], place: tuple[str, str]) -> int:
    """The number that PostgreSQL knows a plain table by."""
    (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise SourceError(f"the database keeps text as {encoding}", hint="its order is ours only in UTF8")
    table = connection.execute(
        "SELECT c.oid, c.relkind, EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid) FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
        place,
    ).fetchone()
    if table is None:
        raise SourceError(f'there is no table "{place[1]}" in schema "{place[0]}"', hint="names are as in the catalog")
    oid, kind, parent = table
    if kind != "r" or parent:
        hint = "attach its partitions one by one" if kind == "p" or parent else "give a plain table"
        raise SourceError(f'"{place[1]}" is no plain table', hint=hint)
    return oid


def schema_of(known: dict[str, PostgresColumn], columns: Schema | str | Sequence[str] | None, name: str) -> Schema:
    """The columns to be read: all of a table, or those that are named."""
    if isinstance(columns, str):
        columns = Schema.parse(columns)
    names = list(known) if columns is None else list(columns.names if isinstance(columns, Schema) else columns)
    for column in names:
        if column not in known:
            raise SourceError(f'{name} has no column "{column}"', hint=f"it has {', '.join(known)}")
    if isinstance(columns, Schema):
        return columns
    return Schema(Field(n, known[n].type(name), not known[n].required) for n in names)
