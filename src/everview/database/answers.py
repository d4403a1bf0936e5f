"""Answers: the rows of a query at one moment, in the order that the query asks for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.codes.exits import AsFrames
from everview.codes.rows import to_rows
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Order
from everview.scalars.functions.comparison import order_key
from everview.types import Schema
from everview.zset.shown import shown
from everview.zset.tables import SHOWN, table

compute: Any = pc


class Answer(AsFrames):
    """The rows of a query: a sequence of tuples, or a table.

    An answer equals a list of the same rows. It is no `collections.abc.Sequence` by inheritance: Polars would take the
    tuples of one, and lose the names and types of its columns.
    """

    def __init__(self, schema: Schema, rows: pa.Table) -> None:
        self.schema = schema
        self._table = rows

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.schema.names

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples."""
        return list(self._rows)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._table

    @cached_property
    def _rows(self) -> list[tuple[Any, ...]]:
        return shown(self.schema, to_rows(self.schema, self._table))

    def __len__(self) -> int:
        return self._table.num_rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)

    @overload
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        return self._rows[index]

    def __contains__(self, row: object) -> bool:
        return row in self._rows

    def __reversed__(self) -> Iterator[tuple[Any, ...]]:
        return reversed(self._rows)

    def index(self, row: tuple[Any, ...], start: int = 0, stop: int | None = None) -> int:
        """The place of the first row that equals this one, as of a list."""
        return self._rows.index(row, start, len(self) if stop is None else stop)

    def count(self, row: tuple[Any, ...]) -> int:
        """The number of rows that equal this one, as of a list."""
        return self._rows.count(row)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Answer):
            return self._rows == other._rows
        return self._rows == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Answer({self.schema}; {len(self)} rows)"

    def __str__(self) -> str:
        shown = [self.names, *(tuple(map(str, row)) for row in to_rows(self.schema, self._table.slice(0, SHOWN)))]
        widths = [max(len(row[column]) for row in shown) for column in range(len(self.names))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in shown]
        more = [f"… and {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return "\n".join(line.rstrip() for line in [*lines, *more])

    def _repr_html_(self) -> str:
        return table(self.names, to_rows(self.schema, self._table.slice(0, SHOWN)), len(self))


def in_order(rows: pa.Table, order: Order) -> pa.Table:
    """The rows sorted by some expressions of their columns; NULL is the least unless the order says otherwise.

    >>> from everview.scalars.expressions import Column
    >>> from everview.types import BIGINT
    >>> rows = pa.table({"a": [2, None, 1]})
    >>> in_order(rows, ((Column(0, "a", BIGINT, True), "desc"),)).to_pydict()
    {'a': [2, 1, None]}
    """
    if not order or rows.num_rows < 2:
        return rows
    columns = [column.combine_chunks() for column in rows.columns]
    keys = Evaluate(tuple(by for by, _ in order))(*columns)
    places: Any = pa.array(np.arange(rows.num_rows))
    # The last key first: every sort keeps the order of what it finds equal.
    for key, (_, how) in reversed(list(zip(keys, order, strict=True))):
        places = _sorted(key, places, how.lower())
    return rows.take(places)


def _sorted(key: Any, places: Any, how: str) -> Any:
    """Row numbers sorted by a key: by value first, then NaN and NULL moved to their side of the other values."""
    if isinstance(key, pa.Scalar):
        return places
    key = key.combine_chunks() if isinstance(key, pa.ChunkedArray) else key
    key = _ranked(key) if pa.types.is_nested(key.type) else key
    descends = "desc" in how
    nulls_first = "first" in how if "nulls" in how else not descends
    places = _by(key, places, descends)
    if pa.types.is_floating(key.type):
        # NaN is the greatest number; to Arrow it stands beside NULL, whatever the direction.
        places = _by(compute.fill_null(compute.is_nan(key), False).cast(pa.int8()), places, descends)
    return _by(key.is_null().cast(pa.int8()), places, nulls_first) if key.null_count else places


def _ranked(key: Any) -> Any:
    """Ranks of arrays and structs, which Arrow does not sort; equal values have the same rank."""
    keys = [order_key(value) for value in key.to_pylist()]
    ranks = {frozen: rank for rank, frozen in enumerate(sorted(set(keys)))}
    return pa.array([ranks[frozen] for frozen in keys], mask=key.is_null().to_numpy(zero_copy_only=False))


def _by(key: Any, places: Any, descends: bool) -> Any:
    """Row numbers stably sorted by a key."""
    how = "descending" if descends else "ascending"
    return places.take(compute.sort_indices(pa.table({"key": key.take(places)}), sort_keys=[("key", how)]))
