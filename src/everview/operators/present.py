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
            Field(f.name, f.type, f.nullable and at not in self.fields)
            for at, f in enumerate(self.source.schema.fields)
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
        found: list[int] = []
        for at, field in enumerate(self.schema.fields):
            stop = self.source.schema.words(at).stop
            found += range(stop - field.words, stop)
        return [*found, self.source.width]

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        old = self.source.schema
        kept = np.ones(delta.shape[0], np.bool_)
        for at in self.fields:
            if old.fields[at].nullable:
                kept &= delta[:, old.words(at).start] != old.fields[at].type.null_words()[0]
        found = delta if kept.all() else delta[kept]
        return Step(found if self.schema.width == old.width else np.ascontiguousarray(found[:, self._columns]))
