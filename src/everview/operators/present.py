"""Present: rows in which some fields are not NULL, under a schema that says so. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from everview.operators.by_words import ByWords, not_null
from everview.operators.operator import Anywhere, ByKey, Layout, Partition, SameRows
from everview.operators.word_program import Assembler, WordProgram
from everview.types import Field, Schema


@dataclass(frozen=True)
class Present(SameRows, ByWords):
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

    def assembled(self, assembler: Assembler) -> WordProgram:
        """The last words of each field stay, as many as its type takes without NULL."""
        old = self.source.schema
        present = not_null(assembler, old, self.fields)
        if self.schema.width == old.width:
            return assembler.predicate(self.source.schema, present)
        for place, field in enumerate(self.schema.fields):
            stop = old.words(place).stop
            assembler.keep(self.schema.words(place).start, range(stop - field.words, stop))
        return assembler.projection(self.schema.width, present)
