"""Errors in an EDN text: the place, the mistake, and a hint at the remedy.

>>> str(refuse(TextPlace(2, 5), "there is no rule near", "give it"))
'2:5: there is no rule near\\n  hint: give it'
"""

from __future__ import annotations

from everview.errors import EdnError
from everview.frontends.rules.program import TextPlace


def refuse(place: TextPlace, message: str, hint: str) -> EdnError:
    """An error that names its place."""
    return EdnError(f"{shown_place(place)}{message}", hint=hint)


def shown_place(place: TextPlace) -> str:
    """``line:column: `` before a message; nothing where no text is."""
    return f"{place.line}:{place.column}: " if place.line else ""
