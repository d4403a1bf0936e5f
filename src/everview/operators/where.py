"""Where: rows that pass tests of words alone, without a look at what the words stand for. Linear.

Words of fixed types follow the order of their values, and words of interned types are equal when their values are. So
most conditions that people write compare integers, and cost next to nothing, however few rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from everview.operators.by_words import ByWords
from everview.operators.operator import InPlace, Layout, SameRows
from everview.operators.word_program import Assembler, WordProgram, op
from everview.types import Field, Schema

COMPARISONS: Final = {
    "equal": op.EQUAL,
    "not_equal": op.LESS | op.GREATER,
    "less": op.LESS,
    "less_equal": op.LESS | op.EQUAL,
    "greater": op.GREATER,
    "greater_equal": op.GREATER | op.EQUAL,
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
class Where(InPlace, SameRows, ByWords):
    """The rows that pass all tests."""

    source: Layout
    tests: tuple[Test, ...]

    def __post_init__(self) -> None:
        for test in self.tests:
            field = self.source.schema.fields[test.field]
            assert testable(field, test.how), f"{field} cannot be tested by its words"
        _ = self.program  # an error if a constant is not of its field's type

    def assembled(self, assembler: Assembler) -> WordProgram:
        verdict = assembler.constant(1)
        for test in self.tests:
            verdict = assembler.emit(op.AND, verdict, self._passed(test, assembler))
        return assembler.predicate(self.source.schema, verdict)

    def _passed(self, test: Test, assembler: Assembler) -> int:
        """The slot that says whether a row passes a test."""
        value = assembler.load(self.source.schema, test.field)
        if test.how in ("is_null", "is_not_null"):
            missing = assembler.emit(op.IS_NULL, value)
            wanted = assembler.constant(int(test.how == "is_null"))
            return assembler.emit(op.COMPARE, missing, wanted, op.EQUAL)
        if test.other is not None:
            other = assembler.load(self.source.schema, test.other)
            return assembler.emit(op.COMPARE, value, other, COMPARISONS[test.how])
        type_ = self.source.schema.fields[test.field].type
        given = Schema(Field(f"c{number}", type_, nullable=False) for number in range(len(test.constants)))
        place = assembler.values(given, test.constants)
        if test.how == "equal":
            return assembler.among(value, place, len(test.constants))
        passed = assembler.constant(0)
        for number in range(len(test.constants)):
            constant = assembler.at(place + number)
            passed = assembler.emit(op.OR, passed, assembler.emit(op.COMPARE, value, constant, COMPARISONS[test.how]))
        return passed


def testable(field: Field, how: str) -> bool:
    """Whether words alone decide a test: their order is that of the values, or the test is one of equality."""
    if field.type.words(nullable=False) != 1:
        return False
    return field.type.ordered or (field.type.interned and how in ("equal", "not_equal", "is_null", "is_not_null"))
