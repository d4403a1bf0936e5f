"""Resolving a project: its queries become views of a pipeline, each after those that it reads.

A query is asked for its DataFrame while the names of datasets mean frames that stand for them. If it reads a dataset
that is not defined yet, that one is defined first, and the query is asked again; a dataset that waits for itself is a
cycle, which is named.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from everview.errors import EverviewError, PipelineError
from everview.frontends.catalyst import MARK, CatalystNode, parsed
from everview.frontends.catalyst.questions import is_marked
from everview.spark.dataframes import items, java_node, with_rows
from everview.spark.failures import of_spark
from everview.spark.jvm import analyzed_plan
from everview.spark.pipeline import Pipeline
from everview.spark.pipelines.declaring import Declarations, DeclaredFlow, DeclaredOutput
from everview.spark.pipelines.leaves import BATCH, STREAMS, LeafRelation, leaf_relation
from everview.spark.pipelines.statements import relations_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM: Final = "everview_stream_"  # before the name of a dataset, for the temporary view that is read as a stream
# Nodes of streaming queries whose rows depend on what comes later.
_REVISES: Final = {
    *("Aggregate", "Window", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Pivot", "Except", "Intersect", "Tail"),
    *("EventTimeWatermark", "DeduplicateWithinWatermark"),
}


class NotYet(BaseException):
    """Raised through a query by a read of a dataset without a definition yet; no query should catch it."""

    def __init__(self, name: str) -> None:
        self.name = name


class ProjectResolver:
    """Defines the datasets of a project as views, and knows what each of them reads."""

    def __init__(
        self, pipeline: Pipeline, project: Declarations, home: str, names: tuple[str | None, str | None]
    ) -> None:
        """``home`` is a folder that exists; ``names`` are the project's catalog and database."""
        self.pipeline, self.project = pipeline, project
        self.spark: SparkSession = pipeline.spark
        self._home, self._catalog, self._database = home, *names
        self.leaves: dict[str, LeafRelation] = {}
        self.reads: dict[str, set[str]] = {}  # of each dataset, the datasets and sources that it reads
        self._frames: dict[str, DataFrame] = {}  # of the temporary views
        self._done: list[str] = []
        self._current = ""

    # -- in order

    def resolve(self) -> None:
        """Define every dataset; nothing of it is left in the session."""
        self.project.require_targets()
        try:
            with _reading(self):
                for name in self.project.outputs:
                    self._with_inputs(name)
        finally:
            for name in self._done:
                self.spark.catalog.dropTempView(bare_name(name))
                self.spark.catalog.dropTempView(f"{STREAM}{bare_name(name)}")

    def _with_inputs(self, name: str) -> None:
        waiting = [name]
        while waiting:
            if waiting[-1] in self._done:
                waiting.pop()
                continue
            try:
                self._define(self.project.outputs[waiting[-1]])
            except NotYet as missing:
                if missing.name in waiting:
                    cycle = " reads ".join([*waiting[waiting.index(missing.name) :], missing.name])
                    where = self.project.outputs[missing.name].where
                    hint = "let one of them read what the others are made of"
                    raise PipelineError(f"{where}: datasets read each other: {cycle}", hint=hint) from None
                waiting.append(missing.name)

    def upstream(self, name: str) -> set[str]:
        """All datasets and sources that a dataset reads, also by way of others, and itself."""
        upstream, waiting = {name}, [name]
        while waiting:
            new = self.reads.get(waiting.pop(), set[str]()) - upstream
            upstream |= new
            waiting += new
        return upstream

    # -- one dataset

    def _define(self, output: DeclaredOutput) -> None:
        self._current = output.name
        self.reads[output.name] = set()
        flows = self.project.flows_of(output.name)
        frames = [self._asked(flow, output) for flow in flows]
        if output.kind == "sink":
            for flow, frame in zip(flows, frames, strict=True):
                with _said(flow.where):
                    self.pipeline.define(flow.name, self._over_sources(frame))
                self.reads[flow.name] = set(self.reads[output.name])
        else:
            with _said(output.where):
                whole = frames[0]
                for frame in frames[1:]:
                    whole = whole.unionByName(frame)
                self._name(output, self._over_sources(whole), streaming=whole.isStreaming)
        self._done.append(output.name)

    def _name(self, output: DeclaredOutput, frame: DataFrame, *, streaming: bool) -> None:
        """Let a name mean a dataset: its own query, or a frame that stands for the view."""
        name = bare_name(output.name)
        if output.kind == "temporary view":
            self._frames[output.name] = frame
            frame.createOrReplaceTempView(name)
            if streaming:
                frame.createOrReplaceTempView(f"{STREAM}{name}")
            return
        self.pipeline.define(name, frame)
        self.pipeline.frame(name).createOrReplaceTempView(name)
        if output.kind == "streaming table":
            self._stream(name).createOrReplaceTempView(f"{STREAM}{name}")

    def _asked(self, flow: DeclaredFlow, output: DeclaredOutput) -> DataFrame:
        """The DataFrame of a flow, of the sort that its dataset takes."""
        from pyspark.sql import DataFrame

        with _said(flow.where), self._set(flow):
            frame = flow.query()
            if not isinstance(frame, DataFrame):  # pyright: ignore[reportUnnecessaryIsInstance]
                hint = "return a DataFrame, such as spark.read.table(…)"
                raise PipelineError(f"the query {flow.name} returns {type(frame).__name__}", hint=hint)
            if output.schema is not None:
                frame = frame.to(_struct(output.schema))
            self._require_sort(flow, output, frame)
            return frame

    def _require_sort(self, flow: DeclaredFlow, output: DeclaredOutput, frame: DataFrame) -> None:
        if flow.keeps_latest or output.kind == "temporary view":
            return
        if output.kind == "materialized view":
            if frame.isStreaming:
                hint = "read by spark.read, or declare it by @table"
                raise PipelineError(f"materialized view {output.name} is asked from a stream", hint=hint)
            return
        if not frame.isStreaming:
            hint = "read by spark.readStream, or declare it by @materialized_view"
            raise PipelineError(f"flow {flow.name} into {output.kind} {output.name} reads no stream", hint=hint)
        _require_added(flow.name, analyzed_plan(frame))

    @contextmanager
    def _set(self, flow: DeclaredFlow) -> Generator[None]:
        """A block with the settings of a flow."""
        before = {name: self.spark.conf.get(name, None) for name in flow.settings}
        try:
            for name, value in flow.settings.items():
                self.spark.conf.set(name, value)
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    self.spark.conf.unset(name)
                else:
                    self.spark.conf.set(name, value)

    def _over_sources(self, frame: DataFrame) -> DataFrame:
        """The DataFrame over sources of the pipeline, in place of the files and tables that it reads."""

        def rows(node: Any) -> DataFrame | None:
            if str(node.getClass().getSimpleName()) in STREAMS and self._home in str(node.toString()):
                return None  # a stream of a dataset
            leaf = leaf_relation(self.spark, node)
            return None if leaf is None else self._source(leaf)

        return with_rows(frame, rows)

    def _source(self, leaf: LeafRelation) -> DataFrame:
        self.reads[self._current].add(leaf.name)
        if leaf.name not in self.leaves:
            bind_leaf(self.pipeline, leaf)
            self.leaves[leaf.name] = leaf
        return self.pipeline.frame(leaf.name)

    # -- what names mean in queries

    def known(self, name: str) -> str | None:
        """The dataset meant by a name in a query; None for tables of the catalog. Raises without a definition."""
        parts = [part.strip("`") for part in name.split(".")]
        for known in self.project.outputs:
            declared = known.split(".")
            if self._full(parts) == self._full(declared) and self.project.outputs[known].kind != "sink":
                self.reads[self._current].add(known)
                if known not in self._done:
                    raise NotYet(known)
                return known
        return None

    def _full(self, parts: list[str]) -> tuple[str | None, ...]:
        whole = [*[self._catalog, self._database][: max(3 - len(parts), 0)], *parts]
        return tuple(part if part is None else part.lower() for part in whole)

    def batch(self, name: str) -> DataFrame:
        """A frame that stands for the rows of a dataset."""
        if name in self._frames:
            return self._frames[name]
        return self.pipeline.frame(bare_name(name))

    def stream(self, name: str) -> DataFrame:
        """A frame that stands for the rows that are added to a dataset."""
        output = self.project.outputs[name]
        if output.kind == "temporary view" and self._frames[name].isStreaming:
            return self._frames[name]
        self.require_stream(name)
        return self._stream(bare_name(name))

    def require_stream(self, name: str) -> None:
        """Refuse to stream a dataset whose rows change."""
        output = self.project.outputs[name]
        if output.kind == "temporary view" and self._frames[name].isStreaming:
            return
        latest = any(flow.keeps_latest for flow in self.project.flows_of(name))
        if output.kind != "streaming table" or latest:
            hint = f'read it as it is: spark.read.table("{name}"), in a materialized view'
            what = "a table of the latest rows" if latest else f"a {output.kind}"
            raise PipelineError(f"{name} is {what}, whose rows change: it is no stream", hint=hint)

    def _stream(self, name: str) -> DataFrame:
        """A streaming frame with the columns of a view; it reads an empty folder, should anyone run it."""
        schema = self.pipeline.frame(name).schema
        frame = self.spark.readStream.format("parquet").schema(schema).load(self._home)
        return frame.alias(f"{MARK}{name}").alias(name)

    def sql(self, text: str) -> str:
        """A query's text, with datasets that it reads as streams, or by longer names, under names of the session."""
        for one in sorted(relations_of(self.spark, text), key=lambda one: -one.start):
            name = self.known(".".join(one.parts))
            if name is None or not (one.stream or len(one.parts) > 1):
                continue
            if one.stream:
                self.require_stream(name)
            shown = f"STREAM `{STREAM}{bare_name(name)}`" if one.stream else f"`{bare_name(name)}`"
            alias = "" if one.aliased else f" AS `{one.parts[-1]}`"
            text = f"{text[: one.start]}{shown}{alias}{text[one.stop + 1 :]}"
        return text


def bind_leaf(pipeline: Pipeline, leaf: LeafRelation) -> None:
    """Make a leaf a source: a stream that Spark follows, or rows that are given with weights at every refresh."""
    from pyspark.sql import functions as f

    if leaf.followed:
        pipeline.source(leaf.name, leaf.frame)
        return
    nothing = pipeline.spark.createDataFrame([], leaf.frame.schema).withColumn("_weight", f.lit(1))
    pipeline.source(leaf.name, nothing, changes="weights")


def _struct(schema: Any) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromDDL(schema) if isinstance(schema, str) else schema


def bare_name(name: str) -> str:
    """The last part of a name, which the view has."""
    return name.rpartition(".")[2].strip("`")


def _require_added(flow: str, plan: Any) -> None:
    """Refuse a streaming query whose rows may be revised by what comes later."""
    for node in parsed(plan.toJSON()).walk():
        if node.kind in _REVISES or _is_outer(node) or _chooses(node, plan):
            hint = "declare it by @materialized_view, over spark.read.table(…)"
            raise PipelineError(
                f"flow {flow}: {node.kind} may revise rows, and a streaming table only adds them", hint=hint
            )
    if _reads_batch(plan):
        hint = "declare it by @materialized_view, which follows both"
        what = "joins a stream with rows that change, and a streaming table keeps what these were"
        raise PipelineError(f"flow {flow} {what}", hint=hint)


def _is_outer(node: CatalystNode) -> bool:
    return node.kind == "Join" and node.object_name("joinType") not in ("Inner", "Cross")


def _chooses(node: CatalystNode, plan: Any) -> bool:
    """Whether duplicates are told by some of the columns, so that one of several rows is chosen."""
    if node.kind != "Deduplicate":
        return False
    return len(node.all("keys")) < len(list(items(java_node(plan, node.path).output())))


def _reads_batch(plan: Any) -> bool:
    """Whether a plan reads a dataset, files or a table as they are, and not as a stream."""
    for node in parsed(plan.toJSON()).walk():
        if node.kind in BATCH:
            return True
        if is_marked(node) and node.children[0].kind not in STREAMS:
            return True
    return False


@contextmanager
def _said(where: str) -> Generator[None]:
    """Add the place of a declaration to the message of what is raised inside."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except EverviewError as error:
        raise _prefixed(error, where) from None
    except (PySparkException, Py4JError) as error:
        raise _prefixed(of_spark(error), where) from error
    except Exception as error:
        what = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        raise PipelineError(
            f"{where}: {what}", hint="the query is a Python function, and this is what it raised"
        ) from error


def _prefixed(error: EverviewError, where: str) -> EverviewError:
    if error.message.startswith(where):
        return error
    return type(error)(f"{where}: {error.message}", hint=error.hint)


# -- what Spark's own methods do meanwhile

_RESOLVER: Final[ContextVar[ProjectResolver | None]] = ContextVar("resolver", default=None)


@contextmanager
def _reading(resolver: ProjectResolver) -> Generator[None]:
    """A block in which the methods of Spark that read tables find the datasets of a project."""
    token = _RESOLVER.set(resolver)
    patched = list(_patches())
    for owner, method, _, ours in patched:
        setattr(owner, method, ours)
    try:
        yield
    finally:
        for owner, method, before, _ in patched:
            setattr(owner, method, before)
        _RESOLVER.reset(token)


def _patches() -> Iterator[tuple[Any, str, Any, Any]]:
    """Classes and methods, each with its own function and the replacement that also finds datasets."""
    from pyspark.sql import DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    for owner, method, found in (
        (SparkSession, "table", _batch_table),
        (DataFrameReader, "table", _batch_table),
        (DataStreamReader, "table", _stream_table),
        (SparkSession, "sql", _query),
    ):
        before = owner.__dict__[method]
        yield owner, method, before, _instead(before, found)


def _instead(before: Any, replacement: Callable[..., Any]) -> Any:
    @wraps(before)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        resolver = _RESOLVER.get()
        if resolver is None:
            return before(self, *args, **named)
        return replacement(resolver, before, self, *args, **named)

    return method


def _batch_table(resolver: ProjectResolver, before: Any, owner: Any, *args: Any, **named: Any) -> Any:
    name = resolver.known(str(args[0] if args else named.get("tableName")))
    return before(owner, *args, **named) if name is None else resolver.batch(name)


def _stream_table(resolver: ProjectResolver, before: Any, owner: Any, *args: Any, **named: Any) -> Any:
    name = resolver.known(str(args[0] if args else named.get("tableName")))
    return before(owner, *args, **named) if name is None else resolver.stream(name)


def _query(resolver: ProjectResolver, before: Any, owner: Any, sqlQuery: str, *args: Any, **named: Any) -> Any:
    frames = {name for name in named if name != "args"}
    return before(owner, sqlQuery if frames else resolver.sql(sqlQuery), *args, **named)
