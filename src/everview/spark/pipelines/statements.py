"""SQL files of a declarative project, read by Spark's own parser, and the relations that a query's text names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everview.errors import PipelineError
from everview.spark.dataframes import items
from everview.spark.jvm import own_java
from everview.spark.pipelines.declaring import Declarations, DeclaredFlow, DeclaredOutput, Kind
from everview.spark.pipelines.latest import latest_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Answer = Callable[[str], DataFrame]  # the DataFrame of a query's text


@dataclass(frozen=True, slots=True)
class NamedInText:
    """A relation that a query names: where in the text, and whether as a stream or under a name of the query's."""

    parts: tuple[str, ...]
    stream: bool
    aliased: bool
    start: int
    stop: int


def declare_sql(spark: SparkSession, text: str, path: Path, project: Declarations, answer: Answer) -> None:
    """Note what the statements of a file declare."""
    settings: dict[str, str] = {}
    for plan, written, line in _statements(spark, text, path):
        where = f"{path.name}:{line}"
        kind = str(plan.getClass().getSimpleName())
        match kind:
            case "CreateMaterializedViewAsSelect":
                _declare(project, "materialized view", plan, where, settings, answer)
            case "CreateStreamingTableAsSelect" | "CreateStreamingTable":
                _declare(project, "streaming table", plan, where, settings, answer)
            case "CreateViewCommand" if "LocalTempView" in str(plan.viewType().toString()):
                name = str(plan.name().table())
                project.add(DeclaredOutput(name, "temporary view", where))
                project.flow(_flow(name, name, str(plan.originalText().get()), where, settings, answer))
            case "CreateFlowCommand":
                project.flow(_flow_of(plan, written, where, settings, answer))
            case "SetCommand" if not plan.kv().isEmpty():
                pair = plan.kv().get()
                settings = {**settings, str(pair._1()): str(pair._2().get())}
            case _:
                raise PipelineError(
                    f"{where}: {' '.join(written.split()[:3]).upper()} … is no statement of a project",
                    hint="CREATE MATERIALIZED VIEW, CREATE STREAMING TABLE, CREATE TEMPORARY VIEW, CREATE FLOW or SET",
                )


def _statements(spark: SparkSession, text: str, path: Path) -> Iterator[tuple[Any, str, int]]:
    """The plan, the text and the line of each statement."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    java = own_java(spark, "a project of declarative pipelines")
    try:
        context = java.jvm.org.apache.spark.sql.pipelines.graph.SqlGraphRegistrationContext
        for made in items(context.splitSqlFileIntoQueries(java.session, text, str(path))):
            origin = made.queryOrigin()
            yield made.plan(), str(origin.sqlText().get()), int(origin.line().get())
    except (PySparkException, Py4JError) as error:
        what = str(error).strip().partition("\n")[0]
        raise PipelineError(f"{path}: {what}", hint="that is what Spark's parser says of it") from error


def _declare(
    project: Declarations, kind: Kind, plan: Any, where: str, settings: dict[str, str], answer: Answer
) -> None:
    name, spec = _dotted(plan.name().nameParts()), plan.tableSpec()
    comment, provider = spec.comment(), spec.provider()
    said: dict[str, Any] = {
        "schema": _columns(plan.columns()),
        "format": None if provider.isEmpty() else str(provider.get()),
        "comment": None if comment.isEmpty() else str(comment.get()),
        "partition_by": tuple(str(part.describe()) for part in items(plan.partitioning())),
    }
    project.add(DeclaredOutput(name, kind, where, **said))
    if hasattr(plan, "originalText") and "AsSelect" in str(plan.getClass().getSimpleName()):
        project.flow(_flow(name, name, str(plan.originalText()), where, settings, answer))


def _columns(columns: Any) -> StructType | None:
    import json

    from pyspark.sql.types import StructType

    fields = [
        {"name": str(c.name()), "type": json.loads(str(c.dataType().json())), "nullable": True, "metadata": {}}
        for c in items(columns)
    ]
    return StructType.fromJson({"fields": fields}) if fields else None


def _flow(name: str, target: str, text: str, where: str, settings: dict[str, str], answer: Answer) -> DeclaredFlow:
    return DeclaredFlow(name, target, lambda: answer(text), where, dict(settings))


def _flow_of(plan: Any, written: str, where: str, settings: dict[str, str], answer: Answer) -> DeclaredFlow:
    operation, name = plan.flowOperation(), _dotted(plan.name().nameParts())
    if str(operation.getClass().getSimpleName()) == "AutoCdcInto":
        return _changes_flow(name, operation, where, settings)
    if not operation.byName() or operation.overwrite():
        raise PipelineError(f"{where}: a flow inserts by name", hint=f"CREATE FLOW {name} AS INSERT INTO … BY NAME …")
    target = _dotted(operation.table().multipartIdentifier())
    origin = operation.query().origin()
    text = str(origin.sqlText().get())[int(origin.startIndex().get()) : int(origin.stopIndex().get()) + 1]
    return _flow(name, target, text, where, settings, answer)


def _changes_flow(name: str, operation: Any, where: str, settings: dict[str, str]) -> DeclaredFlow:
    scd, history = (
        str(operation.storedAsScdType()),
        (operation.trackHistoryColumns(), operation.trackHistoryExceptColumns()),
    )
    if scd != "1" or not all(columns.isEmpty() for columns in history):
        hint = "keep the changes in a streaming table, and give each its end by LEAD(at) OVER (…) in a view"
        raise PipelineError(f"{where}: a table of type 2, with the history of each key, is not kept", hint=hint)
    (source,) = (one for one in _relations(operation.source()))
    target = _dotted(operation.targetTable().nameParts())
    deletes, kept, dropped = operation.deleteCondition(), operation.includeColumns(), operation.excludeColumns()
    query = latest_rows(
        ".".join(source.parts),
        [str(key.name()) for key in items(operation.keys())],
        str(operation.sequenceByExpr().sql()),
        None if deletes.isEmpty() else str(deletes.get().sql()),
        None if kept.isEmpty() else [str(column.name()) for column in items(kept.get())],
        None if dropped.isEmpty() else [str(column.name()) for column in items(dropped.get())],
    )
    return DeclaredFlow(name, target, query, where, dict(settings), keeps_latest=True)


# -- the relations of a query


def relations_of(spark: SparkSession, text: str) -> list[NamedInText]:
    """The relations named in a query, without those of its own WITH."""
    java = own_java(spark, "a project of declarative pipelines")
    return list(_relations(java.session.sessionState().sqlParser().parsePlan(text)))


def _relations(root: Any) -> Iterator[NamedInText]:
    waiting: list[tuple[Any, bool]] = [(root, False)]
    defined, read = set[str](), list[NamedInText]()
    while waiting:
        node, aliased = waiting.pop()
        kind = str(node.getClass().getSimpleName())
        if kind == "UnresolvedRelation":
            parts: tuple[str, ...] = tuple(str(part) for part in items(node.multipartIdentifier()))
            start, stop = node.origin().startIndex(), node.origin().stopIndex()
            if not start.isEmpty():
                stream = bool(node.isStreaming())
                read.append(NamedInText(parts, stream, aliased, int(start.get()), int(stop.get())))
        if kind == "UnresolvedWith":
            defined |= {str(pair._1()).lower() for pair in items(node.cteRelations())}
        below = aliased if kind == "NamedStreamingRelation" else kind == "SubqueryAlias"
        waiting += [(child, below) for side in (node.children(), node.innerChildren()) for child in items(side)]
    yield from (one for one in read if len(one.parts) != 1 or one.parts[0].lower() not in defined)


def _dotted(parts: Any) -> str:
    return ".".join(map(str, items(parts)))
