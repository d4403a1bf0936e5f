"""Windows of frames, as `pyspark.sql.Window`: parts of the rows, their order, and the rows that a function sees.

>>> from everview import functions as F
>>> F.sum("amount").over(FrameWindow.partitionBy("kind").orderBy(F.desc("day")).rowsBetween(-1, 0))
Column<sum(`amount`) OVER (PARTITION BY `kind` ORDER BY `day` DESC NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)>
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from everview.errors import QueryError, shown
from everview.frontends.frame.columns import FrameColumn, column_or_name
from everview.frontends.frame.steps import FrameStep

_FAR = 2**63


class WindowMethod:
    """A method that also begins a window when it is called on the class, as in ``Window.partitionBy("kind")``."""

    def __init__(self, method: Any) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, window: FrameWindow | None, kind: type[FrameWindow]) -> Any:
        return self.method.__get__(kind() if window is None else window)


@dataclass(frozen=True)
class FrameWindow:
    """A window; methods give others."""

    keys: tuple[FrameColumn, ...] = ()
    by: tuple[FrameColumn, ...] = ()
    reach: str = ""

    unboundedPreceding: ClassVar[int] = -_FAR
    unboundedFollowing: ClassVar[int] = _FAR - 1
    currentRow: ClassVar[int] = 0

    @property
    def text(self) -> str:
        """The window as SQL writes it."""
        parts = [f"PARTITION BY {', '.join(key.operand for key in self.keys)}"] if self.keys else []
        parts += [f"ORDER BY {', '.join(key.key for key in self.by)}"] if self.by else []
        return " ".join((*parts, self.reach)).strip()

    @property
    def steps(self) -> tuple[FrameStep, ...]:
        """The frames whose columns it names."""
        return tuple(step for column in (*self.keys, *self.by) for step in column.steps)

    @WindowMethod
    def partitionBy(self, *cols: Any) -> FrameWindow:
        """Rows that have the same values in some columns are together."""
        return replace(self, keys=columns_of(cols))

    @WindowMethod
    def orderBy(self, *cols: Any) -> FrameWindow:
        """The order of rows within a part."""
        return replace(self, by=columns_of(cols))

    @WindowMethod
    def rowsBetween(self, start: int, end: int) -> FrameWindow:
        """The rows seen, counted from the current one: ``rowsBetween(-1, Window.currentRow)``."""
        return replace(self, reach=f"ROWS BETWEEN {_bound(start)} AND {_bound(end)}")

    @WindowMethod
    def rangeBetween(self, start: int, end: int) -> FrameWindow:
        """The rows seen, by the distance of their order's value from that of the current one."""
        return replace(self, reach=f"RANGE BETWEEN {_bound(start)} AND {_bound(end)}")


def columns_of(given: tuple[Any, ...]) -> tuple[FrameColumn, ...]:
    """Columns, names of columns, or one list of these."""
    listed = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
    return tuple(column_or_name(one) for one in listed)


def _bound(distance: int) -> str:
    if not isinstance(distance, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise QueryError(f"{shown(distance)} is no distance of rows", hint="write -1, 0, or Window.unboundedPreceding")
    if distance == 0:
        return "CURRENT ROW"
    way = "PRECEDING" if distance < 0 else "FOLLOWING"
    return f"UNBOUNDED {way}" if abs(distance) >= 2**31 else f"{abs(distance)} {way}"
