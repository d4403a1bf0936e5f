"""A line of a text with carets below a place in it, for the messages of errors."""

from __future__ import annotations

SHOWN = 100  # characters of a line at most, around the place


def pointed(line: str, start: int, length: int = 1) -> str:
    """The line, cut to what lies around the place, and carets below it; ``start`` counts from 0.

    >>> print(pointed("FROM tt", 5, 2))
    FROM tt
         ^^
    >>> print(pointed("(" * 500 + "]", 500).replace("(" * 40, "( × 40 "))
    …( × 40 ((((((((((]
                                                       ^
    """
    left = max(0, start - SHOWN // 2)
    right = min(len(line), left + SHOWN)
    before = "…" if left > 0 else ""
    after = "…" if right < len(line) else ""
    carets = "^" * max(1, min(length, right - start))
    return f"{before}{_printable(line[left:right])}{after}\n{' ' * (len(before) + start - left)}{carets}"


def _printable(text: str) -> str:
    """The text with unprintable characters replaced one for one, so that the caret stays in place."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
