"""The last ticks of a served database, for a timeline.

An entry is plain data: ``number`` counts them, ``epoch``, ``at`` in seconds since 1970, ``ms``, ``in`` and ``out`` with
the changed rows by relation, of which the largest are named, ``rows_in`` and ``rows_out`` their sums, ``placement``,
and ``failure`` if the tick did not count. A pipeline's epochs have the same form: see `TickLog.add`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everview.observe import TickReport

KEPT: Final = 600
NAMED: Final = 12  # relations of a tick


class TickLog:
    """The last ticks, oldest first; an observer of a database.

    >>> log = TickLog(kept=2)
    >>> for epoch in (1, 2, 3):
    ...     log.add(epoch, 1.0, 0.002, {"t": 1}, {})
    >>> [tick["epoch"] for tick in log.after(0)], [tick["epoch"] for tick in log.after(2)]
    ([2, 3], [3])
    """

    def __init__(self, kept: int = KEPT, placement: str = "in process") -> None:
        self._ticks: deque[tuple[Any, ...]] = deque(maxlen=kept)
        self._guard = threading.Lock()
        self._placement = placement
        self.number = 0  # of the last one

    def __call__(self, report: TickReport) -> None:
        """Take note of a tick that the database reports."""
        self.add(
            report.epoch, report.began / 1e9, report.seconds, report.rows_in, report.rows_out, failure=report.failure
        )

    def add(
        self,
        epoch: int,
        at: float,
        seconds: float,
        rows_in: Mapping[str, int],
        rows_out: Mapping[str, int],
        *,
        placement: str | None = None,
        failure: str | None = None,
    ) -> None:
        """Take note of a tick, or of an epoch of a pipeline with its placement."""
        with self._guard:
            self.number += 1
            told = placement or self._placement
            self._ticks.append((self.number, epoch, at, seconds, rows_in, rows_out, told, failure))

    def after(self, number: int) -> list[dict[str, Any]]:
        """The ticks after one, by its number, that are still kept."""
        with self._guard:
            new = min(max(self.number - number, 0), len(self._ticks))
            taken = list(islice(reversed(self._ticks), new))
        return [_told(*tick) for tick in reversed(taken)]


def _told(
    number: int,
    epoch: int,
    at: float,
    seconds: float,
    rows_in: Mapping[str, int],
    rows_out: Mapping[str, int],
    placement: str,
    failure: str | None,
) -> dict[str, Any]:
    said: dict[str, Any] = {"number": number, "epoch": epoch, "at": round(at, 3), "ms": round(1000 * seconds, 4)}
    said |= {"in": _largest(rows_in), "out": _largest(rows_out), "relations": len(rows_in) + len(rows_out)}
    said |= {"rows_in": sum(rows_in.values()), "rows_out": sum(rows_out.values()), "placement": placement}
    return said if failure is None else {**said, "failure": failure[:500]}


def _largest(rows: Mapping[str, int]) -> dict[str, int]:
    return dict(rows) if len(rows) <= NAMED else dict(nlargest(NAMED, rows.items(), key=lambda each: each[1]))
