"""Where: rows that pass tests of words alone, without a look at what the words stand for. Linear.

Words of fixed types follow the order of their values, and words of interned types are equal when their values are. So
most conditions that people write compare integers, and cost next to nothing, however few rows there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from everview.codes import encode_pairs
from everview.codes.dictionary import Dictionary
from everview.kernels import machine, reshape
from everview.operators.form import Form, Line, Reason, flat, lines_of
from everview.operators.linear import INTERNED
from everview.operators.operator import Context, InPlace, Layout, Step, UnaryOperator
from everview.traces.view import TraceView
from everview.types import Field, Schema
from everview.types.words import Matrix

COMPARISONS = {
    "equal": reshape.EQUAL,
    "not_equal": reshape.NOT_EQUAL,
    "less": reshape.LESS,
    "less_equal": reshape.LESS_EQUAL,
    "greater": reshape.GREATER,
    "greater_equal": reshape.GREATER_EQUAL,
}
NOWHERE: Line = (reshape.NOT_EQUAL + reshape.OTHER, 0, 0)  # no word differs from itself


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison of a field with another field or with constants; it passes if `how` holds for one of them.

    NULL passes only the test for it: ``is_null``, which takes nothing to compare with, as ``is_not_null``.
    """

    field: int
    how: str
    constants: tuple[Any, ...] = ()
    other: int | None = None


@dataclass(frozen=True)
class Where(InPlace, UnaryOperator):
    """The rows that pass all tests."""

    source: Layout
    tests: tuple[Test, ...]

    def __post_init__(self) -> None:
        for test in self.tests:
            field = self.source.schema.fields[test.field]
            assert testable(field, test.how), f"{field} cannot be tested by its words"
        self._words(Dictionary())

    @property
    def reads_values(self) -> bool:
        return super().reads_values or self._interned

    @cached_property
    def _interned(self) -> bool:
        """Whether the field's constants are interned, so that their words come from the dictionary."""
        return any(field.type.interned for field in self._given.fields)

    @cached_property
    def _given(self) -> Schema:
        fields = [self.source.schema.fields[test.field] for test in self.tests for _ in test.constants]
        return Schema(Field(f"c{number}", field.type, nullable=False) for number, field in enumerate(fields))

    def _words(self, dictionary: Dictionary) -> list[int]:
        """The constants, one word each."""
        values = tuple(value for test in self.tests for value in test.constants)
        return encode_pairs(self._given, [(values, 1)], dictionary)[0, :-1].tolist() if values else []

    @cached_property
    def form(self) -> Form | Reason:
        if self.reads_values:
            return INTERNED
        tests = self._tests(Dictionary())
        return Form(machine.FILTER, tests, len(tests))

    def _tests(self, dictionary: Dictionary) -> tuple[int, ...]:
        """The tests as lines for `everview.kernels.reshape`."""
        words = iter(self._words(dictionary))
        lines = [line for test in self.tests for line in self._lines(test, [next(words) for _ in test.constants])]
        return flat(lines)

    def _lines(self, test: Test, constants: list[int]) -> list[Line]:
        word, how = self.source.schema.words(test.field).stop - 1, COMPARISONS.get(test.how)
        if how is None:
            return self._null(test.field, present=test.how == "is_not_null")
        known = self._null(test.field, present=True) if self.source.schema.fields[test.field].nullable else []
        if test.other is not None:
            if self.source.schema.fields[test.other].nullable:
                known += self._null(test.other, present=True)
            return [*known, (how + reshape.OTHER, word, self.source.schema.words(test.other).stop - 1)]
        *first, last = constants
        return [*known, *((how + reshape.OR_NEXT, word, constant) for constant in first), (how, word, last)]

    def _null(self, place: int, *, present: bool) -> list[Line]:
        """The test that a field is a value, or that it is NULL."""
        field, first = self.source.schema.fields[place], self.source.schema.words(place).start
        if not field.nullable:
            return [] if present else [NOWHERE]
        return [(reshape.NOT_EQUAL if present else reshape.EQUAL, first, field.type.null_words()[0])]

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        form = self.form
        tests = form.constants if isinstance(form, Form) else self._tests(context.dictionary)
        return Step(reshape.passing(deltas[0], lines_of(tests, 3)))


def testable(field: Field, how: str) -> bool:
    """Whether words alone decide a test: their order is that of the values, or the test is one of equality."""
    if field.type.words(nullable=False) != 1:
        return False
    return field.type.ordered or (field.type.interned and how in ("equal", "not_equal", "is_null", "is_not_null"))
