"""When a moment that is moved by days or months of a zone's calendar passes another moment.

A day before now, by the calendar of a zone, does not only go forward: it returns by an hour where clocks are put back,
and again a day after they were put forward. So ``now - 1 day < moment`` may be true, false, true again, and at last
false. So it is with months, and at the ends of these: a month before March 30, 23:00 is February 28, 23:00, and a month
before March 31, 01:00 is February 28, 01:00.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value, constant, nulls, numbers, whole
from everview.scalars.functions.moments import add_months
from everview.scalars.functions.zones import clock_in, instants_in, zone_of

NEAR: Final = 27 * 3_600_000_000  # clocks are set by a day and some hours at most, where the date line was moved
YEARS: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)  # the first and the last moment that there is
EDGE: Final = 12 * 86_400_000_000  # so near to them no calendar is asked
_GRID: Final = 15 * 60_000_000
_SECOND: Final = 1_000_000


def _turns(out: Kind, moment: Value, span: Value, zone: Value) -> Any:
    """For each row the moments at which ``t + span < moment``, by the zone's calendar, becomes false, true, false, …

    At the first and the last days that there are, and for a zone without changes, a day has 24 hours.
    """
    rows, known = len(moment), zone_of(zone.as_py())
    missing = nulls(moment, span)
    if known is None:
        failed = np.ones(rows, bool) if missing is None else ~missing
        return Checked(pa.nulls(rows, out), failed, f"there is no zone {zone.as_py()!r}")
    moments, spans = numbers(moment), numbers(whole(span, rows))
    inside = _inside(moments) & (np.abs(spans) < YEARS[1]) & _inside(moments - spans)
    if isinstance(known, int):
        inside[:] = False
    at_edges = np.clip(moments.astype(object) - spans.astype(object), *YEARS).tolist()
    turns = [[int(turn)] for turn in at_edges]
    if inside.any():
        looked_up = iter(_by_name(str(known), moments[inside], spans[inside]))
        turns = [next(looked_up) if there else turn for there, turn in zip(inside.tolist(), turns, strict=True)]
    listed: list[Any] = turns if missing is None else [None if m else f for m, f in zip(missing, turns, strict=True)]
    return pa.array(listed, pa.list_(pa.int64())).cast(out)


def _inside(moments: Any) -> Any:
    return (moments > YEARS[0] + EDGE) & (moments < YEARS[1] - EDGE)


def _by_name(zone: str, moments: Any, spans: Any) -> list[list[int]]:
    first = instants_in(zone, clock_in(zone, moments) - spans)
    still = _is_still(zone, moments) & _is_still(zone, first)
    return [
        [turn] if alone else _looked_up(zone, moment, span, turn)
        for turn, alone, moment, span in zip(
            first.tolist(), still.tolist(), moments.tolist(), spans.tolist(), strict=True
        )
    ]


def _is_still(zone: str, moments: Any) -> Any:
    """Whether no clock is set near moments."""
    ahead = [clock_in(zone, moment) - moment for moment in (moments - NEAR, moments, moments + NEAR)]
    return (ahead[0] == ahead[1]) & (ahead[1] == ahead[2])


def _looked_up(zone: str, moment: int, span: int, near: int) -> list[int]:
    """The turns of one row, piece by piece: between two breaks the moved moment goes on as time does."""
    begin, end = near - 2 * NEAR, near + 2 * NEAR
    sets = _clock_sets(zone, begin, end)
    ahead = {before for _, before, _ in sets} | {after for _, _, after in sets} | {int(_ahead(zone, [near])[0])}
    jumps = [
        instant + max(before, after)
        for instant, before, after in _clock_sets(zone, moment - 2 * NEAR, moment + 2 * NEAR)
    ]
    breaks = {begin, *(instant for instant, _, _ in sets), *(jump - span - by for jump in jumps for by in ahead)}
    starts = sorted(instant for instant in breaks if begin <= instant < end)
    moved = instants_in(zone, clock_in(zone, np.array(starts)) + span).tolist()
    return _passed(starts, moved, end, moment)


def _passed(starts: list[int], moved: list[int], end: int, moment: int) -> list[int]:
    """Times at which a moved clock passes a moment, forwards or backwards.

    At each of the starts the moved clock shows another time, which then goes on as time does, up to the next start.
    """
    turns, before = list[int](), True
    for start, reached, stop in zip(starts, moved, [*starts[1:], end], strict=True):
        if (reached < moment) != before:
            turns.append(start)
            before = not before
        if before and start + moment - reached < stop:
            turns.append(start + moment - reached)
            before = False
    return turns


def _ahead(zone: str, moments: Any) -> Any:
    instants = np.array(moments, np.int64)
    return clock_in(zone, instants) - instants


def _clock_sets(zone: str, begin: int, end: int) -> list[tuple[int, int, int]]:
    """The moments between two at which the clocks of a zone are set, and how far ahead they are before and after."""
    grid = np.arange(begin // _SECOND * _SECOND, end + _GRID, _GRID)
    ahead = _ahead(zone, grid)
    sets: list[tuple[int, int, int]] = []
    for place in np.flatnonzero(ahead[1:] != ahead[:-1]).tolist():
        low, high = int(grid[place]), int(grid[place + 1])
        while high - low > _SECOND:
            middle = (low + high) // 2 // _SECOND * _SECOND
            low, high = (middle, high) if _ahead(zone, [middle])[0] == ahead[place] else (low, middle)
        sets.append((high, int(ahead[place]), int(ahead[place + 1])))
    return sets


# -- months

_DAY: Final = 86_400_000_000
MONTH: Final = 2_629_746_000_000  # a twelfth of a year of the calendar
AROUND: Final = 5 * _DAY + 2 * NEAR  # of the days that months move to one day, and of clocks that are set
_EVERY_MONTH_HAS: Final = 27  # days, of which each is reached from one day only


def _month_turns(out: Kind, moment: Value, months: Value, zone: Value) -> Any:
    """For each row the moments at which ``t + months < moment``, by the zone's calendar, becomes false, true, false, …

    At the first and the last days that there are, every month has the same length.
    """
    rows, known = len(moment), zone_of(zone.as_py())
    missing = nulls(moment, months)
    if known is None:
        failed = np.ones(rows, bool) if missing is None else ~missing
        return Checked(pa.nulls(rows, out), failed, f"there is no zone {zone.as_py()!r}")
    moments, counts = numbers(moment), numbers(whole(months, rows)).astype(np.int64)
    rough = moments.astype(object) - counts.astype(object) * MONTH
    inside = _inside(moments) & np.array([YEARS[0] + 2 * EDGE < at < YEARS[1] - 2 * EDGE for at in rough], bool)
    turns = [[int(at)] for at in np.clip(rough, *YEARS)]
    if inside.any():
        looked_up = iter(_by_months(known, moments[inside], counts[inside]))
        turns = [next(looked_up) if there else turn for there, turn in zip(inside.tolist(), turns, strict=True)]
    listed: list[Any] = turns if missing is None else [None if m else f for m, f in zip(missing, turns, strict=True)]
    return pa.array(listed, pa.list_(pa.int64())).cast(out)


def _by_months(zone: int | str, moments: Any, months: Any) -> list[list[int]]:
    shown = _shown(zone, moments)
    first = _told(zone, _months_on(shown, -months))
    days = (shown // _DAY).astype("M8[D]")
    alone = (days - days.astype("M8[M]").astype("M8[D]")).astype(np.int64) < _EVERY_MONTH_HAS
    if isinstance(zone, str):
        alone &= _is_still(zone, moments) & _is_still(zone, first)
    return [
        [turn] if one else _month_turns_of(zone, moment, count, turn)
        for turn, one, moment, count in zip(
            first.tolist(), alone.tolist(), moments.tolist(), months.tolist(), strict=True
        )
    ]


def _month_turns_of(zone: int | str, moment: int, months: int, near: int) -> list[int]:
    """The turns of one row, piece by piece, which end at midnight, too."""
    begin, end = near - AROUND, near + AROUND
    sets = _clock_sets(zone, begin, end) if isinstance(zone, str) else []
    jumps = _clock_sets(zone, moment - 2 * NEAR, moment + 2 * NEAR) if isinstance(zone, str) else []
    ahead = {int(_shown(zone, np.array([near]))[0]) - near, *(by for _, *both in sets for by in both)}
    times = [0, *((instant + max(before, after)) % _DAY for instant, before, after in jumps)]
    days = range(begin // _DAY - 1, end // _DAY + 2)
    breaks = {
        begin,
        *(instant for instant, _, _ in sets),
        *(day * _DAY + t - by for day in days for t in times for by in ahead),
    }
    starts = sorted(instant for instant in breaks if begin <= instant < end)
    moved = _told(zone, _months_on(_shown(zone, np.array(starts)), np.int64(months))).tolist()
    return _passed(starts, moved, end, moment)


def _months_on(shown: Any, months: Any) -> Any:
    return add_months(shown // _DAY, months) * _DAY + shown % _DAY


def _shown(zone: int | str, moments: Any) -> Any:
    return clock_in(zone, moments) if isinstance(zone, str) else moments + zone


def _told(zone: int | str, shown: Any) -> Any:
    return instants_in(zone, shown) if isinstance(zone, str) else shown - zone


KERNELS: Final[dict[str, Kernel]] = {
    "turns_in_zone": constant(2, _turns),
    "month_turns_in_zone": constant(2, _month_turns),
}
