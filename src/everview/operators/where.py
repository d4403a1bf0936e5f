"""Where: rows that pass tests of words alone, without a look at what the words stand for. Linear.

Words of fixed types follow the order of their values, and words of interned types are equal when their values are. So
most conditions that people write compare integers, and cost next to nothing, however few rows there are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everview.codes import encode_pairs
from everview.codes.dictionary import Dictionary
from everview.operators.operator import Context, InPlace, Layout, Step, UnaryOperator
from everview.traces.view import TraceView
from everview.types import BIGINT, NULL_WORD, Field, Schema
from everview.types.words import Matrix

Flags = NDArray[np.bool_]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


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
    def _fixed(self) -> list[int] | None:
        return None if self._interned else self._words(Dictionary())

    def step(self, deltas: Sequence[Matrix], views: Sequence[TraceView], context: Context) -> Step:
        (delta,) = deltas
        words = iter(self._words(context.dictionary) if self._fixed is None else self._fixed)
        kept: Flags | None = None
        for test in self.tests:
            passed = self._passed(test, delta, [next(words) for _ in test.constants])
            kept = passed if kept is None else kept & passed
        return Step(delta if kept is None or kept.all() else delta[kept])

    def _passed(self, test: Test, delta: Matrix, constants: list[int]) -> Flags:
        value, known = self._value(delta, test.field)
        if test.how == "is_null":
            return np.zeros(delta.shape[0], np.bool_) if known is None else ~known
        if test.how == "is_not_null":
            return np.ones(delta.shape[0], np.bool_) if known is None else known
        compare = COMPARISONS[test.how]
        if test.other is not None:
            other, there = self._value(delta, test.other)
            passed: Flags = compare(value, other)
            return passed if there is None else passed & there if known is None else passed & there & known
        passed = compare(value, constants[0])
        for constant in constants[1:]:
            passed = passed | compare(value, constant)
        return passed if known is None else passed & known

    def _value(self, delta: Matrix, place: int) -> tuple[Matrix, Flags | None]:
        """The word of a field in each row, and which rows have a value there; None if NULL is not allowed."""
        field, words = self.source.schema.fields[place], self.source.schema.words(place)
        word = delta[:, words.stop - 1]
        if not field.nullable:
            return word, None
        return word, delta[:, words.start] != (0 if field.type == BIGINT else NULL_WORD)


def testable(field: Field, how: str) -> bool:
    """Whether words alone decide a test: their order is that of the values, or the test is one of equality."""
    if field.type.words(nullable=False) != 1:
        return False
    return field.type.ordered or (field.type.interned and how in ("equal", "not_equal", "is_null", "is_not_null"))
