"""Operators that need only the words of rows: one program over words does their work, and never fails."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

from everview.operators.form import CompiledForm, Reason, form_in_words
from everview.operators.functions import Function
from everview.operators.operator import Context, Step, UnaryOperator
from everview.operators.word_program import Assembler, WordProgram, op
from everview.traces.view import TraceView
from everview.types import Schema
from everview.types.words import Matrix


class ByWords(UnaryOperator):
    """A linear operator of one input, given by a program over words."""

    @abstractmethod
    def assembled(self, assembler: Assembler) -> WordProgram:
        """The program, put together."""

    @cached_property
    def program(self) -> WordProgram:
        """What happens to rows, as a program over words."""
        return self.assembled(Assembler())

    def in_words(self, functions: Mapping[str, Function]) -> WordProgram | str:
        """The program, which there always is."""
        return self.program

    def form_of(self, functions: Mapping[str, Function]) -> CompiledForm | Reason:
        form = self.form
        return form if isinstance(form, CompiledForm) else form_in_words(self.program)

    @property
    def reads_values(self) -> bool:
        """Whether steps need the dictionary: in a sorted layout, and for constants that are interned."""
        return super().reads_values or bool(self.program.interned)

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        rows = self.program.run(deltas[0], context.dictionary)
        assert rows is not None, "a program of words as they are does not fail"
        return Step(rows)


def not_null(assembler: Assembler, schema: Schema, fields: Sequence[int]) -> int:
    """The slot that says whether some fields of a row are values."""
    present = assembler.constant(1)
    for place in fields:
        field = schema.fields[place]
        if field.nullable:
            first = assembler.emit(op.LOAD_PLAIN, schema.words(place).start)
            missing = assembler.constant(field.type.null_words()[0])
            present = assembler.emit(op.AND, present, assembler.emit(op.COMPARE, first, missing, op.LESS | op.GREATER))
    return present
