"""Texts of intervals before sqlglot reads them: of ``INTERVAL '1 day 02:00:00'`` it would keep the day alone."""

from __future__ import annotations

import decimal
import re
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from everview.frontends.sql.places import SqlText

_PART: Final = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)\s*")
_CLOCK: Final = re.compile(r"([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d{1,9})?))?")


def whole_intervals(tokens: list[Token], source: SqlText) -> list[Token]:
    """The tokens with every text behind INTERVAL as amounts and units; raises for a text that is none."""
    made = list(tokens)
    for place, (before, token) in enumerate(pairwise(tokens), 1):
        if before.token_type == TokenType.INTERVAL and token.token_type == TokenType.STRING:
            text = in_units(token.text)
            if text is None:
                hint = "write INTERVAL '3' DAY or INTERVAL '1 day 2 hours'"
                raise source.error(f"{token.text[:40]!r} is no interval", token.start, hint=hint)
            if text != token.text:
                kind, start, end = token.token_type, token.start, token.end
                made[place] = Token(kind, text, token.line, token.col, start, end, token.comments)
    return made


def in_units(text: str) -> str | None:
    """The text of an interval as amounts and units, None if there is more behind its first unit than sqlglot reads.

    >>> in_units("1 day 02:00:30"), in_units("1 day ago"), in_units("1 2:03:04"), in_units("1 day or so")
    ('1 day 2 hours 0 minutes 30 seconds', '-1 day', '1 2:03:04', None)
    """
    first = _PART.match(text)
    if first is None or len(_PART.findall(text)) != 1 or first.end() == len(text):
        return text
    amount, unit, rest = first[1], first[2], text[first.end() :].strip()
    if rest.lower() == "ago":
        return f"{amount[1:]} {unit}" if amount.startswith("-") else f"-{amount} {unit}"
    clock = _CLOCK.fullmatch(rest)
    if clock is None:
        return None
    sign, hours, minutes, seconds = clock.groups(default="")
    parts = (f"{int(hours)} hours", f"{int(minutes)} minutes", f"{decimal.Decimal(seconds or 0)} seconds")
    return " ".join((f"{amount} {unit}", *(f"{sign}{part}" for part in parts)))
