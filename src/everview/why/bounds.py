"""Bounds of an explanation: how many rows it may look at, and for how long."""

from __future__ import annotations

from time import thread_time

from everview.errors import TooMuchToExplain

ROWS = 1_000_000  # that one explanation looks at


class Budget:
    """The rows and the seconds of work that are left to an explanation; waiting for others does not count."""

    def __init__(self, seconds: float, rows: int = ROWS) -> None:
        self._until, self._seconds, self._rows = thread_time() + seconds, seconds, rows

    def spend(self, rows: int = 1) -> None:
        """Take rows from the budget; refuse to go on when it is used up."""
        self._rows -= rows
        if self._rows < 0:
            raise TooMuchToExplain(
                f"an explanation would look at more than {ROWS:,} rows",
                hint="ask about a view that fewer rows stand behind, or one that it reads",
            )
        if thread_time() > self._until:
            raise TooMuchToExplain(
                f"no explanation was found within {self._seconds:g} seconds", hint="allow more: seconds=60"
            )
