"""Errors as clients of a server see them: the kind, the message, a hint, and the place in the text of SQL.

>>> from everview.errors import SqlError
>>> error = SqlError("unknown word", hint="try another")
>>> error.tell("line 2, column 6:\\n    FROM tt\\n         ^^")
>>> Fault.of(error).as_json()
{'kind': 'SqlError', 'message': 'unknown word', 'hint': 'try another', 'position': {'line': 2, 'column': 6}}
"""

from __future__ import annotations

import re
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Final

from everview.errors import EverviewError

_PLACE: Final = re.compile(r"\n? *line (\d+), column (\d+):\n[^\n]*\n *\^+")


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in parts. ``line`` and ``column`` count from one, and are None if the error names no place."""

    kind: str
    message: str
    hint: str | None = None
    line: int | None = None
    column: int | None = None

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """The parts of an error; of one that is not meant for users only that there was one."""
        if isinstance(error, CancelledError):
            return cls("StatementCancelled", "the statement was cancelled", "nothing of it counts")
        if not isinstance(error, EverviewError):
            return cls("InternalError", "the server has made a mistake", "its log says which")
        place = _PLACE.search(error.message)
        if place is None:
            return cls(type(error).__name__, error.message, error.hint)
        message = error.message[: place.start()] + error.message[place.end() :]
        return cls(type(error).__name__, message, error.hint, int(place[1]), int(place[2]))

    def offset(self, text: str) -> int | None:
        """The place in a text, in characters from its beginning."""
        if self.line is None or self.column is None:
            return None
        lines = text.split("\n")
        return sum(len(line) + 1 for line in lines[: self.line - 1]) + self.column - 1

    def as_json(self) -> dict[str, Any]:
        """The parts by name."""
        said: dict[str, Any] = {"kind": self.kind, "message": self.message, "hint": self.hint}
        if self.line is not None:
            said["position"] = {"line": self.line, "column": self.column}
        return said
