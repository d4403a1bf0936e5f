"""Explode: a row once for each element of one of its arrays. Linear.

``explode({(a, [x, y]): w}) = {(a, x): w, (a, y): w}``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from everview.codes import decode, encode
from everview.operators.operator import Context, Layout, Matrix, Step, Unary, word_columns
from everview.traces.view import View
from everview.types import Array, Field, Schema
from everview.zset import ZSet


@dataclass(frozen=True)
class Explode(Unary):
    """Some fields of every row beside each element of its array; with ``outer`` beside NULL where there is none."""

    source: Layout
    array: int
    keep: tuple[int, ...]
    name: str
    outer: bool = False

    @cached_property
    def element(self) -> Schema:
        """The column of the elements."""
        of = self.source.schema.fields[self.array].type
        assert isinstance(of, Array), "only arrays have elements"
        return Schema([Field(self.name, of.element)])

    @cached_property
    def schema(self) -> Schema:
        return Schema([self.source.schema.fields[f] for f in self.keep]) + self.element

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def step(self, deltas: Sequence[Matrix], views: Sequence[View], context: Context) -> Step:
        (delta,) = deltas
        old = self.source.schema
        column = Schema([old.fields[self.array]])
        table = decode(column, delta[:, word_columns(old, (self.array,))], context.dictionary)
        elements, parents = self._elements(table.column(0).combine_chunks())
        kept = word_columns(old, self.keep)
        out = np.empty((parents.size, self.schema.width + 1), np.int64)
        out[:, : kept.size] = delta[parents[:, None], kept]
        found = pa.Table.from_arrays([elements], schema=self.element.arrow)
        out[:, kept.size : -1] = encode(self.element, found, context.dictionary)
        out[:, -1] = delta[parents, -1]
        return Step(out)

    def _elements(self, arrays: Any) -> tuple[Any, np.ndarray]:
        """All elements, and for each the row it comes from."""
        lengths = arrays.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        elements, parents = arrays.flatten(), np.repeat(np.arange(lengths.size), lengths)
        if not self.outer:
            return elements, parents
        without = np.flatnonzero(lengths == 0)
        nothing = pa.nulls(without.size, elements.type)
        return pa.concat_arrays([elements, nothing]), np.concatenate([parents, without])

    def meaning(self, rows: ZSet) -> ZSet:
        return rows.flat_map(self.images)

    def images(self, row: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """The rows that one becomes."""
        elements = row[self.array] or ((None,) if self.outer else ())
        return ((*(row[f] for f in self.keep), element) for element in elements)
