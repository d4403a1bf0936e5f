"""All sources of a pipeline combined in one frame, because one streaming query reads them, and split again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.spark.shaping import column_of
from everview.spark.spec import META, SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def combined(frames: Sequence[DataFrame]) -> DataFrame:
    """One frame of the changes of all sources, for one streaming query: each source's rows in a struct of its own.

    A row has the number of its source in ``_source``, then `META`, then ``s0``, ``s1``…, all but its own NULL.
    """
    assert frames, "a pipeline has a source"
    rows = [[c for c in frame.columns if c not in META] for frame in frames]
    # The struct of another source is NULL, and so is all that is in it, whatever that source says of its columns.
    types = [
        _may_be_null(frame.select(*map(column_of, names)).schema) for frame, names in zip(frames, rows, strict=True)
    ]

    def one(number: int, frame: DataFrame) -> DataFrame:
        own = F.struct(*map(column_of, rows[number]))
        parts = [(own if number == other else F.lit(None)).cast(types[other]) for other in range(len(frames))]
        named = [part.alias(f"s{other}") for other, part in enumerate(parts)]
        return frame.select(F.lit(number).alias("_source"), *META, *named)

    return reduce(lambda a, b: a.unionAll(b), (one(number, frame) for number, frame in enumerate(frames)))


def _may_be_null(type_: Any) -> Any:
    """A type with NULL allowed everywhere inside it."""
    match type_:
        case st.StructType():
            return st.StructType([st.StructField(f.name, _may_be_null(f.dataType)) for f in type_.fields])
        case st.ArrayType():
            return st.ArrayType(_may_be_null(type_.elementType))
        case st.MapType():
            return st.MapType(_may_be_null(type_.keyType), _may_be_null(type_.valueType))
        case _:
            return type_


def counted(frame: DataFrame, specs: Sequence[SourceSpec]) -> DataFrame:
    """A frame of `combined` whose rows, by source, Spark counts as metrics in the query's progress."""
    counts = [F.count(F.when(F.col("_source") == number, 1)).alias(spec.name) for number, spec in enumerate(specs)]
    return frame.observe("everview", *counts)


def arrived(batch: DataFrame) -> DataFrame:
    """A batch of a stream with its rows numbered in order of arrival."""
    return batch.withColumn("_arrival", F.monotonically_increasing_id())


def only(frame: DataFrame, number: int) -> DataFrame:
    """The changes of one source in a frame of `combined`: its columns, then `META`."""
    return frame.filter(F.col("_source") == number).select(f"s{number}.*", *META)


def split(table: pa.Table, n: int) -> list[pa.Table]:
    """The changes of each of ``n`` sources in an Arrow table of `combined`: its columns, then `META`."""
    return [_part(table, number) for number in range(n)]


def _part(table: pa.Table, source: int) -> pa.Table:
    number: Any = pa.scalar(source, pa.int32())
    own = table.select([f"s{source}", *META]).filter(pc.equal(table.column("_source"), number))
    row: Any = own.column(0)
    names = [f.name for f in row.type]
    columns: list[Any] = [*row.flatten(), *own.columns[1:]]
    return pa.Table.from_arrays(columns, names=[*names, *META])
