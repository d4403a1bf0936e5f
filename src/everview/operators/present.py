"""Present: rows in which some fields are not NULL, under a schema that says so. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from everview.kernels import machine, reshape
from everview.operators.form import Form, flat, lines_of
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
    def _tests(self) -> tuple[int, ...]:
        old = self.source.schema
        nullable = [field for field in self.fields if old.fields[field].nullable]
        return flat((reshape.NOT_EQUAL, old.words(f).start, old.fields[f].type.null_words()[0]) for f in nullable)

    @cached_property
    def _plan(self) -> tuple[int, ...]:
        """The words that stay: the last ones of each field; empty if all do."""
        if self.schema.width == self.source.width:
            return ()
        stops = [self.source.schema.words(place).stop for place in range(len(self.schema))]
        kept = [range(stop - field.words, stop) for stop, field in zip(stops, self.schema.fields, strict=True)]
        return flat((reshape.WORD, word) for words in kept for word in words)

    @property
    def form(self) -> Form:
        return Form(machine.FILTER, self._tests + self._plan, len(self._tests))

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        rows = reshape.passing(deltas[0], lines_of(self._tests, 3))
        return Step(reshape.reshape(rows, lines_of(self._plan, 2)) if self._plan else rows)
