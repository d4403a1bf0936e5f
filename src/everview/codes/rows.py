"""Tables back to rows of Python values: the inverse of `ingest`.

>>> from everview.types import Schema
>>> schema = Schema.parse("s SYMBOL, tags ARRAY<STRING>")
>>> from everview.codes.ingest import ingest
>>> to_rows(schema, ingest(schema, [("a", ["x", None])])[0])
[(Symbol('a'), ['x', None])]
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pyarrow as pa

from everview.codes.atoms import unpack
from everview.codes.buffers import Column
from everview.types import (
    ANY,
    DATE,
    DURATIONS,
    ID,
    SYMBOL,
    TIMESTAMP,
    VARIANT,
    Array,
    Atom,
    Id,
    MapType,
    Schema,
    Struct,
    Symbol,
    Type,
    Variant,
)

_DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def to_rows(schema: Schema, table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table: symbols, IDs, ANY values and atoms as themselves."""
    if not schema.fields:
        return [()] * table.num_rows
    columns = [python_values(f.type, table.column(i)) for i, f in enumerate(schema.fields)]
    return list(zip(*columns, strict=True))


def python_values(type_: Type, column: Column) -> list[Any]:
    """The values of one column, as rows have them."""
    return _values(type_, _plain(type_, column))


def _plain(type_: Type, column: Column) -> list[Any]:
    """The values of a column as Arrow gives them; dates and moments in a tenth of Arrow's time."""
    if type_ == TIMESTAMP:
        return [None if word is None else _EPOCH + word * _MICROSECOND for word in column.cast(pa.int64()).to_pylist()]
    if type_ in DURATIONS:
        return [None if word is None else word * _MICROSECOND for word in column.cast(pa.int64()).to_pylist()]
    if type_ == DATE:
        day = dt.date.fromordinal
        return [None if word is None else day(word + _DAY_ZERO) for word in column.cast(pa.int32()).to_pylist()]
    return column.to_pylist()


def _values(type_: Type, plain: list[Any]) -> list[Any]:
    lift = _lift(type_)
    return plain if lift is None else [None if v is None else lift(v) for v in plain]


def _hashable(key: Any) -> Any:
    """A key of a dict: arrays and structs as tuples."""
    if isinstance(key, dict):
        key = list(key.values())
    return tuple(map(_hashable, key)) if isinstance(key, (list, tuple)) else key


@cache
def _lift(type_: Type) -> Callable[[Any], Any] | None:
    """The function from Arrow's Python values of a type to ours; None where they are the same."""
    if type_ == SYMBOL:
        return Symbol
    if type_ == ID:
        return Id
    if type_ == VARIANT:
        return Variant
    if type_ == ANY:
        return unpack
    match type_:
        case Atom():
            return type_.host.from_bytes
        case Array(element) if _lift(element) is not None:
            return lambda values: _values(element, values)
        case Struct(fields) if any(_lift(f.type) is not None for f in fields):
            return lambda value: {f.name: _values(f.type, [value[f.name]])[0] for f in fields}
        case MapType(key, value):
            return lambda pairs: dict(
                zip(
                    map(_hashable, _values(key, [k for k, _ in pairs])),
                    _values(value, [v for _, v in pairs]),
                    strict=True,
                )
            )
        case _:
            return None
