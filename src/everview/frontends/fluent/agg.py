"""Aggregates of fluent queries: ``agg.count()``, ``agg.sum("amount", "total")``, ``agg.array("artists.*", "artists")``.

The last argument is the name of the result; `select` also takes it as a keyword: ``select(total=agg.sum("amount"))``.

>>> sum("amount", "total")
Agg(function='sum', column='amount', name='total', distinct=False)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from everview.doors import door
from everview.errors import QueryError, shown
from everview.frontends.fluent.conditions import column_name, valid_text

__all__ = ["Agg", "array", "avg", "count", "max", "min", "sum"]


@dataclass(frozen=True, slots=True)
class Agg:
    """An aggregate of a column over the rows of a group."""

    function: str
    column: str  # "*" of a count of rows; "artists.*" of an array of records
    name: str
    distinct: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise QueryError(f"{shown(self.name)} is no name for {self.function}", hint="a name is text")
        valid_text(self.name)

    def named(self, name: str) -> Agg:
        return replace(self, name=name)


_door = partial(door, error=QueryError)


@_door
def count(column: str = "*", name: str | None = None, *, distinct: bool = False) -> Agg:
    """The number of rows, or of rows with a value in the column; with ``distinct``, of different values."""
    column = column_name(column)
    if distinct and column == "*":
        raise QueryError("count of distinct rows", hint='name a column: agg.count("artist_id", distinct=True)')
    return Agg("count", column, name or ("count" if column == "*" else f"count_{_last(column)}"), distinct)


@_door
def sum(column: str, name: str | None = None) -> Agg:
    """The sum of the values; NULL if there are none."""
    return _of("sum", column, name)


@_door
def min(column: str, name: str | None = None) -> Agg:
    """The least value."""
    return _of("min", column, name)


@_door
def max(column: str, name: str | None = None) -> Agg:
    """The greatest value."""
    return _of("max", column, name)


@_door
def avg(column: str, name: str | None = None) -> Agg:
    """The mean of the values."""
    return _of("avg", column, name)


@_door
def array(column: str, name: str | None = None) -> Agg:
    """The values, in their order, without NULL; of ``"artists.*"`` the records, in the order of their key."""
    column = column_name(column)
    whole = column.removesuffix(".*")
    return Agg("array", column, name or (_last(whole) if whole != column else f"array_{_last(column)}"))


def _of(function: str, column: str, name: str | None) -> Agg:
    column = column_name(column)
    return Agg(function, column, name or f"{function}_{_last(column)}")


def _last(column: str) -> str:
    return column.rpartition(".")[2]
