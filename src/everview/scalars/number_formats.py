"""Formats of numbers as text, such as ``S$9,999.00``: which tokens they have, and how many digits.

The tokens are those of Spark: ``0`` and ``9`` for digits, ``,`` or ``G`` between groups, ``.`` or ``D`` for the point,
``$``, and for the sign ``S`` or ``MI`` in front or behind, or ``PR`` for angle brackets around what is negative.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from everview.errors import BadPattern

_FORMAT: Final = re.compile(
    r"(?P<before>MI|S)?(?P<dollar>\$)?(?P<whole>[09]+(?:[,G][09]+)*)?(?:(?P<point>[.D])(?P<after>[09]*))?"
    r"(?P<behind>PR|MI|S)?(?P<more>PR|MI|S)?"
)


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A format taken apart: groups of digits before the point, digits after it, and the signs."""

    before: str  # "S", "MI" or none
    dollar: bool
    groups: tuple[str, ...]
    point: bool
    after: str
    behind: tuple[str, ...]

    @property
    def digits(self) -> int:
        """How many digits there are in all."""
        return sum(map(len, self.groups)) + len(self.after)


@cache
def number_format(text: str) -> NumberFormat:
    """The format that a text writes; raises `BadPattern`."""
    match = _FORMAT.fullmatch(text.upper())
    if match is None or not (match["whole"] or match["after"]):
        raise BadPattern(f"{text!r} is no format of a number", hint="write one such as 'S$9,999.00' or '999PR'")
    behind = tuple(sign for sign in (match["behind"], match["more"]) if sign)
    signs = (match["before"] or "", *behind)
    if len(set(signs)) < len(signs):
        raise BadPattern(f"the format {text!r} has a sign twice", hint="leave one out")
    groups = tuple(re.split("[,G]", match["whole"])) if match["whole"] else ()
    return NumberFormat(signs[0], bool(match["dollar"]), groups, bool(match["point"]), match["after"] or "", behind)
