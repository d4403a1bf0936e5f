"""Groups of a frame's rows: keys, and the aggregates that are asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from everview.doors import doors
from everview.errors import QueryError, WrongType, shown
from everview.frontends.frame.columns import FrameColumn, as_column, called, column_or_name, named_column
from everview.scalars.coercion import is_number as is_numeric

if TYPE_CHECKING:
    from everview.frontends.frame.frame import DataFrame

MOST_PIVOTED: Final = 10_000  # values of a pivot that names none


@doors()
@dataclass(frozen=True)
class GroupedData:
    """The rows of a frame in groups by keys; every method of it but `pivot` gives a frame."""

    frame: DataFrame
    keys: tuple[FrameColumn, ...]
    grouping: str = ""  # or ROLLUP or CUBE
    column: FrameColumn | None = None  # of a pivot
    values: tuple[FrameColumn, ...] = ()

    def agg(self, *exprs: FrameColumn | Mapping[str, str]) -> DataFrame:
        """The aggregates of each group: ``agg(F.sum("amount").alias("total"))``, or ``agg({"amount": "sum"})``."""
        calls: list[FrameColumn] = []
        for one in exprs:
            if isinstance(one, Mapping):
                calls += [_called(name, column) for column, name in one.items()]
            elif isinstance(one, FrameColumn):  # pyright: ignore[reportUnnecessaryIsInstance]
                calls.append(one)
            else:
                raise WrongType(f"agg: {shown(one)} is no aggregate", hint='write agg(F.sum("amount"))')
        if not calls:
            raise QueryError("agg of nothing", hint='write agg(F.sum("amount"))')
        return self._made(calls)

    def count(self) -> DataFrame:
        """The number of rows of each group."""
        return self._made([called("count", FrameColumn("1", whole=True)).alias("count")])

    def sum(self, *cols: str) -> DataFrame:
        """The sums of columns, or of all numbers."""
        return self._each("sum", cols)

    def avg(self, *cols: str) -> DataFrame:
        """The means of columns, or of all numbers."""
        return self._each("avg", cols)

    mean = avg

    def min(self, *cols: str) -> DataFrame:
        """The least values of columns, or of all numbers."""
        return self._each("min", cols)

    def max(self, *cols: str) -> DataFrame:
        """The greatest values of columns, or of all numbers."""
        return self._each("max", cols)

    def pivot(self, pivot_col: str | FrameColumn, values: Iterable[Any] | None = None) -> GroupedData:
        """Groups with a column for each of some values of a column.

        Without ``values`` they are those that the column has now, as in Spark; a view that is kept goes on with these.
        """
        if self.column is not None or self.grouping:
            raise QueryError("a pivot follows groupBy", hint="and only one of them")
        column = column_or_name(pivot_col)
        listed = self._found(column) if values is None else list(values)
        if not listed:
            raise QueryError("a pivot of no values", hint="list them: pivot(column, [1, 2])")
        return replace(self, column=column, values=tuple(map(as_column, listed)))

    def _found(self, column: FrameColumn) -> list[Any]:
        different = self.frame.select(column.alias("value")).distinct().orderBy("value").limit(MOST_PIVOTED + 1)
        rows = different.collect()
        if len(rows) > MOST_PIVOTED:
            raise QueryError(f"a pivot of more than {MOST_PIVOTED:,} values", hint="list those that are wanted")
        return [row[0] for row in rows]

    def _each(self, name: str, cols: tuple[str, ...]) -> DataFrame:
        listed = cols or self._numbers()
        return self._made([_called(name, column) for column in listed])

    def _numbers(self) -> tuple[str, ...]:
        keys = {key.text for key in self.keys}
        fields = self.frame.schema.fields
        names = [f.name for f in fields if is_numeric(f.type) and named_column(f.name).text not in keys]
        if not names:
            raise QueryError("there are no numbers to add up", hint='name columns, or write agg(F.count("*"))')
        return tuple(names)

    def _made(self, calls: Sequence[FrameColumn]) -> DataFrame:
        said: dict[str, Any] = {
            "items": [key.item for key in self.keys],
            "keys": [key.text for key in self.keys],
            "calls": [call.item for call in calls],
        }
        if self.grouping:
            said["grouping"] = self.grouping
        if self.column is not None:
            said |= {"column": self.column.text, "values": [value.text for value in self.values]}
        pivot = () if self.column is None else (self.column, *self.values)
        return self.frame.step("group", said, (*self.keys, *calls, *pivot))


def _called(name: str, column: str) -> FrameColumn:
    return called(name, FrameColumn("1", whole=True) if column == "*" else named_column(column))
