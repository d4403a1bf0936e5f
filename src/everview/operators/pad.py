"""Pad: rows with NULL in the columns that they lack, as outer joins need them. Linear."""

from __future__ import annotations

from dataclasses import dataclass

from everview.operators.by_words import ByWords
from everview.operators.operator import Layout, word_columns
from everview.operators.word_program import Assembler, WordProgram
from everview.types import Schema


@dataclass(frozen=True)
class Pad(ByWords):
    """Lay out each row as ``schema``: its own field, or NULL where there is none."""

    source: Layout
    fields: tuple[int | None, ...]
    schema: Schema

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    def assembled(self, assembler: Assembler) -> WordProgram:
        for place, field in enumerate(self.fields):
            there = self.schema.words(place).start
            if field is not None:
                assembler.keep(there, word_columns(self.source.schema, (field,)).tolist())
                continue
            for number, word in enumerate(self.schema.fields[place].type.null_words()):
                assembler.store_word(there + number, assembler.constant(word))
        return assembler.projection(self.schema.width)
