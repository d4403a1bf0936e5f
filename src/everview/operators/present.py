"""Present: rows in which some fields are not NULL, under a schema that says so. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from everview.operators.operator import Anywhere, ByKey, Context, Layout, Partition, Step, UnaryOperator
from everview.traces.view import TraceView
from everview.types import Field, Schema
from everview.types.words import Matrix


@dataclass(frozen=True)
class Present(UnaryOperator):
    """Keep the rows in which these fields are values, and give up the words that told values from NULL."""

    source: Layout
    fields: tuple[int, ...]

    @cached_property
    def schema(self) -> Schema:
        return Schema(
            Field(f.name, f.type, f.nullable and place not in self.fields)
            for place, f in enumerate(self.source.schema.fields)
        )

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def output_partition(self, inputs: Sequence[Partition], reads: Sequence[Partition]) -> Partition:
        return inputs[0] if self._same_words(inputs[0]) else Anywhere()

    def _same_words(self, where: Partition) -> bool:
        """Whether the fields that rows are placed by keep their words: another word is another shard."""
        if not isinstance(where, ByKey):
            return True
        old = self.source.schema.fields
        return all(old[f].words == old[f].type.words(nullable=False) for f in where.fields if f in self.fields)

    @cached_property
    def _columns(self) -> list[int]:
        """The words that stay: the last ones of each field, and the weight."""
        columns: list[int] = []
        for place, field in enumerate(self.schema.fields):
            stop = self.source.schema.words(place).stop
            columns += range(stop - field.words, stop)
        return [*columns, self.source.width]

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        old = self.source.schema
        kept = np.ones(delta.shape[0], np.bool_)
        for field in self.fields:
            if old.fields[field].nullable:
                kept &= delta[:, old.words(field).start] != old.fields[field].type.null_words()[0]
        rows = delta if kept.all() else delta[kept]
        return Step(rows if self.schema.width == old.width else np.ascontiguousarray(rows[:, self._columns]))
