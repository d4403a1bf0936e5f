"""Values on their way into functions of Spark's users, and out of them, converted as Spark converts them.

Where Spark's own Python code converts, it is that code; what Spark does with results in Java is written out here.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.pandas.types import (
    _create_converter_from_pandas,  # pyright: ignore[reportPrivateUsage]
    _create_converter_to_pandas,  # pyright: ignore[reportPrivateUsage]
)

from everview.errors import FunctionError
from everview.scalars.text_casts import float_text
from everview.spark.spark_types import spark_type
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Array,
    Decimal,
    MapType,
    Struct,
    Type,
    type_of_arrow,
)

# -- what functions are given


def rows_given(column: Any) -> list[Any]:
    """The values of a column as a function of rows gets them."""
    made: Any = getattr(ArrowTableToRowsConversion, "_create_converter")(spark_type(type_of_arrow(column.type)))  # noqa: B009
    return [made(value) for value in column.to_pylist()]


def pandas_given(column: Any, zone: str) -> Any:
    """A column as a Series, or as a DataFrame if it has structs."""
    import pandas as pd

    if pa.types.is_struct(column.type):
        parts = [pandas_given(part, zone) for part in column.flatten()]
        frame = pd.concat(parts, axis=1)
        frame.columns = [column.type.field(place).name for place in range(column.type.num_fields)]
        return frame
    series = column.to_pandas(date_as_object=True, coerce_temporal_nanoseconds=True)
    convert_ = _create_converter_to_pandas(
        spark_type(type_of_arrow(column.type)), nullable=True, timezone=zone, struct_in_pandas="dict"
    )
    return convert_(series)


def rows_alike(columns: Sequence[Any]) -> list[Any]:
    """The places of rows, apart for every pattern of NULLs that changes what a Series is; empty if there is one.

    >>> [places.tolist() for places in rows_alike([pa.array([1, None, 3])])]
    [[0, 2], [1]]
    """
    masks = [np.asarray(part.is_null()) for column in columns for part in _series(column) if part.null_count]
    if not masks:
        return []
    _, patterns = np.unique(np.array(masks), axis=1, return_inverse=True)
    different = np.unique(patterns)
    return [np.flatnonzero(patterns == pattern) for pattern in different] if len(different) > 1 else []


def _series(column: Any) -> list[Any]:
    """The columns that become Series of another type where there is a NULL: whole numbers and truth values."""
    if pa.types.is_struct(column.type):
        return [part for field in column.flatten() for part in _series(field)]
    return [column] if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type) else []


def arrow_given(column: Any, zone: str) -> Any:
    """A column as an array, with moments in the session's time zone."""
    zoned = _zoned(column.type, zone)
    return column if zoned == column.type else column.cast(zoned)


def _zoned(kind: Any, zone: str) -> Any:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", zone)
    if pa.types.is_map(kind):
        item: Any = kind.item_field.with_type(_zoned(kind.item_type, zone))
        return pa.map_(_zoned(kind.key_type, zone), item)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_zoned(kind.value_type, zone)))
    if pa.types.is_struct(kind):
        fields = (kind.field(place) for place in range(kind.num_fields))
        return pa.struct([each.with_type(_zoned(each.type, zone)) for each in fields])
    return kind


# -- what vectorised functions give


def arrow_made(result: Any, type_: Type) -> Any:
    """The result of an Arrow function as a column of its declared type."""
    array = result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result
    if not isinstance(array, pa.Array):
        what = f"an Arrow function returned {type(result).__name__}, and not an array"
        raise FunctionError(what, hint="return a pyarrow.Array, with one value a row")
    return _typed(array, type_, safe=True)


def pandas_made(result: Any, type_: Type, zone: str, *, safe: bool) -> Any:
    """The result of a pandas function as a column of its declared type."""
    import pandas as pd

    if isinstance(type_, Struct):
        if not isinstance(result, pd.DataFrame):
            what = f"a pandas function returned {type(result).__name__} for {type_}"
            raise FunctionError(what, hint="return a DataFrame, with a column for each field")
        by_name = any(isinstance(name, str) for name in result.columns)
        parts = [result[f.name] if by_name else result.iloc[:, place] for place, f in enumerate(type_.fields)]
        arrays = [pandas_made(part, f.type, zone, safe=safe) for part, f in zip(parts, type_.fields, strict=True)]
        kind: Any = type_.arrow
        return pa.StructArray.from_arrays(arrays, fields=list(kind))
    series = result if isinstance(result, pd.Series) else pd.Series(result)
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.dtype.categories.dtype)
    convert_ = _create_converter_from_pandas(spark_type(type_), timezone=zone, error_on_duplicated_field_names=False)
    series = convert_(series)
    mask: Any = None if hasattr(series.array, "__arrow_array__") else series.isnull()
    try:
        return pa.Array.from_pandas(series, mask=mask, type=type_.arrow, safe=safe)
    except pa.ArrowInvalid:
        return _typed(pa.Array.from_pandas(series, mask=mask), type_, safe=safe)


def _typed(array: Any, type_: Type, *, safe: bool) -> Any:
    if array.type == type_.arrow:
        return array
    try:
        return array.cast(type_.arrow, safe=safe)
    except pa.ArrowNotImplementedError:  # of parts that may be NULL there, and may not here
        return pa.array(array.to_pylist(), type_.arrow)


# -- what functions of rows give


def rows_made_by_arrow(results: list[Any], type_: Type, *, safe: bool) -> Any:
    """The results of a function of rows, where Spark takes them as Arrow."""
    made: Any = getattr(LocalDataToArrowConversion, "_create_converter")(spark_type(type_))  # noqa: B009
    values = [made(value) for value in results]
    try:
        return pa.array(values, type_.arrow)
    except pa.ArrowInvalid:
        return pa.array(values).cast(type_.arrow, safe=safe)


def rows_made_by_java(results: list[Any], type_: Type) -> Any:
    """The results of a function of rows, where Spark pickles them and Java reads them.

    A value of another type than the declared one is NULL there, but for numbers that only differ in width, and text.
    """
    made = _of_java(type_)
    return pa.array([made(_pickled(value)) for value in results], type_.arrow)


def _pickled(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        what = f"a function of rows returned {type(value).__name__} of NumPy, which Spark cannot take"
        raise FunctionError(what, hint="return a value of Python: float(x), int(x), x.tolist(); or useArrow=True")
    return value


def _of_java(type_: Type) -> Callable[[Any], Any]:
    match type_:
        case Array(element):
            return _array(_of_java(element))
        case MapType(key, value):
            return _map(_of_java(key), _of_java(value))
        case Struct():
            return _struct(type_)
        case Decimal():
            return lambda value: _decimal(value, type_)
        case _ if type_ in _WIDTHS:
            return lambda value: _whole(value, _WIDTHS[type_])
        case _:
            return _LEAVES[type_]


_WIDTHS: Final[dict[Type, int]] = {TINYINT: 8, SMALLINT: 16, INTEGER: 32, BIGINT: 64}


def _whole(value: Any, bits: int) -> int | None:
    """A whole number cut to so many bits; NULL beyond the range of Java's long."""
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        return None
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _decimal(value: Any, type_: Decimal) -> decimal.Decimal | None:
    if not isinstance(value, decimal.Decimal):
        return None
    with decimal.localcontext(prec=100):
        rounded = value.quantize(decimal.Decimal(1).scaleb(-type_.scale), decimal.ROUND_HALF_UP)
    if abs(rounded) >= decimal.Decimal(10) ** (type_.precision - type_.scale):
        raise FunctionError(f"a function returned {value}, beyond {type_}", hint="declare more digits")
    return rounded


def _text(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | decimal.Decimal():
            return str(value)
        case float():
            return float_text(value)
        case _:
            what = f"a function returned {type(value).__name__}, and its type is STRING"
            raise FunctionError(what, hint="return text: str(x); Spark would write the name of a class of Java")


def _bytes(value: Any) -> bytes | None:
    match value:
        case bytes() | bytearray():
            return bytes(value)
        case str():
            return value.encode()
        case _:
            return None


def _date(value: Any) -> dt.date | None:
    return None if value is None else dt.date.fromordinal(value.toordinal())


def _internal(type_: st.DataType) -> Callable[[Any], Any]:
    return lambda value: None if value is None else type_.toInternal(value)


_LEAVES: Final[dict[Type, Callable[[Any], Any]]] = {
    BOOLEAN: lambda value: value if isinstance(value, bool) else None,
    FLOAT: lambda value: value if isinstance(value, float) else None,
    DOUBLE: lambda value: value if isinstance(value, float) else None,
    STRING: _text,
    BINARY: _bytes,
    DATE: _date,
    TIME: lambda value: value if isinstance(value, dt.time) else None,
    TIMESTAMP: _internal(st.TimestampType()),
    TIMESTAMP_NTZ: _internal(st.TimestampNTZType()),
    DAY_TIME: _internal(st.DayTimeIntervalType()),
    DAY: _internal(st.DayTimeIntervalType()),
}


def _array(element: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def made(value: Any) -> list[Any] | None:
        return (
            [element(_pickled(each)) for each in cast("list[Any]", value)] if isinstance(value, list | tuple) else None
        )

    return made


def _map(key: Callable[[Any], Any], item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def made(value: Any) -> list[tuple[Any, Any]] | None:
        if not isinstance(value, Mapping):
            return None
        return [(key(_pickled(k)), item(_pickled(v))) for k, v in cast("Mapping[Any, Any]", value).items()]

    return made


def _struct(type_: Struct) -> Callable[[Any], Any]:
    parts = [(f.name, _of_java(f.type)) for f in type_.fields]

    def made(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        values = _fields(value, [name for name, _ in parts])
        if len(values) != len(parts):
            what = f"a function returned {len(values)} values for {type_}"
            raise FunctionError(what, hint=f"return {len(parts)} values, or a dict by names")
        return {name: part(_pickled(each)) for (name, part), each in zip(parts, values, strict=True)}

    return made


def _fields(value: Any, names: list[str]) -> Sequence[Any]:
    """The values of a struct's fields: by names of a dict, a row or an object, by place of a tuple."""
    if isinstance(value, dict):
        return [cast("dict[str, Any]", value).get(name) for name in names]
    if isinstance(value, st.Row) and getattr(value, "__from_dict__", False):
        return [value[name] for name in names]
    if isinstance(value, tuple | list):
        return cast("list[Any]", value)
    if hasattr(value, "__dict__"):
        return [vars(value).get(name) for name in names]
    raise FunctionError(f"a function returned {value!r}, and its type is a struct", hint="return a tuple or a dict")
