"""Tables, frames and structured arrays as users have them, as Arrow tables; what Arrow refuses, as rows of values.

>>> import pandas as pd
>>> mixed = pd.DataFrame({"id": [1, 2], "note": ["a", 7]})
>>> as_arrow(mixed) is None, python_rows(mixed)
(True, [{'id': 1, 'note': 'a'}, {'id': 2, 'note': 7}])
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from everview.errors import SchemaError, WrongType, shown

ROWS_HINT: Final = "give a list of tuples or dicts, or a PyArrow, pandas or Polars table"
# What Arrow, and what pandas on the way to it, raise for values that no column of Arrow's holds.
_REFUSALS: Final = (pa.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError)


def is_pandas(data: Any) -> bool:
    """Whether this is a frame of pandas."""
    return type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns")


def is_polars(data: Any) -> bool:
    """Whether this is a frame of Polars."""
    return type(data).__module__.split(".")[0] == "polars" and hasattr(data, "rows")


def is_frame(data: Any) -> bool:
    """Whether rows come in columns that have names."""
    return isinstance(data, (pa.Table, pa.RecordBatch)) or is_pandas(data) or hasattr(data, "__arrow_c_stream__")


def as_arrow(data: Any) -> pa.Table | pa.RecordBatch | None:
    """A table or frame as an Arrow table; None if it is neither, or has a column that Arrow does not hold."""
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return _named_once(data, data.schema.names)
    if is_pandas(data):
        data = _with_index(data)
        _named_once(data, [str(name) for name in data.columns])
        return _tried(lambda: pa.Table.from_pandas(data, preserve_index=False))
    if is_polars(data) and any(str(type_) == "Object" for type_ in data.dtypes):
        return None  # Arrow would be given addresses
    if hasattr(data, "__arrow_c_stream__"):
        table = _tried(lambda: pa.table(data))
        if table is None and not is_polars(data):
            raise WrongType(f"{shown(data)} is no table", hint=ROWS_HINT)
        return table
    if isinstance(data, np.ndarray):
        return None if data.dtype.names is None else _tried(lambda: _of_fields(data))
    if not hasattr(data, "to_arrow"):
        return None
    table = _tried(data.to_arrow)
    return table if isinstance(table, (pa.Table, pa.RecordBatch)) else None


def python_rows(data: Any) -> list[dict[str, Any]]:
    """The rows of a frame as dicts, without the help of Arrow: each value is then judged by itself."""
    if is_polars(data):
        return data.rows(named=True)
    data = _with_index(data)
    missing = data.isna().to_numpy()
    names = [str(name) for name in data.columns]
    columns = [data.iloc[:, place].tolist() for place in range(len(names))]
    return [
        {name: None if missing[row, place] else columns[place][row] for place, name in enumerate(names)}
        for row in range(len(data))
    ]


def _with_index(data: Any) -> Any:
    """A frame of pandas whose index is columns, too, as far as it has names: ``set_index`` does not lose a key."""
    names = [name for name in data.index.names if name is not None and name not in data.columns]
    return data.reset_index(names) if names else data


def refused_column(data: Any) -> tuple[str, str] | None:
    """The first column of a frame that Arrow cannot hold, and the reason."""
    names = [str(name) for name in data.columns]
    for place, name in enumerate(names):
        column = data[name] if is_polars(data) else data.iloc[:, place]
        objects = str(column.dtype).lower() == "object"
        if (objects and is_polars(data)) or _tried(lambda column=column: pa.array(column)) is None:
            return name, _why(column, objects)
    return None


def _why(column: Any, objects: bool) -> str:
    if not objects:
        return f"is of type {column.dtype}, which Arrow does not hold"
    kinds = dict.fromkeys(type(value).__name__ for value in column if value is not None)
    return f"has values of the type{'s' * (len(kinds) > 1)} {' and '.join(kinds) or 'None'}"


def _of_fields(array: np.ndarray[Any, Any]) -> pa.Table:
    """A structured array as a table of its fields."""
    return pa.table({name: np.ascontiguousarray(array[name]) for name in array.dtype.names or ()})


def _tried(convert: Any) -> Any:
    try:
        return convert()
    except _REFUSALS:
        return None


def _named_once(data: Any, names: list[str]) -> Any:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"the frame has two columns {twice[0]}", hint="rename one: names are unique")
    return data
