"""Iceberg tables as sinks: each epoch of a view is one commit of the table, and is committed once.

The summary of a snapshot says which epoch of which state made it. So a table is asked, before it is first written to,
which epoch it has, and one that it has is passed over. In mode ``upsert`` the table is the view, by `MERGE` with a key;
a merge that meets other rows than the view had fails, and commits nothing. In mode ``changes`` rows are added, with
``_weight`` and ``epoch``; in mode ``snapshot`` the table is written anew, for readers at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa

from everview.errors import SinkError
from everview.runtimes.spark.stored_change import Change
from everview.spark.delta import apart
from everview.spark.epoch_folders import EPOCH
from everview.spark.frames import frame_of
from everview.spark.keyed import DELETE, INSERT, OP, UPDATE, changes_frame, keyed_change, quoted
from everview.spark.tables import ICEBERG, require_catalog
from everview.types import DAY, DAY_TIME, TIME, VARIANT, YEAR_MONTH, Schema, Type, parts_of_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark.sinks import Contents, SinkSpec

STATE_PROPERTY: Final = "everview-state"  # what a snapshot's summary says, under these names
EPOCH_PROPERTY: Final = "everview-epoch"
_PROPERTY: Final = "snapshot-property."  # before the name of a summary's entry, as an option of a writer
_SETTING: Final = "spark.sql.iceberg."  # and before that as a setting of a session
_NOT_HELD: Final = (TIME, DAY, DAY_TIME, YEAR_MONTH)  # types that Iceberg on Spark has no column for
_FOREIGN: Final = "EVERVIEW_FOREIGN_ROW"  # by which a failed merge is known
_seen: Final[dict[str, int]] = {}  # the last epoch of tables, as this process knows it


def deliver_to_iceberg(
    spark: SparkSession, spec: SinkSpec, epoch: int, changes: Change, contents: Contents, state: str
) -> None:
    """Commit an epoch to a table, unless the table has it."""
    if not len(changes):
        return
    name = f"{state}/{spec.table}"
    if name not in _seen:
        _seen[name] = _last_epoch(spark, spec, state)
    if _seen[name] > epoch:
        raise SinkError(
            f"{spec.table} has epoch {_seen.pop(name)}, and the state is at epoch {epoch}: {spec}",
            hint="the state is an older copy: restore the table to the same moment, or give the sink another one",
        )
    if _seen[name] == epoch:
        return
    del _seen[name]  # what fails from here on may come after the commit: then only the table knows
    _commit(spark, spec, epoch, changes, contents, {STATE_PROPERTY: state, EPOCH_PROPERTY: str(epoch)})
    _seen[name] = epoch


def _commit(
    spark: SparkSession,
    spec: SinkSpec,
    epoch: int,
    changes: Change,
    contents: Contents,
    summary: Mapping[str, str],
) -> None:
    from pyspark.sql import functions as f

    if spec.mode == "upsert":
        frame = keyed_change(spark, spec.view, changes, spec.key).frame(spark)
        _make(spark, spec, frame.drop(OP), changes.schema)
        _merge(spark, spec, frame, changes.schema.names, summary)
        return
    if spec.mode == "changes":
        frame = changes_frame(spark, changes).withColumn(EPOCH, f.lit(epoch).cast("bigint"))
        replaced = f.col(EPOCH) == epoch
    else:
        rows = contents()
        frame = frame_of(spark, rows) if isinstance(rows, pa.Table) else rows
        replaced = f.lit(True)
    _make(spark, spec, frame, changes.schema)
    writer = frame.writeTo(_table(spec))
    for entry, value in summary.items():
        writer = writer.option(_PROPERTY + entry, value)
    writer.overwrite(replaced)


def _last_epoch(spark: SparkSession, spec: SinkSpec, state: str) -> int:
    """The last epoch of a state that a table has; 0 if none."""
    from pyspark.errors import AnalysisException

    table = _table(spec)
    if not require_catalog(spark, table):
        return 0
    try:
        epochs = spark.sql(
            f"SELECT max(CAST(s.summary['{EPOCH_PROPERTY}'] AS BIGINT)) AS last FROM {table}.snapshots s JOIN "
            f"{table}.history h ON s.snapshot_id = h.snapshot_id AND h.is_current_ancestor "
            f"WHERE s.summary['{STATE_PROPERTY}'] = '{state}'"
        ).collect()
    except AnalysisException as error:
        raise SinkError(f"{table} is no table of Iceberg: {spec}", hint="give the sink another table") from error
    return int(epochs[0]["last"] or 0)


def _make(spark: SparkSession, spec: SinkSpec, frame: DataFrame, schema: Schema) -> None:
    """Make a table that is not there, in a commit of its own; the sink's options are its properties."""
    for field in schema:
        _require_held(spec, field.name, field.type)
    if not spark.catalog.tableExists(_table(spec)):
        writer = frame.limit(0).writeTo(_table(spec)).using(ICEBERG)
        for name, value in spec.options.items():
            writer = writer.tableProperty(name, value)
        writer.create()


def _require_held(spec: SinkSpec, column: str, type_: Type) -> None:
    """Refuse a column of a type that Iceberg does not hold."""
    held = [*_inside(type_)]
    for part in held:
        if part in _NOT_HELD:
            raise SinkError(
                f'column "{column}" of view "{spec.view}" is {type_}, which Iceberg does not hold',
                hint=f"deliver it as text or as a number: CAST({column} AS STRING)",
            )
    if VARIANT in held and spec.options.get("format-version", "2") < "3":
        raise SinkError(
            f'column "{column}" of view "{spec.view}" is {type_}, which Iceberg holds from format version 3 on',
            hint='p.sink(…, **{"format-version": "3"}); or deliver it as text: to_json(…)',
        )


def _inside(type_: Type) -> Iterator[Type]:
    """A type and all types inside it."""
    yield type_
    for part in parts_of_type(type_):
        yield from _inside(part)


def _merge(
    spark: SparkSession, spec: SinkSpec, frame: DataFrame, names: Sequence[str], summary: Mapping[str, str]
) -> None:
    """Merge rows into a table, with what the snapshot's summary is to say."""
    view = f"everview_{uuid4().hex}"
    frame.createGlobalTempView(view)  # which other sessions see
    settings = {f"{_SETTING}{_PROPERTY}{entry}": value for entry, value in summary.items()}
    try:
        text = f"MERGE INTO {_table(spec)} AS t USING global_temp.{view} AS s {_clauses(spec, names)}"
        apart(spark, settings).sql(text).collect()
        spark.catalog.refreshTable(_table(spec))  # the session remembers it as it was
    except Exception as error:
        if _FOREIGN not in str(error):
            raise
        raise SinkError(
            f"{_table(spec)} was not what the view was, and nothing was committed: {spec}",
            hint="another writer has changed the table, or the key does not identify a row; begin with a new table",
        ) from error
    finally:
        spark.catalog.dropGlobalTempView(view)


def _clauses(spec: SinkSpec, names: Sequence[str]) -> str:
    """What to do with the row of a key; unless the sink may meet other rows, what does not fit fails."""
    columns = [*map(quoted, names)]
    same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in spec.key)
    first, *others = columns
    update, insert = f"s.{first}", f"s.{first}"
    absent = f"s.{OP} <> '{DELETE}'"
    if spec.begin == "snapshot":
        update = f"CASE WHEN s.{OP} = '{UPDATE}' THEN s.{first} ELSE raise_error('{_FOREIGN}') END"
        insert = f"CASE WHEN s.{OP} = '{INSERT}' THEN s.{first} ELSE raise_error('{_FOREIGN}') END"
        absent = "true"
    replaced = ", ".join([f"t.{first} = {update}", *(f"t.{name} = s.{name}" for name in others)])
    values = ", ".join([insert, *(f"s.{name}" for name in others)])
    return (
        f"ON {same} WHEN MATCHED AND s.{OP} = '{DELETE}' THEN DELETE WHEN MATCHED THEN UPDATE SET {replaced} "
        f"WHEN NOT MATCHED AND {absent} THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def _table(spec: SinkSpec) -> str:
    assert spec.table is not None, "a sink in Iceberg has a table"
    return spec.table
