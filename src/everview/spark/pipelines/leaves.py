"""Leaves of a project's DataFrames: what ``spark.read`` and ``spark.readStream`` give becomes sources of a pipeline.

A leaf of Catalyst's analysed plan that reads files or a table is replaced by a frame that stands for a source. Two
queries that read the same files in the same way share one source.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from everview.errors import PipelineError
from everview.spark.dataframes import frame_of_plan, items
from everview.spark.jvm import analyzed_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_STREAMS: Final = ("parquet", "json", "csv", "orc", "text", "avro", "xml", "binaryfile")
BATCH: Final = ("LogicalRelation", "DataSourceV2Relation", "HiveTableRelation")
STREAMS: Final = ("StreamingRelation", "StreamingRelationV2", "StreamingDataSourceV2Relation")
_ABOUT_STREAMS: Final = ("maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "cleansource")

Listing = Mapping[str, tuple[int, int]]  # the size and the time of each file


@dataclass(frozen=True)
class LeafRelation:
    """Files or a table that a project reads.

    Of a stream of files, each file is read once; what else is read is the rows that are there.
    """

    name: str  # of the source
    frame: DataFrame  # the rows that are there now; of a stream without files, the stream
    stream: bool
    listing: Listing | None = None  # the files; None if it is no files
    said: str = ""  # what it is, for messages
    schema: str = field(default="", repr=False)  # as JSON

    @property
    def followed(self) -> bool:
        """Whether Spark follows the stream: it has no files that could be listed."""
        return self.stream and self.listing is None

    def of_files(self, files: set[str]) -> DataFrame:
        """The rows of some of the files."""
        from pyspark.sql import functions as f

        assert self.listing is not None, "a table has no files"
        if files == set(self.listing):
            return self.frame
        # Hadoop and Spark write the root of local files with one slash or with three.
        names = [*files, *(re.sub("^file:///", "file:/", name) for name in files)]
        return self.frame.filter(f.col("_metadata.file_path").isin(names))


def leaf_relation(spark: SparkSession, node: Any) -> LeafRelation | None:
    """The files or the table read by a leaf of an analysed plan; None for all other nodes."""
    kind = str(node.getClass().getSimpleName())
    if kind not in (*BATCH, *STREAMS):
        return None
    if len(list(items(node.output()))) != len(node.schema().fieldNames()) or _has_metadata(node):
        hint = "keep what it says in a column of the files"
        raise PipelineError("the column _metadata of files is not kept in a view", hint=hint)
    if kind == "LogicalRelation" and str(node.relation().getClass().getSimpleName()) == "HadoopFsRelation":
        return _files(spark, node, None if node.catalogTable().isEmpty() else node.catalogTable().get())
    if kind == "StreamingRelation" and str(node.dataSource().className()).lower() in FILE_STREAMS:
        return _streamed_files(spark, node)
    said = _said(kind, node)
    leaf = frame_of_plan(spark, node)
    return LeafRelation(_named(said, said, str(node.schema().json())), leaf, kind in STREAMS, said=said)


def _has_metadata(node: Any) -> bool:
    return any(str(attribute.name()) == "_metadata" for attribute in items(node.output()))


def _said(kind: str, node: Any) -> str:
    if kind == "LogicalRelation":
        table = node.catalogTable()
        return str(node.relation().toString()) if table.isEmpty() else str(table.get().identifier().unquotedString())
    if kind == "HiveTableRelation":
        return str(node.tableMeta().identifier().unquotedString())
    if kind == "StreamingRelation":
        return f"{node.sourceName()} {sorted(_options(node.dataSource().options()).items())}"
    if kind == "StreamingRelationV2":
        options = node.extraOptions().asCaseSensitiveMap()
        return f"{node.sourceName()} {sorted((str(name), str(options[name])) for name in options)}"
    return str(node.name())


def _files(spark: SparkSession, node: Any, table: Any) -> LeafRelation:
    relation = node.relation()
    location = relation.location()
    said = str(relation.fileFormat().toString()) if table is None else str(table.identifier().unquotedString())
    roots = [str(path.toString()) for path in items(location.rootPaths())]
    options = {name: value for name, value in _options(relation.options()).items() if name.lower() != "path"}
    schema = str(node.schema().json())
    name = _named(roots[0] if roots else said, said, roots, sorted(options.items()), schema)
    location.refresh()
    where = f"{said} at {', '.join(roots)}"
    return LeafRelation(name, frame_of_plan(spark, node), False, _listed(location), where, schema)


def _streamed_files(spark: SparkSession, node: Any) -> LeafRelation:
    source = node.dataSource()
    form, options = str(source.className()), _options(source.options())
    kept = {name: value for name, value in options.items() if name.lower() not in _ABOUT_STREAMS}
    schema = str(node.schema().json())
    from pyspark.sql.types import StructType

    frame = spark.read.format(form).options(**kept).schema(StructType.fromJson(json.loads(schema))).load()
    (leaf,) = items(analyzed_plan(frame).collectLeaves())
    name = _named(kept.get("path", form), "stream", form, sorted(kept.items()), schema)
    where = f"a stream of {form} at {kept.get('path')}"
    return LeafRelation(name, frame, True, _listed(leaf.relation().location()), where, schema)


def _listed(location: Any) -> dict[str, tuple[int, int]]:
    statuses = items(location.allFiles())
    return {
        str(one.getPath().toUri().toString()): (int(one.getLen()), int(one.getModificationTime())) for one in statuses
    }


def _options(options: Any) -> dict[str, str]:
    made: dict[str, str] = {}
    names = options.keysIterator()
    while names.hasNext():
        name = names.next()
        made[str(name)] = str(options.apply(name))
    return made


def _named(shown: str, *identity: Any) -> str:
    """A name for a source: a word for people, and a digest, so that no two sources share it."""
    word = re.sub(r"\W+", "_", shown.rstrip("/*").rpartition("/")[2]).strip("_").lower() or "rows"
    return f"{word[:40]}_{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]}"
