"""Rows that come in, each delivery once: an idempotency key is kept in the same tick as the rows it came with.

A client that does not know whether its rows were taken sends them again with the same key, and is told what was
answered first. The same key with other rows is refused. Keys are rows of a table of the database, so a crash keeps
both or neither; the oldest are forgotten when there are too many.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.errors import DefinitionError, EverviewError

if TYPE_CHECKING:
    from everview.database import Database

KEYS: Final = "everview_ingests"
COLUMNS: Final = "key STRING, fingerprint STRING, table_name STRING, rows BIGINT, epoch BIGINT, taken TIMESTAMP"
MODES: Final = ("insert", "upsert", "delete")
SLACK: Final = 1.1  # how many more keys than allowed there may be before the oldest are forgotten


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """Rows for a table, and the key by which they are taken once."""

    table: str
    rows: pa.Table
    mode: str = "insert"
    key: str | None = None
    fingerprint: str = ""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise EverviewError(f"{self.mode!r} is no mode", hint=f"one of {', '.join(MODES)}")
        if self.key is not None and not 0 < len(self.key) <= 200:
            raise EverviewError("an idempotency key has 1 to 200 characters", hint="a UUID will do")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of a delivery: changed rows, the epoch, and whether an earlier request had delivered it."""

    rows: int
    epoch: int
    replayed: bool = False


def deliver(database: Database, delivery: IngestOutcome, keys: int) -> Receipt:
    """Take a delivery in, as one tick, or find that it was taken before; in the writer's thread."""
    if delivery.table == KEYS:
        raise DefinitionError(f'"{KEYS}" is the server\'s own table', hint="send the rows to another one")
    if delivery.key is None:
        with database.transaction() as tx:
            changed = _changed(tx, delivery)
        return Receipt(changed, database.epoch)
    if KEYS not in database.tables():
        database.create_table(KEYS, COLUMNS, key="key")
    known = database.table(KEYS).get(delivery.key)
    if known is not None:
        return _replayed(known, delivery)
    with database.transaction() as tx:
        changed = _changed(tx, delivery)
        taken = dt.datetime.now(dt.UTC)
        row = delivery.key, delivery.fingerprint, delivery.table, changed, database.epoch + 1, taken
        tx.insert(KEYS, [row])
    receipt = Receipt(changed, database.epoch)
    if receipt.epoch % 256 == 0:
        forget_oldest(database, keys)
    return receipt


def forget_oldest(database: Database, keys: int) -> None:
    """Forget the oldest keys if there are many more than allowed."""
    table = database.table(KEYS)
    count = len(table)
    if count > SLACK * keys:
        oldest = database.sql(f"SELECT key FROM {KEYS} ORDER BY taken LIMIT {count - keys}")
        with database.transaction() as tx:
            tx.delete(KEYS, [key for (key,) in oldest])


def _replayed(known: tuple[Any, ...], delivery: IngestOutcome) -> Receipt:
    _, fingerprint, table, rows, epoch, _ = known
    if (fingerprint, table) != (delivery.fingerprint, delivery.table):
        raise DefinitionError(
            f"the idempotency key {delivery.key!r} was used for other rows", hint="a key goes with one delivery"
        )
    return Receipt(rows, epoch, replayed=True)


def _changed(tx: Any, delivery: IngestOutcome) -> int:
    return int(getattr(tx, delivery.mode)(delivery.table, delivery.rows))
