"""Pad: rows with NULL in the columns that they lack, as outer joins need them. Linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from everview.kernels import machine, reshape
from everview.operators.form import Form, Line, flat, lines_of
from everview.operators.operator import Context, Layout, Step, UnaryOperator
from everview.traces.view import TraceView
from everview.types import Schema
from everview.types.words import Matrix


@dataclass(frozen=True)
class Pad(UnaryOperator):
    """Lay out each row as ``schema``: its own field, or NULL where there is none."""

    source: Layout
    fields: tuple[int | None, ...]
    schema: Schema

    @property
    def output(self) -> Layout:
        return Layout(self.schema)

    @cached_property
    def form(self) -> Form:
        plan: list[Line] = []
        for place, field in enumerate(self.fields):
            if field is None:
                plan += [(reshape.CONSTANT, word) for word in self.schema.fields[place].type.null_words()]
            else:
                words = self.source.schema.words(field)
                plan += [(reshape.WORD, word) for word in range(words.start, words.stop)]
        return Form(machine.RESHAPE, flat(plan))

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        return Step(reshape.reshape(deltas[0], lines_of(self.form.constants, 2)))
