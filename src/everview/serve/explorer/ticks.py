"""The timeline for the page: the epochs after the last one that it has, as plain data of bounded size.

``number`` orders them, and is the moment at which an epoch began; a tick that failed has the epoch of the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everview.serve.timeline import EpochSeen, EpochsOf

KEPT: Final = 600  # epochs that a page shows
NEW: Final = 200  # of them that are looked through for a page that has seen some
NAMED: Final = 12  # relations of an epoch


def epochs_after(epochs: EpochsOf, number: float, shown: int) -> list[dict[str, Any]]:
    """The last epochs that began after a moment, up to the epoch whose rows are shown.

    Later epochs wait for a later call: a page told of a tick reads rows at once, and would read those before the tick.

    >>> from everview.serve.timeline import EpochSeen
    >>> seen = [EpochSeen(epoch, float(epoch), 0.002, {"t": 1}, {"v": 2}) for epoch in (1, 2, 3, 4)]
    >>> [tick["epoch"] for tick in epochs_after(lambda count: seen[-count:], 1.0, 3)]
    [2, 3]
    """
    later = [seen for seen in epochs(NEW if number else KEPT) if seen.began > number]
    while later and not _is_shown(later[-1], shown):
        later.pop()
    return [_told(seen) for seen in later]


def _is_shown(seen: EpochSeen, shown: int) -> bool:
    """Whether rows are shown as an epoch left them; a failed tick left those of the epoch before."""
    return seen.epoch - (seen.failure is not None) <= shown


def _told(seen: EpochSeen) -> dict[str, Any]:
    said: dict[str, Any] = {"number": seen.began, "epoch": seen.epoch, "at": round(seen.began, 3)}
    said |= {"ms": round(1000 * seen.seconds, 4), "placement": seen.placement or "unknown", "reason": seen.reason[:500]}
    said |= {"in": _largest(seen.rows_in), "out": _largest(seen.rows_out)}
    said |= {"relations": len(seen.rows_in) + len(seen.rows_out)}
    said |= {"rows_in": sum(seen.rows_in.values()), "rows_out": sum(seen.rows_out.values())}
    said |= {"steps": {name: round(1000 * seconds, 3) for name, seconds in seen.steps.items()}}
    return said if seen.failure is None else {**said, "failure": seen.failure[:500]}


def _largest(rows: Mapping[str, int]) -> dict[str, int]:
    return dict(rows) if len(rows) <= NAMED else dict(nlargest(NAMED, rows.items(), key=lambda each: each[1]))
