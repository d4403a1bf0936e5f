"""Tables of Arrow as frames of Spark, with the types that Arrow tables here have no type for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.codes.spark_variants import as_spark
from everview.spark.jvm import is_connect
from everview.spark.spark_types import struct_of
from everview.types import DAY, TIME, TIMESTAMP_NTZ, YEAR_MONTH, Field, Schema, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MADE: Final = (YEAR_MONTH, DAY, TIMESTAMP_NTZ)  # types that Spark makes of others


_READ_AS: Final[dict[Type, pa.DataType]] = {TIME: pa.time64("ns"), TIMESTAMP_NTZ: pa.duration("us")}


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The frame of a table: times of day in Spark's nanoseconds, intervals of months and days, and local timestamps."""
    schema = Schema.from_arrow(table.schema)
    if not table.num_rows and is_connect(spark):  # which asks the rows for their types
        return spark.createDataFrame([], struct_of(schema))
    frame = spark.createDataFrame(as_spark(_as_spark_reads(table, schema)))
    made = {f.name: _made(f) for f in schema if f.type in _MADE}
    return frame.withColumns(made) if made else frame


def _made(field: Field) -> Any:
    from pyspark.sql import functions as F

    column = F.col("`" + field.name.replace("`", "``") + "`")
    if field.type == YEAR_MONTH:
        return F.make_ym_interval(F.lit(0), column)
    if field.type == DAY:
        return column.cast("interval day")
    return F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'") + column


def _as_spark_reads(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with times of day in nanoseconds, and local timestamps as what has passed since 1970.

    A timestamp without a zone would be read as one in the zone of the session.
    """
    for place, field in enumerate(schema):
        arrow = _READ_AS.get(field.type)
        if arrow is not None:
            column = table.column(place)
            column = column.cast(arrow) if field.type == TIME else column.cast(pa.int64()).cast(arrow)
            table = table.set_column(place, pa.field(field.name, arrow, field.nullable), column)
    return table
