"""Arrays as PostgreSQL writes them in text: ``{1,NULL,"a b"}``."""

from __future__ import annotations


class NestedArray(ValueError):
    """The text of an array of arrays."""


def array_elements(text: str) -> list[str | None]:
    """The elements of an array, None for NULL; raises `ValueError` for text that is no array.

    >>> array_elements('{a, "b, c", NULL, "NULL"}'), array_elements("{}")
    (['a', 'b, c', None, 'NULL'], [])
    """
    said = text.strip()
    if not (said.startswith("{") and said.endswith("}")):
        raise ValueError(text)
    elements: list[str | None] = []
    place, end = 1, len(said) - 1
    if not said[1:end].strip():
        return elements
    while place <= end:
        item, quoted, place = _item(said, place)
        if not quoted and not item:
            raise ValueError(text)
        elements.append(None if not quoted and item.upper() == "NULL" else item)
        if said[place] == "}":
            if place != end:
                raise ValueError(text)
            return elements
        place += 1
    raise ValueError(text)


def _item(said: str, place: int) -> tuple[str, bool, int]:
    """The next element of an array's text, whether it was quoted, and where it ends."""
    out, quoted, inside = list[str](), False, False
    while True:
        if place >= len(said):
            raise ValueError(said)
        c = said[place]
        if c == "\\":
            out.append(said[place + 1 : place + 2])
            place += 2
            continue
        if c == '"':
            inside, quoted = not inside, True
        elif not inside and c in ",}":
            item = "".join(out)
            return (item if quoted else item.strip()), quoted, place
        elif not inside and c == "{":
            raise NestedArray(said)
        elif inside or not c.isspace() or (out and not quoted):  # blanks around an element count for nothing
            out.append(c)
        place += 1
