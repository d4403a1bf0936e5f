"""Delta Lake tables as sinks: each epoch of a view is one commit of the table, and is committed once.

Delta notes with a commit the writer's name and a version, and passes over a commit whose version it has: the name is
that of state and table, and the version is the epoch. In mode ``upsert`` the table is the view, by `MERGE` with a key.
In mode ``changes`` rows are added, with ``_weight`` and ``epoch``; in mode ``snapshot`` the table is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from everview.errors import SinkError
from everview.runtimes.spark.stored_change import Change
from everview.spark.epoch_folders import EPOCH
from everview.spark.folders import local_path
from everview.spark.frames import frame_of
from everview.spark.keyed import DELETE, INSERT, OP, UPDATE, KeyedChange, changes_frame, keyed_change, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark.sinks import Contents, SinkSpec

DELTA: Final = "delta"
_SETTINGS: Final = "spark.databricks.delta."
_LOOKED: Final = 1000  # commits of a table that are looked at for epochs of ours
_seen: Final[set[str]] = set()  # the tables that are in order, as this process has seen


def deliver_commit(
    spark: SparkSession, spec: SinkSpec, epoch: int, changes: Change, contents: Contents, state: str
) -> None:
    """Commit an epoch to a table, unless the table has it."""
    if not len(changes):
        return
    name = f"everview/{state}/{spec.table or spec.path}"
    _require_not_ahead(spark, spec, epoch, state, name)
    said = json.dumps({"state": state, "epoch": epoch})
    if spec.mode == "upsert":
        confs = {"write.txnAppId": name, "write.txnVersion": str(epoch), "commitInfo.userMetadata": said}
        settings = {_SETTINGS + setting: value for setting, value in confs.items()}
        _merge(spark, spec, keyed_change(spark, spec.view, changes, spec.key), settings)
        return
    options = {"txnAppId": name, "txnVersion": str(epoch), "userMetadata": said}
    if spec.mode == "changes":
        from pyspark.sql import functions as f

        frame = changes_frame(spark, changes).withColumn(EPOCH, f.lit(epoch).cast("bigint"))
        _write(frame, spec, "append", options)
        return
    rows = contents()
    frame = frame_of(spark, rows) if isinstance(rows, pa.Table) else rows
    _write(frame, spec, "overwrite", options)


def _write(frame: DataFrame, spec: SinkSpec, mode: str, options: Mapping[str, str]) -> None:
    writer = frame.write.format(DELTA).mode(mode).options(**(dict(spec.options) | dict(options)))
    if spec.table is not None:
        writer.saveAsTable(spec.table)
    else:
        writer.save(_url(spec))


def apart(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with settings of one commit: in the user's own, they would be those of other threads' commits, too."""
    session: Any = spark.newSession()
    for name, value in spark.conf.getAll.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def _merge(spark: SparkSession, spec: SinkSpec, changes: KeyedChange, settings: Mapping[str, str]) -> None:
    """Merge rows into a table, which is made if need be: in a commit of its own, that is not the epoch's."""
    frame, name = changes.frame(spark), f"everview_{uuid4().hex}"
    if not _exists(spark, spec):
        _write(frame.drop(OP).limit(0), spec, "ignore", {})
    frame.createGlobalTempView(name)  # which other sessions see
    try:
        merge = f"MERGE INTO {_target(spec)} AS t USING global_temp.{name} AS s {_clauses(spec, changes.schema.names)}"
        done = [row.asDict() for row in apart(spark, settings).sql(merge).collect()]
    finally:
        spark.catalog.dropGlobalTempView(name)
    if done and spec.begin == "snapshot":  # nothing was done if the table has the epoch
        _require_expected(spec, changes.counts, done[0])


def _clauses(spec: SinkSpec, columns: Sequence[str]) -> str:
    """The clauses of a MERGE: the action for each key."""
    names = [*map(quoted, columns)]
    same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in spec.key)
    values = ", ".join(f"s.{name}" for name in names)
    update = ", ".join(f"t.{name} = s.{name}" for name in names)
    return (
        f"ON {same} WHEN MATCHED AND s.{OP} = '{DELETE}' THEN DELETE WHEN MATCHED THEN UPDATE SET {update} "
        f"WHEN NOT MATCHED AND s.{OP} <> '{DELETE}' THEN INSERT ({', '.join(names)}) VALUES ({values})"
    )


def _require_expected(spec: SinkSpec, counts: Mapping[str, int], done: Mapping[str, int]) -> None:
    """Refuse a merge whose counts differ from the changes': the table did not hold the view's rows before.

    Only Delta's own counts tell, and they come with the commit. The error tells once; the epoch is not merged again.
    """
    for op, count in ((INSERT, "num_inserted_rows"), (UPDATE, "num_updated_rows"), (DELETE, "num_deleted_rows")):
        if done[count] != counts[op]:
            raise SinkError(
                f"the changes {op} {counts[op]} rows, and of {_target(spec)} it were {done[count]}: "
                f"the table was not what the view was: {spec}",
                hint="another writer has changed the table, or the key does not identify a row; begin with a new table",
            )


def _require_not_ahead(spark: SparkSession, spec: SinkSpec, epoch: int, state: str, name: str) -> None:
    """Refuse a table with an epoch that the state has not reached: its commits would be passed over silently."""
    if name in _seen or not _exists(spark, spec):
        return
    history = spark.sql(f"DESCRIBE HISTORY {_target(spec)} LIMIT {_LOOKED}").select("userMetadata").toPandas()
    last = max((_epoch(text, state) for text in history["userMetadata"]), default=0)
    if last > epoch:
        raise SinkError(
            f"{spec.table or spec.path} has epoch {last}, and the state is at epoch {epoch}: {spec}",
            hint="the state is an older copy: restore the table to the same moment, or give the sink another one",
        )
    _seen.add(name)


def _epoch(said: str | None, state: str) -> int:
    try:
        told = json.loads(said or "")
        return int(told["epoch"]) if told["state"] == state else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _exists(spark: SparkSession, spec: SinkSpec) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return bool(spark.sql(f"DESCRIBE DETAIL {_target(spec)}").columns)
    except AnalysisException:
        return False


def _target(spec: SinkSpec) -> str:
    return spec.table if spec.table is not None else f"delta.{quoted(_url(spec))}"


def _url(spec: SinkSpec) -> str:
    assert spec.path is not None, "a table has a name or a path"
    local = local_path(spec.path)
    return spec.path if local is None else local.as_uri()
