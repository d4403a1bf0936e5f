"""A table of SQLite, with filters, orders and limits done there, and changes by triggers, whoever makes them.

>>> import sqlite3
>>> shop = sqlite3.connect(":memory:")
>>> _ = shop.execute("CREATE TABLE track (id INTEGER PRIMARY KEY, title TEXT NOT NULL, rating INT)")
>>> tracks = SQLite(shop, "track")
>>> tracks.schema, tracks.key
(Schema('id BIGINT NOT NULL, title STRING NOT NULL, rating BIGINT'), ('id',))
>>> _ = shop.executemany("INSERT INTO track VALUES (?, ?, ?)", [(1, "a", 3), (2, "b", 5)]); shop.commit()
>>> tracks.begin(); sorted(tracks.changes()); tracks.commit()
[((1, 'a', 3), 1), ((2, 'b', 5), 1)]
>>> from everview.sources.protocol import Request
>>> list(tracks.pull(Request(order=(("rating", "desc"),), limit=1))), tracks.rows_read
([(2, 'b', 5)], 1)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from everview.doors import doors, path_of
from everview.errors import SourceError
from everview.sources.link import Link
from everview.sources.protocol import Row
from everview.sources.sql import Sql
from everview.sources.sqlite.asking import asking
from everview.sources.sqlite.columns import check_columns, reader, schema_of
from everview.sources.sqlite.dialect import SqliteDialect, quoted
from everview.sources.sqlite.log import SqliteLog, SqliteMark, columns_of
from everview.sources.table import TableSource
from everview.sources.values import keyed
from everview.types import Schema

WEEK: Final = 7 * 24 * 3600.0
NOWHERE: Final = SqliteMark("", "", 0)


@doors(SourceError)
class SQLite(TableSource[SqliteMark]):
    """A table of a SQLite database, by path or by connection.

    The columns and the key are those that the table declares, unless others are given; a ``schema`` may have fewer
    columns. Watching installs triggers and a log beside the table, which `uninstall` removes; without ``watch`` the
    table is only read, and its changes are not noticed. Of what all readers have read the log is trimmed after every
    ``trim_every`` entries; a reader that has not come for ``keep`` seconds does not count.

    Sources that are to be written in one transaction must be given one connection.
    """

    def __init__(
        self,
        database: str | Path | sqlite3.Connection,
        table: str,
        key: str | Sequence[str] | None = None,
        schema: Schema | str | None = None,
        *,
        watch: bool = True,
        keep: float = WEEK,
        trim_every: int = 1000,
    ) -> None:
        own = not isinstance(database, sqlite3.Connection)
        connection = _connect(database) if not isinstance(database, sqlite3.Connection) else database
        self.link = Link.of(_SqliteSession(connection), own=own)
        try:
            self._open(connection, table, key, schema, watch=watch, keep=keep, trim_every=trim_every)
        except BaseException:
            self.link.leave()
            raise

    def _open(
        self,
        connection: sqlite3.Connection,
        table: str,
        key: str | Sequence[str] | None,
        schema: Schema | str | None,
        *,
        watch: bool,
        keep: float,
        trim_every: int,
    ) -> None:
        table = _find(connection, table)
        self.name, self.table = f'table "{table}"', quoted(table)
        columns = columns_of(connection, table)
        schema = Schema.parse(schema) if isinstance(schema, str) else schema or schema_of(columns, self.name)
        names = [column[0] for column in columns]
        places = [_place(names, column, self.name) for column in schema.names]
        if key is None:
            key = [name for name, _, _, place in sorted(columns, key=lambda column: column[3]) if place]
        self.schema, self.key, self.keyed = keyed(schema, key)
        check_columns(self.schema, columns, self.name)
        self.dialect = SqliteDialect(self.schema)
        self._read = reader(self.schema, self.name)
        taken = {name.lower() for name in names}  # a column of that name hides the rowid
        self._rowid = next((name for name in ("rowid", "oid", "_rowid_") if name not in taken), "rowid")
        self.mark, self.log = NOWHERE, None
        super().__init__()
        if watch:
            pick = _picking(places, self._read)
            log = SqliteLog(self.link, table, columns, pick, keep=keep, trim_every=trim_every)
            self.log, self.mark = log, log.install()

    # -- inside

    def _fetch(self, query: Sql, limit: int | None) -> Iterator[Row]:
        with closing(self._run(query)) as cursor, asking(self.name):
            for row in cursor:
                self.rows_read += 1
                yield self._read(row)

    def _execute(self, statement: Sql) -> int:
        with closing(self._run(statement)) as cursor:
            return cursor.rowcount

    def one_of(self, where: str) -> str:
        return f"{self._rowid} = (SELECT {self._rowid} FROM {self.table} WHERE {where} LIMIT 1)"

    def _run(self, statement: Sql) -> sqlite3.Cursor:
        with asking(self.name):
            return self.link.session.connection.execute(*statement)


class _SqliteSession:
    """Transactions of a SQLite connection, whatever its isolation level."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def start(self, *, write: bool) -> None:
        with asking("SQLite"):
            if self.connection.in_transaction:
                hint = "commit it first; if the connection is your own, turns use it, too"
                raise SourceError("a transaction of the connection is open already", hint=hint)
            self.connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def start_aside(self) -> None:
        self.start(write=True)

    def finish(self) -> None:
        with asking("SQLite"):
            self.connection.execute("COMMIT")

    def abandon(self) -> None:
        with asking("SQLite"):
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()


def _connect(path: str | Path) -> sqlite3.Connection:
    if not path_of(path, SourceError).is_file():
        raise SourceError(f"there is no SQLite database at {path}", hint="give the path of one, or a connection")
    with asking(str(path)):
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


def _find(connection: sqlite3.Connection, table: str) -> str:
    """The name of a table as it was declared; SQLite ignores case."""
    with asking("SQLite"):
        (encoding,) = connection.execute("PRAGMA encoding").fetchone()
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if encoding != "UTF-8":
        raise SourceError(f"the database keeps text as {encoding}", hint="its order is ours only in UTF-8: convert it")
    for name in names:
        if name == table or name.lower() == table.lower():
            return name
    ours = [name for name in names if not name.startswith(("sqlite_", "everview_"))]
    raise SourceError(f'there is no table "{table}" in the database', hint=f"it has {', '.join(ours) or 'none'}")


def _place(names: list[str], column: str, name: str) -> int:
    if column in names:
        return names.index(column)
    raise SourceError(f'{name} has no column "{column}"', hint=f"it has {', '.join(names)}")


def _picking(places: list[int], read: Callable[[tuple[Any, ...]], Row]) -> Callable[[tuple[Any, ...]], Row]:
    return lambda row: read(tuple([row[place] for place in places]))
