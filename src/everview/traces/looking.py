"""The search for the row in force at a time; see `everview.kernels.asof`."""

from __future__ import annotations

from typing import NamedTuple

from everview.kernels.asof import AHEAD, BACK

__all__ = ["AHEAD", "BACK", "ENDLESS", "Look"]

ENDLESS = -1  # as an unsigned number, the greatest distance


class Look(NamedTuple):
    """A search for a row: before or after a time, and how far; rows begin with a group's words and one word of time."""

    group: int  # words that tell groups apart
    nulls: int  # how a time is absent: never (0), by its own word (1), by the flag before it (2)
    way: int  # BACK, AHEAD, or both: then the nearer one
    strict: bool = False  # never at the time itself
    reach: int = ENDLESS  # the largest distance

    def exactly(self) -> Look:
        """The search at the time itself, and nowhere else."""
        return self._replace(way=BACK, strict=False, reach=0)
