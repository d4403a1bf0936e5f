"""Places of errors in a text: the line, the column, and the line itself with a caret."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent
from typing import TypeVar

from sqlglot import exp

from everview.errors import EverviewError, SqlError
from everview.frontends.pointing import pointed

LOOKED_AT = 200  # nodes of a tree, to find one that knows its place

E = TypeVar("E", bound=EverviewError)


@dataclass(frozen=True, slots=True)
class SqlText:
    """A text of SQL.

    >>> print(SqlText("SELECT a\\nFROM tt").place(14, 2))
    line 2, column 6:
        FROM tt
             ^^
    """

    text: str

    def place(self, start: int, length: int = 1) -> str:
        """The line and the column of an offset, and the line with a caret under it."""
        start = max(0, min(start, len(self.text)))
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        last = len(self.text) if last < 0 else last
        line, column = self.text.count("\n", 0, start) + 1, start - first + 1
        shown = indent(pointed(self.text[first:last], start - first, length), "    ")
        return f"line {line}, column {column}:\n{shown}"

    def error(self, message: str, at: exp.Expr | int | None = None, *, hint: str | None = None) -> SqlError:
        """An error at a node or an offset."""
        error = SqlError(message, hint=hint)
        if isinstance(at, int):
            return _placed(error, self.place(at))
        if at is not None:
            self.locate(error, at)
        return error

    def locate(self, error: EverviewError, node: exp.Expr) -> None:
        """Add the place of a node to an error that has none; a node without a place changes nothing."""
        if getattr(error, "placed", False):
            return
        start, end = _span(node)
        if start is not None:
            _placed(error, self.place(start, end - start + 1))


def _placed(error: E, place: str) -> E:
    error.tell(place)
    error.placed = True  # pyright: ignore[reportAttributeAccessIssue]
    return error


def _span(node: exp.Expr) -> tuple[int | None, int]:
    """The start and the length of a node: from its own position, or else from its first part."""
    if "start" in node.meta:
        return node.meta["start"], node.meta["end"]
    spans: list[tuple[int, int]] = []
    for count, part in enumerate(node.walk()):
        if "start" in part.meta:
            spans.append((part.meta["start"], part.meta["end"]))
        if count > LOOKED_AT:
            break
    if not spans:
        return None, 0
    start, end = min(spans)
    return start, max(spans)[1] if isinstance(node, exp.Column) else end
