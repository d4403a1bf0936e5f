"""JSON in a looser spelling, rewritten as JSON: names without quotes, single quotes, comments, zeros before a number.

>>> strict_json("{a: 'x', 'b': 1} // all", {"allowUnquotedFieldNames": "TRUE", "allowSingleQuotes": "TRUE"})
'{"a": "x", "b": 1} // all'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SINGLE_QUOTES: Final[Mapping[str, str]] = {"allowSingleQuotes": "TRUE"}  # what Spark allows unless told otherwise
_TOKEN: Final = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<allowSingleQuotes>'(?:[^'\\]|\\.)*')"""
    r"""|(?P<allowComments>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<allowUnquotedFieldNames>[A-Za-z_$][\w$]*)(?=\s*:)"""
    r"""|(?P<allowNumericLeadingZeros>(?<![\w.])-?0+(?=\d))""",
    re.DOTALL | re.ASCII,
)


def strict_json(text: str, options: Mapping[str, str]) -> str:
    """The text with what the options allow rewritten as JSON has it."""

    def rewritten(match: re.Match[str]) -> str:
        token, kind = match[0], match.lastgroup or ""
        if options.get(kind) != "TRUE":
            return token
        match kind:
            case "allowSingleQuotes":
                inner = re.sub(r"\\.|\"", lambda part: {"\\'": "'", '"': '\\"'}.get(part[0], part[0]), token[1:-1])
                return f'"{inner}"'
            case "allowComments":
                return " "
            case "allowUnquotedFieldNames":
                return f'"{token}"'
            case _:
                return "-" if token.startswith("-") else ""

    return _TOKEN.sub(rewritten, text)
