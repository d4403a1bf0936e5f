"""Rows as SQL shows them: timestamps without a zone, in UTC, as in a PySpark session whose zone is UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from everview.types import TIMESTAMP, Array, MapType, Schema, Struct, Type
from everview.zset.batch import Batch

Row = tuple[Any, ...]


def shown(schema: Schema, rows: list[Row]) -> list[Row]:
    """The rows with plain timestamps.

    >>> import datetime as dt
    >>> shown(Schema.parse("at TIMESTAMP"), [(dt.datetime(2026, 1, 1, tzinfo=dt.UTC),), (None,)])
    [(datetime.datetime(2026, 1, 1, 0, 0),), (None,)]
    """
    changes = {place: how for place, type_ in enumerate(schema.types) if (how := _plainly(type_)) is not None}
    if not changes:
        return rows
    return [
        tuple(v if v is None or place not in changes else changes[place](v) for place, v in enumerate(row))
        for row in rows
    ]


@cache
def _plainly(type_: Type) -> Callable[[Any], Any] | None:
    """How a value is shown with plain timestamps; None if it has none."""
    match type_:
        case Array(element):
            inner = _plainly(element)
            return None if inner is None else lambda values: [v if v is None else inner(v) for v in values]
        case Struct(fields):
            parts = {f.name: how for f in fields if (how := _plainly(f.type)) is not None}
            if not parts:
                return None
            return lambda value: {n: parts[n](v) if n in parts and v is not None else v for n, v in value.items()}
        case MapType(key, value):
            keys, values = _plainly(key), _plainly(value)
            if keys is None and values is None:
                return None
            return lambda pairs: {_or_same(keys, k): _or_same(values, v) for k, v in pairs.items()}
        case _:
            return (lambda moment: moment.replace(tzinfo=None)) if type_ == TIMESTAMP else None


def _or_same(how: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if how is None or value is None else how(value)


def has_moments(schema: Schema) -> bool:
    """Whether a row has a timestamp somewhere."""
    return any(_plainly(type_) is not None for type_ in schema.types)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ShownBatch(Batch):
    """A batch with timestamps, as a change or contents of a view: it iterates as SQL shows rows."""

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return zip(self.elements(), self.weights.tolist(), strict=True)

    def elements(self) -> list[Row]:
        """The different rows as Python tuples."""
        return shown(self.schema, Batch.elements(self))


def as_changes(batch: Batch) -> Batch:
    """The batch itself, or with timestamps, as one that shows its rows as SQL does."""
    if not has_moments(batch.schema):
        return batch
    return ShownBatch(batch.schema, batch.rows, batch.dictionary)
