"""The log of a SQLite table: triggers write the changes, so the log holds the committed ones in order of commit.

Every row that comes or goes is an entry with its weight. SQLite runs no trigger for a row that REPLACE removes to make
room. So before every insert, and every update of a unique column, the rows that it would replace are entered with
weight 0: they were there then. When the log is read, such a row is looked up in the table. If it is there less often
than its other entries say, the difference is what REPLACE has removed.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from everview.errors import LostPosition, SchemaDrift, SourceError
from everview.sources.link import Link
from everview.sources.protocol import RESYNC, Position, Row, Update
from everview.sources.sqlite.asking import asking
from everview.sources.sqlite.columns import SqliteColumn
from everview.sources.sqlite.dialect import quoted
from everview.sources.table import TableLog, told

VERSION: Final = 1
EVENTS: Final = ("insert", "update", "delete", "before insert", "before update")
Unique = tuple[tuple[str, str], ...]  # columns and their collations


@dataclass(frozen=True, slots=True)
class SqliteMark:
    """The mark of a reader's position; the log keeps the entries that some reader has not read."""

    log: str
    reader: str
    entry: int


class SqliteLog(TableLog[SqliteMark]):
    """The entries of one table."""

    def __init__(
        self,
        link: Link,
        table: str,
        columns: list[SqliteColumn],
        pick: Callable[[tuple[Any, ...]], Row],
        *,
        keep: float,
        trim_every: int,
    ) -> None:
        self._link, self._table, self._columns, self._pick = link, table, columns, pick
        self._keep, self._trim_every = keep, trim_every
        self._entries = quoted(f"everview_changes:{table}")
        self._names = ", ".join(f"c{i}" for i in range(len(columns)))
        self._trimmed = 0
        self._seen = time.monotonic()  # when the log was last told of this reader
        self._schema_version = -1

    def _sql(self, text: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        with asking(f'table "{self._table}"'):
            return self._link.session.connection.execute(text, values)

    # -- making it

    def install(self) -> SqliteMark:
        """Create the log and its triggers if they are not there; the mark of a new reader."""
        with self._link.aside():
            self._sql(
                "CREATE TABLE IF NOT EXISTS everview_logs"
                " (relation TEXT PRIMARY KEY, id TEXT NOT NULL, made TEXT NOT NULL, trimmed INTEGER NOT NULL)"
            )
            self._sql(
                "CREATE TABLE IF NOT EXISTS everview_readers (reader TEXT, relation TEXT, entry INTEGER NOT NULL,"
                " seen REAL NOT NULL, PRIMARY KEY (reader, relation))"
            )
            known = self._sql("SELECT id, made FROM everview_logs WHERE relation = ?", (self._table,)).fetchone()
            statements = list(self._statements())
            made = json.dumps([VERSION, *statements])
            if known is None or known[1] != made or not self._is_watched():
                self._remove()
                for statement in statements:
                    self._sql(statement)
                known = (uuid4().hex, made)
                self._sql("INSERT INTO everview_logs VALUES (?, ?, ?, 0)", (self._table, *known))
            mark = SqliteMark(known[0], uuid4().hex, self._last())
            self._register(mark)
            self._trimmed = mark.entry
            return mark

    def uninstall(self) -> None:
        """Remove the log and its triggers."""
        with self._link.aside():
            self._remove()
            if self._sql("SELECT 1 FROM everview_logs").fetchone() is None:
                self._sql("DROP TABLE everview_logs")
                self._sql("DROP TABLE everview_readers")

    def _remove(self) -> None:
        for event in EVENTS:
            self._sql(f"DROP TRIGGER IF EXISTS {self._trigger(event)}")
        self._sql(f"DROP TABLE IF EXISTS {self._entries}")
        self._sql("DELETE FROM everview_logs WHERE relation = ?", (self._table,))
        self._sql("DELETE FROM everview_readers WHERE relation = ?", (self._table,))

    def _trigger(self, event: str) -> str:
        return quoted(f"everview {event}:{self._table}")

    def _is_watched(self) -> bool:
        names = [f"everview {event}:{self._table}" for event in EVENTS[:3]]
        triggers = self._sql(
            "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? AND name IN (?, ?, ?)",
            (self._table, *names),
        ).fetchone()
        return triggers[0] == len(names)

    def _statements(self) -> Iterator[str]:
        table, entries = quoted(self._table), f"{self._entries} (w, {self._names})"
        yield f"CREATE TABLE {self._entries} (n INTEGER PRIMARY KEY AUTOINCREMENT, w INTEGER NOT NULL, {self._names})"
        new, old = (", ".join(f"{row}.{quoted(c[0])}" for c in self._columns) for row in ("NEW", "OLD"))
        came, went = (f"INSERT INTO {entries} VALUES ({w}, {values});" for w, values in ((1, new), (-1, old)))
        for event, body in (("insert", came), ("delete", went), ("update", f"{went} {came}")):
            yield f"CREATE TRIGGER {self._trigger(event)} AFTER {event.upper()} ON {table} BEGIN {body} END"
        unique = self._unique()
        if not unique:
            return
        all_ = ", ".join(quoted(c[0]) for c in self._columns)
        body = " ".join(
            f"INSERT INTO {entries} SELECT 0, {all_} FROM {table} WHERE "
            + " AND ".join(f"{quoted(c)} = NEW.{quoted(c)} COLLATE {quoted(by)}" for c, by in each)
            + ";"
            for each in unique
        )
        yield f"CREATE TRIGGER {self._trigger('before insert')} BEFORE INSERT ON {table} BEGIN {body} END"
        moved = " OR ".join(
            f"NEW.{quoted(c)} IS NOT OLD.{quoted(c)}" for c in dict.fromkeys(c for each in unique for c, _ in each)
        )
        yield f"CREATE TRIGGER {self._trigger('before update')} BEFORE UPDATE ON {table} WHEN {moved} BEGIN {body} END"

    def _unique(self) -> list[Unique]:
        """The sets of columns that are unique, by which one row may replace another."""
        sets: dict[Unique, None] = {}
        indexed = False
        for _, index, unique, origin, _ in self._sql(f"PRAGMA index_list({quoted(self._table)})").fetchall():
            if unique:
                sets[self._indexed(index)] = None
                indexed |= origin == "pk"
        key = [name for name, _, _, place in sorted(self._columns, key=lambda c: c[3]) if place]
        if key and not indexed:  # the key is the rowid
            sets[tuple((name, "BINARY") for name in key)] = None
        return list(sets)

    def _indexed(self, index: str) -> Unique:
        rows = self._sql(f"PRAGMA index_xinfo({quoted(index)})").fetchall()
        columns = [(name, collation) for _, _, name, _, collation, key in rows if key]
        if any(name not in {c[0] for c in self._columns} for name, _ in columns):
            raise SourceError(
                f'table "{self._table}" has the unique index "{index}" over an expression, and cannot be watched',
                hint="make it an index over columns, or read the table with watch=False",
            )
        return tuple(columns)

    # -- reading it

    def since(self, mark: SqliteMark) -> tuple[Update, SqliteMark]:
        self._check_table()
        self._check_place(mark)
        query = f"SELECT n, w, {self._names} FROM {self._entries} WHERE n > ? ORDER BY n"
        with asking(f'table "{self._table}"'):  # there may be text that is none
            rows = self._sql(query, (mark.entry,)).fetchall()
        if not rows:
            return Update({}), mark
        net: dict[tuple[Any, ...], int] = {}
        seen: dict[tuple[Any, ...], int] = {}  # rows that stood in the way, and how often they should be there now
        for _, weight, *values in rows:
            row = tuple(values)
            net[row] = net.get(row, 0) + weight
            if weight == 0:
                seen.setdefault(row, 1)
            elif row in seen:
                seen[row] += weight
        for row, wanted in seen.items():
            # A row that may be there several times was never in the way of another, only alike.
            net[row] -= max(0, wanted - self._there(row))
        return told(net.items(), self._pick), SqliteMark(mark.log, mark.reader, rows[-1][0])

    def _there(self, row: tuple[Any, ...]) -> int:
        where = " AND ".join(f"{quoted(column[0])} COLLATE BINARY IS ?" for column in self._columns)
        return self._sql(f"SELECT count(*) FROM {quoted(self._table)} WHERE {where}", row).fetchone()[0]

    def _check_table(self) -> None:
        """Check, after definitions have changed, that the table and its triggers are as before."""
        (version,) = self._sql("PRAGMA schema_version").fetchone()
        if version == self._schema_version:
            return
        if not self._is_watched() or columns_of(self._link.session.connection, self._table) != self._columns:
            raise SchemaDrift(
                f'table "{self._table}" has been changed or made anew since it was opened', hint="open it again"
            )
        self._schema_version = version

    def _last(self) -> int:
        entry = self._sql(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", (f"everview_changes:{self._table}",)
        ).fetchone()
        return 0 if entry is None else entry[0]

    # -- positions

    def text(self, mark: SqliteMark) -> Position:
        return Position(f"{mark.log}:{mark.reader}:{mark.entry}")

    def read(self, position: Position) -> SqliteMark:
        log, reader, entry = position.split(":") if position.count(":") == 2 else ("", "", "0")
        mark = SqliteMark(log, reader, int(entry)) if entry.isdecimal() else SqliteMark("", "", 0)  # of none of ours
        self._check_place(mark)
        return mark

    def _check_place(self, mark: SqliteMark) -> None:
        known = self._sql("SELECT id, trimmed FROM everview_logs WHERE relation = ?", (self._table,)).fetchone()
        if known is None or known[0] != mark.log:
            raise LostPosition(f'the log of table "{self._table}" is not the one that was read before', hint=RESYNC)
        if mark.entry < known[1]:
            raise LostPosition(f'the log of table "{self._table}" has been trimmed since it was read', hint=RESYNC)

    def trim(self, mark: SqliteMark) -> None:
        """Delete, now and then, what all readers have read; readers that have not come for long do not count."""
        if mark.entry - self._trimmed < self._trim_every and time.monotonic() - self._seen < self._keep / 10:
            return
        try:
            with self._link.aside():
                self._register(mark)
                self._let_go()
        except SourceError:
            return  # others are writing: next time
        self._trimmed, self._seen = mark.entry, time.monotonic()

    def leave(self, mark: SqliteMark) -> None:
        """Forget a reader that will not come back."""
        with self._link.aside():
            self._sql("DELETE FROM everview_readers WHERE reader = ? AND relation = ?", (mark.reader, self._table))
            self._let_go()

    def take_over(self, new: SqliteMark, old: SqliteMark) -> None:
        """Go on as the reader that a position names, instead of the new one."""
        if new.reader != old.reader:
            with self._link.aside():
                self._sql("DELETE FROM everview_readers WHERE reader = ?", (old.reader,))
                self._register(new)
        self._trimmed = new.entry

    def _register(self, mark: SqliteMark) -> None:
        self._sql(
            "INSERT OR REPLACE INTO everview_readers VALUES (?, ?, ?, ?)",
            (mark.reader, self._table, mark.entry, time.time()),
        )

    def _let_go(self) -> None:
        self._sql("DELETE FROM everview_readers WHERE seen < ?", (time.time() - self._keep,))
        (least,) = self._sql(
            "SELECT coalesce(min(entry), ?) FROM everview_readers WHERE relation = ?", (self._last(), self._table)
        ).fetchone()
        self._sql(f"DELETE FROM {self._entries} WHERE n <= ?", (least,))
        self._sql("UPDATE everview_logs SET trimmed = max(trimmed, ?) WHERE relation = ?", (least, self._table))


def columns_of(sql: sqlite3.Connection, table: str) -> list[SqliteColumn]:
    """The columns of a table, as SQLite has them."""
    rows = sql.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
    return [(name, text, bool(required), key) for _, name, text, required, _, key in rows]
