"""Changes from Spark: DataFrames as signed changes of a source, in one shape for every style.

A source says how its rows are meant: as new rows (**append**), as the latest state of their key (**upsert**), as
rows with weights (**weights**), as operations on rows (**cdc**, Debezium's envelope included), or as all there is
(**snapshot**). `normalized` gives them one shape: the columns of the source's schema, then

- ``_weight``: how often the row is added; for a keyed style 1 puts a row and -1 deletes by key,
- ``_order`` and ``_arrival``: which of several changes of a key is the last one; 0 where there is no key (on a
  stream, ``_arrival`` is 0 too: `arrived` or `split` number the rows of its batches),
- ``_reason``: why the row cannot be used, NULL for a good row; ``_raw``: a bad row as JSON, NULL for a good one.

No row is lost on the way, and none fails the job: a row that means nothing comes out with its reason. Everything is
an expression of Spark's own, so it runs in the JVM, on batches and on streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.spark.envelope import shape_of_events
from everview.spark.jvm import own_plan
from everview.spark.shaping import (
    BEFORES,
    DELETES,
    INSERTS,
    UPDATES,
    Bad,
    RowColumns,
    Shape,
    column_of,
    shape,
    sortable,
    unknown_operation,
)
from everview.spark.spec import Columns, SourceSpec, columns_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NEVER = None  # nothing is deleted by key


def normalized(frame: DataFrame, spec: SourceSpec) -> DataFrame:
    """The changes of a frame: the columns of the schema, then `META`."""
    return shape_of(frame, spec)(frame)


def shape_of(frame: DataFrame, spec: SourceSpec) -> Shape:
    """What makes the changes of a frame, and of others with its columns that are read in the same way."""
    if spec.envelope is not None:
        return shape_of_events(frame, spec)
    columns = columns_of(spec.name, frame.schema)
    row = RowColumns(spec, columns, column_of, None if spec.corrupt is None else column_of(spec.corrupt))
    everything, streaming = F.to_json(F.struct(*map(column_of, columns))), frame.isStreaming
    match spec.changes:
        case "append" | "upsert" | "snapshot":
            return shape(row, _NEVER, F.lit(1), (), _order(spec, columns, frame), everything, streaming=streaming)
        case "weights":
            weight, bad = _weight(columns[spec.weight])
            order = _order(spec, columns, frame)
            return shape(row, _NEVER, weight, (bad,), order, everything, streaming=streaming)
        case "cdc":
            return _shape_of_operations(frame, row, columns, everything)


def _weight(field: st.StructField) -> tuple[Column, Bad]:
    column = column_of(field.name)
    weight = column.try_cast("bigint")
    wrong = weight.isNull() | (weight.cast(field.dataType) != column)
    given = F.coalesce(column.cast("string"), F.lit("NULL"))
    return weight, (wrong, F.concat(F.lit("the weight is "), given, F.lit(", not a whole number of 64 bits")))


def _shape_of_operations(frame: DataFrame, row: RowColumns, columns: Columns, raw: Column) -> Shape:
    """Changes of flat rows with an operation each: a before-image is the past of a key, or takes a row away."""
    spec = row.spec
    assert spec.op is not None
    given = column_of(spec.op)
    op = F.lower(F.trim(given))
    known = op.isin(*INSERTS, *UPDATES, *BEFORES, *DELETES)
    unknown = (given.isNull() | ~known, unknown_operation(given))
    order = _order(spec, columns, frame)
    away = op.isin(*DELETES) if spec.keyed else op.isin(*DELETES, *BEFORES)
    weight = F.when(away, -1).otherwise(1)
    if not spec.keyed:
        return shape(row, _NEVER, weight, (unknown,), order, raw, streaming=frame.isStreaming)
    counts = op.isNull() | ~op.isin(*BEFORES)
    deleted = F.coalesce(away, F.lit(False))
    no_key = (deleted & row.keyless(), F.lit("a delete without the values of its key"))
    changes = shape(row, deleted, weight, (unknown, no_key), order, raw, streaming=frame.isStreaming)
    return lambda rows: changes(rows.filter(counts))


def _order(spec: SourceSpec, columns: Columns, frame: DataFrame) -> tuple[Column, Sequence[Bad]]:
    """The column that orders the changes of a key, and the test for rows that have no order."""
    if spec.order is None:
        return _file_time(frame) if spec.keyed else F.lit(0), ()
    column = column_of(spec.order)
    why = F.lit(f'NULL in "{spec.order}", by which changes are ordered')
    return sortable(column, columns[spec.order].dataType), ((column.isNull(), why),)


def _file_time(frame: DataFrame) -> Column:
    """The time when the file of a row was written, if there is one: Spark reads large files first, not early ones."""
    return F.unix_micros(F.col("_metadata.file_modification_time")) if _has_file_times(frame) else F.lit(0)


def _has_file_times(frame: DataFrame) -> bool:
    """Whether Spark knows the files of a frame's rows.

    The plan is asked, not Spark's analysis: that would log a failure, with its stack, for every frame without files.
    """
    if "_metadata" in frame.columns:
        return False  # a column of the user's
    plan = own_plan(frame)
    if plan is None:
        return _resolves(frame)
    hidden = plan.metadataOutput()
    columns = [hidden.apply(place) for place in range(hidden.size())]
    types = [str(each.dataType().catalogString()) for each in columns if each.name() == "_metadata"]
    return len(types) == 1 and "file_modification_time" in types[0] and _resolves(frame)


def _resolves(frame: DataFrame) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return len(frame.select(F.col("_metadata.file_modification_time")).columns) == 1
    except AnalysisException:
        return False
