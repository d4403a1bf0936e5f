"""Inputs of the shell: a statement up to its semicolon, over several lines, or a command on a line of its own.

>>> cut("SELECT 1; SELECT ';' -- no; end\\n, 2;\\n\\\\d t\\nSELECT")
(['SELECT 1;', "SELECT ';' -- no; end\\n, 2;", '\\\\d t'], 'SELECT')
"""

from __future__ import annotations

import re
from typing import Final

# What a semicolon in it does not end: quotes, and comments.
_WHOLE: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
BREAKS: Final = " \t\n()[]{},;=<>+-*/|'\""  # between words that are completed
_OPEN: Final = ("'", '"', "`", "/*")


def cut(text: str) -> tuple[list[str], str]:
    """The inputs of a text, and what follows the last of them: the beginning of another."""
    inputs: list[str] = []
    start = place = 0
    while place < len(text):
        if not text[start:place].strip() and text[place] == "\\":
            end = text.find("\n", place) % (len(text) + 1)
            inputs.append(text[place:end].strip())
            start = place = end + 1
        elif (whole := _WHOLE.match(text, place)) is not None:
            place = whole.end()
        elif text.startswith(_OPEN, place):
            break  # which nothing closes yet
        elif text[place] == ";":
            statement = text[start : place + 1].strip()
            inputs += [statement] if statement != ";" else []
            start = place = place + 1
        else:
            place += 1
    rest = text[start:]
    return inputs, rest if _says_something(rest) else ""


def _says_something(text: str) -> bool:
    """Whether there is more than spaces and comments."""
    return bool(re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip())
