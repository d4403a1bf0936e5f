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
    at, end = 1, len(said) - 1
    if not said[1:end].strip():
        return elements
    while at <= end:
        item, quoted, at = _item(said, at)
        if not quoted and not item:
            raise ValueError(text)
        elements.append(None if not quoted and item.upper() == "NULL" else item)
        if said[at] == "}":
            if at != end:
                raise ValueError(text)
            return elements
        at += 1
    raise ValueError(text)


def _item(said: str, at: int) -> tuple[str, bool, int]:
    """The next element of an array's text, whether it was quoted, and where it ends."""
    out, quoted, inside = list[str](), False, False
    while True:
        if at >= len(said):
            raise ValueError(said)
        c = said[at]
        if c == "\\":
            out.append(said[at + 1 : at + 2])
            at += 2
            continue
        if c == '"':
            inside, quoted = not inside, True
        elif not inside and c in ",}":
            item = "".join(out)
            return (item if quoted else item.strip()), quoted, at
        elif not inside and c == "{":
            raise NestedArray(said)
        elif inside or not c.isspace() or (out and not quoted):  # blanks around an element count for nothing
            out.append(c)
        at += 1
