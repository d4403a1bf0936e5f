"""A logical replication slot: PostgreSQL's own account of what a reader has read, by places of its log.

A slot is made with a snapshot of the same moment, so that what the snapshot shows and what the slot tells later are,
together, everything once. Looking at changes does not consume them: only `ReplicationSlot.advance` lets them go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq, sql

from everview.errors import LostPosition, SourceError
from everview.sources.postgres.asking import asking
from everview.sources.protocol import RESYNC

# Texts of values depend on these; `pgoutput` writes them as the session would.
SETTINGS = "SET datestyle = 'ISO'; SET timezone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 1"


@dataclass
class ReplicationSlot:
    """A slot of a name, with the publication whose changes it tells."""

    dsn: str
    connection: psycopg.Connection[Any]
    name: str
    publication: str

    def make(self) -> tuple[int, str, psycopg.Connection[Any]]:
        """Make the slot anew: its first place, a snapshot of that moment, and the connection that holds the latter."""
        self.drop()
        with asking(f"slot {self.name}"):
            holder = psycopg.connect(self.dsn, autocommit=True, replication="database")
        command = f'CREATE_REPLICATION_SLOT "{self.name}" LOGICAL pgoutput EXPORT_SNAPSHOT'
        made = holder.pgconn.exec_(command.encode())
        if made.status != pq.ExecStatus.TUPLES_OK:
            holder.close()
            why = made.error_message.decode(errors="replace").strip()
            hint = (
                "the server needs wal_level = logical, a free slot (max_replication_slots), and a role with REPLICATION"
            )
            raise SourceError(f"slot {self.name} cannot be made: {why}", hint=hint)
        place, snapshot = made.get_value(0, 1) or b"0/0", made.get_value(0, 2) or b""
        return place_of(place.decode()), snapshot.decode(), holder

    def drop(self) -> None:
        """Drop the slot, if it is there."""
        with asking(f"slot {self.name}"):
            self.connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                (self.name,),
            )

    def require(self, place: int) -> None:
        """Raise `LostPosition` if the slot does not tell all that came after a place."""
        with asking(f"slot {self.name}"):
            known = self.connection.execute(
                "SELECT confirmed_flush_lsn::text, to_jsonb(s) ->> 'wal_status' FROM pg_replication_slots s"
                " WHERE slot_name = %s",
                (self.name,),
            ).fetchone()
        if known is None:
            raise LostPosition(f'the replication slot "{self.name}" is gone', hint=RESYNC)
        if known[1] == "lost":
            hint = f"{RESYNC}; max_slot_wal_keep_size says how much the server keeps"
            raise LostPosition(f'the server has let go of what slot "{self.name}" had not told', hint=hint)
        if place_of(known[0]) > place:
            raise LostPosition(f'slot "{self.name}" has been read further by another', hint=RESYNC)

    def peek(self, most: int) -> list[tuple[bytes]]:
        """The messages of whole transactions that come next, of about so many changes, still to be told again."""
        with asking(f"slot {self.name}"):
            return self.connection.execute(
                "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s, 'proto_version', '1',"
                " 'publication_names', %s)",
                (self.name, most, sql.Identifier(self.publication).as_string(self.connection)),
            ).fetchall()

    def advance(self, place: int) -> None:
        """Let the server forget what came before a place."""
        with asking(f"slot {self.name}"):
            self.connection.execute(
                "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots"
                " WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn",
                (text_of(place), self.name, text_of(place)),
            )

    def written(self) -> int:
        """The place up to which the server's log is written."""
        with asking(f"slot {self.name}"):
            row = self.connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        return place_of(row[0]) if row else 0


def place_of(text: str) -> int:
    """A place of the log as a number.

    >>> place_of("1/A0"), text_of(place_of("1/A0"))
    (4294967456, '1/A0')
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low or "0", 16)


def text_of(place: int) -> str:
    """A place of the log as PostgreSQL writes it."""
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"
