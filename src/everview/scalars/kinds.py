"""Types that only expressions have, as the type of a bare NULL, which no column holds; and units of intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everview.types import DAY, DAY_TIME, INTERVALS, YEAR_MONTH, Type

__all__ = ["CALENDAR", "DAY", "DAY_TIME", "INTERVALS", "MICROS", "MONTHS", "VOID", "YEAR_MONTH", "Passing"]

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, repr=False)
class Passing(Type):
    """A type of values on their way through an expression; use the constants below."""

    name: str

    @property
    def sql(self) -> str:
        return self.name

    @property
    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.null() if self == VOID else pa.string()

    def __repr__(self) -> str:
        return self.name


VOID: Final = Passing("VOID")
CALENDAR: Final = Passing("INTERVAL")  # of months, days and time: added to moments, and else its text

MONTHS: Final[dict[str, int]] = {"year": 12, "quarter": 3, "month": 1}
MICROS: Final[dict[str, int]] = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
