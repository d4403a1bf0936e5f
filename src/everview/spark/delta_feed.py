"""Feeds of Delta Lake tables, whose positions the state keeps: the changes of each version, or its new rows.

The first look reads all rows, as of one version; each later one what the versions since then have changed, by the
table's change feed. Within a version, deletes are before inserts: a row that changes its key leaves the old one, and a
table that is written anew keeps its keys. Of a table that only grows, and has no feed, Delta's log names the files that
were added. The position is the version, with the table's id, so that a table that was made anew is not taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.errors import SourceError
from everview.spark.feeds import OP, WEIGHT, LakeFeed, NewChanges, named_column, operations, weight_of
from everview.spark.folders import SCHEME, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELTA: Final = "delta"
FEED: Final = ("readchangefeed", "readchangedata")  # the options by which Delta's change feed is read
_VERSION: Final = "_commit_version"  # columns that Delta's change feed has beside those of the row
_BESIDE: Final = (OP, _VERSION, "_commit_timestamp")
_NEW: Final = ("insert", "update_postimage")  # the other operations take a row away
_ENABLED: Final = "delta.enableChangeDataFeed"
# Options of Delta's streams: of where they begin and end, of how much they take, and of what they pass over.
_SPARK_ALONE: Final = (
    *("startingversion", "startingtimestamp", "endingversion", "endingtimestamp", "versionasof", "timestampasof"),
    *("maxfilespertrigger", "maxbytespertrigger", "ignoredeletes", "ignorechanges", "skipchangecommits"),
    *("excluderegex", "schematrackinglocation", "failondataloss"),
)
_FILE: Final = "path STRING, dataChange BOOLEAN"
_LOG: Final = f"add STRUCT<{_FILE}, deletionVector STRUCT<storageType: STRING>>, remove STRUCT<{_FILE}>"


@dataclass(frozen=True, slots=True)
class DeltaFeed(LakeFeed):
    """What is new in a Delta table, which has a path, or a name in a catalog."""

    name: str  # of the source, for what is said of it
    path: str | None
    table: str | None = None
    schema: str | st.StructType | None = None  # says which columns are NOT NULL
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    columns: tuple[str, ...] | None = None  # those that are taken; all if None
    key: tuple[str, ...] = ()
    logged: bool = True  # whether the table's change feed is read, or the files that were added

    def style(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """How rows are changes: as the changes of tables are; added rows, as a user has said it."""
        return self._style(said) if self.logged else dict(said)

    def read(self, spark: SparkSession) -> DataFrame:
        """The frame, over the table as it is now."""
        return self._begun(self._read(spark))

    def since(self, spark: SparkSession, last: Mapping[str, Any] | None) -> NewChanges | None:
        """What is new after a version, or all rows if there is none; None if there is no newer version."""
        now = int(spark.sql(f"DESCRIBE HISTORY {self._named} LIMIT 1").select("version").collect()[0][0])
        if last is not None and now == last["version"]:
            return None
        detail = spark.sql(f"DESCRIBE DETAIL {self._named}").collect()[0].asDict()
        position = {"table": str(detail["id"]), "version": now}
        if self.logged and dict(detail["properties"]).get(_ENABLED) != "true":
            raise self._refused("has no change feed", f"ALTER TABLE … SET TBLPROPERTIES ({_ENABLED} = true), "
                                'or changes="append" without readChangeFeed, for a table that only grows')  # fmt: skip
        if last is None:
            return NewChanges(self._begun(self._read(spark, versionAsOf=now)), position)
        if position["table"] != last["table"] or now < last["version"]:
            raise self._refused(f"is another one: version {last['version']}, up to which it was read, is not in it",
                                "it was made anew, so what has changed is unknown: begin with a new state")  # fmt: skip
        first = int(last["version"]) + 1
        changed = self._changed if self.logged else self._added
        try:
            return NewChanges(changed(spark, detail, first, now), position)
        except SourceError:
            raise
        except Exception as error:
            what = str(error).strip().partition("\n")[0]
            raise self._refused(f"cannot tell what versions {first} to {now} have changed: {what}",
                                "if its log was cleaned, or it had no change feed for a time, begin with a new state, "
                                "and keep delta.logRetentionDuration longer than a pipeline stands still",
                                ) from error  # fmt: skip

    @property
    def _named(self) -> str:
        return self.table or f"delta.`{str(self.path).replace('`', '``')}`"

    def _refused(self, what: str, hint: str) -> SourceError:
        return SourceError(f'source "{self.name}": table {self.table or self.path} {what}', hint=hint)

    def _read(self, spark: SparkSession, **more: Any) -> DataFrame:
        given = {name: value for name, value in self.options.items() if name.lower() not in FEED}
        reader = spark.read.format(DELTA).options(**given, **{name: str(value) for name, value in more.items()})
        return reader.load(self.path) if self.table is None else reader.table(self.table)

    def _begun(self, rows: DataFrame) -> DataFrame:
        return self._as_new(self._chosen(rows)) if self.logged else self._chosen(rows)

    def _chosen(self, rows: DataFrame) -> DataFrame:
        return rows.select(*map(named_column, self._names(rows)))

    def _names(self, rows: DataFrame) -> list[str]:
        names = [name for name in rows.columns if not (self.logged and name in _BESIDE)]
        return self._taken(names)

    # -- the change feed

    def _changed(self, spark: SparkSession, detail: Mapping[str, Any], first: int, now: int) -> DataFrame:
        del detail
        rows = self._read(spark, readChangeFeed="true", startingVersion=first, endingVersion=now)
        names, new = self._names(rows), F.col(OP).isin(*_NEW)
        if not self.key:
            return rows.select(*map(named_column, names), weight_of(new).alias(WEIGHT))
        return operations(rows, names, new, F.col(_VERSION) * 2)

    # -- files that were added

    def _added(self, spark: SparkSession, detail: Mapping[str, Any], first: int, now: int) -> DataFrame:
        """The rows of the files that versions have added; a version that takes rows away is refused."""
        self._require_plain(detail)
        place = str(detail["location"]).rstrip("/")
        log = [literal(f"{place}/_delta_log/{version:020}.json") for version in range(first, now + 1)]
        files = spark.read.schema(_LOG).json(log).where("add.dataChange OR remove.dataChange")
        found = files.selectExpr("add.path", "add.deletionVector IS NOT NULL OR remove IS NOT NULL AS gone").collect()
        if any(row.gone for row in found):
            raise self._refused(f"has lost or changed rows between versions {first} and {now}, and is read as one "
                                "that only grows", f'{_ENABLED} = true, and changes="cdc" with readChangeFeed; '
                                'or changes="snapshot"')  # fmt: skip
        schema = self._read(spark, versionAsOf=now).schema
        partitions = [f"{name}=" for name in detail["partitionColumns"]]
        for row in found:
            parts = zip(partitions, row.path.split("/"), strict=False)
            if SCHEME.match(row.path) or not all(part.startswith(name) for name, part in parts):
                raise self._refused("has files elsewhere than in folders of its partitions", _READ_THE_FEED)
        reader = spark.read.format("parquet").schema(schema).option("basePath", place)
        rows = reader.load([literal(f"{place}/{unquote(row.path)}") for row in found])
        return self._chosen(rows if found else spark.createDataFrame([], schema))

    def _require_plain(self, detail: Mapping[str, Any]) -> None:
        """Refuse tables whose files have other columns than the table, or whose log is kept elsewhere."""
        mapped = dict(detail["properties"]).get("delta.columnMapping.mode", "none") != "none"
        managed = any(str(feature).startswith("catalog") for feature in detail.get("tableFeatures") or ())
        if mapped or managed:
            what = "has columns under other names in its files" if mapped else "has its log in a catalog"
            raise self._refused(what, _READ_THE_FEED)


_READ_THE_FEED: Final = f'set {_ENABLED} = true, and read it with changes="cdc" and the option readChangeFeed'


def delta_feed(
    name: str,
    path: str | None,
    table: str | None,
    schema: str | st.StructType | None,
    columns: tuple[str, ...] | None,
    options: Mapping[str, str],
    *,
    changes: str,
    key: tuple[str, ...],
) -> DeltaFeed:
    """The feed of a source whose options are checked: most of those of Spark's streams say nothing to it."""
    given = {option.lower(): option for option in options}
    for option in _SPARK_ALONE:
        if option in given:
            raise SourceError(f'source "{name}": only Spark has the option {given[option]} of Delta tables',
                              hint="leave it out: the state begins with all rows, and knows how far it is; "
                              'or positions="spark"')  # fmt: skip
    logged = any(option in given and options[given[option]].lower() == "true" for option in FEED)
    if logged and changes != "cdc":
        raise SourceError(f'source "{name}": a change feed is no changes="{changes}"',
                          hint='write changes="cdc", or leave readChangeFeed out')  # fmt: skip
    return DeltaFeed(name, path, table, schema, options, columns, key if logged else (), logged)


def is_delta(spark: SparkSession, table: str) -> bool:
    """Whether a table of a catalog is one of Delta Lake."""
    from pyspark.errors import PySparkException

    try:
        return str(spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["format"]).lower() == DELTA
    except PySparkException:  # a table of another kind, or a session without Delta Lake
        return False
