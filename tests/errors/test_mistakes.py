"""Mistakes and their messages, as `mistakes.txt` has them; `python tests/errors/book.py` writes them anew."""

from __future__ import annotations

import re

import pytest

from errors.book import BOOK, entries, play

# Names of libraries and of their classes, which no message may show.
INTERNALS = re.compile(
    r"sqlglot|\blark\b|pydantic|pyarrow\.lib|<class|SENTINEL|Traceback|object at 0x|numba", re.IGNORECASE
)


@pytest.fixture(scope="module")
def book() -> list[tuple[str, str, str]]:
    """What was typed, what the book says, and what is said now."""
    return [(entry.code, entry.said, said) for entry, said in play(list(entries(BOOK.read_text())))]


def test_messages_are_as_in_the_book(book: list[tuple[str, str, str]]) -> None:
    changed = [f">>> {code}\n{now}\n  -- not --\n{said}" for code, said, now in book if said != now]
    assert not changed, "\n\n".join(changed)


def test_the_book_has_150_mistakes(book: list[tuple[str, str, str]]) -> None:
    assert sum(1 for _, said, _ in book if said) >= 150


def test_no_message_shows_internals(book: list[tuple[str, str, str]]) -> None:
    shown = [f">>> {code}\n{now}" for code, _, now in book if INTERNALS.search(now)]
    assert not shown, "\n\n".join(shown)


def test_every_error_has_a_hint(book: list[tuple[str, str, str]]) -> None:
    without = [f">>> {code}\n{now}" for code, _, now in book if re.match(r"\w+: ", now) and "hint: " not in now]
    assert not without, "\n\n".join(without)
