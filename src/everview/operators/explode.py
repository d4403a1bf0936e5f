"""Explode: a row once for each element of one of its arrays. Linear.

``explode({(a, [x, y]): w}) = {(a, x): w, (a, y): w}``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from everview.codes import decode, encode
from everview.operators.operator import (
    Context,
    FieldOrigin,
    Layout,
    Origins,
    Step,
    UnaryOperator,
    from_fields,
    word_columns,
)
from everview.traces.view import TraceView
from everview.types import INTEGER, Array, Field, Schema
from everview.types.words import Matrix


@dataclass(frozen=True)
class Explode(UnaryOperator):
    """Some fields of every row beside each element of its array; with ``outer`` beside NULL where there is none.

    With ``place`` the place of an element, counted from 0, is a column of that name before it.
    """

    source: Layout
    array: int
    keep: tuple[int, ...]
    name: str
    outer: bool = False
    place: str | None = None
    by_row = True

    @cached_property
    def element(self) -> Schema:
        """The columns of the elements, and of their places."""
        type_ = self.source.schema.fields[self.array].type
        assert isinstance(type_, Array), "only arrays have elements"
        places = [] if self.place is None else [Field(self.place, INTEGER, self.outer)]
        return Schema([*places, Field(self.name, type_.element)])

    @cached_property
    def schema(self) -> Schema:
        return Schema([self.source.schema.fields[f] for f in self.keep]) + self.element

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    @property
    def origins(self) -> Origins:
        kept = from_fields(self.keep)
        if self.outer:
            return kept
        return {**kept, len(self.schema) - 1: (FieldOrigin(0, self.array, element=True),)}

    @property
    def reads_values(self) -> bool:
        return True

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        old = self.source.schema
        column = Schema([old.fields[self.array]])
        table = decode(column, delta[:, word_columns(old, (self.array,))], context.dictionary)
        columns, parents = self._elements(table.column(0).combine_chunks())
        kept = word_columns(old, self.keep)
        out = np.empty((parents.size, self.schema.width + 1), np.int64)
        out[:, : kept.size] = delta[parents[:, None], kept]
        elements = pa.Table.from_arrays(columns, schema=self.element.arrow)
        out[:, kept.size : -1] = encode(self.element, elements, context.dictionary)
        out[:, -1] = delta[parents, -1]
        return Step(out)

    def _elements(self, arrays: Any) -> tuple[list[Any], np.ndarray]:
        """The columns of all elements, and for each the row it comes from."""
        lengths = arrays.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        parents = np.repeat(np.arange(lengths.size), lengths)
        columns = [arrays.flatten()]
        if self.place is not None:
            starts = np.cumsum(lengths) - lengths
            columns.insert(0, pa.array(np.arange(parents.size) - np.repeat(starts, lengths), pa.int32()))
        if not self.outer:
            return columns, parents
        without = np.flatnonzero(lengths == 0)
        padded = [pa.concat_arrays([column, pa.nulls(without.size, column.type)]) for column in columns]
        return padded, np.concatenate([parents, without])
