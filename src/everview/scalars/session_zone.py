"""The time zone of a session: what text without a zone means, and which day and hour an instant is in.

Everything is computed in UTC. Where a session has another zone, expressions are made with their moments moved: to the
clock of the zone before its day or hour is asked, and back to the instant afterwards. So a view keeps the zone that it
was made in, and nothing that runs knows of zones.

>>> from everview.plan.typing import call, cast, literal
>>> from everview.scalars.expressions import Column
>>> from everview.types import STRING, TIMESTAMP
>>> at = Column(0, "at", TIMESTAMP)
>>> with session_zone("Asia/Tokyo"):
...     print(call("hour", at), "|", cast(at, STRING))
hour(from_utc_timestamp(at, 'Asia/Tokyo')) | CAST(from_utc_timestamp(at, 'Asia/Tokyo') AS STRING)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Final

from everview.errors import EverviewError, TypeMismatch
from everview.scalars.expressions import TRY, Call, Cast, Expression, Literal, Now
from everview.scalars.kinds import DAY, DAY_TIME, MICROS
from everview.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    Struct,
    Type,
    parts_of_type,
)

UTC: Final = "UTC"
_ZONE: Final[ContextVar[str]] = ContextVar("zone", default=UTC)


@contextmanager
def session_zone(zone: str) -> Generator[None]:
    """Make expressions within a block in a zone."""
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


def current_zone() -> str:
    """The zone in which expressions are made now."""
    return _ZONE.get()


def check_zone(zone: str) -> str:
    """The zone itself; raises if there is none of that name."""
    from everview.scalars.functions.zones import zone_of

    if zone_of(zone) is None:
        hint = 'give a name such as "Europe/Berlin", or an offset such as "+02:00"'
        raise EverviewError(f"there is no time zone {zone!r}", hint=hint)
    return zone


def today() -> Expression:
    """The day of now."""
    return Now("date") if _ZONE.get() == UTC else Cast(_clock(Now("timestamp")), DATE)


def cast_in_zone(argument: Expression, to: Type, try_: bool = False) -> Expression:
    """A cast by the clock of the session's zone."""
    zone, of = _ZONE.get(), argument.type
    if zone == UTC:
        return Cast(argument, to, try_)
    if to == TIMESTAMP and of in (DATE, TIMESTAMP_NTZ):
        return _instant(Cast(argument, to, try_))
    if to == TIMESTAMP and of == STRING:
        name = f"{TRY if try_ else ''}timestamp_in_zone"
        return Call(name, (argument, Literal(zone, STRING)), TIMESTAMP, try_ or argument.nullable)
    if of == VARIANT and _has_moments(to):
        name = f"{TRY if try_ else ''}variant_in_zone"
        return Call(name, (argument, Literal(to.sql, STRING), Literal(zone, STRING)), to, True)
    if of == TIMESTAMP and to in (DATE, TIMESTAMP_NTZ, TIME, STRING):
        return Cast(_clock(argument), to, try_)
    if isinstance(of, Array | Struct) and _differ(of, to):
        raise TypeMismatch(f"there is no cast of {of} to {to} in the zone {zone}", hint="cast its parts one by one")
    return Cast(argument, to, try_)


def _has_moments(of: Type) -> bool:
    """Whether a value of a type depends on the zone in which a variant is read: text shows moments in it."""
    return of in (TIMESTAMP, DATE, STRING) or any(_has_moments(part) for part in parts_of_type(of))


def _differ(of: Type, to: Type) -> bool:
    """Whether moments inside of composite values would be moved."""
    match of, to:
        case Array(a), Array(b):
            return _differ(a, b)
        case Struct(fields), Struct(others):
            return any(_differ(a.type, b.type) for a, b in zip(fields, others, strict=True))
        case _:
            return of != to and TIMESTAMP in (of, to)


def in_session_zone(made: Expression) -> Expression:
    """A call as the session's zone has it."""
    if _ZONE.get() == UTC or not isinstance(made, Call):
        return made
    name = made.function.removeprefix(TRY)
    move = _MOVED.get(name)
    return made if move is None else move(made)


def _clock(moment: Expression) -> Expression:
    """What the clock of the zone shows at an instant."""
    return Call("from_utc_timestamp", (moment, Literal(_ZONE.get(), STRING)), TIMESTAMP, moment.nullable)


def _instant(shown: Expression) -> Expression:
    """The instant at which the clock of the zone shows a time."""
    return Call("to_utc_timestamp", (shown, Literal(_ZONE.get(), STRING)), TIMESTAMP, shown.nullable)


def _shown(call: Call) -> Call:
    """The call with its instants as the clock shows them."""
    return replace(call, arguments=tuple(_clock(a) if a.type == TIMESTAMP else a for a in call.arguments))


def _there_and_back(call: Call) -> Expression:
    return _instant(_shown(call)) if call.type == TIMESTAMP else call


def _truncated(call: Call) -> Expression:
    """The beginning of a unit: hours and less, which may come twice, begin by the offset that the moment is in."""
    unit, moment = call.arguments
    whole = _there_and_back(call)
    if call.type != TIMESTAMP or not isinstance(unit, Literal) or str(unit.value).lower() not in _BELOW_DAYS:
        return whole
    clock = _clock(moment)
    shown = replace(call, arguments=(unit, clock))
    since = Call("subtract_timestamps", (clock, shown), DAY_TIME, call.nullable)
    begun = Call("subtract_time_to", (moment, since), TIMESTAMP, call.nullable)
    alike = Call("equal", (_clock(begun), shown), BOOLEAN, call.nullable)  # unless the offset has changed since
    return Call("if", (alike, begun, whole), TIMESTAMP, call.nullable)


_BELOW_DAYS: Final = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})


def _made(call: Call) -> Expression:
    return _instant(call) if call.type == TIMESTAMP else call


def _read(call: Call) -> Expression:
    """Text as a moment by a pattern: one that reads a zone has the instant itself."""
    return call if len(call.arguments) == 2 and _has_letters(call.arguments[1], "XxZ") else _made(call)


_QUOTED: Final = re.compile("'[^']*'")


def _has_letters(pattern: Expression, letters: str) -> bool:
    """Whether a pattern that is written down has any of some letters."""
    text = pattern.value if isinstance(pattern, Literal) else None
    return isinstance(text, str) and not set(letters).isdisjoint(_QUOTED.sub("", text))


def _moved_by_time(call: Call) -> Expression:
    """A timestamp plus an interval: whole days by the zone's calendar, then the rest as elapsed time."""
    if call.type != TIMESTAMP:
        return call
    moment, span = call.arguments
    if isinstance(span, Literal) and span.value is not None and abs(span.value) < MICROS["day"]:
        return call
    days = Cast(Cast(span, DAY), DAY_TIME)
    rest = Call("subtract_intervals", (span, days), DAY_TIME, span.nullable)
    there = _instant(replace(call, arguments=(_clock(moment), days)))
    return replace(call, arguments=(there, rest))


def _unix(call: Call) -> Expression:
    if len(call.arguments) == 1:
        return call
    read = _read(Call("to_timestamp", call.arguments, TIMESTAMP, call.nullable))
    return Call("unix_timestamp", (read,), BIGINT, call.nullable)


def _from_unix(call: Call) -> Expression:
    count, pattern = call.arguments
    moment = Call("timestamp_seconds", (count,), TIMESTAMP, count.nullable)
    return _formatted(Call("date_format", (moment, pattern), STRING, call.nullable))


def _formatted(call: Call) -> Expression:
    """A moment as text: a pattern that may have letters for the zone is told the zone."""
    moment, pattern = call.arguments
    if moment.type != TIMESTAMP or (isinstance(pattern, Literal) and not _has_letters(pattern, "VzOXxZ")):
        return _shown(call)
    return Call("date_format_in_zone", (moment, pattern, Literal(_ZONE.get(), STRING)), STRING, call.nullable)


_MOVED: Final[dict[str, Callable[[Call], Expression]]] = {
    **dict.fromkeys(("hour", "minute", "second", "second_fraction", "months_between"), _shown),
    "subtract_timestamps": _shown,
    "date_format": _formatted,
    "date_trunc": _truncated,
    **dict.fromkeys(("add_months_to", "subtract_months_to", "time_bucket"), _there_and_back),
    **dict.fromkeys(("add_time_to", "subtract_time_to"), _moved_by_time),
    "make_timestamp": _made,
    "to_timestamp": _read,
    "unix_timestamp": _unix,
    "from_unixtime": _from_unix,
}
