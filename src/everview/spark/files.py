"""Pipelines in files: YAML, SQL, or Python.

A YAML file says what a `Pipeline` is made of, a SQL file the same in statements, and a Python file defines
``pipeline``: one, or a function of a session that returns one. Paths are relative to the file. Whatever is wrong is
told with the file and the key it stands under.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Any, Final

import yaml

from everview.errors import EverviewError, PipelineError
from everview.frontends.dialects import SOUFFLE, whole_text
from everview.frontends.sql.files import SinkText, TableText, read_file
from everview.spark.definition import Definition, SourceModel, defined
from everview.spark.delta_feed import DELTA
from everview.spark.folders import local_path
from everview.spark.kafka import KAFKA
from everview.spark.paths import PathFrame, rows_of
from everview.spark.pipeline import Pipeline
from everview.spark.quiet import quiet_session
from everview.spark.spec import spec_of
from everview.spark.tables import ICEBERG
from everview.types import unknown_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS: Final = (".yaml", ".yml", ".sql", ".py")
RULES: Final = ".dl"  # a file of Datalog among the views
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_PATTERN = re.compile(r"[*?\[{]")
_OURS: Final = (
    "state",
    "shards",
    "partitions",
    "place",
    "bad_rows",
    "keep_epochs",
    "positions",
    "trigger",
)  # SET everview.…
_SESSION: Final = {"spark.master": "master", "spark.app.name": "name", "spark.driver.memory": "memory"}
_LISTS: Final = ("key", "columns")  # with commas between them in SQL
_OF_SINKS: Final = {"key", "begin", "exactly_once"}  # our options of a sink, where SQL has all of them in one place


@dataclass(frozen=True, slots=True)
class Opened:
    """A pipeline from a file, and the trigger that the file asks for."""

    pipeline: Pipeline
    trigger: Mapping[str, Any] | None = None


@contextmanager
def opened(file: str | Path, state: str | Path | None = None) -> Generator[Opened]:
    """Open the pipeline of a file on a session of its own; both are closed in the end.

    ``state`` is a directory to use in place of the one that the file names.
    """
    path = Path(file)
    if path.suffix.lower() == ".py":
        with _of_python(path, state) as opening, opening.pipeline:
            yield opening
        return
    definition = read(path)
    options = definition.spark.model_dump(exclude={"settings"}, exclude_none=True)
    with quiet_session(options, definition.spark.settings) as spark, build(path, definition, spark, state) as pipeline:
        yield Opened(pipeline, definition.trigger)


def read(file: str | Path) -> Definition:
    """The definition in a YAML or SQL file; nothing but the file is read."""
    path = Path(file)
    kind = path.suffix.lower()
    if kind not in KINDS or kind == ".py":
        raise PipelineError(f"{path} is no pipeline file", hint=f"its name ends in {', '.join(KINDS)}")
    text = _contents(path)
    return defined(str(path), _of_sql(path, text) if kind == ".sql" else _of_yaml(path, text))


def state_of(file: str | Path, state: str | Path | None = None) -> Path | None:
    """The state directory of a file's pipeline, if it can be known without running the file."""
    if state is not None:
        return Path(state)
    path = Path(file)
    if path.suffix.lower() == ".py":
        return None
    named = read(path).state
    return None if named is None else local_path(_located(path.absolute().parent, named))


def build(file: str | Path, definition: Definition, spark: SparkSession, state: str | Path | None = None) -> Pipeline:
    """The pipeline that a file defines; paths are relative to the file."""
    path, base = Path(file), Path(file).absolute().parent
    if state is None and definition.state is None:
        hint = "SET everview.state = 'state'" if path.suffix.lower() == ".sql" else "state: state"
        raise PipelineError(f"{path}: state is missing", hint=f"write {hint}, or give --state DIR")
    with _told(f"{path}: state"):
        pipeline = Pipeline(
            spark,
            Path(state).absolute() if state is not None else _located(base, definition.state or ""),
            shards=definition.shards,
            partitions=definition.partitions,
            place=definition.place,
            bad_rows=definition.bad_rows,
            keep_epochs=definition.keep_epochs,
            positions=definition.positions,
        )
    for name, source in definition.sources.items():
        with _told(f"{path}: sources.{name}"):
            _bind(pipeline, name, source, base, own=definition.positions == "state")
    for where, text in _views(path, definition):
        with _told(where):
            if where.lower().endswith(RULES):
                pipeline.datalog(whole_text(text, SOUFFLE, Path(where).parent))
            else:
                pipeline.sql(text, dialect=definition.dialect)
    if not pipeline.circuit.sinks:
        hint = "write CREATE MATERIALIZED VIEW name AS SELECT …"
        raise PipelineError(f"{path}: views: none is materialized", hint=hint)
    for view, sinks in definition.sinks.items():
        with _told(f"{path}: sinks.{view}"):
            if view not in pipeline.circuit.sinks:
                raise unknown_name("view", view, pipeline.circuit.sinks)
            for sink in sinks:
                to = None if sink.path is None else _located(base, sink.path)
                options: dict[str, Any] = dict(sink.options)
                where = {"format": sink.format, "path": to, "table": sink.table, "topic": sink.topic}
                how: dict[str, Any] = {"mode": sink.mode, "begin": sink.begin, "key": sink.key}
                pipeline.sink(view, **where, **how, exactly_once=sink.exactly_once, **options)
    return pipeline


# -- YAML


def yaml_of(file: Path) -> Mapping[str, Any]:
    """The mapping in a YAML file; refuses what is none, and keys that are there twice."""
    return _of_yaml(file, _contents(file))


def _of_yaml(path: Path, text: str) -> Mapping[str, Any]:
    try:
        for mark, key in _twice(yaml.compose(text, Loader=yaml.SafeLoader)):
            raise PipelineError(f"{path}: {key} is there twice, again in line {mark.line + 1}", hint="leave one out")
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        why = getattr(error, "problem", None) or str(error)
        raise PipelineError(
            f"{path}: {place}{why}", hint="is it indented right, and is what has colons quoted?"
        ) from None
    except RecursionError:
        raise PipelineError(f"{path} is nested too deeply", hint="a pipeline needs four levels") from None
    if not isinstance(raw, dict):
        raise PipelineError(f"{path} says nothing of sources and views", hint="sources: …, and views: …, at the margin")
    for key in raw:
        if not isinstance(key, str):
            raise PipelineError(f"{path}: {key!r} is no key", hint="keys are words")
    return raw


def _twice(root: yaml.Node | None) -> Iterator[tuple[Any, str]]:
    """The keys that a mapping has twice, with their places; YAML would silently take the last."""
    left: list[yaml.Node] = [] if root is None else [root]
    seen: set[int] = set()  # an alias is the node it stands for
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += node.value
        elif isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            for place, (key, value) in enumerate(node.value):
                if isinstance(key, yaml.ScalarNode) and key.value in keys[:place]:
                    yield key.start_mark, key.value
                left.append(value)


# -- SQL


def _of_sql(path: Path, text: str) -> Mapping[str, Any]:
    with _told(str(path)):
        statements = read_file(text)
        raw: dict[str, Any] = {"spark": {"settings": {}}, "sources": {}, "sinks": {}}
        for name, value in statements.settings.items():
            _set(raw, name, value)
        for name, table in statements.tables.items():
            raw["sources"][name] = _source(name, table)
        for sink in statements.sinks:
            raw["sinks"].setdefault(sink.view, []).append(_sink(sink))
    return raw | {"views": [statements.views]}


def _set(raw: dict[str, Any], name: str, value: str) -> None:
    scope, _, rest = name.partition(".")
    if scope == "everview" and rest in _OURS:
        raw[rest] = value
    elif name in _SESSION:
        raw["spark"][_SESSION[name]] = value
    elif scope == "spark":
        raw["spark"]["settings"][name] = value
    else:
        raise unknown_name("setting", name, [*(f"everview.{ours}" for ours in _OURS), "spark.…"])


def _source(name: str, table: TableText) -> dict[str, Any]:
    """The keys of a source: our options, and beside them those of Spark's reader."""
    known = [field.alias or name for name, field in SourceModel.model_fields.items()]
    source: dict[str, Any] = {"schema": table.columns, "format": table.format, "options": {}}
    for option, value in table.options.items():
        key = option.lower()
        if key in known and key not in source:
            source[key] = [part.strip() for part in value.split(",")] if key in _LISTS else value
        elif key in source or get_close_matches(key, known, n=1, cutoff=0.8):
            raise _unknown_option(name, option, [k for k in known if k not in source])
        else:
            source["options"][option] = value
    if table.key and source.setdefault("key", list(table.key)) != list(table.key):
        raise PipelineError(f"table {name} has a primary key, and another key among its options", hint="leave one out")
    return source


def _unknown_option(table: str, option: str, known: list[str]) -> PipelineError:
    error = unknown_name("option", option, known)
    return PipelineError(f"table {table}: {error.message}", hint=error.hint)


def _sink(sink: SinkText) -> dict[str, Any]:
    """The keys of a sink: our options, and beside them those of Spark's writer, or of Kafka's."""
    said: dict[str, Any] = {
        "path": sink.path, "table": sink.table, "topic": sink.topic, "format": sink.format, "mode": sink.mode,
    }  # fmt: skip
    options = dict(sink.options)
    for option in _OF_SINKS & options.keys():
        value = options.pop(option)
        said[option] = [part.strip() for part in value.split(",")] if option in _LISTS else value
    return said | {"options": options}


# -- Python


@contextmanager
def _of_python(path: Path, state: str | Path | None) -> Generator[Opened]:
    pipeline = _defined_in(path)
    if isinstance(pipeline, Pipeline):
        if state is not None:
            hint = "def pipeline(spark, state): … takes one"
            raise PipelineError(f"{path}: the state of its pipeline is fixed", hint=hint)
        yield Opened(pipeline)
        return
    with quiet_session({}, {}) as spark:
        yield Opened(_called(path, pipeline, spark, state))


def _defined_in(path: Path) -> Pipeline | Callable[..., Any]:
    _contents(path)
    directory = str(path.absolute().parent)
    sys.path.insert(0, directory)  # for what stands beside it
    try:
        pipeline = _attempted(path, lambda: run_path(str(path), run_name="pipeline")).get("pipeline")
    finally:
        sys.path.remove(directory)
    if isinstance(pipeline, Pipeline) or (callable(pipeline) and not isinstance(pipeline, type)):
        return pipeline
    what = "defines no pipeline" if pipeline is None else f"has a pipeline that is a {type(pipeline).__name__}"
    hint = "pipeline = Pipeline(…), or def pipeline(spark): … return Pipeline(spark, …)"
    raise PipelineError(f"{path} {what}", hint=hint)


def _called(path: Path, make: Callable[..., Any], spark: SparkSession, state: str | Path | None) -> Pipeline:
    given: dict[str, Any] = {}
    if state is not None:
        if "state" not in signature(make).parameters:
            hint = "write def pipeline(spark, state): …"
            raise PipelineError(f"{path}: pipeline() takes no state", hint=hint)
        given["state"] = Path(state).absolute()
    pipeline = _attempted(path, lambda: make(spark, **given))
    if not isinstance(pipeline, Pipeline):
        raise PipelineError(
            f"{path}: pipeline() returns a {type(pipeline).__name__}", hint="it should return a Pipeline"
        )
    return pipeline


def _attempted(path: Path, run: Callable[[], Any]) -> Any:
    """Run a user's code and return its result; an exception is told with the line of the file."""
    try:
        return run()
    except EverviewError as error:
        raise _prefixed(error, f"{path}{_line(error, path)}") from None
    except Exception as error:
        what = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        raise PipelineError(f"{path}{_line(error, path)}: {what}", hint="it is run as a Python program") from error


def _line(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f": line {error.lineno}"
    lines: list[int] = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f": line {lines[-1]}" if lines else ""


# -- what files name


def _contents(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise PipelineError(f"there is no file {path}", hint=f"it is looked for in {Path.cwd()}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path} cannot be read: {error}", hint="it should be a text in UTF-8") from None


def _located(base: Path, path: str) -> str:
    return path if _SCHEME.match(path) else str(base / path)


def _views(path: Path, definition: Definition) -> Iterator[tuple[str, str]]:
    """The texts of the views, each with a name for the place where it stands."""
    for number, text in enumerate(definition.views):
        if "\n" in text.strip() or not text.strip().lower().endswith((".sql", RULES)):
            key = f"views[{number}]" if len(definition.views) > 1 else "views"
            yield str(path) if path.suffix.lower() == ".sql" else f"{path}: {key}", text
            continue
        file = path.absolute().parent / text.strip()
        if not file.is_file():
            raise PipelineError(
                f"{path}: views: there is no file {file}", hint="paths are relative to the pipeline file"
            )
        yield str(file), _contents(file)


def _bind(pipeline: Pipeline, name: str, source: SourceModel, base: Path, *, own: bool) -> None:
    spoken: dict[str, Any] = {
        "key": source.key, "changes": source.changes, "op": source.op, "weight": source.weight, "order": source.order,
    }  # fmt: skip
    if source.path is not None and source.format is not None:
        spoken |= {"format": source.format, "stream": source.stream, "options": source.options}
        where, columns = _there(_located(base, source.path)), source.columns
        pipeline.source(name, path=where, schema=source.schema_, columns=columns, keep=source.keep, **spoken)
        return
    if source.format == KAFKA and source.table is None:
        spoken |= {"format": KAFKA, "options": source.options, "columns": source.columns}
        pipeline.source(name, schema=source.schema_, keep=source.keep, **spoken)
        return
    followed = own and source.stream and source.format in (None, DELTA)  # of Delta, as the catalog knows
    if source.table is not None and (source.format == ICEBERG or followed):
        spoken |= {
            "format": None if followed else ICEBERG,
            "stream": source.stream,
            "options": source.options,
            "columns": source.columns,
        }
        pipeline.source(name, table=source.table, schema=source.schema_, keep=source.keep, **spoken)
        return
    frame = _frame(pipeline.spark, source, base)
    schema = None
    if source.schema_ is not None or source.columns is not None:
        columns = None if source.columns is None else tuple(source.columns)
        files = PathFrame("", source.format or "", source.schema_, columns=columns)
        schema = rows_of(spec_of(name, frame, **spoken), files)
    pipeline.source(name, frame, schema=schema, keep=source.keep, **spoken)


def _frame(spark: SparkSession, source: SourceModel, base: Path) -> DataFrame:
    reader: Any = spark.readStream if source.stream else spark.read
    if source.format is not None:
        reader = reader.format(source.format)
    reader = reader.options(**source.options)
    if source.table is not None:
        return reader.table(source.table)
    if source.schema_ is not None:
        reader = reader.schema(source.schema_)
    return reader.load() if source.path is None else reader.load(_there(_located(base, source.path)))


def _there(path: str) -> str:
    """A path with a scheme, so that Spark's default filesystem does not matter."""
    local = local_path(path)
    if local is None:
        return path
    if not _PATTERN.search(str(local)) and not local.exists():
        raise PipelineError(f"there is nothing at {local}", hint="paths are relative to the pipeline file")
    return f"file://{local}"


@contextmanager
def _told(where: str) -> Generator[None]:
    """Add the place to the message of what is raised inside."""
    from pyspark.errors import PySparkException

    try:
        yield
    except EverviewError as error:
        raise _prefixed(error, where) from None
    except PySparkException as error:
        what = str(error).strip().partition("\n")[0]
        raise PipelineError(f"{where}: {what}", hint="that is what Spark says of it") from error


def _prefixed(error: EverviewError, where: str) -> EverviewError:
    error.message = f"{where}: {error.message}"
    error.args = (error.message if error.hint is None else f"{error.message}\n  hint: {error.hint}",)
    return error
