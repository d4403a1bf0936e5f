"""Days since 1970 and the parts of their dates, in the Gregorian calendar without end."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import inline
from everview.kernels.word_code import (
    DAY_OF_WEEK,
    DAY_OF_YEAR,
    ISO_WEEK,
    ISO_YEAR,
    MONTH,
    QUARTER,
    WEEKDAY,
    YEAR,
)

ERA = 146_097  # days of 400 years
TO_MARCH_OF_YEAR_ZERO = 719_468


@inline
def civil(days):
    """The year, month and day of a number of days since 1970."""
    shifted = days + TO_MARCH_OF_YEAR_ZERO
    era = shifted // ERA
    rest = shifted - era * ERA
    year = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    day = rest - (365 * year + year // 4 - year // 100)
    month = (5 * day + 2) // 153  # from March
    first = (153 * month + 2) // 5
    number = month + 3 if month < 10 else month - 9
    return year + era * 400 + (1 if number <= 2 else 0), number, day - first + 1


@inline
def days_of(year, month, day):
    """The number of days since 1970 of a date."""
    counted = year - 1 if month <= 2 else year
    era = counted // 400
    rest = counted - era * 400
    march = month - 3 if month > 2 else month + 9
    in_year = (153 * march + 2) // 5 + day - 1
    return era * ERA + rest * 365 + rest // 4 - rest // 100 + in_year - TO_MARCH_OF_YEAR_ZERO


@inline
def iso_week(days):
    """The year and the week of ISO 8601: weeks begin on Monday, and belong to the year of their Thursday."""
    thursday = days - (days + 3) % 7 + 3
    year, _, _ = civil(thursday)
    return year, (thursday - days_of(year, np.int64(1), np.int64(1))) // 7 + 1


@inline
def part_of_date(days, which):
    if which == WEEKDAY:
        return (days + 3) % 7
    if which == DAY_OF_WEEK:
        return (days + 4) % 7 + 1
    if which in (ISO_WEEK, ISO_YEAR):
        year, week = iso_week(days)
        return week if which == ISO_WEEK else year
    year, month, day = civil(days)
    if which == YEAR:
        return year
    if which == QUARTER:
        return (month + 2) // 3
    if which == MONTH:
        return month
    if which == DAY_OF_YEAR:
        return days - days_of(year, np.int64(1), np.int64(1)) + 1
    return day


@inline
def end_day_of(days, which):
    """The first day of a date's year, quarter, month or week; or the last day of its month."""
    if which == ISO_WEEK:
        return days - (days + 3) % 7
    year, month, _ = civil(days)
    if which == YEAR:
        return days_of(year, np.int64(1), np.int64(1))
    if which == QUARTER:
        return days_of(year, (month - 1) // 3 * 3 + 1, np.int64(1))
    if which == MONTH:
        return days_of(year, month, np.int64(1))
    return next_month(year, month) - 1


@inline
def next_month(year, month):
    """The first day of the month after."""
    return days_of(year + 1, np.int64(1), np.int64(1)) if month == 12 else days_of(year, month + 1, np.int64(1))


@inline
def months_later(days, months):
    """The same day some months on, or that month's last."""
    year, month, day = civil(days)
    count = year * 12 + month - 1 + min(max(months, -240_000), 240_000)
    there = count // 12
    number = count - there * 12 + 1
    first = days_of(there, number, np.int64(1))
    return min(first + day, next_month(there, number)) - 1
