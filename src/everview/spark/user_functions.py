"""Functions of Spark's users, called with Arrow columns as Spark's workers call them.

A plain UDF is called row by row, a pandas one with Series, an Arrow one with arrays, all in batches of so many rows as
Spark's. What NULL is to them and how results become values of the declared type is Spark's affair: `user_values`.

A row is taken away by the same result as it was added with, whichever rows were beside it. But whole numbers are floats
in a Series with a NULL among them: so a pandas UDF gets rows with NULLs in other Series than rows without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import FunctionError
from everview.spark.user_values import (
    arrow_given,
    arrow_made,
    pandas_given,
    pandas_made,
    rows_alike,
    rows_given,
    rows_made_by_arrow,
    rows_made_by_java,
)
from everview.types import Type

BATCH: Final = 10_000  # rows, as Spark's batches have unless told otherwise
# Spark's numbers for the ways in which workers call functions.
PLAIN, PLAIN_BY_ARROW, PANDAS, PANDAS_ITERATOR, ARROW, ARROW_ITERATOR = 100, 101, 200, 204, 250, 251
PANDAS_AGGREGATE, PANDAS_AGGREGATE_ITERATOR, ARROW_AGGREGATE, ARROW_AGGREGATE_ITERATOR = 202, 217, 252, 254
SCALARS: Final = (PLAIN, PLAIN_BY_ARROW, PANDAS, PANDAS_ITERATOR, ARROW, ARROW_ITERATOR)
AGGREGATES: Final = (PANDAS_AGGREGATE, PANDAS_AGGREGATE_ITERATOR, ARROW_AGGREGATE, ARROW_AGGREGATE_ITERATOR)


@dataclass(frozen=True, slots=True)
class SparkFunction:
    """A UDF: how it is called, its result's type, the names of arguments that have any, the session's time zone.

    Two are equal if their identities are, which tell code and what it refers to.
    """

    kind: int
    type: Type
    names: tuple[str, ...]
    zone: str
    safe: bool  # whether a result that does not fit its type raises
    identity: str
    call: Callable[..., Any] = field(compare=False, repr=False)

    @property
    def digested(self) -> tuple[Any, ...]:
        """Further values by which a state tells whether the code has changed."""
        return self.kind, str(self.type), self.identity

    def __call__(self, *columns: Any) -> Any:
        """The function's values for the rows of some columns; a function without arguments gets one column, unread."""
        rows = len(columns[0])
        given = columns[: len(self.names)]
        if not rows:
            return pa.array([], self.type.arrow)
        alike = rows_alike(given) if self.kind in (PANDAS, PANDAS_ITERATOR) else ()
        if not len(alike):
            return self._values(given, rows)
        parts = [self._values([column.take(pa.array(places)) for column in given], len(places)) for places in alike]
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(alike))))

    def _values(self, given: Sequence[Any], rows: int) -> Any:
        batches = (([c.slice(at, BATCH) for c in given], min(BATCH, rows - at)) for at in range(0, rows, BATCH))
        parts = list(self._parts(batches, rows))
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def _parts(self, batches: Iterator[tuple[list[Any], int]], rows: int) -> Iterator[Any]:
        match self.kind:
            case 100 | 101:
                for columns, count in batches:
                    yield self._by_row(columns, count)
            case 204 | 251:
                yield from self._iterated(batches, rows)
            case _:
                for columns, count in batches:
                    yield self._made(self._called(self._given(columns)), count)

    def _by_row(self, columns: list[Any], count: int) -> Any:
        values = [rows_given(column) for column in columns]
        given = zip(*values, strict=True) if values else iter([()] * count)
        results = [self._called(row) for row in given]
        if self.kind == PLAIN:
            return rows_made_by_java(results, self.type)
        return rows_made_by_arrow(results, self.type, safe=self.safe)

    def _iterated(self, batches: Iterator[tuple[list[Any], int]], rows: int) -> Iterator[Any]:
        """The values of a function that takes an iterator of batches and gives one of results."""

        def arguments() -> Iterator[Any]:
            for columns, _ in batches:
                given = self._given(columns)
                yield given[0] if len(given) == 1 else tuple(given)

        made = [self._made(result, None) for result in self.call(arguments())]
        self._require(sum(map(len, made)), rows)
        yield from made

    def _given(self, columns: list[Any]) -> list[Any]:
        if self.kind in (ARROW, ARROW_ITERATOR, ARROW_AGGREGATE, ARROW_AGGREGATE_ITERATOR):
            return [arrow_given(column, self.zone) for column in columns]
        return [pandas_given(column, self.zone) for column in columns]

    def _made(self, result: Any, count: int | None) -> Any:
        if not hasattr(result, "__len__"):
            what = f"a function of columns returned {type(result).__name__}, and not a column"
            raise FunctionError(what, hint="return a Series or an array, with one value a row")
        if count is not None:
            self._require(len(result), count)
        if self.kind in (ARROW, ARROW_ITERATOR):
            return arrow_made(result, self.type)
        return pandas_made(result, self.type, self.zone, safe=self.safe)

    def _called(self, values: Any) -> Any:
        by_place = [value for name, value in zip(self.names, values, strict=True) if not name]
        by_name = {name: value for name, value in zip(self.names, values, strict=True) if name}
        return self.call(*by_place, **by_name)

    def _require(self, given: int, wanted: int) -> None:
        if given != wanted:
            raise FunctionError(
                f"a function of columns returned {given} values for {wanted} rows", hint="return one value a row"
            )


@dataclass(frozen=True, slots=True)
class SparkAggregate(SparkFunction):
    """A grouped aggregate: a UDF that is called with all values of a group, NULLs among them."""

    def __call__(self, *columns: Any) -> Any:
        """The value of each group; the one column has a list of structs for each, whose fields are the arguments."""
        (groups,) = columns
        rows = groups.flatten().flatten()
        ends = pc.list_value_length(groups).to_pylist()
        parts, start = list[Any](), 0
        for length in ends:
            given = self._given([column.slice(start, length) for column in rows[: len(self.names)]])
            parts.append(self._result(given))
            start += length
        return pa.concat_arrays(parts) if parts else pa.array([], self.type.arrow)

    def _result(self, given: list[Any]) -> Any:
        if self.kind in (PANDAS_AGGREGATE_ITERATOR, ARROW_AGGREGATE_ITERATOR):
            value = self.call(iter([given[0] if len(given) == 1 else tuple(given)]))
        else:
            value = self._called(given)
        if self.kind in (ARROW_AGGREGATE, ARROW_AGGREGATE_ITERATOR):
            return arrow_made(pa.array([value]), self.type)
        import pandas as pd

        return pandas_made(pd.Series([value]), self.type, self.zone, safe=self.safe)
