"""Rows as SQL shows them: timestamps without a zone, in UTC, as in a PySpark session whose zone is UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.types import TIMESTAMP, Schema
from everview.zset.batch import Batch

Row = tuple[Any, ...]


def shown(schema: Schema, rows: list[Row]) -> list[Row]:
    """The rows with plain timestamps.

    >>> import datetime as dt
    >>> shown(Schema.parse("at TIMESTAMP"), [(dt.datetime(2026, 1, 1, tzinfo=dt.UTC),), (None,)])
    [(datetime.datetime(2026, 1, 1, 0, 0),), (None,)]
    """
    moments = {place for place, type_ in enumerate(schema.types) if type_ == TIMESTAMP}
    if not moments:
        return rows
    return [
        tuple(v.replace(tzinfo=None) if place in moments and v is not None else v for place, v in enumerate(row))
        for row in rows
    ]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ShownBatch(Batch):
    """A batch with timestamps, as a change or contents of a view: it iterates as SQL shows rows."""

    def elements(self) -> list[Row]:
        """The different rows as Python tuples."""
        return shown(self.schema, Batch.elements(self))


def as_changes(batch: Batch) -> Batch:
    """The batch itself, or with timestamps, as one that shows its rows as SQL does."""
    if TIMESTAMP not in batch.schema.types:
        return batch
    return ShownBatch(batch.schema, batch.rows, batch.dictionary)
