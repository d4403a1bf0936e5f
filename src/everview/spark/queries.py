"""Views of a pipeline in SQL: bound to its sources and to each other, and computed again by plain Spark SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.errors import PipelineError
from everview.frontends.sql import CreateView, Tables, UserFunction, bind
from everview.frontends.sql.decorators import known
from everview.frontends.sql.spark import spark_query
from everview.optimize import optimize
from everview.plan.expressions import USER, AggregateCall, Exists, Expression, InQuery, Scalar, UserCall
from everview.plan.expressions import walk as parts
from everview.plan.lower import lower
from everview.plan.node import Plan, walk
from everview.plan.nodes import Asof, Recursive, Scan
from everview.types import Schema
from everview.verify import SHOWN, Compared, Rest

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Query:
    """A view as it was written: its plan, what Spark makes of it, and, if it is kept, its stream."""

    plan: Plan
    text: str
    stream: Stream | None


class Sources(Tables):
    """What SQL is told of a pipeline: its relations, and the functions that are registered."""

    def function(self, name: str) -> UserFunction | None:
        return known(name)


class Queries:
    """The views that were defined in SQL, in order."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._views: dict[str, Query] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._views

    def define(self, text: str, dialect: str) -> None:
        """Add the views of a text: a materialized one is a view of the pipeline, a plain one a name for its query."""
        streams = {name: self._circuit.stream(at) for name, at in self._circuit.sources.items()}
        relations: dict[str, Schema | Plan] = {name: stream.schema for name, stream in streams.items()}
        for name, view in self._views.items():
            relations[name] = view.plan if view.stream is None else view.plan.schema
            if view.stream is not None:
                streams[name] = view.stream
        for statement in bind(text, Sources(relations), dialect):
            if not isinstance(statement, CreateView):
                raise PipelineError(
                    f"a pipeline takes views, not {statement.text.split()[0].upper()}",
                    hint="write CREATE MATERIALIZED VIEW name AS SELECT …; sources come from frames",
                )
            self._add(statement, streams)

    def _add(self, view: CreateView, streams: dict[str, Stream]) -> None:
        if view.name in self._circuit.sinks or view.name in self._views or view.name in self._circuit.sources:
            raise PipelineError(f"there is a view or source {view.name} already", hint="give it another name")
        stream = None
        if view.materialized:
            stream = streams[view.name] = lower(optimize(view.plan), streams, self._circuit)
            stream.sink(view.name)
        self._views[view.name] = Query(view.plan, spark_query(view), stream)

    # -- by plain Spark SQL

    def asks_spark(self, name: str) -> bool:
        """Whether Spark can say what a view is: no recursion over sets, no as-of join, no function of the user."""
        view = self._views.get(name)
        return view is not None and not any(_is_ours(node) for node in self._whole(view.plan))

    def _whole(self, plan: Plan) -> Iterator[Plan]:
        """The nodes of a plan, and of the views that it reads."""
        for node in walk(plan):
            yield node
            for part in _parts(node):
                if isinstance(part, Exists | InQuery | Scalar):
                    yield from self._whole(part.plan)
            if isinstance(node, Scan) and node.relation in self._views:
                yield from self._whole(self._views[node.relation].plan)

    def recomputed(self, spark: SparkSession, sources: Mapping[str, DataFrame], view: str) -> DataFrame:
        """What Spark computes for a view from what the sources hold."""
        frames: dict[str, Any] = {f"source{number}": frame for number, frame in enumerate(sources.values())}
        given = [f"{_quoted(name)} AS (SELECT * FROM {{{at}}})" for name, at in zip(sources, frames, strict=True)]
        for name, query in self._views.items():
            if name == view:
                break
            if self.asks_spark(name):  # what Spark cannot say, it cannot read either, and this view does not
                given.append(f"{_quoted(name)} AS ({_escaped(query.text)})")
        return spark.sql(f"WITH {', '.join(given)} SELECT * FROM ({_escaped(self._views[view].text)})", **frames)


def _is_ours(node: Plan) -> bool:
    return isinstance(node, Recursive | Asof) or any(_is_user(part) for part in _parts(node))


def _parts(node: Plan) -> Iterator[Expression]:
    return (part for whole in node.expressions for part in parts(whole))


def _is_user(part: Expression) -> bool:
    return isinstance(part, UserCall) or (isinstance(part, AggregateCall) and part.function.startswith(USER))


def _quoted(name: str) -> str:
    return _escaped("`" + name.replace("`", "``") + "`")


def _escaped(text: str) -> str:
    """Text in which Spark is to look for no frames."""
    return text.replace("{", "{{").replace("}", "}}")


def compared(view: str, held: DataFrame, wanted: DataFrame) -> Compared:
    """A view beside what Spark says it should hold; floating-point numbers agree to six digits."""
    same = wanted.select(*(_as_held(wanted, held, at) for at in range(len(held.columns))))
    mine = held.select(*(_as_held(held, held, at) for at in range(len(held.columns))))
    missing, extra = same.exceptAll(mine), mine.exceptAll(same)
    return Compared(view, mine.count(), same.count(), _rest(missing), _rest(extra))


def _as_held(frame: DataFrame, held: DataFrame, at: int) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    of, name = held.schema.fields[at].dataType, held.columns[at]
    column = frame[frame.columns[at]].cast(of)
    if isinstance(of, t.DoubleType | t.FloatType):
        return f.format_string("%.6g", column).alias(name)
    return column.alias(name)


def _rest(frame: DataFrame) -> Rest:
    count = frame.count()
    return Rest(count, tuple((tuple(row), 1) for row in frame.take(SHOWN)) if count else ())
