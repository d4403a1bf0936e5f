"""Types that only expressions have: the type of a bare NULL, and intervals. No column of a relation holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from everview.types import Type

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

        if self == VOID:
            return pa.null()
        return pa.int32() if self == YEAR_MONTH else pa.duration("us")

    def __repr__(self) -> str:
        return self.name


VOID: Final = Passing("VOID")
YEAR_MONTH: Final = Passing("INTERVAL YEAR TO MONTH")  # a number of months
DAY: Final = Passing("INTERVAL DAY")  # whole days: a date plus one is a date
DAY_TIME: Final = Passing("INTERVAL DAY TO SECOND")  # microseconds
INTERVALS: Final = (YEAR_MONTH, DAY, DAY_TIME)

Unit = Literal["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]
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
