"""Columnar Z-sets for people: a matrix of words with its schema and dictionary.

What a tick puts out and what a view holds. Iterates as (row, weight), decodes whole columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everview.codes import decode_pairs, decode_rows, decode_weighted, encode_pairs
from everview.codes.dictionary import Dictionary
from everview.codes.exits import AsFrames
from everview.doors import door
from everview.kernels.large import arrange
from everview.kernels.linear import negated
from everview.kernels.merge import merge
from everview.kernels.sort import is_batch
from everview.types import Schema
from everview.types.words import Matrix
from everview.zset.reference import ZSet
from everview.zset.tables import SHOWN, table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, slots=True)
class Batch(AsFrames):
    """A sorted, consolidated Z-set of words; immutable.

    >>> batch = Batch.of("name STRING, n BIGINT NOT NULL", [(("a", 1), 2), (("b", 2), -1), (("a", 1), -2)])
    >>> list(batch)
    [(('b', 2), -1)]
    """

    schema: Schema
    rows: Matrix
    dictionary: Dictionary

    def __post_init__(self) -> None:
        assert is_batch(self.rows), "a batch is sorted and consolidated"

    @classmethod
    @door
    def of(cls, schema: Schema | str, rows: Any, dictionary: Dictionary | None = None) -> Batch:
        """A batch of (row, weight) pairs, or of a table or frame with a ``_weight`` column."""
        schema = Schema.parse(schema) if isinstance(schema, str) else schema
        dictionary = dictionary or Dictionary()
        return cls.consolidated(schema, encode_pairs(schema, rows, dictionary), dictionary)

    @classmethod
    def in_order(cls, schema: Schema, rows: Matrix, dictionary: Dictionary) -> Batch:
        """The batch of rows that compiled code has just put in order: looking once more would cost a tick as much."""
        batch, set_ = object.__new__(cls), object.__setattr__
        set_(batch, "schema", schema)
        set_(batch, "rows", rows)
        set_(batch, "dictionary", dictionary)
        return batch

    @classmethod
    def consolidated(cls, schema: Schema, delta: Matrix, dictionary: Dictionary) -> Batch:
        """The batch of a delta: sorted, equal rows summed, zeros gone."""
        return cls(schema, delta if is_batch(delta) else arrange(delta, np.arange(schema.width)), dictionary)

    def __len__(self) -> int:
        """The number of different rows."""
        return self.rows.shape[0]

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        return decode_pairs(self.schema, self.rows, self.dictionary)

    @property
    def weights(self) -> NDArray[np.int64]:
        return self.rows[:, -1]

    def elements(self) -> list[tuple[Any, ...]]:
        """The different rows as Python tuples."""
        return decode_rows(self.schema, self.rows[:, :-1], self.dictionary)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table with a ``_weight`` column."""
        return decode_weighted(self.schema, self.rows, self.dictionary)

    def to_zset(self) -> ZSet:
        """The same as a reference Z-set."""
        return ZSet.of(list(self))

    def __add__(self, other: Batch) -> Batch:
        if not isinstance(other, Batch):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        self._same_words(other)
        return type(self)(self.schema, merge(self.rows, other.rows), self.dictionary)

    def __neg__(self) -> Batch:
        return type(self)(self.schema, negated(self.rows), self.dictionary)

    def __sub__(self, other: Batch) -> Batch:
        return self + -other if isinstance(other, Batch) else NotImplemented  # pyright: ignore[reportUnnecessaryIsInstance]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return self.schema.types == other.schema.types and self.to_zset() == other.to_zset()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Batch({self.schema}; {len(self)} rows)"

    def to_html(self) -> str:
        """The first rows as an HTML table."""
        shown = type(self)(self.schema, self.rows[:SHOWN], self.dictionary)
        return table([*self.schema.names, "weight"], ((*row, w) for row, w in shown), len(self))

    def _repr_html_(self) -> str:
        return self.to_html()

    def _same_words(self, other: Batch) -> None:
        assert self.dictionary is other.dictionary and self.schema.types == other.schema.types
