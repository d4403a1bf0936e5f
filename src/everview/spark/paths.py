"""Sources over files: frames made from a path and a format, and what Spark knows of such frames.

A stream of files is read file by file, each once. A batch frame knows the files that were there when it was made; so
one that is read again is made again, or its folders are listed again. Spark turns text that it cannot read as JSON, CSV
or XML into rows of NULLs; a frame made here keeps the text in a column of its own, so that such rows are told apart.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

import pyspark.sql.types as st

from everview.errors import SourceError
from everview.spark.connect import Read, read_by_message
from everview.spark.delta_feed import DELTA, DeltaFeed, delta_feed, is_delta
from everview.spark.folders import is_pattern, literal, local_path
from everview.spark.jvm import is_connect, own_java, own_plan
from everview.spark.kafka import KAFKA, TopicFrame, topic_frame
from everview.spark.spec import SourceSpec
from everview.spark.tables import TableFrame, table_frame
from everview.spark.topic_feed import TopicFeed
from everview.types import Schema, unknown_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("everview.spark")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]*")  # what a URL has as it is
# The names of files that Spark passes over, and of those that it does not although they look alike.
HIDDEN: Final = ("_", ".")
COPYING: Final = "._COPYING_"
SHOWN: Final = ("_metadata", "_common_metadata")
CORRUPT: Final = "_corrupt_record"  # the column of text that could not be read, as Spark calls it
TEXTS: Final = ("json", "csv", "xml")  # formats whose text may be unreadable
OWN_SCHEMA: Final = (DELTA,)  # formats that know their columns, and take no others
CHOOSING: Final = ("pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter")  # options: which files
_NAMED: Final = "columnNameOfCorruptRecord"


@dataclass(frozen=True, slots=True)
class PathFrame:
    """A frame over files, by their path and format; ``schema`` is in Spark's words, and guessed from them if missing.

    ``options`` go to Spark's reader.
    """

    path: str
    format: str
    schema: str | st.StructType | None = None
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    stream: bool = True
    columns: tuple[str, ...] | None = None  # those that are taken; all if None
    beside: ClassVar[tuple[str, ...]] = ()  # columns that are not of the row

    @property
    def corrupt(self) -> str | None:
        """The column that has text which could not be read; None if Spark drops or refuses such text."""
        given = {name.lower(): value for name, value in self.options.items()}
        if self.format.lower() not in TEXTS or given.get("mode", "PERMISSIVE").upper() != "PERMISSIVE":
            return None
        return given.get(_NAMED.lower(), CORRUPT)

    def style(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The style of changes, as the user gives it."""
        return dict(said)

    def read(self, spark: SparkSession) -> DataFrame:
        """The frame, over the files that are there now."""
        reader: Any = (spark.readStream if self.stream else spark.read).format(self.format).options(**self.options)
        where, corrupt = _url(self.path), self.corrupt
        if self.format.lower() in OWN_SCHEMA:
            return reader.load(where)
        if self.schema is None and not self.stream and corrupt is None:
            return reader.load(where)
        schema = self._schema(spark, where)
        if corrupt is not None:
            reader = reader.option(_NAMED, corrupt)
            schema = st.StructType([f for f in schema.fields if f.name != corrupt]).add(corrupt, st.StringType())
        return reader.schema(schema).load(where)

    def listed(self, spark: SparkSession) -> list[str]:
        """The URLs of the files that are there now, as Spark finds them."""
        chosen = is_pattern(self.path) or any(option.lower() in CHOOSING for option in self.options)
        local = None if chosen or is_connect(spark) else local_path(self.path)
        plain = None if local is None else plain_files(local)
        return sorted(replace(self, stream=False).read(spark).inputFiles() if plain is None else plain)

    def of_files(self, spark: SparkSession, files: Sequence[str], schema: st.StructType) -> DataFrame:
        """The rows of some of the files, with the columns of the stream's frame; as Spark reads a micro-batch."""
        reader: Any = spark.read.format(self.format).options(**self.options)
        if self.corrupt is not None:
            reader = reader.option(_NAMED, self.corrupt)
        if not is_pattern(self.path):
            reader = reader.option("basePath", _url(self.path))  # below it, folders like day=3 are columns
        return reader.schema(schema).load([literal(unquote(file)) for file in files])

    def _schema(self, spark: SparkSession, where: str) -> st.StructType:
        if isinstance(self.schema, st.StructType):
            return self.schema
        if self.schema is not None:
            read: Any = st.StructType.fromDDL(self.schema)
            return read
        return spark.read.format(self.format).options(**self.options).load(where).schema


def _url(path: str) -> str:
    """A path with a scheme, so that Spark's default filesystem does not matter."""
    local = local_path(path)
    return path if local is None else f"file://{local.absolute()}"


def plain_files(folder: Path) -> list[str] | None:
    """The URLs of a local folder's files, as Spark's reader would list them, which takes longer than a small epoch.

    None if it is for Spark to say: what is in folders of a folder, and how unusual names are written.
    """
    where = folder.as_posix()
    if _PLAIN.fullmatch(where) is None or ".." in folder.parts or not folder.name or not folder.is_dir():
        return None
    with os.scandir(folder) as entries:
        found = [entry.name if entry.is_file() else "/" for entry in entries]
    if any(_PLAIN.fullmatch(name) is None or name == "/" or name.startswith(SHOWN) for name in found):
        return None
    return [f"file://{where}/{name}" for name in found if not (name.startswith(HIDDEN) or name.endswith(COPYING))]


def modified(spark: SparkSession, url: str) -> int:
    """When a file was written, in milliseconds."""
    local = local_path(url)
    if local is not None:
        return local.stat().st_mtime_ns // 1_000_000
    java = own_java(spark, "following files in an object store")
    path = java.jvm.org.apache.hadoop.fs.Path(java.jvm.java.net.URI(url))
    return int(path.getFileSystem(java.hadoop).getFileStatus(path).getModificationTime())


MadeFrame: TypeAlias = PathFrame | TopicFrame | TableFrame | DeltaFeed | TopicFeed  # what says how a frame is made


class PathOptions(NamedTuple):
    """The arguments of `Pipeline.source` that describe files, topics and tables."""

    path: str | os.PathLike[str] | None
    format: str | None
    stream: bool | None
    columns: str | Sequence[str] | None
    options: Mapping[str, Any] | None
    table: str | None = None


def framed(
    spark: SparkSession,
    name: str,
    frame: DataFrame | None,
    where: PathOptions,
    schema: Schema | str | None,
    style: Mapping[str, Any],
    *,
    own: bool,
) -> tuple[DataFrame, MadeFrame | None]:
    """The frame of a source, which is given, or made from files, from a topic or from a table.

    ``own`` says that the state keeps the positions: what Spark would follow as a stream is then a feed where it can be.
    """
    if where.table is not None:
        table = _table_frame(name, frame, where, schema, style)
        if own and table.stream and is_delta(spark, table.table):
            table = _delta_feed(name, where, None, style)
        return table.read(spark), table
    if frame is None and where.path is None and str(where.format).lower() == KAFKA:
        topic = _topic_frame(name, where, schema, style)
        topic = TopicFeed(topic) if own else topic
        return topic.read(spark), topic
    if (frame is None) == (where.path is None):
        raise SourceError(
            f'source "{name}" has {"neither a frame nor a path" if frame is None else "a frame and a path"}',
            hint='give one of them: p.source("t", frame), or p.source("t", path="in", format="json")',
        )
    if frame is None:
        files = _path_frame(name, where, schema, snapshot=style["changes"] == "snapshot")
        if own and files.stream and files.format.lower() == DELTA:
            files = _delta_feed(name, where, files.schema, style)
        return files.read(spark), files
    if any(each is not None for each in where):
        raise SourceError(
            f'source "{name}": format, stream, columns and options are for a path, and it has a frame',
            hint="say them where the frame is made: spark.read.format(…).options(…)",
        )
    hidden = hidden_text(frame)
    if hidden is not None:
        log.warning(
            "source %s: text that is not %s comes as rows of NULLs from this frame; "
            'p.source(…, path=…, format=…) sets it aside, and the option mode="FAILFAST" refuses it',
            *(name, hidden),
        )
    return frame, None


def _path_frame(name: str, where: PathOptions, schema: Schema | str | None, *, snapshot: bool) -> PathFrame:
    if not where.format:
        raise SourceError(f'source "{name}": the format of its files is missing', hint='write format="json", …')
    return PathFrame(
        os.fspath(where.path or ""),
        where.format,
        schema if schema is None or isinstance(schema, str) else _in_spark(schema),
        {option: str(value) for option, value in (where.options or {}).items()},
        not snapshot if where.stream is None else where.stream,
        _listed(where.columns),
    )


def _topic_frame(name: str, where: PathOptions, schema: Schema | str | None, style: Mapping[str, Any]) -> TopicFrame:
    if where.stream is False or style["changes"] == "snapshot":
        raise SourceError(
            f'source "{name}": a topic is followed, not read at once',
            hint="leave stream out: refresh() reads a topic as far as it goes, and goes on from there the next time",
        )
    key, columns = (_listed(each) for each in (style["key"], where.columns))
    return topic_frame(
        name,
        schema if schema is None or isinstance(schema, str) else _in_spark(schema),
        {option: str(value) for option, value in (where.options or {}).items()},
        key=key or (),
        changes=style["changes"],
        op=style["op"],
        columns=columns,
    )


def _table_frame(
    name: str, frame: DataFrame | None, where: PathOptions, schema: Schema | str | None, style: Mapping[str, Any]
) -> TableFrame:
    if frame is not None or where.path is not None:
        raise SourceError(f'source "{name}" has a table and a {"path" if frame is None else "frame"}',
                          hint='give one of them: p.source("t", table="bank.t")')  # fmt: skip
    if schema is not None:
        raise SourceError(f'source "{name}": a table knows its columns', hint="leave schema out, or name columns=[…]")
    assert where.table is not None
    return table_frame(
        name,
        where.table,
        where.format,
        where.stream,
        _listed(where.columns),
        {option: str(value) for option, value in (where.options or {}).items()},
        changes=style["changes"],
        key=_listed(style["key"]) or (),
    )


def _delta_feed(
    name: str, where: PathOptions, schema: str | st.StructType | None, style: Mapping[str, Any]
) -> DeltaFeed:
    return delta_feed(
        name,
        None if where.path is None else _url(os.fspath(where.path)),
        where.table,
        schema,
        _listed(where.columns),
        {option: str(value) for option, value in (where.options or {}).items()},
        changes=style["changes"],
        key=_listed(style["key"]) or (),
    )


def _listed(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else (names,) if isinstance(names, str) else tuple(names)


def _in_spark(schema: Schema) -> str:
    """The columns of a source as Spark's reader takes them."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.type.sql}" for field in schema)


def rows_of(spec: SourceSpec, files: MadeFrame) -> Schema:
    """The columns of the rows in files or topics: the chosen ones, NOT NULL where the schema of the files says so."""
    declared = _declared(spec, files.schema)
    for name in files.columns or ():
        if name not in spec.schema.names:
            raise unknown_name("column", name, spec.schema.names)
    return Schema(
        replace(field, nullable=field.nullable and field.name not in declared)
        for field in spec.schema.fields
        if field.name not in files.beside and (files.columns is None or field.name in files.columns)
    )


def _declared(spec: SourceSpec, schema: str | st.StructType | None) -> set[str]:
    """The columns that are declared NOT NULL; a frame from files cannot say so."""
    if schema is None:
        return set()
    columns: Any = st.StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if spec.envelope is not None:
        columns = (columns["payload"].dataType if spec.envelope == "payload" else columns)["after"].dataType
    return {field.name for field in columns.fields if not field.nullable}


# -- frames that users have made


def relist(frame: DataFrame) -> None:
    """Make a batch frame list its folders anew: Spark keeps the list from the frame's making."""
    for relation in _files(frame):
        relation.location().refresh()


def hidden_text(frame: DataFrame) -> str | None:
    """The format of a frame's files if text that cannot be read is hidden in rows of NULLs; None if it is not."""
    conf = frame.sparkSession.conf
    for format_, options, columns in read_by_message(frame) if is_connect(frame) else _read_by(frame):
        if format_.lower() not in TEXTS or options.get("mode", "PERMISSIVE").upper() != "PERMISSIVE":
            continue
        kept = options.get(_NAMED.lower()) or conf.get("spark.sql.columnNameOfCorruptRecord", CORRUPT) or CORRUPT
        if kept.lower() not in columns():
            return format_.upper()
    return None


def is_over_files(frame: DataFrame) -> bool:
    """Whether a frame reads files, as far as can be told."""
    return any(True for _ in (read_by_message(frame) if is_connect(frame) else _read_by(frame)))


def _read_by(frame: DataFrame) -> Iterator[Read]:
    """The formats of a frame's files, the options of their readers, and their columns."""
    for leaf in _leaves(frame):
        kind = leaf.getClass().getSimpleName()
        if kind == "StreamingRelation":
            source = leaf.dataSource()
            format_, options = source.className(), source.options()
        elif kind == "LogicalRelation" and _is_files(leaf.relation()):
            format_, options = leaf.relation().fileFormat().toString(), leaf.relation().options()
        else:
            continue
        columns = {str(name).lower() for name in leaf.schema().fieldNames()}
        yield str(format_), _options(options), lambda columns=columns: columns


def _files(frame: DataFrame) -> Iterator[Any]:
    for leaf in _leaves(frame):
        if leaf.getClass().getSimpleName() == "LogicalRelation" and _is_files(leaf.relation()):
            yield leaf.relation()


def _leaves(frame: DataFrame) -> Iterator[Any]:
    plan = own_plan(frame)
    if plan is not None:
        leaves = plan.collectLeaves()
        yield from (leaves.apply(place) for place in range(leaves.size()))


def _is_files(relation: Any) -> bool:
    return str(relation.getClass().getSimpleName()) == "HadoopFsRelation"


def _options(options: Any) -> dict[str, str]:
    """The options of a reader, their names in lower case."""
    names, given = options.keysIterator(), dict[str, str]()
    while names.hasNext():
        name = names.next()
        given[str(name).lower()] = str(options.apply(name))
    return given
