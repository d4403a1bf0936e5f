"""Days and microseconds as NumPy has them, and the parts of moments that are read from text."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from everview.scalars.functions.kernel import Mask

DAY: Final = 86_400_000_000
FIRST_YEAR: Final = 1
LAST_YEAR: Final = 9999


def days_of(year: Any, month: Any, day: Any) -> tuple[Any, Mask]:
    """Days since 1970 of dates, and a mask of the dates that exist; years 1 to 9999."""
    inside = (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1)
    first = month_start(np.where(inside, year, 1970), np.where(inside, month, 1))
    length = month_length(first)
    good = inside & (day <= length)
    return np.where(good, first.astype("M8[D]").astype(np.int64) + day - 1, 0), good


def month_start(year: Any, month: Any) -> Any:
    return ((np.asarray(year, np.int64) - 1970) * 12 + np.asarray(month, np.int64) - 1).astype("M8[M]")


def month_length(month: Any) -> Any:
    return ((month + 1).astype("M8[D]") - month.astype("M8[D]")).astype(np.int64)


def add_months(days: Any, months: Any) -> Any:
    """The same day some months on, or that month's last."""
    when = days.astype("M8[D]")
    start = when.astype("M8[M]")
    day = (when - start.astype("M8[D]")).astype(np.int64)
    there = start + np.asarray(months, np.int64)
    return there.astype("M8[D]").astype(np.int64) + np.minimum(day, month_length(there) - 1)


def in_years(days: Any) -> Mask:
    """A mask of the days in the years 1 to 9999."""
    return (days >= -719_162) & (days <= 2_932_896)
