"""Types of Spark for types of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyspark.sql.types as st

from everview.errors import PipelineError
from everview.spark.spec import TYPES
from everview.types import (
    DAY,
    DAY_TIME,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    YEAR_MONTH,
    Array,
    Decimal,
    Field,
    MapType,
    Struct,
    Type,
)

_SPARK_TYPES: Final[dict[Type, st.DataType]] = {
    **{ours: kind() for kind, ours in reversed(TYPES.items()) if kind not in (st.CharType, st.VarcharType)},
    TIMESTAMP: st.TimestampType(),
    TIMESTAMP_NTZ: st.TimestampNTZType(),
    STRING: st.StringType(),
    DAY: st.DayTimeIntervalType(st.DayTimeIntervalType.DAY, st.DayTimeIntervalType.DAY),
    DAY_TIME: st.DayTimeIntervalType(),
    YEAR_MONTH: st.YearMonthIntervalType(),
}


def struct_of(fields: Iterable[Field]) -> st.StructType:
    """The type of rows with some fields."""
    return st.StructType([st.StructField(f.name, spark_type(f.type), f.nullable) for f in fields])


def spark_type(type_: Type) -> st.DataType:
    """The type of Spark for a type of ours."""
    match type_:
        case Decimal(precision, scale):
            return st.DecimalType(precision, scale)
        case Array(element):
            return st.ArrayType(spark_type(element))
        case MapType(key, value):
            return st.MapType(spark_type(key), spark_type(value))
        case Struct(fields):
            return struct_of(fields)
        case _ if type_ == TIME:
            return st.TimeType()
        case _ if type_ in _SPARK_TYPES:
            return _SPARK_TYPES[type_]
        case _:
            hint = "define a view by p.sql that casts it, and take the frame of that"
            raise PipelineError(f"a column of {type_} is none of a DataFrame", hint=hint)
