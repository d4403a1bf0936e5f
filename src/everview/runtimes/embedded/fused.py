"""Operators in a row that look at one row at a time, fused: what comes of a trace's rows in one go.

A projection takes words of a row, and a filter or a function of words is a program over them. So a projection of a
trace is some of its words, a program over a projection is a program over the trace, and a projection of a program's
result is a program that writes less. Nothing between has to be written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from everview.codes.dictionary import Dictionary
from everview.kernels.large import project_into
from everview.kernels.words import word_rows
from everview.operators.by_words import ByWords
from everview.operators.functions import Function
from everview.operators.linear import Filter, Map, Project
from everview.operators.operator import Operator, word_columns
from everview.operators.word_program import WordProgram
from everview.types.words import Matrix, Words


@dataclass(frozen=True, slots=True)
class Taken:
    """Some words of each row, in this order."""

    columns: Words

    def bound(self, dictionary: Dictionary) -> Taken:
        """Itself: words need no dictionary."""
        return self

    def write(self, rows: Matrix, out: Matrix) -> int:
        """Write what comes of some rows; how many rows that is, or a negative number if words do not suffice."""
        project_into(rows, self.columns, out)
        return len(rows)


@dataclass(frozen=True, slots=True)
class Computed:
    """What a program makes of each row."""

    program: WordProgram
    constants: Words | None = None

    def bound(self, dictionary: Dictionary) -> Computed:
        """With its constants as words, so that threads need not ask the dictionary."""
        return Computed(self.program, self.program.constants(dictionary))

    def write(self, rows: Matrix, out: Matrix) -> int:
        """Write what comes of some rows; how many rows that is, or a negative number if words do not suffice."""
        assert self.constants is not None, "a program is bound before it runs"
        return int(word_rows(rows, self.program.code, self.constants, out))


Recipe = Taken | Computed


def fused(operator: Operator, before: Recipe, functions: Mapping[str, Function]) -> Recipe | None:
    """What an operator makes of the result of a recipe, as a recipe; None if that takes a step of its own."""
    if isinstance(operator, Project):
        columns = word_columns(operator.source.schema, operator.fields)
        if isinstance(before, Taken):
            return Taken(before.columns[columns])
        picking = before.program.picking(columns)
        return None if picking is None else Computed(picking)
    if isinstance(before, Computed) or not isinstance(operator, ByWords | Filter | Map):
        return None
    program = operator.in_words(functions)
    return Computed(program.over(before.columns)) if isinstance(program, WordProgram) else None


def all_words(rows: Matrix) -> Words:
    """The words of a row, without its weight."""
    return np.arange(rows.shape[1] - 1)
