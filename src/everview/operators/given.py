"""Values that a program is given when it runs, in place of constants: one program answers a query with any values.

>>> with giving([GivenWord(7, word=7)]):
...     given_value(0)
7
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from everview.codes.dictionary import Dictionary


@dataclass(frozen=True, slots=True)
class GivenWord:
    """A value and its word; the word of a text is the dictionary's, by the kind of the type and the text's bytes."""

    value: Any
    word: int = 0
    kind: int = 0
    text: bytes = b""

    def code(self, dictionary: Dictionary) -> int:
        """The word of the value."""
        return dictionary.intern_values(self.kind, [self.text])[0] if self.kind else self.word


_GIVEN: Final[ContextVar[Sequence[GivenWord]]] = ContextVar("given")


@contextmanager
def giving(words: Sequence[GivenWord]) -> Generator[None]:
    """Give values, by their numbers, to the programs that run within a block."""
    token = _GIVEN.set(words)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def given_word(number: int) -> GivenWord:
    """The value with a number, as it has been given."""
    return _GIVEN.get()[number]


def given_value(number: int) -> Any:
    """The value with a number, in Python."""
    return _GIVEN.get()[number].value
