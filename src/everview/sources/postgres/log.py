"""The log of a PostgreSQL table: triggers write the changes, and snapshots tell a reader which ones are unread.

Entries are numbered when they are written, not when they are committed, so a number says nothing of what a reader has
seen. Each has its transaction instead. A position is a snapshot: the entries to be read next are those that the open
transaction sees and that are of transactions which were not visible in that snapshot. So each is read exactly once,
whatever the order in which writers commit. The reader's own writes are in no snapshot of their turn, and are noted.

What was before the oldest snapshot of all readers is let go. TRUNCATE enters all rows that it removes; in a
transaction above READ COMMITTED it does not see those that others have committed since it began.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg import sql

from everview.errors import LostPosition, SchemaDrift, SourceError
from everview.sources.link import Link
from everview.sources.postgres.asking import asking
from everview.sources.postgres.dialect import quoted
from everview.sources.protocol import RESYNC, Position, Update
from everview.sources.table import TableLog, told
from everview.sources.values import rows_of
from everview.types import Schema

LOCK: Final = 0x65766572766965  # "evervie": for those who make logs at the same time
TABLES: Final = """
CREATE TABLE IF NOT EXISTS {0}.everview_logs
  (relation oid PRIMARY KEY, id text NOT NULL, trimmed xid8 NOT NULL DEFAULT '0');
CREATE TABLE IF NOT EXISTS {0}.everview_readers
  (reader text, relation oid, snapshot pg_snapshot NOT NULL, seen timestamptz NOT NULL DEFAULT now(),
   PRIMARY KEY (reader, relation));
CREATE TABLE IF NOT EXISTS {0}.everview_changes
  (n bigserial PRIMARY KEY, relation oid NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
   weight smallint NOT NULL, image jsonb NOT NULL);
CREATE INDEX IF NOT EXISTS everview_changes_in_order ON {0}.everview_changes (relation, xid);
CREATE OR REPLACE FUNCTION {0}.everview_log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog AS $everview_log$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    EXECUTE format('INSERT INTO %I.everview_changes (relation, weight, image)'
      ' SELECT $1, -1, to_jsonb(t) FROM %I.%I AS t', TG_TABLE_SCHEMA, TG_TABLE_SCHEMA, TG_TABLE_NAME) USING TG_RELID;
    RETURN NULL;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO {0}.everview_changes (relation, weight, image) VALUES (TG_RELID, -1, to_jsonb(OLD));
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO {0}.everview_changes (relation, weight, image) VALUES (TG_RELID, 1, to_jsonb(NEW));
  END IF;
  RETURN NULL;
END $everview_log$;
"""
TRIGGERS: Final = """
CREATE TRIGGER everview_rows AFTER INSERT OR UPDATE OR DELETE ON {1}
  FOR EACH ROW EXECUTE FUNCTION {0}.everview_log();
CREATE TRIGGER everview_truncate BEFORE TRUNCATE ON {1} FOR EACH STATEMENT EXECUTE FUNCTION {0}.everview_log();
ALTER TABLE {1} ENABLE ALWAYS TRIGGER everview_rows;
ALTER TABLE {1} ENABLE ALWAYS TRIGGER everview_truncate;
"""


@dataclass(frozen=True, slots=True)
class PostgresMark:
    """The mark of a reader's position: a snapshot, and the reader's own transaction after it."""

    log: str
    reader: str
    snapshot: str
    own: str = "0"


class PostgresLog(TableLog[PostgresMark]):
    """The entries of one table."""

    def __init__(
        self, link: Link, place: tuple[str, str], oid: int, schema: Schema, *, keep: float, trim_every: int
    ) -> None:
        self._link, self._place, self._oid, self._keep, self._trim_every = link, place, oid, keep, trim_every
        self._row_of = rows_of(schema, f'table "{place[1]}"')
        self._here = {name: quoted(place[0], f"everview_{name}") for name in ("logs", "readers", "changes")}
        columns = ", ".join(f"r.{quoted(column)}" for column in schema.names)
        self._since = (
            f"SELECT c.weight, {columns} FROM {self._here['changes']} AS c,"
            f" LATERAL jsonb_populate_record(NULL::{quoted(*place)}, c.image) AS r"
            " WHERE c.relation = %s AND c.xid >= pg_snapshot_xmin(%s::pg_snapshot)"
            " AND NOT pg_visible_in_snapshot(c.xid, %s::pg_snapshot) AND c.xid <> %s::xid8"
        )
        self._seen = time.monotonic()  # when the log was last told of this reader
        self._fresh = self._read = 0  # entries in the last reading, and since the last time that it was trimmed

    def _sql(self, text: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        with asking(f'table "{self._place[1]}"'):
            return self._link.session.connection.execute(text.encode(), values)

    def _script(self, text: str) -> None:
        names = sql.Identifier(self._place[0]), sql.Identifier(*self._place)
        with asking(f'table "{self._place[1]}"'):
            self._link.session.connection.execute(sql.SQL(text).format(*names))  # pyright: ignore

    # -- making it

    def install(self) -> PostgresMark:
        """Create the log and its triggers if they are not there; the mark of a new reader."""
        with self._link.aside():
            self._sql("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            self._script(TABLES)
            known = self._sql(f"SELECT id FROM {self._here['logs']} WHERE relation = %s", (self._oid,)).fetchone()
            if known is None or self._watched() < 2:
                self._remove()
                self._script(TRIGGERS)
                known = (uuid4().hex,)
                self._sql(f"INSERT INTO {self._here['logs']} (relation, id) VALUES (%s, %s)", (self._oid, *known))
            # To make a trigger is to wait for all writers that it would be too late for.
            (snapshot,) = self._sql("SELECT pg_current_snapshot()::text").fetchone() or ("",)
            mark = PostgresMark(known[0], uuid4().hex, snapshot)
            self._register(mark)
            return mark

    def uninstall(self) -> None:
        """Remove the triggers, and the log if no table of the schema has one."""
        with self._link.aside():
            self._remove()
            if self._sql(f"SELECT 1 FROM {self._here['logs']}").fetchone() is None:
                for name in self._here.values():
                    self._sql(f"DROP TABLE {name}")
                self._sql(f"DROP FUNCTION {quoted(self._place[0], 'everview_log')}()")

    def _remove(self) -> None:
        for trigger in ("everview_rows", "everview_truncate"):
            self._sql(f"DROP TRIGGER IF EXISTS {trigger} ON {quoted(*self._place)}")
        for name in self._here.values():
            self._sql(f"DELETE FROM {name} WHERE relation = %s", (self._oid,))

    def _watched(self) -> int:
        triggers = self._sql(
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = %s AND tgenabled = 'A'"
            " AND tgname IN ('everview_rows', 'everview_truncate')",
            (self._oid,),
        ).fetchone()
        return 0 if triggers is None else triggers[0]

    # -- reading it

    def since(self, mark: PostgresMark) -> tuple[Update, PostgresMark]:
        snapshot, own, oid, watched, log, kept = self._sql(
            "SELECT pg_current_snapshot()::text, pg_current_xact_id_if_assigned()::text, to_regclass(%s)::oid,"
            " (SELECT count(*) FROM pg_trigger WHERE tgrelid = %s AND tgname LIKE 'everview_%%'),"
            f" (SELECT id FROM {self._here['logs']} WHERE relation = %s),"
            f" (SELECT trimmed <= pg_snapshot_xmin(%s::pg_snapshot) FROM {self._here['logs']} WHERE relation = %s)",
            (quoted(*self._place).replace("%%", "%"), self._oid, self._oid, mark.snapshot, self._oid),
        ).fetchone() or ("", None, None, 0, None, None)
        if oid != self._oid or watched < 2:
            raise SchemaDrift(f'table "{self._place[1]}" has been made anew, or is not watched', hint="open it again")
        self._check_place(mark, log, kept)
        with asking(f'table "{self._place[1]}"'):  # there may be values that Python has no like of
            rows = self._sql(self._since, (self._oid, mark.snapshot, mark.snapshot, mark.own)).fetchall()
        self._fresh = len(rows)
        if not rows:
            return Update({}), mark
        changes = told(((tuple(row), weight) for weight, *row in rows), self._row_of)
        return changes, PostgresMark(mark.log, mark.reader, snapshot, own or "0")

    # -- positions

    def text(self, mark: PostgresMark) -> Position:
        return Position(f"{mark.log}/{mark.reader}/{mark.snapshot}/{mark.own}")

    def read(self, position: Position) -> PostgresMark:
        log, reader, snapshot, own = position.split("/") if position.count("/") == 3 else ("", "", "1:1:", "0")
        mark = PostgresMark(log, reader, snapshot, own)
        known = self._sql(
            f"SELECT id, trimmed <= pg_snapshot_xmin(%s::pg_snapshot) FROM {self._here['logs']} WHERE relation = %s",
            (snapshot, self._oid),
        ).fetchone()
        self._check_place(mark, *(known or (None, None)))
        return mark

    def _check_place(self, mark: PostgresMark, log: str | None, kept: bool | None) -> None:
        if log != mark.log:
            raise LostPosition(f'the log of table "{self._place[1]}" is not the one that was read', hint=RESYNC)
        if not kept:
            raise LostPosition(f'the log of table "{self._place[1]}" has been trimmed since it was read', hint=RESYNC)

    def trim(self, mark: PostgresMark) -> None:
        """Delete, now and then, what all readers have read; readers that have not come for long do not count."""
        self._read, self._fresh = self._read + self._fresh, 0
        if self._read < self._trim_every and time.monotonic() - self._seen < self._keep / 10:
            return
        try:
            with self._link.aside():
                self._register(mark)
                self._let_go()
        except SourceError:
            return  # another reader is at it: next time
        self._read, self._seen = 0, time.monotonic()

    def leave(self, mark: PostgresMark) -> None:
        """Forget a reader that will not come back."""
        with self._link.aside():
            values = (mark.reader, self._oid)
            self._sql(f"DELETE FROM {self._here['readers']} WHERE reader = %s AND relation = %s", values)
            self._let_go()

    def take_over(self, new: PostgresMark, old: PostgresMark) -> None:
        """Go on as the reader that a position names, instead of the new one."""
        if new.reader == old.reader:
            return
        with self._link.aside():
            self._sql(f"DELETE FROM {self._here['readers']} WHERE reader = %s", (old.reader,))
            self._register(new)

    def _register(self, mark: PostgresMark) -> None:
        self._sql(
            f"INSERT INTO {self._here['readers']} AS r (reader, relation, snapshot)"
            " VALUES (%s, %s, %s::pg_snapshot) ON CONFLICT (reader, relation)"
            " DO UPDATE SET snapshot = excluded.snapshot, seen = now()",
            (mark.reader, self._oid, mark.snapshot),
        )

    def _let_go(self) -> None:
        readers, changes, logs = (self._here[name] for name in ("readers", "changes", "logs"))
        self._sql(f"DELETE FROM {readers} WHERE seen < now() - make_interval(secs => %s)", (self._keep,))
        # With no reader left, what the oldest running transaction may still be writing is kept.
        least = (
            f"(SELECT coalesce(min(pg_snapshot_xmin(snapshot)), pg_snapshot_xmin(pg_current_snapshot()))"
            f" FROM {readers} WHERE relation = %s)"
        )
        self._sql(f"DELETE FROM {changes} WHERE relation = %s AND xid < {least}", (self._oid, self._oid))
        self._sql(f"UPDATE {logs} SET trimmed = greatest(trimmed, {least}) WHERE relation = %s", (self._oid, self._oid))
