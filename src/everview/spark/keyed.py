"""Changes of a view by a key of its rows: which keys are new, which have another row now, and which are gone.

A view is a bag of rows, and its changes are rows with weights. Where one column or several identify a row, an old row
and a new row with the same key are one update. That is what a keyed topic and `MERGE` into a table take.

A change that the driver has is worked on here. One that is kept in the state is worked on by tasks: the driver learns
how many rows there are of each operation, and has as many of them at a time as `chunks` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from everview.errors import SinkError
from everview.runtimes.spark.stored_change import Change, StoredChange
from everview.spark.chunks import chunks, parts_for
from everview.spark.frames import frame_of
from everview.types import TIME, VARIANT, MapType, Schema, Type, parts_of_type, unknown_name
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

OP: Final = "_everview_op"  # the column that says what to do with a row
INSERT, UPDATE, DELETE = "insert", "update", "delete"
_DOUBLED: Final = "_everview_doubled"  # the column that says whether a key has several rows
_ROW, _COME, _GONE = "_everview_row", "_everview_come", "_everview_gone"  # beside columns of a key, of whatever name


@dataclass(frozen=True, slots=True)
class KeyedChange:
    """The change of a view as one row for each key, with `OP`; a deleted row is as it was."""

    schema: Schema
    rows: pa.Table | DataFrame  # the latter is computed by tasks
    counts: Mapping[str, int]  # of rows, by operation
    nulls: tuple[str, ...]  # the columns of the key that are NULL in a row
    most: int = 0  # the most rows there are

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows as a frame."""
        return frame_of(spark, self.rows) if isinstance(self.rows, pa.Table) else self.rows

    def tables(self) -> Iterator[pa.Table]:
        """The rows, a bounded number at a time."""
        if isinstance(self.rows, pa.Table):
            yield self.rows
        else:
            yield from chunks(self.rows.repartition(parts_for(self.most)))


def keyed_change(spark: SparkSession, view: str, changes: Change, key: tuple[str, ...]) -> KeyedChange:
    """The changes by a key; raises if a key has two rows, which shows only if both are in the changes."""
    for name in key:
        _require_column(view, changes.schema, name)
    if isinstance(changes, StoredChange):
        if _is_grouped_by_spark(changes.schema, key):
            return _by_tasks(spark, view, changes, key)
        changes = changes.batch()
    rows = by_key(view, changes, key)
    ops = rows.column(OP).to_pylist()
    nulls = tuple(name for name in key if rows[name].null_count)
    return KeyedChange(changes.schema, rows, {op: ops.count(op) for op in (INSERT, UPDATE, DELETE)}, nulls)


def changes_frame(spark: SparkSession, changes: Change) -> DataFrame:
    """The changes as they are, with ``_weight``."""
    return changes.frame(spark) if isinstance(changes, StoredChange) else frame_of(spark, changes.to_arrow())


def quoted(name: str) -> str:
    """A name as SQL of Spark has it."""
    return "`" + name.replace("`", "``") + "`"


# -- here


def by_key(view: str, changes: Batch, key: tuple[str, ...]) -> pa.Table:
    """The rows of a `KeyedChange`."""
    for name in key:
        _require_column(view, changes.schema, name)
    new = changes.weights > 0
    numbers = _numbered(changes, key)
    _require_single(view, changes, key, numbers, new)
    put, gone = numbers[new], numbers[~new]
    replaced = np.isin(numbers, gone) & new
    dropped = ~new & ~np.isin(numbers, put)
    op = np.where(replaced, UPDATE, np.where(new, INSERT, DELETE))
    kept = new | dropped
    rows = changes.to_arrow().drop_columns("_weight").append_column(OP, pa.array(op.tolist(), pa.string()))
    return rows.filter(pa.array(kept))


def _require_column(view: str, schema: Schema, name: str) -> None:
    if name not in schema:
        error = unknown_name("column", name, schema.names)
        raise SinkError(f'view "{view}": the key of its sink: {error.message}', hint=error.hint)


def _numbered(changes: Batch, key: tuple[str, ...]) -> NDArray[np.intp]:
    """A number for each row, the same where the key is the same: words are equal where values are, NULL included."""
    schema = changes.schema
    words = np.concatenate([changes.rows[:, schema.words(schema.index(name))] for name in key], axis=1)
    return np.unique(words, axis=0, return_inverse=True)[1].reshape(-1)


def _require_single(
    view: str, changes: Batch, key: tuple[str, ...], numbers: NDArray[np.intp], new: NDArray[np.bool_]
) -> None:
    for side in (new, ~new):
        doubled = np.bincount(numbers[side], np.abs(changes.weights[side])) > 1
        if doubled.any():
            place = int(np.flatnonzero(side & doubled[numbers.clip(max=len(doubled) - 1)])[0])
            _refuse(view, changes.to_arrow().slice(place, 1).select(list(key)).to_pylist()[0])


def _refuse(view: str, row: Mapping[str, Any]) -> NoReturn:
    shown = ", ".join(f"{name} = {value!r}" for name, value in row.items())
    raise SinkError(
        f'view "{view}" has several rows with {shown}, the key of its sink',
        hint='name all columns that identify a row: key=[…]; or deliver mode="changes"',
    )


# -- by tasks


def _is_grouped_by_spark(schema: Schema, key: tuple[str, ...]) -> bool:
    """Whether Spark can group rows by a key: not by variants and maps, nor with times of day, which it may refuse."""
    keys = {part for name in key for part in _inside(schema[name].type)}
    every = {part for field in schema for part in _inside(field.type)}
    return TIME not in every and VARIANT not in keys and not any(isinstance(part, MapType) for part in keys)


def _inside(type_: Type) -> Iterator[Type]:
    """A type and all types inside it."""
    yield type_
    for part in parts_of_type(type_):
        yield from _inside(part)


def _by_tasks(spark: SparkSession, view: str, changes: StoredChange, key: tuple[str, ...]) -> KeyedChange:
    grouped = _grouped(changes.frame(spark), changes.schema.names, key)
    sums = _summed(grouped, key)
    if sums["doubled"] is not None:
        _refuse(view, sums["doubled"])
    nulls = tuple(name for place, name in enumerate(key) if sums[f"null{place}"])
    counts = {op: int(sums[op]) for op in (INSERT, UPDATE, DELETE)}
    rows = grouped.select(*map(quoted, changes.schema.names), OP)
    return KeyedChange(changes.schema, rows, counts, nulls, changes.rows)


def _grouped(frame: DataFrame, names: tuple[str, ...], key: tuple[str, ...]) -> DataFrame:
    """A row for each key: the new one, or the old one if there is none; `OP`, and whether it stands for several."""
    from pyspark.sql import functions as f

    weight, row = f.col("_weight"), f.struct(*map(quoted, names))
    come, gone = (_total(f.when(side, f.abs(weight))) for side in (weight > 0, weight < 0))
    summed = frame.groupBy(*map(quoted, key)).agg(
        f.max_by(row, weight).alias(_ROW), come.alias(_COME), gone.alias(_GONE)
    )
    op = f.when(f.col(_COME) == 0, DELETE).when(f.col(_GONE) == 0, INSERT).otherwise(UPDATE)
    doubled = (f.col(_COME) > 1) | (f.col(_GONE) > 1)
    return summed.select(f"{_ROW}.*", op.alias(OP), doubled.alias(_DOUBLED))


def _total(weights: Column) -> Column:
    from pyspark.sql import functions as f

    return f.coalesce(f.sum(weights), f.lit(0))


def _summed(grouped: DataFrame, key: tuple[str, ...]) -> dict[str, Any]:
    """How many rows have each operation, which columns of the key are NULL somewhere, and a key with several rows."""
    from pyspark.sql import functions as f

    columns = [f.col(quoted(name)) for name in key]
    counts = [f.count_if(f.col(OP) == op).alias(op) for op in (INSERT, UPDATE, DELETE)]
    nulls = [(f.count_if(column.isNull()) > 0).alias(f"null{place}") for place, column in enumerate(columns)]
    doubled = f.first(f.when(f.col(_DOUBLED), f.struct(*columns)), ignorenulls=True).alias("doubled")
    [sums] = grouped.agg(*counts, *nulls, doubled).toArrow().to_pylist()
    return sums
