"""Quotes and comments that a text opens and never closes, for which a tokenizer has no place to name."""

from __future__ import annotations

from collections.abc import Iterator


def left_open(text: str) -> Iterator[tuple[int, str]]:
    r"""The offset and the name of a quote or comment that is left open, if any.

    >>> list(left_open('SELECT "a", `b FROM t'))
    [(12, 'quote `')]
    """
    place = 0
    while place < len(text):
        if text.startswith("--", place):
            place = text.find("\n", place) % (len(text) + 1)
        elif text.startswith("/*", place):
            end = text.find("*/", place + 2)
            if end < 0:
                yield place, "comment /*"
                return
            place = end + 2
        elif text[place] in "'\"`":
            end = _closing(text, place)
            if end < 0:
                yield place, f"quote {text[place]}"
                return
            place = end + 1
        else:
            place += 1


def _closing(text: str, opening: int) -> int:
    quote, place = text[opening], opening + 1
    while place < len(text):
        if text[place] == "\\" and quote != "`":
            place += 2
        elif text[place] == quote:
            return place
        else:
            place += 1
    return -1
