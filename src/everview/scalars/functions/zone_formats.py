"""Moments as text by a pattern in a time zone: with the name of the zone, and how far it is ahead of UTC then."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import BadPattern
from everview.scalars.functions.formats import CONSTANT, Piece, unknown_letters, written
from everview.scalars.functions.kernel import Checked, Kernel, Kind, Value, constant, nulls, numbers
from everview.scalars.functions.moments import DAY, in_years
from everview.scalars.functions.zones import clock_in, zone_of


@dataclass(frozen=True, slots=True)
class ZonedMoments:
    """Instants, and what the clock of a zone shows at each of them."""

    zone: str
    instants: Any
    clock: Any

    def written(self, piece: Piece, pattern: str) -> Value:
        """The zone as a letter of a pattern asks for it."""
        texts = CONSTANT[piece.letter]
        if piece.count > len(texts) or not texts[piece.count - 1]:
            raise unknown_letters(pattern, piece.letter * piece.count)
        if piece.letter == "V":
            return pa.scalar(self.zone)
        different: Any = np.unique(self.clock - self.instants, return_inverse=True)
        ahead, places = different
        if piece.letter == "z":
            return self._named(piece, ahead, places, pattern)
        return pa.array([offset_text(int(a), piece.letter, piece.count) for a in ahead], pa.string()).take(
            pa.array(places)
        )

    def _named(self, piece: Piece, ahead: Any, places: Any, pattern: str) -> Value:
        """The short name of the zone, such as CET or CEST."""
        if isinstance(zone_of(self.zone), int):
            return pa.scalar(self.zone)
        if piece.count > 3:
            raise BadPattern(
                f"the pattern {pattern!r}: zzzz has no name for the zone {self.zone}",
                hint="write z for its short name, or VV for the name of the zone",
            )
        names: list[str] = []
        for one in range(len(ahead)):
            instant = int(self.instants[int(np.flatnonzero(places == one)[0])])
            moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=instant)
            names.append(moment.astimezone(ZoneInfo(self.zone)).tzname() or self.zone)
        return pa.array(names, pa.string()).take(pa.array(places))


def offset_text(ahead: int, letter: str, count: int) -> str:
    """How far ahead of UTC a clock is, as a letter of a pattern writes it: ``+02``, ``+02:00``, ``GMT+2``."""
    sign, seconds = "-" if ahead < 0 else "+", abs(ahead) // 1_000_000
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    if letter == "O" or (letter == "Z" and count == 4):
        if not ahead:
            return "GMT"
        full = letter == "Z" or count == 4
        shown = f"{hours:02}:{minutes:02}" if full else f"{hours}" + (f":{minutes:02}" if minutes or rest else "")
        return f"GMT{sign}{shown}" + (f":{rest:02}" if rest else "")
    if not ahead and (letter == "X" or (letter == "Z" and count == 5)):
        return "Z"
    if letter != "Z" and count == 1:
        return f"{sign}{hours:02}" + (f"{minutes:02}" if minutes else "")
    colon = ":" if count in (3, 5) and not (letter == "Z" and count == 3) else ""
    finer = rest and (count > 3 if letter != "Z" else count == 5)
    return f"{sign}{hours:02}{colon}{minutes:02}" + (f"{colon}{rest:02}" if finer else "")


def _date_format_in_zone(out: Kind, a: Value, pattern: Value, zone: Value) -> Any:
    """Instants by the clock of a zone, with the zone as it is named and as far as it is ahead then."""
    name = zone.as_py()
    instants = numbers(a).astype(np.int64)
    known = zone_of(name)
    if known is None:
        failed = a.is_valid().to_numpy(zero_copy_only=False)
        return Checked(pa.nulls(len(a), out), failed, f"there is no zone {name!r}")
    clock = instants + known if isinstance(known, int) else clock_in(known, instants)
    failed = ~in_years(clock // DAY)
    clock = np.where(failed, 0, clock)
    text = written(clock, pattern.as_py(), ZonedMoments(name, np.where(failed, 0, instants), clock).written)
    text = text if nulls(a) is None else pc.if_else(pc.is_valid(a), text, pa.scalar(None, out))
    return Checked(text, failed, "the result is outside the years 1 to 9999") if failed.any() else text


KERNELS: Final[dict[str, Kernel]] = {"date_format_in_zone": constant(2, constant(1, _date_format_in_zone))}
