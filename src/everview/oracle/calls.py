"""User functions as the oracle calls them: on blocks of rows or groups, of growing size.

A vectorised function must give each row its value whatever other rows it is called with. The blocks here differ from
those of a tick, so a function that looks at neighbouring rows gives itself away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from everview.operators.functions import Function
from everview.operators.linear import Filter, FlatMap, Map
from everview.oracle.rows import Row, Rows, picking
from everview.oracle.values import from_arrow, from_python, to_arrow
from everview.types import BOOLEAN, Schema, Type

LARGEST = 4096  # rows of a block


def called(operator: Map | Filter | FlatMap, function: Function, rows: Rows) -> Rows:
    """The rows that a function makes of every row."""
    schema, given, weights = operator.source.schema, list(rows.weights), list(rows.weights.values())
    match operator:
        case FlatMap(_, _, out):
            return Rows.of(_flattened(function, schema, out, rows))
        case Filter(_, _, arguments):
            (verdicts,) = _images(function, schema, arguments, given, [BOOLEAN])
            entries = zip(given, weights, verdicts, strict=True)
            return Rows({row: w for row, w, verdict in entries if verdict is True})
        case Map(_, _, out, keep, arguments):
            columns = _images(function, schema, arguments, given, out.types[len(keep) :])
            images = zip(*columns, strict=True) if columns else [()] * len(given)
            kept = picking(keep)
            return Rows.of((kept(row) + image, w) for row, w, image in zip(given, weights, images, strict=True))


def answers(function: Function, types: Sequence[Type], given: Sequence[Sequence[Any]], out: Type) -> list[Any]:
    """A function's value for each of these lists of arguments."""
    return _block_by_block(function, types, given, [out])[0]


def _images(
    function: Function, schema: Schema, arguments: Sequence[int] | None, rows: list[Row], out: Sequence[Type]
) -> list[list[Any]]:
    """The columns that a function gives for rows, from some of their fields."""
    fields = range(len(schema)) if arguments is None else arguments
    given = rows if arguments is None else list(map(picking(fields), rows))
    return _block_by_block(function, [schema.fields[f].type for f in fields], given, out)


def _block_by_block(
    function: Function, types: Sequence[Type], given: Sequence[Sequence[Any]], out: Sequence[Type]
) -> list[list[Any]]:
    columns: list[list[Any]] = [[] for _ in out]
    for block in _blocks(len(given)):
        for column, more in zip(columns, _block(function, types, given[block], out), strict=True):
            column.extend(more)
    return columns


def _blocks(count: int) -> Iterator[slice]:
    """Slices that begin with one row and double in size.

    >>> [(block.start, block.stop) for block in _blocks(5)]
    [(0, 1), (1, 3), (3, 5)]
    """
    start, size = 0, 1
    while start < count:
        yield slice(start, min(start + size, count))
        start, size = start + size, min(2 * size, LARGEST)


def _block(
    function: Function, types: Sequence[Type], given: Sequence[Sequence[Any]], out: Sequence[Type]
) -> list[list[Any]]:
    columns = [to_arrow(type_, [row[field] for row in given]) for field, type_ in enumerate(types)]
    if function.shape == "rows":
        results = [function.call(*row) for row in _python_rows(columns, len(given))]
        tuples = [result if isinstance(result, tuple) else (result,) for result in results]
        return [from_python(type_, values) for type_, values in zip(out, zip(*tuples, strict=True), strict=True)]
    result = function.call(*columns)
    arrays = result if isinstance(result, tuple) else (result,)
    return [from_arrow(type_, _repeated(array, len(given))) for type_, array in zip(out, arrays, strict=True)]


def _python_rows(columns: Sequence[Any], count: int) -> Iterable[Row]:
    """The rows of Arrow columns, as a function of one row sees them."""
    return zip(*(column.to_pylist() for column in columns), strict=True) if columns else [()] * count


def _repeated(column: Any, count: int) -> Any:
    """A column of ``count`` values; a scalar is repeated."""
    return [column.as_py()] * count if isinstance(column, pa.Scalar) else column


def _flattened(function: Function, schema: Schema, out: Schema, rows: Rows) -> Iterator[tuple[Row, int]]:
    columns = [to_arrow(type_, [row[field] for row in rows.weights]) for field, type_ in enumerate(schema.types)]
    kept, weights = list[Row](), list[int]()
    for row, w in zip(_python_rows(columns, len(rows)), rows.weights.values(), strict=True):
        for image in function.call(*row):
            kept.append(image if isinstance(image, tuple) else (image,))
            weights.append(w)
    images = zip(*kept, strict=True) if kept else [()] * len(out)
    landed = [from_python(type_, values) for type_, values in zip(out.types, images, strict=True)]
    return zip(zip(*landed, strict=True) if landed else kept, weights, strict=True)
