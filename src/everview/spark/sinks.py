"""Sinks: where the changes or the contents of a view go, once per epoch.

Invariant: the rows of an epoch in a sink are a function of the epoch alone. Delivering an epoch again, after a crash
at any point or after success, replaces what the earlier attempt left, so that one copy remains. A callback is the
exception: it may be called again for an epoch, with the same changes and the same number, and must notice that itself.

Layout of a path: ``path/epoch=0000000007/``, so that ``spark.read.parquet(path)`` has the view's columns, ``_weight``
in mode ``changes``, and ``epoch``, a number. Names that start with ``_`` are attempts under way, which readers ignore.
Parquet on a local path is written by this process; everything else by Spark.

What a reader sees meanwhile:

- changes on a local parquet path: an epoch as a whole or not at all;
- snapshots on a local parquet path: for a moment the previous and the new contents, told apart by ``epoch``;
- snapshots elsewhere and in tables: for a moment possibly nothing, as Spark overwrites.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa

from everview.errors import MissingRuntime, SinkError
from everview.runtimes.spark.stored_change import Change, StoredChange
from everview.spark.delta import DELTA, deliver_commit
from everview.spark.epoch_folders import EPOCH, OURS, epoch_name, epochs, put_epoch, replace_snapshot
from everview.spark.folders import SCHEME, folder, local_path
from everview.spark.frames import frame_of
from everview.spark.iceberg import deliver_to_iceberg
from everview.spark.jdbc import check_url, deliver_rows
from everview.spark.jvm import first_cause
from everview.spark.kafka import KAFKA, SERVERS
from everview.spark.tables import ICEBERG
from everview.spark.topics import deliver_records
from everview.types import Schema
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Mode = Literal["changes", "snapshot", "upsert"]
Begin = Literal["changes", "snapshot"]
Listener: TypeAlias = Callable[[Batch, int], object]
Contents: TypeAlias = "Callable[[], pa.Table | DataFrame]"

FORMATS: Final = ("parquet", "json", "delta")
MODES: Final = ("changes", "snapshot")
JDBC: Final = "jdbc"
WEIGHT: Final = "_weight"
QUARANTINE: Final = pa.schema([("source", pa.string()), ("reason", pa.string()), ("raw", pa.string())])

_TABLE = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+)){0,3}")
_BESIDE = re.compile(r"_everview|_temporary")  # what is written into the path itself, beside epochs
# Microseconds and the zone, which Spark's own default leaves to chance.
_JSON: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC"}


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """A sink: one place that one view is delivered to; made by `sink_of`.

    >>> print(sink_of("exposure", format="json", path="s3://bank/exposure"))
    changes of view "exposure" as json at s3://bank/exposure
    """

    view: str
    mode: Mode = "changes"
    format: str = "parquet"
    path: str | None = None
    table: str | None = None
    callback: Listener | None = None
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    begin: Begin = "changes"  # with what a sink begins that is added to a state with epochs
    topic: str | None = None
    key: tuple[str, ...] = ()  # the columns that identify a row
    exactly_once: bool = True  # whether a topic gets an epoch in a transaction
    jdbc: str | None = field(default=None, repr=False)  # the address of a database; it may have a password

    def __str__(self) -> str:
        if self.callback is not None:
            return f'{self.mode} of view "{self.view}" to {getattr(self.callback, "__name__", "a callback")}()'
        if self.topic is not None:
            return f'{self.mode} of view "{self.view}" to topic {self.topic}'
        if self.table is not None:
            return f'{self.mode} of view "{self.view}" in table {self.table}'
        return f'{self.mode} of view "{self.view}" as {self.format} at {self.path}'

    @property
    def target(self) -> str:
        """The place of the sink's output, as named in the notes of a state."""
        if self.topic is not None:
            return f"topic {self.topic}"
        return f"table {self.table}" if self.table is not None else f"path {self.path}"

    @property
    def local(self) -> Path | None:
        """The directory that this process writes without Spark; None for other sinks."""
        by_hand = self.format == "parquet" and set(self.options) <= {"compression"}
        return local_path(self.path) if by_hand and self.path is not None else None

    @property
    def overwritten(self) -> bool:
        """Whether Spark deletes all that is in the path when it writes."""
        return self.path is not None and self.local is None and self.mode == "snapshot" and self.format != "delta"


def sink_of(
    view: str,
    *,
    format: str | None = None,
    path: str | os.PathLike[str] | None = None,
    table: str | None = None,
    callback: Listener | None = None,
    topic: str | None = None,
    mode: str = "changes",
    begin: str | None = None,
    key: str | Sequence[str] | None = None,
    exactly_once: bool = True,
    jdbc: str | None = None,
    options: Mapping[str, Any] | None = None,
    schema: Schema | None = None,
) -> SinkSpec:
    """A sink as a user asks for it: exactly one of ``path``, ``table``, ``topic`` and ``callback``.

    With ``jdbc``, the address of a database, the table is one there, called as the view unless it is named.

    ``format`` is ``parquet`` (the default), ``json`` or ``delta`` for a path, and the provider of a table that does not
    exist yet. ``options`` go to Spark's writer, or to the client of a topic. A path without a scheme is local.
    """
    if jdbc is not None:
        check_url(jdbc)
        table, mode = table or f"`{view}`", "upsert" if mode == "changes" else mode
    _one_target(view, path=path, table=table, topic=topic, callback=callback)
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    _check_mode(mode, JDBC if jdbc is not None else format, topic, keys)
    begin = _beginning(begin, mode)
    if callback is not None:
        _check_callback(callback, format, mode, options)
    if topic is not None:
        _check_topic(topic, format, mode, options or {})
    if path is not None:
        _check_format(format)
    if table is not None and not _TABLE.fullmatch(table):
        raise SinkError(f'"{table}" is no name of a table', hint='write "table" or "database.table"')
    if schema is not None and callback is None:
        _check_columns(view, schema.names, mode, table)
    return SinkSpec(
        view,
        "snapshot" if mode == "snapshot" else "upsert" if mode == "upsert" else "changes",
        "kafka" if topic is not None else JDBC if jdbc is not None else format or "parquet",
        None if path is None else _anchored(os.fspath(path)),
        table,
        callback,
        {name: str(value) for name, value in (options or {}).items()},
        begin,
        topic,
        keys,
        exactly_once,
        jdbc,
    )


def _check_format(format: str | None) -> None:
    """Raise unless a path can have files of this format."""
    if format == ICEBERG:
        raise SinkError("a sink in Iceberg has a table, not a path", hint='table="catalog.namespace.table"')
    if format is not None and format not in FORMATS:
        raise SinkError(f'no sink writes "{format}"', hint=f"format is one of {', '.join(FORMATS)}, or give table=")


def _beginning(begin: str | None, mode: str) -> Begin:
    """The first delivery of a sink that is added to a view with rows."""
    match begin or ("snapshot" if mode == "upsert" else "changes"):
        case "changes" | "snapshot" as known:
            return known
        case other:
            raise SinkError(f'a sink cannot begin with "{other}"', hint='begin="changes" or begin="snapshot"')


def deliver(
    spark: SparkSession, spec: SinkSpec, epoch: int, changes: Change, contents: Contents, *, state: str = ""
) -> None:
    """Deliver an epoch of a view to a sink; repeating it leaves one copy.

    ``contents`` is asked only for a snapshot. ``state`` is the id of the state, by which topics and tables of Delta and
    Iceberg know that they have an epoch. An epoch without changes leaves the sink as it is, except that the
    first snapshot on a local path is written even if the view is empty.
    """
    try:
        if spec.callback is not None:
            _call(spec.callback, epoch, changes)
        elif spec.topic is not None:
            _check_columns(spec.view, changes.schema.names, spec.mode, spec.table)
            deliver_records(spark, spec, epoch, changes, state)
        elif spec.jdbc is not None:
            deliver_rows(spark, spec, epoch, changes, state)
        elif spec.format == DELTA:
            _check_columns(spec.view, changes.schema.names, spec.mode, spec.table)
            deliver_commit(spark, spec, epoch, changes, contents, state)
        elif spec.format == ICEBERG:
            _check_columns(spec.view, changes.schema.names, spec.mode, spec.table)
            deliver_to_iceberg(spark, spec, epoch, changes, contents, state)
        elif spec.mode == "changes":
            _deliver_changes(spark, spec, epoch, changes)
        else:
            _deliver_snapshot(spark, spec, epoch, changes, contents)
    except (SinkError, MissingRuntime):
        raise
    except Exception as error:
        raise SinkError(
            f"epoch {epoch} was not delivered: {spec}: {first_cause(error)}",
            hint="the epoch is committed; it is delivered again when the pipeline next starts",
        ) from error


def quarantine(path: str, epoch: int, table: pa.Table) -> None:
    """Set bad rows of an epoch aside: columns ``source``, ``reason`` and ``raw``; as idempotent as a sink."""
    root = local_path(path)
    assert root is not None, "bad rows are kept beside the state, which is local"
    put_epoch(root, epoch, table.select(QUARANTINE.names).cast(QUARANTINE), {})


def read_quarantine(spark: SparkSession, path: str) -> DataFrame:
    """The bad rows of all epochs: ``source``, ``reason``, ``raw`` and ``epoch``."""
    schema = "source STRING, reason STRING, raw STRING, epoch BIGINT"
    root = local_path(path)
    assert root is not None, "bad rows are kept beside the state, which is local"
    if not epochs(root):
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(root.as_uri())


# -- what a user may ask for


def _one_target(view: str, **targets: Any) -> None:
    given = [name for name, value in targets.items() if value is not None]
    if len(given) != 1:
        named = " and ".join(given) or "neither path, table, topic nor callback"
        hint = "give exactly one of path=, table=, topic=, callback="
        raise SinkError(f'a sink of view "{view}" has {named}', hint=hint)


def _check_mode(mode: str, format: str | None, topic: str | None, key: tuple[str, ...]) -> None:
    keyed = topic is not None or format in (DELTA, ICEBERG, JDBC)
    if mode not in (*MODES, "upsert"):
        raise SinkError(f'a sink has no mode "{mode}"', hint='mode="changes", mode="snapshot", or "upsert" with a key')
    if mode == "upsert" and not keyed:
        hint = 'give a topic=, jdbc=, or format="delta" or "iceberg"; other paths and tables take changes or snapshots'
        raise SinkError("only a topic, a table of Delta or Iceberg, or a database takes rows by their key", hint=hint)
    if mode == "snapshot" and format == JDBC:
        raise SinkError("a table of a database has no snapshots", hint="it is the view itself, by a key of its rows")
    if mode == "upsert" and not key:
        raise SinkError('mode="upsert" needs a key', hint='name the columns that identify a row of the view: key="id"')
    if key and not (mode == "upsert" or topic is not None):
        raise SinkError("a key says nothing to this sink", hint='write mode="upsert", or leave the key out')


def _check_topic(topic: str, format: str | None, mode: str, options: Mapping[str, Any]) -> None:
    if not topic or format not in (None, KAFKA):
        raise SinkError(f'topic "{topic}" cannot have format {format}', hint='topic="…", and format="kafka" or none')
    if mode == "snapshot":
        raise SinkError("a topic has no snapshots", hint='mode="upsert" with a key, whose last records are the view')
    if SERVERS not in options:
        raise SinkError(f"no broker is named for topic {topic}", hint=f'give the option "{SERVERS}": "host:9092"')


def _check_callback(callback: Any, format: str | None, mode: str, options: Any) -> None:
    if not callable(callback):
        raise SinkError(f"a callback is a function, not {callback!r}", hint="callback=fn, called as fn(changes, epoch)")
    if format is not None or options or mode != "changes":
        raise SinkError("a callback is given changes, in no format", hint="leave format, options and mode out")


def _check_columns(view: str, names: Sequence[str], mode: str, table: str | None) -> None:
    added: set[str] = set()
    if mode == "changes":
        added = {EPOCH, WEIGHT}
    elif mode == "snapshot" and table is None:
        added = {EPOCH}
    clash = [name for name in names if name.lower() in added]
    if clash:
        hint = "rename the view's column: select(…, new=old)"
        raise SinkError(f'view "{view}" has a column "{clash[0]}", which the sink adds itself', hint=hint)


def _anchored(path: str) -> str:
    return path if SCHEME.match(path) else str(Path(path).absolute())


# -- changes and snapshots


def _call(callback: Listener, epoch: int, changes: Change) -> None:
    if len(changes):
        callback(changes.batch() if isinstance(changes, StoredChange) else changes, epoch)


def _deliver_changes(spark: SparkSession, spec: SinkSpec, epoch: int, changes: Change) -> None:
    _check_columns(spec.view, changes.schema.names, spec.mode, spec.table)
    rows = changes.frame(spark) if isinstance(changes, StoredChange) else changes.to_arrow()
    if spec.local is not None:
        put_epoch(spec.local, epoch, rows, spec.options)
        return
    if not len(changes):
        return
    frame = frame_of(spark, rows) if isinstance(rows, pa.Table) else rows
    if spec.table is not None:
        _insert(spark, spec, frame, epoch)
    else:
        _write_by_spark(frame, spec, epoch)


def _deliver_snapshot(spark: SparkSession, spec: SinkSpec, epoch: int, changes: Change, contents: Contents) -> None:
    _check_columns(spec.view, changes.schema.names, spec.mode, spec.table)
    if spec.local is not None:
        if len(changes) or not epochs(spec.local):
            replace_snapshot(spec.local, epoch, contents(), spec.options)
        return
    if not len(changes):
        return
    rows = contents()
    frame = frame_of(spark, rows) if isinstance(rows, pa.Table) else rows
    if spec.table is not None:
        _insert(spark, spec, frame, None)
    else:
        _write_by_spark(frame, spec, epoch)


# -- by Spark


def _write_by_spark(frame: DataFrame, spec: SinkSpec, epoch: int) -> None:
    """Let Spark write: changes overwrite their own epoch alone, a snapshot everything; the session's settings stay."""
    from pyspark.sql import functions as f

    assert spec.path is not None
    overwrite = "dynamic" if spec.mode == "changes" else "static"
    options = {**(_JSON if spec.format == "json" else {}), **spec.options, "partitionOverwriteMode": overwrite}
    root = local_path(spec.path)
    _require_no_foreign(frame.sparkSession, spec, epoch_name(epoch) if spec.mode == "changes" else "")
    (
        frame.withColumn(EPOCH, f.lit(f"{epoch:010d}"))
        .write.mode("overwrite")
        .format(spec.format)
        .options(**options)
        .partitionBy(EPOCH)
        .save(spec.path if root is None else root.as_uri())
    )


def _require_no_foreign(spark: SparkSession, spec: SinkSpec, under: str) -> None:
    """Raise if a folder has files not written by a sink: Spark would delete them when it overwrites the folder."""
    assert spec.path is not None
    for name in folder(spark, spec.path).files(under):
        if not (OURS.fullmatch(name.rpartition("/")[2]) or _BESIDE.match(name)):
            raise SinkError(
                f"{spec.path} has a file that is not the sink's, {name}, and would lose it: {spec}",
                hint="move the file elsewhere; the epoch is committed, and is delivered when the pipeline next starts",
            )


def _insert(spark: SparkSession, spec: SinkSpec, frame: DataFrame, epoch: int | None) -> None:
    """Overwrite one epoch of a partitioned table, or a whole plain one.

    A partition named with its value is overwritten alone in either overwrite mode, so the session's does not matter.
    """
    from pyspark.sql import functions as f

    assert spec.table is not None
    if not spark.catalog.tableExists(spec.table):
        empty = frame.limit(0) if epoch is None else frame.limit(0).withColumn(EPOCH, f.lit(epoch).cast("bigint"))
        writer = empty.write.format(spec.format).options(**spec.options).mode("ignore")
        (writer if epoch is None else writer.partitionBy(EPOCH)).saveAsTable(spec.table)
    names = [name for name in spark.table(spec.table).columns if epoch is None or name != EPOCH]
    if sorted(names) != sorted(frame.columns):
        raise SinkError(
            f"table {spec.table} has columns {', '.join(names)}, and {spec} has {', '.join(frame.columns)}",
            hint="write to another table, or drop this one",
        )
    where = "" if epoch is None else f"PARTITION ({EPOCH} = {epoch})"
    spark.sql(f"INSERT OVERWRITE TABLE {spec.table} {where} SELECT * FROM {{frame}}", frame=frame.select(*names))
