"""Declarations: the functions of a declarative project, which say what datasets there are and not when to compute them.

The names and arguments are those of ``pyspark.pipelines``. A declaration only notes itself in the project that is being
loaded; queries are asked for their DataFrames later, when all datasets are known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from everview.errors import PipelineError
from everview.spark.pipelines.latest import latest_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    QueryFunction: TypeAlias = Callable[[], DataFrame]
    Columns: TypeAlias = str | Column

Kind = Literal["materialized view", "streaming table", "temporary view", "sink"]


@dataclass(frozen=True, slots=True)
class DeclaredOutput:
    """A dataset of a project: a materialized view, a streaming table, a temporary view or a sink."""

    name: str
    kind: Kind
    where: str  # the file and line that declare it
    schema: StructType | str | None = None
    format: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict[str, str])  # of a sink's writer

    @property
    def stored(self) -> bool:
        """Whether the dataset is a table that others can read."""
        return self.kind in ("materialized view", "streaming table")


@dataclass(frozen=True, slots=True)
class DeclaredFlow:
    """A query whose rows go into a dataset."""

    name: str
    target: str
    query: QueryFunction
    where: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    keeps_latest: bool = False  # whether the rows are the latest of changes, and not all that came


@dataclass(slots=True)
class Declarations:
    """All that a project declares, in the order of its files."""

    outputs: dict[str, DeclaredOutput] = field(default_factory=dict[str, DeclaredOutput])
    flows: list[DeclaredFlow] = field(default_factory=list[DeclaredFlow])

    def add(self, output: DeclaredOutput) -> None:
        """Note a dataset; refuses a name that another one has."""
        known = self.outputs.get(output.name)
        if known is not None:
            hint = f"give one of them another name: it is a {known.kind} at {known.where}"
            raise PipelineError(f"{output.where}: there is a dataset {output.name} already", hint=hint)
        self.outputs[output.name] = output

    def flow(self, flow: DeclaredFlow) -> None:
        """Note a flow; refuses a name that another one has."""
        for known in self.flows:
            if known.name == flow.name:
                hint = f"give one of them another name: the other is at {known.where}"
                raise PipelineError(f"{flow.where}: there is a flow {flow.name} already", hint=hint)
        self.flows.append(flow)

    def flows_of(self, target: str) -> tuple[DeclaredFlow, ...]:
        """The flows into a dataset, in the order of their declarations."""
        return tuple(flow for flow in self.flows if flow.target == target)

    def require_targets(self) -> None:
        """Refuse flows into nothing, or into what takes no more flows, and datasets without a flow."""
        for flow in self.flows:
            target = self.outputs.get(flow.target)
            if target is None:
                hint = f'declare it: create_streaming_table("{flow.target}")'
                raise PipelineError(f"{flow.where}: flow {flow.name} goes into {flow.target}, which is not", hint=hint)
            if target.kind in ("materialized view", "temporary view") and len(self.flows_of(flow.target)) > 1:
                hint = "a streaming table and a sink take several flows; the others are one query each"
                raise PipelineError(f"{flow.where}: {target.kind} {target.name} has its query already", hint=hint)
        for output in self.outputs.values():
            if output.kind != "sink" and not self.flows_of(output.name):
                hint = f'@append_flow(target="{output.name}") declares one'
                raise PipelineError(f"{output.where}: no flow goes into {output.kind} {output.name}", hint=hint)


_LOADED: Final[ContextVar[Declarations | None]] = ContextVar("declarations", default=None)


@contextmanager
def declaring(declarations: Declarations) -> Generator[None]:
    """A block in which declarations go into a project."""
    token = _LOADED.set(declarations)
    try:
        yield
    finally:
        _LOADED.reset(token)


def _project(function: str) -> Declarations:
    loaded = _LOADED.get()
    if loaded is None:
        hint = "name the file among the libraries of spark-pipeline.yml, and: everview pipelines run"
        raise PipelineError(f"{function} declares a part of a project, and none is being loaded", hint=hint)
    return loaded


def _here(depth: int = 2) -> str:
    """The file and line of the user's code, ``depth`` calls above."""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _texts(what: str, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise PipelineError(f"{what} is a list of names of columns, not {given!r}", hint=f'{what}=["a", "b"]')
    return tuple(given)


def _named(function: str, name: Any) -> None:
    if name is not None and not isinstance(name, str):
        raise PipelineError(f"a name is a text, not {name!r}", hint=f'{function}(name="…")')


def _mapping(what: str, given: Any) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        raise PipelineError(f"{what} has names and values, not {given!r}", hint=f'{what}={{"name": "value"}}')
    return dict(given or {})


def _decorated(kind: Kind, function: str, query: Any, name: str | None, settings: Any, where: str, **said: Any) -> Any:
    """Note a dataset with its one flow; without a query yet, the decorator that does."""
    _named(function, name)

    def declare(made: QueryFunction) -> None:
        if not callable(made):
            hint = f'write @{function}, or @{function}(name="…")'
            raise PipelineError(f"{function} decorates a function that returns a DataFrame, not {made!r}", hint=hint)
        called = name or str(getattr(made, "__name__", function))
        project = _project(function)
        project.add(DeclaredOutput(called, kind, where, **said))
        project.flow(DeclaredFlow(called, called, made, where, _mapping("spark_conf", settings)))

    return declare if query is None else declare(query)


def _stored(
    schema: Any, format: str | None, comment: str | None, properties: Any, partition_by: Any, cluster_by: Any
) -> dict[str, Any]:
    return {
        "schema": schema,
        "format": format,
        "comment": comment,
        "properties": _mapping("table_properties", properties),
        "partition_by": _texts("partition_cols", partition_by),
        "cluster_by": _texts("cluster_by", cluster_by),
    }


# -- the names of pyspark.pipelines


def materialized_view(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    table_properties: Mapping[str, str] | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by: Sequence[str] | None = None,
    schema: StructType | str | None = None,
    format: str | None = None,
) -> Any:
    """Declare a table whose rows are always the answer to a query; the table has the function's name, or another."""
    said = _stored(schema, format, comment, table_properties, partition_cols, cluster_by)
    return _decorated("materialized view", "materialized_view", query_function, name, spark_conf, _here(), **said)


def table(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    table_properties: Mapping[str, str] | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by: Sequence[str] | None = None,
    schema: StructType | str | None = None,
    format: str | None = None,
) -> Any:
    """Declare a streaming table: every row of a streaming query is added to it once."""
    said = _stored(schema, format, comment, table_properties, partition_cols, cluster_by)
    return _decorated("streaming table", "table", query_function, name, spark_conf, _here(), **said)


def temporary_view(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
) -> Any:
    """Declare a name for a query, which other queries of the project can read; its rows are kept nowhere."""
    said: dict[str, Any] = {"comment": comment}
    return _decorated("temporary view", "temporary_view", query_function, name, spark_conf, _here(), **said)


def create_streaming_table(
    name: str,
    *,
    comment: str | None = None,
    table_properties: Mapping[str, str] | None = None,
    partition_cols: Sequence[str] | None = None,
    cluster_by: Sequence[str] | None = None,
    schema: StructType | str | None = None,
    format: str | None = None,
) -> None:
    """Declare a streaming table that flows go into."""
    _named("create_streaming_table", name)
    said = _stored(schema, format, comment, table_properties, partition_cols, cluster_by)
    _project("create_streaming_table").add(DeclaredOutput(name, "streaming table", _here(), **said))


def create_sink(name: str, format: str, options: Mapping[str, str] | None = None) -> None:
    """Declare a place outside of the project, which is given every row of its flows."""
    _named("create_sink", name)
    if not isinstance(format, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PipelineError(f"a format is a text, not {format!r}", hint='create_sink("out", "parquet", …)')
    given = _mapping("options", options)
    _project("create_sink").add(DeclaredOutput(name, "sink", _here(), format=format, options=given))


def append_flow(
    *, target: str, name: str | None = None, spark_conf: Mapping[str, str] | None = None
) -> Callable[[QueryFunction], None]:
    """Declare a flow: every row of a streaming query is added to a streaming table, or given to a sink, once."""
    _named("append_flow", name)
    where = _here()

    def declare(made: QueryFunction) -> None:
        called = name or str(getattr(made, "__name__", "append_flow"))
        settings = _mapping("spark_conf", spark_conf)
        _project("append_flow").flow(DeclaredFlow(called, target, made, where, settings))

    return declare


def create_auto_cdc_flow(
    target: str,
    source: str,
    keys: Sequence[Columns],
    sequence_by: Columns,
    apply_as_deletes: Columns | None = None,
    column_list: Sequence[Columns] | None = None,
    except_column_list: Sequence[Columns] | None = None,
    stored_as_scd_type: Literal[1, 2, "1", "2"] | None = None,
    name: str | None = None,
    *,
    track_history_column_list: Sequence[Columns] | None = None,
    track_history_except_column_list: Sequence[Columns] | None = None,
    spark_conf: Mapping[str, str] | None = None,
) -> None:
    """Declare a flow of changes: of each key, a table has the row of the last change, unless that was a deletion."""
    where = _here()
    if str(stored_as_scd_type or 1) != "1" or track_history_column_list or track_history_except_column_list:
        hint = 'keep the changes in a streaming table, and give each its end by F.lead("at").over(…) in a view'
        raise PipelineError(f"{where}: a table of type 2, with the history of each key, is not kept", hint=hint)
    if not keys:
        raise PipelineError(f"{where}: a flow of changes needs a key", hint='keys=["id"]')
    if column_list and except_column_list:
        raise PipelineError(f"{where}: column_list and except_column_list are two choices", hint="leave one out")
    query = latest_rows(source, keys, sequence_by, apply_as_deletes, column_list, except_column_list)
    settings = _mapping("spark_conf", spark_conf)
    flow = DeclaredFlow(name or target, target, query, where, settings, keeps_latest=True)
    _project("create_auto_cdc_flow").flow(flow)
