"""Moments in zones: the clock of a zone at an instant, and the instant at which the clock of a zone shows a time.

A time that a clock skips is taken as if it had not been set forward yet; of two instants at which it shows a time, the
earlier one is taken.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value, constant, from_numbers, nulls, numbers
from everview.scalars.functions.moments import DAY, in_years

_FIXED: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
# Java's short names of zones.
_SHORT: Final = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip
_SECOND: Final = 1_000_000
_EPOCH: Final = dt.datetime(1970, 1, 1)
_LISTED: Final = 2_114_380_800 * _SECOND  # the first of 2037: later changes are known by a rule only


@cache
def zone_of(text: str) -> int | str | None:
    """A zone by its name: microseconds ahead of UTC, or a name that Arrow knows; None if there is none."""
    text = _SHORT.get(text, text)
    if text in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return 0
    fixed = _FIXED.fullmatch(text)
    if fixed is not None:
        hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:])
        ahead = hours * 3600 + minutes * 60 + seconds
        return None if ahead > 18 * 3600 or minutes > 59 else (ahead if fixed[1] == "+" else -ahead) * _SECOND
    if not re.fullmatch(r"[A-Z][\w+-]*(?:/[\w+-]+)*", text, re.ASCII):
        return None
    try:
        clock_in(text, np.zeros(1, np.int64))
    except (pa.ArrowException, OSError):
        return None
    return text


@cache
def tzinfo_of(zone: str) -> dt.tzinfo:
    """A zone that there is, as Python has it."""
    known = zone_of(zone)
    if isinstance(known, int):
        return dt.timezone(dt.timedelta(microseconds=known))
    return ZoneInfo(known or zone)


def clock_in(zone: str, micros: Any) -> Any:
    """What the clock of a zone shows at instants, as if it were UTC."""
    near = np.minimum(micros, _LISTED)
    shown = numbers(pc.local_timestamp(pa.array(near).cast(pa.timestamp("us", zone))))
    return _far(
        micros, shown, lambda moment: moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    )


def instants_in(zone: str, shown: Any) -> Any:
    """The instants at which the clock of a zone shows times."""
    near = _near_instants(np.minimum(shown, _LISTED), zone)
    return _far(
        shown, near, lambda moment: moment.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC).replace(tzinfo=None)
    )


def _far(micros: Any, near: Any, function: Callable[[dt.datetime], dt.datetime]) -> Any:
    """Times of which Arrow lists no changes of clocks, one call for each different one; the others as they are."""
    far = micros > _LISTED
    if not far.any():
        return near
    known, places = np.unique(micros[far], return_inverse=True)
    moved = [_moved(int(micro), function) for micro in known]
    result = near.copy()
    result[far] = np.array(moved, np.int64)[places]
    return result


def _moved(micros: int, function: Callable[[dt.datetime], dt.datetime]) -> int:
    try:
        moved = function(_EPOCH + dt.timedelta(microseconds=micros))
    except OverflowError:
        return micros + DAY  # beyond the years that there are
    return (moved - _EPOCH) // dt.timedelta(microseconds=1)


def _near_instants(shown: Any, zone: str) -> Any:
    local: Value = pa.array(shown).cast(pa.timestamp("us"))
    instants = numbers(pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest"))
    clock = clock_in(zone, instants)
    # Before a skipped time the clock is as far ahead as it was: the instant is by that.
    return np.where(clock == shown, instants, shown - (clock - instants))


def _shifting(forward: bool) -> Kernel:
    def run(out: Kind, a: Value, zone: Value) -> Any:
        micros, missing, name = numbers(a), nulls(a), zone.as_py()
        known = zone_of(name)
        if known is None:
            failed = np.ones(len(a), bool) if missing is None else ~missing
            return Checked(pa.nulls(len(a), out), failed, f"there is no zone {name!r}")
        if isinstance(known, int):
            moved = micros + known if forward else micros - known
        else:
            moved = clock_in(known, micros) if forward else instants_in(known, micros)
        failed = ~in_years(moved // DAY)
        failed = failed if missing is None else failed & ~missing
        value = from_numbers(np.where(failed, 0, moved), out, missing)
        return Checked(value, failed, "the result is outside the years 1 to 9999") if failed.any() else value

    return constant(1, run)


def _read(out: Kind, text: Value, zone: Value) -> Any:
    """Text as a timestamp; one that names no zone is in the given one."""
    from everview.scalars.text_casts import read_in_zone

    known = zone_of(zone.as_py())
    if known is None:
        return Checked(pa.nulls(len(text), out), np.ones(len(text), bool), f"there is no zone {zone.as_py()!r}")
    return read_in_zone(text, out, lambda shown: shown - known if isinstance(known, int) else instants_in(known, shown))


KERNELS: Final[dict[str, Kernel]] = {
    "from_utc_timestamp": _shifting(forward=True),
    "to_utc_timestamp": _shifting(forward=False),
    "timestamp_in_zone": constant(1, _read),
}
