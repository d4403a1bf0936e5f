"""DataFrames as definitions: frames that stand for relations, and what Spark is asked about a DataFrame.

A frame of `standing_frame` has no rows: it has the columns of a source or a view, and an alias that says which. A
DataFrame that is made of such frames is read by one call into Java, which gives Catalyst's analysed plan as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.errors import DataFrameError
from everview.frontends.catalyst import (
    MARK,
    MOST_CONSTANTS,
    FrameQuestion,
    Path,
    ReadFrame,
    UnreadFrame,
    frame_plan,
    parsed,
    questions,
)
from everview.plan.catalog import Readable
from everview.spark.connect import standing_rows, substituted_message
from everview.spark.function_commands import known_function
from everview.spark.jvm import analyzed_plan, is_connect, java_of, own_java, rows_of_constant
from everview.spark.spark_types import struct_of
from everview.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ALL_FIELDS: Final = 2**31 - 1
_NOT_PYTHON: Final = (".java:", ".scala:", "(Native Method)")  # in the places of calls that Python did not make


# -- frames that stand for relations


def standing_frame(spark: SparkSession, name: str, schema: Schema) -> DataFrame:
    """A DataFrame with the columns of a relation, which stands for the relation in definitions.

    It has no rows: an action on it, or on what is made of it, raises.
    """
    fields = struct_of(schema)
    if is_connect(spark):
        made = standing_rows(spark, name, fields, _no_rows)
    else:
        rows = spark.sparkContext.parallelize([name], 1).map(_no_rows)
        made = spark.createDataFrame(rows, fields, verifySchema=False)
    return made.alias(f"{MARK}{name}").alias(name)


def _no_rows(name: str) -> Any:
    raise RuntimeError(
        f'p.frame("{name}") stands for rows in definitions and has none: '
        f'define a view of it by p.define, and read p.view; or read p.table("{name}")'
    )


# -- reading a DataFrame


def read_frame(frame: DataFrame, catalog: Readable) -> ReadFrame:
    """The plan that a DataFrame means; an error names the line of the user's code, where Spark knows it."""
    analyzed = analyzed_plan(frame)
    spark = frame.sparkSession
    if str(spark.conf.get("spark.sql.ansi.enabled")).lower() != "true":
        hint = 'spark.conf.set("spark.sql.ansi.enabled", "true"), and make the DataFrame again'
        raise DataFrameError("a DataFrame made without ANSI mode computes other numbers than a view", hint=hint)
    tree = parsed(analyzed.toJSON())
    asked = questions(tree, tries="try_" in _shown(analyzed))
    answers = {question.key: _answer(question, analyzed, spark) for question in asked}
    try:
        return frame_plan(tree, catalog, answers, str(spark.conf.get("spark.sql.session.timeZone")))
    except UnreadFrame as error:
        site = call_site(analyzed, error.path)
        if site:
            error.tell(site)
        raise


def _shown(analyzed: Any) -> str:
    """The text of a plan, in full where this version of Spark gives it so."""
    from py4j.protocol import Py4JError

    for more in ((), (False,)):
        try:
            return str(analyzed.treeString(True, False, _ALL_FIELDS, False, *more))
        except Py4JError:
            continue
    return "try_"  # not known, so Spark is asked about every expression


def _answer(question: FrameQuestion, analyzed: Any, spark: SparkSession) -> Any:
    java = java_node(analyzed, question.node.path)
    match question.what:
        case "rows":
            return _rows(spark, java)
        case "mode":
            said = java.evalContext().evalMode() if "evalContext" in question.node.fields else java.evalMode()
            return str(said.toString())
        case "projections":
            return [[str(value.toJSON()) for value in items(row)] for row in items(java.projections())]
        case "pivots":
            return [None if value is None else _text(value) for value in items(java.pivotColumnValues())]
        case "escape":
            return str(java.escapeChar())
        case "options":
            return not java.options().isEmpty()
        case "hex":
            return bytes(java.value()).hex()
        case "function":
            return known_function(question.node, java, spark)


def _text(value: Any) -> str:
    return str(value.toString()) if hasattr(value, "toString") else str(value).lower() if value is True else str(value)


def _rows(spark: SparkSession, leaf: Any) -> list[tuple[Any, ...]]:
    """The rows of a relation that is part of a definition, and one more than there may be."""
    if is_connect(spark):
        table = rows_of_constant(spark, leaf, MOST_CONSTANTS)
        return [()] * (MOST_CONSTANTS + 1) if table is None else _tuples(table)
    frame = frame_of_plan(spark, leaf).limit(MOST_CONSTANTS + 1)
    from pyspark.errors import PySparkException

    try:
        table = frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).toArrow()
    except PySparkException as error:
        hint = "make it a source: p.source(name, frame), and write p.frame(name) in its place"
        raise DataFrameError(f"the rows of a constant cannot be read: {error}", hint=hint) from error
    return _tuples(table)


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def items(sequence: Any) -> Iterator[Any]:
    """The items of a sequence of Scala's."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def java_node(root: Any, path: Path) -> Any:
    """The node of a plan in Java at a path."""
    node = root
    for step in path:
        if isinstance(step, int):
            node = node.children().apply(step)
        elif isinstance(step, str):
            node = _without_option(getattr(node, step)())
        else:
            node = getattr(node, step[0])().apply(step[1])
    return node


def _without_option(value: Any) -> Any:
    return value.get() if str(value.getClass().getName()).startswith("scala.Some") else value


def call_site(analyzed: Any, path: Path) -> str:
    """The line of the user's code that made a node, or one around it; empty where Spark does not know."""
    for length in range(len(path), -1, -1):
        context = java_node(analyzed, path[:length]).origin().context()
        if context is not None and str(context.getClass().getName()).endswith("DataFrameQueryContext"):
            place = str(context.callSite())
            if not any(java in place for java in _NOT_PYTHON):
                return f"in {context.fragment()}, called from {place}"
    return ""


# -- what a DataFrame is made of

_CHOOSING: Final = frozenset(("Sample", "GlobalLimit", "LocalLimit", "Offset", "Deduplicate"))  # among rows that tie


@dataclass(frozen=True, slots=True)
class StandingIn:
    """The parts of a DataFrame: the relations behind its frames, and whether its answer is deterministic."""

    relations: tuple[str, ...]
    repeatable: bool


def standing_in(frame: DataFrame) -> StandingIn:
    """The relations that a DataFrame reads, whether or not it can be read into a plan."""
    analyzed = analyzed_plan(frame)
    nodes = [*parsed(analyzed.toJSON()).walk()]
    names = (str(node.fields["identifier"]["name"]) for node in nodes if node.kind == "SubqueryAlias")
    read = tuple(dict.fromkeys(name.removeprefix(MARK) for name in names if name.startswith(MARK)))
    return StandingIn(read, bool(analyzed.deterministic()) and _CHOOSING.isdisjoint(node.kind for node in nodes))


# -- the same DataFrame over other rows


def substituted(frame: DataFrame, relation: Callable[[str], DataFrame]) -> DataFrame:
    """The DataFrame with real rows in place of standing frames, for Spark to compute."""
    if is_connect(frame):
        return substituted_message(frame, relation)
    return with_rows(frame, lambda node: _standing_for(node, relation))


def _standing_for(node: Any, relation: Callable[[str], DataFrame]) -> DataFrame | None:
    if str(node.getClass().getSimpleName()) != "SubqueryAlias":
        return None
    name = str(node.identifier().name())
    return relation(name.removeprefix(MARK)) if name.startswith(MARK) else None


def with_rows(frame: DataFrame, rows: Callable[[Any], DataFrame | None]) -> DataFrame:
    """The DataFrame with other rows in place of those nodes of its analysed plan for which ``rows`` gives some."""
    from pyspark.java_gateway import ensure_callback_server_started

    spark = frame.sparkSession
    java = own_java(spark, "putting other rows in a DataFrame")
    ensure_callback_server_started(java.gateway)
    rule = _Substitution(java.jvm, rows)
    return frame_of_plan(spark, analyzed_plan(frame).transformUpWithSubqueries(rule))


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """The DataFrame of a plan in Java."""
    from pyspark.sql import DataFrame

    java = java_of(spark)
    return DataFrame(java.jvm.org.apache.spark.sql.classic.Dataset.ofRows(java.session, plan), spark)


class _Substitution:
    """A rule for Catalyst: nodes become other rows, under the names and ids that the nodes' columns have."""

    def __init__(self, jvm: Any, rows: Callable[[Any], DataFrame | None]) -> None:
        self._jvm, self._rows = jvm, rows

    def applyOrElse(self, node: Any, default: Any) -> Any:
        frame = self._rows(node)
        if frame is None:
            return node
        rows = analyzed_plan(frame)
        pairs = zip(items(rows.output()), items(node.output()), strict=True)
        jvm = self._jvm
        none, catalyst = jvm.scala.Option.empty(), jvm.org.apache.spark.sql.catalyst
        empty = self._sequence([])
        named = [
            catalyst.expressions.Alias(own, wanted.name(), wanted.exprId(), empty, none, empty) for own, wanted in pairs
        ]
        return catalyst.plans.logical.Project(self._sequence(named), rows)

    def isDefinedAt(self, node: Any) -> bool:
        return True

    def apply(self, node: Any) -> Any:
        return self.applyOrElse(node, None)

    def _sequence(self, items: list[Any]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(made)

    class Java:
        """The interface in Java that Py4J makes of this class."""

        implements = ["scala.PartialFunction"]  # noqa: RUF012
