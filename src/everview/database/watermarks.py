"""Watermarks of tables: how far their time has come, and the rows that come too late.

A table with a watermark has two companions. One is a relation of one row, its watermark: the latest time of its rows,
less the delay that was declared. It moves in the tick that brings a later row, and counts from the next tick on. The
other holds the late rows: changes of rows that lie before the watermark, or have no time at all, are no changes of the
table, but are set aside there, with their weights in a column ``_change``. So no promise is ever broken, and nothing is
lost silently.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition
from everview.errors import DefinitionError
from everview.plan.timed import Watermark, expired_of, late_of, watermark_of
from everview.runtimes.embedded.relation import KeptTable
from everview.scalars.kinds import MICROS
from everview.types import BIGINT, DATE, Field, Schema
from everview.types.words import Matrix

if TYPE_CHECKING:
    from everview.database.core import Core
    from everview.database.transaction import OpenTransaction

CHANGE: Final = "_change"  # the column of late rows that says how often a row was to come, or to go if negative


def with_watermarks(catalog: Catalog) -> Catalog:
    """The catalog with the companions of every table that has a watermark."""
    for table in [*catalog.tables.values()]:
        if table.watermark is None or watermark_of(table.name) in catalog.tables:
            continue
        if CHANGE in table.schema.names:
            raise DefinitionError(
                f"table {table.name} has a column {CHANGE}, and so have its late rows", hint="name the column otherwise"
            )
        time = table.schema[table.watermark.column]
        moment = Schema([replace(time, nullable=False)])
        late = Schema([*table.schema.fields, Field(CHANGE, BIGINT, nullable=False)])
        catalog = catalog.with_table(TableDefinition.of(watermark_of(table.name), moment))
        catalog = catalog.with_table(TableDefinition.of(late_of(table.name), late))
    return catalog


def judge(core: Core, tx: OpenTransaction) -> None:
    """Set aside what comes too late to tables in a transaction that is about to end, and move their watermarks."""
    for name in tx.changing:
        watermark = core.definitions.catalog.tables[name].watermark
        if watermark is not None:
            _judge(core, tx, core.definitions.relations[name], watermark)
            if watermark.ttl is not None:
                tx.carry(name, (-core.run.views[expired_of(name)].held()).rows)


def _judge(core: Core, tx: OpenTransaction, table: KeptTable, watermark: Watermark) -> None:
    relation = core.definitions.relations[watermark_of(table.name)]
    held = relation.rows(core.run.state).rows
    passed = int(held[0, 0]) if len(held) else None
    judged = [JudgedRows.of(part, table, watermark.column, passed) for part in tx.pending(table)]
    late = [each.late for each in judged if len(each.late)]
    if late:
        tx.become_pending(table, [each.in_time for each in judged])
        tx.carry(late_of(table.name), _set_aside(table, np.concatenate(late)))
    latest = max((each.latest for each in judged if each.latest is not None), default=None)
    if latest is None:
        return
    time = table.schema[watermark.column]
    reached = latest - (watermark.delay // MICROS["day"] if time.type == DATE else watermark.delay)
    if passed is None or reached > passed:
        tx.carry(relation.name, np.array([[reached, 1], *([row[0], -1] for row in held)], np.int64))


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """A part of a pending change, told apart by the watermark; the latest time of what comes in time."""

    in_time: Matrix
    late: Matrix
    latest: int | None

    @classmethod
    def of(cls, rows: Matrix, table: KeptTable, column: str, passed: int | None) -> JudgedRows:
        place = table.stored.words(table.stored.index(column)).start
        first = np.iinfo(np.int64).min + 1 if passed is None else passed  # NULL is before all moments
        late = rows[:, place] < first
        if late.any() and table.resolver.keyed:
            late = _whole_keys(rows, late, table.resolver.key)
        kept = rows[~late] if late.any() else rows
        coming = kept[kept[:, -1] > 0, place]
        return cls(kept, rows[late], int(coming.max()) if coming.size else None)


def _whole_keys(rows: Matrix, late: np.ndarray, key: int) -> np.ndarray:
    """Extend lateness to whole keys: a row is late together with the row that it replaces."""
    ids = np.unique(rows[:, :key], axis=0, return_inverse=True)[1].reshape(-1)
    return np.isin(ids, ids[late])


def _set_aside(table: KeptTable, rows: Matrix) -> Matrix:
    """Late changes as rows of their own: the weight becomes a column."""
    given = table.resolver.as_source(rows)
    ones = np.ones((given.shape[0], 1), np.int64)
    return np.ascontiguousarray(np.concatenate([given, ones], axis=1))
