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
from everview.scalars.expressions import TRY, Call, Cast, Column, Expression, Literal, Now, walk
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
    zone, given = _ZONE.get(), argument.type
    if zone == UTC:
        return Cast(argument, to, try_)
    if to == TIMESTAMP and given in (DATE, TIMESTAMP_NTZ):
        return _instant(Cast(argument, to, try_))
    if to == TIMESTAMP and given == STRING:
        name = f"{TRY if try_ else ''}timestamp_in_zone"
        return Call(name, (argument, Literal(zone, STRING)), TIMESTAMP, try_ or argument.nullable)
    if given == VARIANT and _has_moments(to):
        name = f"{TRY if try_ else ''}variant_in_zone"
        return Call(name, (argument, Literal(to.sql, STRING), Literal(zone, STRING)), to, True)
    if given == TIMESTAMP and to in (DATE, TIMESTAMP_NTZ, TIME, STRING):
        return Cast(_clock(argument), to, try_)
    if isinstance(given, Array | Struct) and _differ(given, to):
        raise TypeMismatch(f"there is no cast of {given} to {to} in the zone {zone}", hint="cast its parts one by one")
    return Cast(argument, to, try_)


def _has_moments(type_: Type) -> bool:
    """Whether a value of a type depends on the zone in which a variant is read: text shows moments in it."""
    return type_ in (TIMESTAMP, DATE, STRING) or any(_has_moments(part) for part in parts_of_type(type_))


def _differ(given: Type, to: Type) -> bool:
    """Whether moments inside of composite values would be moved."""
    match given, to:
        case Array(a), Array(b):
            return _differ(a, b)
        case Struct(fields), Struct(others):
            return any(_differ(a.type, b.type) for a, b in zip(fields, others, strict=True))
        case _:
            return given != to and TIMESTAMP in (given, to)


def in_session_zone(made: Expression) -> Expression:
    """A call as the session's zone has it."""
    if _ZONE.get() == UTC or not isinstance(made, Call):
        return made
    name = made.function.removeprefix(TRY)
    move = _MOVED.get(name)
    return made if move is None else move(made)


def on_the_clock(moment: Expression) -> Expression:
    """The time that the clock of the session's zone shows at an instant, as an instant of UTC."""
    return moment if _ZONE.get() == UTC else _clock(moment)


def _clock(moment: Expression) -> Expression:
    """What the clock of the zone shows at an instant."""
    return Call("from_utc_timestamp", (moment, Literal(_ZONE.get(), STRING)), TIMESTAMP, moment.nullable)


def _instant(shown: Expression) -> Expression:
    """The instant at which the clock of the zone shows a time."""
    return Call("to_utc_timestamp", (shown, Literal(_ZONE.get(), STRING)), TIMESTAMP, shown.nullable)


def _shown(call: Call) -> Call:
    """The call with its instants as the clock shows them."""
    return replace(call, arguments=tuple(_clock(a) if a.type == TIMESTAMP else a for a in call.arguments))


def _instant_near(shown: Expression, moment: Expression) -> Expression:
    """The instant at which the clock shows a time; of two such instants the one with the offset of a given moment."""
    apart = Call("subtract_timestamps", (shown, _clock(moment)), DAY_TIME, shown.nullable)
    near = Call("add_time_to", (moment, apart), TIMESTAMP, shown.nullable)
    shows = Call("equal", (_clock(near), shown), BOOLEAN, shown.nullable)
    return Call("if", (shows, near, _instant(shown)), TIMESTAMP, shown.nullable)


def _there_and_back(call: Call) -> Expression:
    return _instant(_shown(call)) if call.type == TIMESTAMP else call


_OF_A_DAY: Final = ("hour", "minute", "second", "millisecond", "microsecond")


def _truncated(call: Call) -> Expression:
    """The beginning of a unit of time: an hour that comes twice begins twice."""
    unit, moment = call.arguments
    if isinstance(unit, Literal) and str(unit.value).lower() in _OF_A_DAY:
        return _instant_near(_shown(call), moment)
    return _there_and_back(call)


def _moved_by_months(call: Call) -> Expression:
    return _moved_instant(_shown(call), *call.arguments) if call.type == TIMESTAMP else call


def _moved_instant(shown: Expression, moment: Expression, span: Expression) -> Expression:
    """The instant that a moment is moved to: if both are a row's own, the span may be nothing, and so it stays.

    Conditions on now() are solved for the earlier of two instants.
    """
    own = not isinstance(span, Literal) and any(isinstance(part, Column) for part in walk(moment))
    return _instant_near(shown, moment) if own else _instant(shown)


def _months_between(call: Call) -> Expression:
    """Months between two moments, of which the time of day is what has passed since midnight."""
    return replace(call, arguments=tuple(_since_midnight(a) if a.type == TIMESTAMP else a for a in call.arguments))


def _since_midnight(moment: Expression) -> Expression:
    """The day of a moment and the time that has passed since it began, as an instant of UTC."""
    midnight = Cast(Cast(_clock(moment), DATE), TIMESTAMP)
    passed = Call("subtract_timestamps", (moment, _instant(midnight)), DAY_TIME, moment.nullable)
    return Call("add_time_to", (midnight, passed), TIMESTAMP, moment.nullable)


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
    there = _moved_instant(replace(call, arguments=(_clock(moment), days)), moment, span)
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
    **dict.fromkeys(("hour", "minute", "second", "second_fraction"), _shown),
    "months_between": _months_between,
    "subtract_timestamps": _shown,
    "date_format": _formatted,
    **dict.fromkeys(("add_months_to", "subtract_months_to"), _moved_by_months),
    "time_bucket": _there_and_back,
    "date_trunc": _truncated,
    **dict.fromkeys(("add_time_to", "subtract_time_to"), _moved_by_time),
    "make_timestamp": _made,
    "to_timestamp": _read,
    "unix_timestamp": _unix,
    "from_unixtime": _from_unix,
}
