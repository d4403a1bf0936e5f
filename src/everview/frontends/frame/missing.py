"""Missing values: rows that have some, and values in their place. To Spark, NaN is missing where NULL is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal as PythonDecimal
from typing import TYPE_CHECKING, Any

from everview.doors import doors
from everview.errors import QueryError, WrongType, shown
from everview.frontends.frame.columns import FrameColumn, called, literal_column, named_column
from everview.scalars.coercion import is_number as is_numeric
from everview.types import BOOLEAN, DOUBLE, FLOAT, STRING, Type

if TYPE_CHECKING:
    from everview.frontends.frame.frame import DataFrame


@doors()
class MissingValues:
    """The methods of ``frame.na``, for missing values."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def drop(self, how: str = "any", thresh: int | None = None, subset: str | Iterable[str] | None = None) -> DataFrame:
        """The rows without missing values: with ``how="all"`` those that have any value at all.

        With ``thresh`` it is the rows that have at least so many values, of some columns or of all.
        """
        if how not in ("any", "all"):
            raise QueryError(f'dropna: how is "{how}"', hint='write "any" or "all"')
        present = [self._present(name) for name in self._names(subset)]
        least = thresh if thresh is not None else len(present) if how == "any" else 1
        if least == len(present):
            test = present[0]
            for one in present[1:]:
                test = test & one
            return self._frame.filter(test)
        counted = [FrameColumn(f"CASE WHEN {one.operand} THEN 1 ELSE 0 END", whole=True) for one in present]
        total = counted[0]
        for one in counted[1:]:
            total = total + one
        return self._frame.filter(total >= least)

    def fill(self, value: Any, subset: str | Iterable[str] | None = None) -> DataFrame:
        """A value in place of missing ones, in the columns whose type is of its kind; or a dict of them by column."""
        if isinstance(value, Mapping):
            given: dict[str, Any] = {str(name): one for name, one in _items(value)}
            for name in given:
                self._frame.bound.place(name)
        else:
            kind = _kind(value)
            types = self._types()
            given = {name: value for name in self._names(subset) if kind(types[self._frame.bound.place(name)])}
        if not given:
            return self._frame
        return self._frame.withColumns({name: self._filled(name, one) for name, one in given.items()})

    def replace(self, to_replace: Any, value: Any = None, subset: str | Iterable[str] | None = None) -> DataFrame:
        """Other values in place of some: ``replace({1: 10, 2: 20})``, ``replace(["a", "b"], ["c", "d"])``."""
        pairs = _pairs(to_replace, value)
        kind = _kind(pairs[0][0])
        types = self._types()
        new: dict[str, FrameColumn] = {}
        for name in self._names(subset):
            type_ = types[self._frame.bound.place(name)]
            if kind(type_):
                column = named_column(name) if "." not in name else named_column(f"`{name}`")
                cases = " ".join(
                    f"WHEN {column.text} = {literal_column(old).text} THEN "
                    f"CAST({literal_column(other).operand} AS {type_.sql})"
                    for old, other in pairs
                )
                new[name] = FrameColumn(f"CASE {cases} ELSE {column.text} END", whole=True)
        return self._frame.withColumns(new) if new else self._frame

    def _types(self) -> tuple[Type, ...]:
        return self._frame.schema.types

    def _names(self, subset: str | Iterable[str] | None) -> list[str]:
        if subset is None:
            return list(self._frame.columns)
        names = [subset] if isinstance(subset, str) else list(subset)
        for name in names:
            self._frame.bound.place(name)
        return names

    def _present(self, name: str) -> FrameColumn:
        column = self._frame[name]
        if self._types()[self._frame.bound.place(name)] in (DOUBLE, FLOAT):
            return column.isNotNull() & ~called("isnan", column)
        return column.isNotNull()

    def _filled(self, name: str, value: Any) -> FrameColumn:
        type_, column = self._types()[self._frame.bound.place(name)], self._frame[name]
        if type_ in (DOUBLE, FLOAT):
            column = called("nanvl", column, None)
        return called("coalesce", column, literal_column(value).cast(type_)).alias(name)


def _items(value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return list(value.items())


def _kind(value: Any) -> Any:
    """Whether a type is of the kind of a value."""
    if isinstance(value, bool):
        return lambda type_: type_ == BOOLEAN
    if isinstance(value, int | float | PythonDecimal):
        return is_numeric
    if isinstance(value, str):
        return lambda type_: type_ == STRING
    raise WrongType(f"{shown(value)} fills no column", hint="give a number, a text or a truth value")


def _pairs(old: Any, new: Any) -> list[tuple[Any, Any]]:
    if isinstance(old, Mapping):
        pairs = _items(old)
    elif isinstance(old, list | tuple):
        others: Any = new if isinstance(new, list | tuple) else [new] * len(old)
        if len(others) != len(old):
            raise QueryError(f"{len(old)} values and {len(others)} in their place", hint="give as many of both")
        pairs = list(zip(old, others, strict=True))
    else:
        pairs = [(old, new)]
    if not pairs:
        raise QueryError("replace of nothing", hint="give the values to replace")
    return pairs
