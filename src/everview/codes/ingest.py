"""Rows as users have them, to an Arrow table of the schema and a weight for every row.

Rows may be tuples, dicts, a PyArrow table or record batch, a pandas or Polars frame, or anything that exports
Arrow's C stream. Dicts and frames are matched by name: a nullable column may be missing, an unknown one is an
error. A column ``_weight`` that is not in the schema gives the weights, which are else 1.

>>> from everview.types import Schema
>>> schema = Schema.parse("id BIGINT NOT NULL, amount DECIMAL(12,2)")
>>> table, weights = ingest(schema, [(1, "9.50"), (2, None)])
>>> table.to_pylist(), weights.tolist()
([{'id': 1, 'amount': Decimal('9.50')}, {'id': 2, 'amount': None}], [1, 1])
>>> ingest(schema, [{"id": 7, "_weight": -1}])[1].tolist()
[-1]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.codes.buffers import Column
from everview.codes.columns import from_python
from everview.codes.conform import check_given, conform_chunks
from everview.codes.encode import WEIGHT, columns_by_name, table_of
from everview.codes.frames import ROWS_HINT, as_arrow, is_frame, python_rows
from everview.errors import WrongArity, WrongType, shown
from everview.types import BIGINT, Field, Schema, unknown_name
from everview.types.words import Words

_WEIGHT: Final = Field(WEIGHT, BIGINT, nullable=False)


def ingest(schema: Schema, data: Any) -> tuple[pa.Table, Words]:
    """The rows as a table with exactly ``schema.arrow``, and their weights."""
    table = as_arrow(data)
    if table is not None:
        return _from_table(schema, table)
    if is_frame(data):
        return _from_dicts(schema, python_rows(data))
    rows = as_rows(data)
    if any(issubclass(kind, Mapping) for kind in set(map(type, rows))):
        return _from_dicts(schema, rows)
    return _from_tuples(schema, rows), np.ones(len(rows), np.int64)


def ingest_weighted(schema: Schema, data: Any) -> tuple[pa.Table, Words]:
    """Like `ingest`, of pairs (row, weight); a table or frame carries its weights in ``_weight``.

    >>> schema = Schema.parse("id BIGINT NOT NULL")
    >>> ingest_weighted(schema, [((1,), 2), ({"id": 2}, -1)])[1].tolist()
    [2, -1]
    """
    table = as_arrow(data)
    if table is not None:
        return _from_table(schema, table)
    if is_frame(data):
        return _from_dicts(schema, python_rows(data))
    pairs = as_rows(data)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            hint = "write ((1, 'a'), +1): a row, and how often it is added or removed"
            raise WrongArity(f"rows[{i}] is {shown(pair)}, which is no pair of a row and a weight", hint=hint)
    rows = [_tuple_of(schema, i, row) for i, (row, _) in enumerate(pairs)]
    return _from_tuples(schema, rows), _weights([weight for _, weight in pairs])


def check_once(weights: Words, what: str) -> None:
    """Refuse weights other than 1 where rows are put or set, and not counted."""
    other = weights[weights != 1]
    if other.shape[0]:
        raise WrongType(f"{what}: a row has the weight {other[0]}", hint="rows with weights are for apply, and insert")


def as_rows(data: Any) -> Sequence[Any]:
    """Rows as a list; anything that is not rows is refused."""
    if isinstance(data, (list, tuple)):
        return data
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        hint = "write [{...}] for a single row" if isinstance(data, Mapping) else ROWS_HINT
        raise WrongType(f"{shown(data)} is no collection of rows", hint=hint)
    try:
        return list(data)
    except TypeError as error:  # what has __iter__ and cannot be iterated: an array without dimensions
        raise WrongType(f"{shown(data)} is no collection of rows: {error}", hint=ROWS_HINT) from error


def split_weights(schema: Schema, data: Any) -> tuple[pa.Table | pa.RecordBatch, Words] | None:
    """The columns of a table or frame as they are, and its weights; None if the data is neither."""
    table = as_arrow(data)
    if table is None:
        return None
    check_given(schema, table)
    return _split_weights(schema, table)


def _split_weights(schema: Schema, table: pa.Table | pa.RecordBatch) -> tuple[pa.Table | pa.RecordBatch, Words]:
    names = table.schema.names
    if WEIGHT not in names or WEIGHT in schema.names:
        return table, np.ones(table.num_rows, np.int64)
    place = names.index(WEIGHT)
    return table.remove_column(place), _conformed(_WEIGHT, table.column(place)).to_numpy()


def _from_table(schema: Schema, table: pa.Table | pa.RecordBatch) -> tuple[pa.Table, Words]:
    table, weights = _split_weights(schema, table)
    pairs = zip(schema.fields, columns_by_name(schema, table), strict=True)
    columns = [_conformed(f, column) for f, column in pairs]
    return table_of(schema, columns, table.num_rows), weights


def _conformed(field: Field, column: Column) -> Column:
    arrow: Any = field.type.arrow
    return pa.chunked_array(conform_chunks(field, column), arrow)


def _from_tuples(schema: Schema, rows: Sequence[Any]) -> pa.Table:
    _check_arity(schema, rows)
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [from_python(f, column) for f, column in zip(schema.fields, columns, strict=False)]
    return table_of(schema, arrays, len(rows))


def _check_arity(schema: Schema, rows: Sequence[Any]) -> None:
    width = len(schema)
    if all(isinstance(row, (tuple, list)) and len(row) == width for row in rows):
        return
    names = ", ".join(schema.names)
    for i, row in enumerate(rows):
        if not isinstance(row, (tuple, list)):
            hint = f"write it as ({shown(row)},)" if width == 1 else f"a row is a tuple of {names}"
            raise WrongArity(f"rows[{i}] is {shown(row)}, which is no row", hint=hint)
        if len(row) != width:
            counts = f"{len(row)} value{'' if len(row) == 1 else 's'}, not {width}"
            raise WrongArity(f"rows[{i}] has {counts}: {shown(tuple(row))}", hint=f"the columns are {names}")


def _from_dicts(schema: Schema, rows: Sequence[Any]) -> tuple[pa.Table, Words]:
    tuples = [_tuple_of(schema, i, row) for i, row in enumerate(rows)]
    weights = np.ones(len(rows), np.int64)
    if WEIGHT not in schema.names and any(isinstance(row, Mapping) and WEIGHT in row for row in rows):
        weights = _weights([row.get(WEIGHT, 1) if isinstance(row, Mapping) else 1 for row in rows])
    return _from_tuples(schema, tuples), weights


def _tuple_of(schema: Schema, i: int, row: Any) -> Any:
    """A dict as a tuple in the order of the schema; other rows as they are."""
    if not isinstance(row, Mapping):
        return row
    for name in row:
        if name not in schema.names and name != WEIGHT:
            error = unknown_name("column", str(name), schema.names)
            raise type(error)(f"rows[{i}]: {error.message}", hint=error.hint)
    return tuple(row.get(name) for name in schema.names)


def _weights(values: Sequence[Any]) -> Words:
    return from_python(_WEIGHT, values).to_numpy()
