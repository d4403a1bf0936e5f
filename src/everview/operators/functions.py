"""User functions: pure, vectorised over Arrow, known to operators by name.

A vectorised function takes one Arrow array a column and returns an array, or a tuple of arrays, of the same
length. A plain function of one row is accepted, too, and wrapped: the slow path, one Python call a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from everview.codes.columns import from_python
from everview.doors import doors
from everview.errors import EverviewError, FunctionError, WrongType
from everview.types import Schema

Column = Any  # an Arrow array; its stubs are generic where the class is not
Shape = Literal["columns", "rows", "flat"]


def _as_it_is(value: Any) -> Any:
    return value


@doors()
@dataclass(frozen=True, slots=True)
class Function:
    """A named pure function. ``shape`` says how it is called.

    - ``columns``: Arrow arrays in, one array or a tuple of arrays out, row for row;
    - ``rows``: one row's values in, a value or a tuple out;
    - ``flat``: one row's values in, an iterable of tuples out.

    A function whose code is another than when a state first knew its name has a ``revision``, by which traces of the
    one are told from traces of the other.
    """

    name: str
    call: Callable[..., Any]
    shape: Shape = "columns"
    revision: str = ""

    def columns(self, table: pa.Table, out: Schema, check: bool) -> list[Column]:
        """The function's columns for every row of the table."""
        result = self._columns(table, out)
        if check and not _same(result, self._columns(table, out)):
            raise self._impure()
        return result

    def flattened(self, table: pa.Table, out: Schema, check: bool) -> tuple[list[Column], np.ndarray]:
        """The function's rows for every row of the table, and for each which row it came from."""
        rows, parents = self._flattened(table)
        if check:
            again, _ = self._flattened(table)
            if repr(again) != repr(rows):
                raise self._impure()
        return _columns_of(rows, out, self.name), parents

    def look(self, changes: Any) -> None:
        """Hand changes to a function that gives nothing back."""
        self._guarded(changes)

    def _columns(self, table: pa.Table, out: Schema) -> list[Column]:
        if self.shape == "rows":
            return _columns_of([self._row(row) for row in _rows_of(table)], out, self.name)
        result = self._guarded(*[c.combine_chunks() for c in table.columns])
        arrays = result if isinstance(result, tuple) else (result,)
        if len(arrays) != len(out):
            given = f"{len(arrays)} column{'s' if len(arrays) != 1 else ''}"
            raise FunctionError(f"function {self.name} returned {given}, not {len(out)}", hint=f"declared: {out}")
        return [self._array(a, table.num_rows, f.type.arrow) for a, f in zip(arrays, out.fields, strict=True)]

    def array(self, result: Any, kind: pa.DataType, hint: str) -> Any:
        """What the function gave as an Arrow array; raises if it is no column."""
        if isinstance(result, pa.ChunkedArray):
            return result.combine_chunks()
        if isinstance(result, pa.Array):
            return result
        try:
            return pa.array(result, kind)
        except (pa.ArrowException, TypeError, ValueError) as error:
            given = type(result).__name__
            raise FunctionError(
                f"function {self.name} returned {given}, not a column of {kind}: {error}", hint=hint
            ) from error

    def _array(self, result: Any, rows: int, kind: pa.DataType) -> Column:
        if isinstance(result, pa.Scalar):
            result = pa.array([result.as_py()] * rows, kind)
        result = self.array(result, kind, "return one Arrow array a declared column")
        if len(result) != rows:
            raise FunctionError(
                f"function {self.name} returned {len(result)} values for {rows} rows",
                hint="a vectorised function returns one value a row; use flat_map for more or fewer",
            )
        return result

    def _row(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        value = self._guarded(*row)
        return value if isinstance(value, tuple) else (value,)

    def _flattened(self, table: pa.Table) -> tuple[list[tuple[Any, ...]], np.ndarray]:
        rows: list[tuple[Any, ...]] = []
        parents: list[int] = []
        for i, row in enumerate(_rows_of(table)):
            for image in self._guarded(*row, into=list):
                rows.append(image if isinstance(image, tuple) else (image,))
                parents.append(i)
        return rows, np.array(parents, np.int64)

    def _guarded(self, *arguments: Any, into: Callable[[Any], Any] = _as_it_is) -> Any:
        """The result of a function, whose errors name it; a generator is read here, because it raises only then."""
        try:
            return into(self.call(*arguments))
        except EverviewError:
            raise  # it says what is wrong: a division by zero, perhaps
        except Exception as error:
            raise FunctionError(
                f"function {self.name} raised {type(error).__name__}: {error}",
                hint="the tick was not applied; everything is as it was before it",
            ) from error

    def _impure(self) -> FunctionError:
        return FunctionError(
            f"function {self.name} is not pure: two calls with the same rows gave different results",
            hint="a function in a view may depend on its arguments only: no clock, no random numbers, no state",
        )


def _rows_of(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    if table.num_columns == 0:
        return [()] * table.num_rows
    return zip(*(c.to_pylist() for c in table.columns), strict=True)


def _columns_of(rows: Sequence[tuple[Any, ...]], out: Schema, name: str) -> list[Column]:
    wrong = next((row for row in rows if len(row) != len(out)), None)
    if wrong is not None:
        raise FunctionError(f"function {name} returned {wrong!r}, not {len(out)} values", hint=f"declared: {out}")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(out)
    try:
        return [from_python(f, c) for c, f in zip(columns, out.fields, strict=True)]
    except WrongType as error:
        raise FunctionError(
            f"function {name} returned a value of the wrong type: {error.message}", hint=f"declared: {out}"
        ) from error


def _same(a: list[Column], b: list[Column]) -> bool:
    # By representation, so that NaN is itself.
    return all(x.to_pylist().__repr__() == y.to_pylist().__repr__() for x, y in zip(a, b, strict=True))
