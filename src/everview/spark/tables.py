"""Sources that are tables of a catalog, and Iceberg's changes between two snapshots.

A table is read by its name: as a stream of new rows, or as it is at every refresh. An Iceberg table also tells what has
changed from one snapshot to another. Such a feed is no stream of Spark's: the state remembers the snapshot that it has
read, in the commit of the epoch that read it, so nothing is read twice and nothing is left out, whatever dies.

Changes are added up by row before they arrive: an update rewrites whole files, and rows that are in the old and in the
new file have not changed. What is left are rows that are gone and rows that are new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.errors import MissingRuntime, SourceError
from everview.spark.feeds import (
    INSERT,
    OP,
    ORDINAL,
    WEIGHT,
    LakeFeed,
    NewChanges,
    named_column,
    one,
    operations,
    weight_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ICEBERG: Final = "iceberg"
BY: Final = "changes.by"  # our option of a feed: how changes are found
LOG, COMPARISON = "log", "comparison"  # by Iceberg's log of files, or by reading both snapshots
SNAPSHOT: Final = "_commit_snapshot_id"  # a column that Iceberg's log of changes has beside those of the row
# Options that choose a part of a table: a feed begins with all rows, and knows itself how far it is.
_CHOSEN: Final = (
    *("versionasof", "timestampasof", "snapshot-id", "as-of-timestamp", "branch", "tag", "stream-from-timestamp"),
    *("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp"),
)


@dataclass(frozen=True, slots=True)
class TableFrame(LakeFeed):
    """A frame over a table of a catalog; with ``feed``, over the changes between its snapshots."""

    name: str  # of the source, for what is said of it
    table: str
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    stream: bool = True
    columns: tuple[str, ...] | None = None  # those that are taken; all if None
    feed: bool = False
    key: tuple[str, ...] = ()  # of a feed
    schema: ClassVar[None] = None  # the table knows its columns

    def style(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The style of changes: of a feed, that of tables' changes; else as a user has said it."""
        return self._style(said) if self.feed else dict(said)

    def read(self, spark: SparkSession) -> DataFrame:
        """The frame, over the table as it is now; of a feed, all rows as changes."""
        if self.format == ICEBERG:
            require_table(spark, self.table)
        if self.feed:
            return self._begun(spark.read.options(**self._given).table(self.table))
        reader: Any = spark.readStream if self.stream else spark.read
        return reader.options(**self.options).table(self.table)

    def since(self, spark: SparkSession, last: int | None) -> NewChanges | None:
        """The changes after a snapshot, or all rows if there is none; None if nothing has happened."""
        require_table(spark, self.table)
        ancestors = snapshots(spark, self.table)
        if not ancestors or ancestors[-1] == last:
            return None
        now = ancestors[-1]
        if last is None:
            return NewChanges(self._begun(self._at(spark, now)), now)
        if last not in ancestors:
            raise SourceError(
                f'source "{self.name}": table {self.table} no longer has snapshot {last}, up to which it was read',
                hint="it was expired, rolled back or made anew, so what has changed since is unknown: begin with a new "
                "state, and expire snapshots only after a refresh",
            )
        raw = self._logged(spark, last, now) if self._by == LOG else self._compared(spark, last, now)
        return NewChanges(self._net(raw), now)

    @property
    def _by(self) -> str:
        return self.options.get(BY, LOG)

    @property
    def _given(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if name != BY}

    def _at(self, spark: SparkSession, snapshot: int) -> DataFrame:
        return spark.read.options(**self._given).option("versionAsOf", str(snapshot)).table(self.table)

    def _begun(self, rows: DataFrame) -> DataFrame:
        return self._as_new(self._chosen(rows))

    def _logged(self, spark: SparkSession, last: int, now: int) -> DataFrame:
        """The rows of files that came or went, with the number of the commit, and 1 or -1."""
        between = {"start-snapshot-id": str(last), "end-snapshot-id": str(now)}
        rows = spark.read.options(**self._given).options(**between).table(f"{self.table}.changes")
        return self._chosen(rows.withColumn(WEIGHT, weight_of(F.col(OP) == INSERT)), ORDINAL, WEIGHT)

    def _compared(self, spark: SparkSession, last: int, now: int) -> DataFrame:
        """All rows of both snapshots, the old ones with -1."""
        old, new = (self._chosen(self._at(spark, each)) for each in (last, now))
        new = new.withColumns({ORDINAL: F.lit(0), WEIGHT: one()})
        return new.unionByName(old.withColumns({ORDINAL: F.lit(0), WEIGHT: -one()}), allowMissingColumns=True)

    def _chosen(self, rows: DataFrame, *more: str) -> DataFrame:
        names = [name for name in rows.columns if name not in (OP, ORDINAL, SNAPSHOT, WEIGHT)]
        taken = self._taken(names)
        return rows.select(*(named_column(name) for name in taken), *more)

    def _net(self, raw: DataFrame) -> DataFrame:
        """Changes added up by row; with a key as what was done to it, deletes before inserts."""
        names = [name for name in raw.columns if name not in (ORDINAL, WEIGHT)]
        if any(_has_variant(f.dataType) for f in raw.schema.fields):  # which Spark cannot tell apart
            net, order = raw, F.col(ORDINAL) * 2
        else:
            added = raw.groupBy(*map(named_column, names)).agg(F.sum(WEIGHT).alias(WEIGHT))
            net, order = added.where(F.col(WEIGHT) != 0), F.lit(0)
        if not self.key:
            return net.select(*map(named_column, names), WEIGHT)
        return operations(net, names, F.col(WEIGHT) > 0, order)


def table_frame(
    name: str,
    table: str,
    format: str | None,
    stream: bool | None,
    columns: tuple[str, ...] | None,
    options: Mapping[str, str],
    *,
    changes: str,
    key: tuple[str, ...],
) -> TableFrame:
    """The frame of a source with ``table``, whose options are checked: Spark would ignore most mistakes."""
    feed = changes == "cdc" and format == ICEBERG
    if format not in (None, ICEBERG):
        raise SourceError(f'source "{name}": a table cannot have format "{format}"',
                          hint='leave format out: the catalog knows it; only format="iceberg" says more')  # fmt: skip
    if feed and stream:
        raise SourceError(f'source "{name}": changes of an Iceberg table are no stream of Spark',
                          hint='leave stream out: refresh() reads what has changed since the last one; '
                          'or changes="append", for a table that only grows')  # fmt: skip
    chosen = [option for option in options if option.lower() in _CHOSEN]
    if feed and chosen:
        raise SourceError(f'source "{name}": the option {chosen[0]} says nothing to a change feed',
                          hint="it begins with all rows of the table, and the state knows how far it is")  # fmt: skip
    if options.get(BY, LOG) not in (LOG, COMPARISON) or (BY in options and not feed):
        raise SourceError(f'source "{name}": {BY} cannot be "{options[BY]}"',
                          hint=f'"{LOG}" or "{COMPARISON}", with format="iceberg" and changes="cdc"')  # fmt: skip
    streamed = not feed and (changes != "snapshot" if stream is None else stream)
    return TableFrame(name, table, format, options, streamed, columns, feed, key if feed else ())


def snapshots(spark: SparkSession, table: str) -> list[int]:
    """The snapshots of an Iceberg table from the oldest that has not expired to the present one."""
    past = f"SELECT snapshot_id FROM {table}.history WHERE is_current_ancestor ORDER BY made_current_at"
    rows = spark.sql(past).collect()
    return [int(row[0]) for row in rows]


def require_catalog(spark: SparkSession, table: str) -> bool:
    """Whether an Iceberg table exists now, whatever Spark has cached; an error if the session cannot read Iceberg."""
    catalog, *rest = table.split(".")
    name = catalog.strip("`")
    settings = f"spark.sql.catalog.{name}=org.apache.iceberg.spark.SparkCatalog"
    jar = f"iceberg-spark-runtime-{'.'.join(spark.version.split('.')[:2])}_2.13"
    if len(rest) > 1 and name != "spark_catalog" and spark.conf.get(f"spark.sql.catalog.{name}", None) is None:
        raise MissingRuntime(
            f'the session has no catalog "{name}", in which {table} should be',
            hint=f"make the session with {settings}, its type and place, and the jar {jar}; docs/how-to/iceberg.md",
        )
    try:
        there = bool(spark.catalog.tableExists(table))
    except Exception as error:
        if "org.apache.iceberg" not in str(error):
            raise
        raise MissingRuntime(
            f'the session has no Iceberg: its catalog "{name}" cannot be loaded',
            hint=f"give it the jar org.apache.iceberg:{jar}, of a release that is made for Spark {spark.version}",
        ) from error
    if there:
        spark.catalog.refreshTable(table)
    return there


def require_table(spark: SparkSession, table: str) -> None:
    """Refuse an Iceberg table that is not there."""
    if not require_catalog(spark, table):
        raise SourceError(f"there is no table {table}", hint="check its name: catalog.namespace.table")


def _has_variant(type_: st.DataType) -> bool:
    match type_:
        case st.StructType():
            return any(_has_variant(f.dataType) for f in type_.fields)
        case st.ArrayType():
            return _has_variant(type_.elementType)
        case st.MapType():
            return _has_variant(type_.valueType)
        case _:
            return isinstance(type_, st.VariantType)
