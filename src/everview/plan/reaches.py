"""Frames of RANGE by a distance, as values to compare the sort key with: how far a row's frame reaches on each side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everview.errors import TypeMismatch
from everview.plan.typing import call, cast, common, is_integer, is_number, literal
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import INTERVALS
from everview.types import BIGINT, DATE, DURATIONS, TIME, TIMESTAMP, TIMESTAMP_NTZ, YEAR_MONTH, Type


@dataclass(frozen=True)
class FrameReach:
    """The sort key, and the values at which the frame starts and ends, of one type; None where there is no distance.

    A value is NULL where the key is, or where it is beyond what the type holds.
    """

    key: Expression
    low: Expression | None
    high: Expression | None


def is_distance(edge: Any) -> bool:
    """Whether the bound of a frame of RANGE is a distance, and not the current row or unbounded."""
    return edge is not None and not (edge == 0 and not isinstance(edge, Literal))


def reaches(key: Expression, start: Any, end: Any, *, descending: bool = False) -> FrameReach:
    """The reach of a frame over a sort key; raises if there is no such distance of the key's type.

    >>> from everview.scalars.expressions import Column
    >>> from everview.types import INTEGER
    >>> print(reaches(Column(0, "n", INTEGER), -2, 0).low)
    try_add(CAST(n AS BIGINT), -2L)
    """
    if key.type == TIME:  # beyond midnight there are microseconds, but no times
        key, start, end = call("time_to_micros", key), _in_micros(start), _in_micros(end)
    low, high = (_moved(key, edge, descending) if is_distance(edge) else None for edge in (start, end))
    kinds = [e.type for e in (low, high) if e is not None]
    type_: Type | None = kinds[0] if kinds else key.type
    for kind in kinds[1:]:
        type_ = None if type_ is None else common(type_, kind)
    if type_ is None:
        raise TypeMismatch("its two sides are of different types", hint="write distances of one type")
    return FrameReach(cast(key, type_), *(None if e is None else cast(e, type_) for e in (low, high)))


def _in_micros(edge: Any) -> Any:
    """The distance between two times of day as a number."""
    if not is_distance(edge):
        return edge
    if not isinstance(edge, Literal) or edge.type not in DURATIONS:
        raise TypeMismatch(
            "there is no such distance of TIME", hint="give an interval, as in INTERVAL 1 HOUR PRECEDING"
        )
    return Literal(edge.value, BIGINT)


def _moved(key: Expression, edge: Any, descending: bool) -> Expression:
    """The key so far away: before it in the order of the window if the distance is negative."""
    distance = edge if isinstance(edge, Literal) else literal(edge)
    if descending:
        distance = Literal(-distance.value, distance.type)
    if distance.type in INTERVALS:
        if (key.type == YEAR_MONTH) == (distance.type == YEAR_MONTH) and key.type in INTERVALS:
            return call("add", key, distance)
        if key.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            raise TypeMismatch(f"there is no interval of {key.type}", hint="give a number, as in 3 PRECEDING")
        return call("add", key, distance)
    if key.type == DATE and is_integer(distance.type):
        return call("date_add", key, distance)
    if not is_number(key.type):
        hint = "sort by a number, or by a date or timestamp and give an interval"
        raise TypeMismatch(f"there is no distance of {key.type}", hint=hint)
    if is_integer(key.type) and is_integer(distance.type):
        return call("try_add", cast(key, BIGINT), cast_literal(distance))
    return call("try_add", key, distance)


def cast_literal(distance: Literal) -> Literal:
    """A whole number as a BIGINT."""
    return Literal(distance.value, BIGINT)
