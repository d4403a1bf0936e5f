"""Updating a project: its files are loaded, its queries become views, and what is new of its sources is taken in."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from everview.blocks import Closing
from everview.errors import EverviewError, PipelineError
from everview.spark.folders import local_path
from everview.spark.pipeline import Pipeline
from everview.spark.pipelines.declaring import Declarations, declaring
from everview.spark.pipelines.leaves import LeafRelation
from everview.spark.pipelines.publishing import ProjectTables
from everview.spark.pipelines.resolving import ProjectResolver, bare_name, bind_leaf
from everview.spark.pipelines.specs import OURS, ProjectFile, find_spec, read_spec
from everview.spark.pipelines.statements import declare_sql
from everview.spark.pipelines.taking_in import SourceNotes, emptied, new_rows, noted_columns
from everview.spark.places import CheckpointPlace
from everview.types import unknown_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATE: Final = "everview"  # the folder of the state, in the storage
_TABLES: Final = ("catalog", "none")


@dataclass(frozen=True, slots=True)
class ProjectUpdate:
    """The result of an update: its last epoch, the sources with new rows, and the tables written."""

    epoch: int
    sources: tuple[str, ...] = ()
    tables: tuple[str, ...] = field(default=())


class PipelineProject(Closing):
    """A declarative project on a session: its datasets are views of one pipeline, whose state is in the storage.

    ```python
    with PipelineProject("bank/spark-pipeline.yml", spark) as project:
        project.update()
        project.pipeline.view("exposure").show()
    ```
    """

    def __init__(self, spec: str | os.PathLike[str], spark: SparkSession, *, state: str | None = None) -> None:
        """Load the files of a project and define its views; nothing is read yet.

        ``spec`` is the specification, or the folder that has it; ``state`` is another place for the state.
        """
        path = Path(spec)
        self.spec = read_spec(find_spec(path) if path.is_dir() else path)
        self.spark = spark
        _require_settings(self.spec)
        with ExitStack() as stack:
            _use(spark, self.spec)
            self._checkpoint = state or f"{self.spec.place}/{STATE}"
            shards = self.spec.configuration.get(f"{OURS}shards")
            made = Pipeline(spark, self._checkpoint, shards=None if shards is None else int(shards))
            self.pipeline = stack.enter_context(made)
            self.declarations = Declarations()
            names = (str(spark.catalog.currentCatalog()), str(spark.catalog.currentDatabase()))
            with _within(self.spec.root), tempfile.TemporaryDirectory(prefix="everview-") as home:
                self._resolver = ProjectResolver(self.pipeline, self.declarations, home, names)
                load(self.spec, spark, self.declarations)
                self._resolver.resolve()
            self._notes = CheckpointPlace.of(self._checkpoint).notes
            self._bind_gone()
            stack.pop_all()

    def close(self) -> None:
        """Release the state for other processes."""
        self.pipeline.close()

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets, in the order of the files."""
        return tuple(self.declarations.outputs)

    def reads(self, dataset: str) -> tuple[str, ...]:
        """The datasets and sources that a dataset's queries read."""
        self._require([dataset])
        return tuple(sorted(self._resolver.reads[dataset]))

    def _bind_gone(self) -> None:
        """Bind sources that the state has and no query reads any more: their rows are given up."""
        from pyspark.sql.types import StructType

        self._emptied: list[str] = []
        for name, schema in noted_columns(self._notes).items():
            if name not in self._resolver.leaves:
                nothing = self.spark.createDataFrame([], StructType.fromJson(json.loads(schema)))
                bind_leaf(self.pipeline, LeafRelation(name, nothing, False))
                self._emptied.append(name)

    # -- updating

    def update(
        self, *, refresh: Sequence[str] = (), full_refresh: Sequence[str] = (), full_refresh_all: bool = False
    ) -> ProjectUpdate:
        """Take in what is new, and write the tables that have changed.

        ``refresh`` names the datasets to update; the sources that they do not read are left alone. ``full_refresh``
        names datasets whose files and tables are read from the start.
        """
        if full_refresh_all and (refresh or full_refresh):
            raise PipelineError("full_refresh_all names all datasets", hint="leave refresh and full_refresh out")
        whole = self.datasets if full_refresh_all else tuple(full_refresh)
        chosen = (*refresh, *whole) or self.datasets
        self._require(chosen)
        read = self._take_in(self._sources_of(chosen), self._read_by(whole))
        return ProjectUpdate(self.pipeline.epoch, read, self._publish(chosen))

    def _require(self, names: Collection[str]) -> None:
        for name in names:
            if name not in self.declarations.outputs:
                raise unknown_name("dataset", name, self.declarations.outputs)

    def _sources_of(self, chosen: Collection[str]) -> set[str]:
        """The sources that datasets read, also by way of others."""
        reached = {name for dataset in chosen for name in self._resolver.upstream(dataset)}
        followed = [name for name, leaf in self._resolver.leaves.items() if leaf.followed and name not in reached]
        if followed:
            said = ", ".join(self._resolver.leaves[name].said for name in followed)
            hint = "update all datasets; streams of files can be left alone"
            raise PipelineError(f"Spark follows all streams together, also {said}", hint=hint)
        return reached & self._resolver.leaves.keys()

    def _read_by(self, whole: Collection[str]) -> set[str]:
        """The sources to be read from the start: those that the queries of datasets read themselves.

        A temporary view is a part of the queries that read it.
        """
        reached, waiting = set[str](), [*whole]
        while waiting:
            for name in self._resolver.reads[waiting.pop()]:
                output = self.declarations.outputs.get(name)
                if output is None:
                    reached.add(name)
                elif output.kind == "temporary view":
                    waiting.append(name)
        return reached

    def _take_in(self, wanted: Collection[str], whole: Collection[str]) -> tuple[str, ...]:
        notes = SourceNotes.of(self._notes, self.pipeline.token)
        given: dict[str, DataFrame] = {}
        after: dict[str, Any] = {}
        for name in sorted(wanted):
            leaf = self._resolver.leaves[name]
            if leaf.followed:
                _require_no_restart(leaf, whole)
                continue
            news = new_rows(leaf, notes.of_source(name), self._held(name), whole=name in whole)
            after[name] = news.note
            if news.changes is not None:
                given[name] = news.changes
        for name in self._emptied:
            note = notes.of_source(name)
            if note is not None:
                given[name], after[name] = emptied(self.pipeline, name), {**note, "gone": True}
        if given:
            self.pipeline.refresh(token=notes.write(after), **given)
        elif any(leaf.followed for leaf in self._resolver.leaves.values()) or self.pipeline.epoch == 0:
            self.pipeline.refresh()
        return tuple(given)

    def _held(self, name: str) -> Any:
        return lambda: self.pipeline.table(name)

    def _publish(self, chosen: Collection[str]) -> tuple[str, ...]:
        if self.spec.configuration.get(f"{OURS}tables", "catalog") == "none":
            return ()
        tables = ProjectTables(self.pipeline, self._notes, f"{self.spec.place}/tables")
        written: list[str] = []
        for name, output in self.declarations.outputs.items():
            if name not in chosen:
                continue
            if output.stored and tables.write(output, bare_name(name)):
                written.append(name)
            if output.kind == "sink":
                given = [tables.give(output, flow.name) for flow in self.declarations.flows_of(name)]
                written += [name] if any(given) else []
        return tuple(written)


def _require_no_restart(leaf: LeafRelation, whole: Collection[str]) -> None:
    if leaf.name in whole:
        hint = "give the project another storage, which begins anew; or remove this one"
        raise PipelineError(f"{leaf.said} is not read from the start again: Spark goes on where it was", hint=hint)


# -- loading


def load(spec: ProjectFile, spark: SparkSession, project: Declarations) -> None:
    """Run the Python files of a project and read its SQL files, which declare its datasets."""
    with declaring(project):
        for path in spec.files():
            if path.suffix == ".py":
                _run(path, spark)
            else:
                text = path.read_text(encoding="utf-8-sig")
                declare_sql(spark, text, path.relative_to(spec.root), project, _later(spark))
    if not project.outputs and not project.flows:
        hint = "libraries: [{glob: {include: transformations/**}}]"
        raise PipelineError(f"{spec.file}: the project declares no dataset", hint=hint)


def _later(spark: SparkSession) -> Callable[[str], DataFrame]:
    """A call of a session's present `sql`, which finds datasets while queries are resolved."""

    def ask(text: str) -> DataFrame:
        return spark.sql(text)

    return ask


class _Uncached(SourceFileLoader):
    """Runs a file as it is now: kept byte code takes one that was written twice in a second for the same."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _run(path: Path, spark: SparkSession) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, str(path), loader=_Uncached(path.stem, str(path)))
    assert spec is not None and spec.loader is not None, "a file that ends in .py is a module"
    module = importlib.util.module_from_spec(spec)
    module.__dict__["spark"] = spark
    try:
        spec.loader.exec_module(module)
    except EverviewError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        raise PipelineError(f"{path}: {what}", hint="it is run as a Python program, which declares datasets") from error


@contextmanager
def _within(folder: Path) -> Generator[None]:
    """A block whose relative paths and imports begin in a folder."""
    before = os.getcwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        os.chdir(before)


def _use(spark: SparkSession, spec: ProjectFile) -> None:
    if spec.catalog is not None:
        spark.catalog.setCurrentCatalog(spec.catalog)
    if spec.database is not None:
        spark.catalog.setCurrentDatabase(spec.database)


def _require_settings(spec: ProjectFile) -> None:
    for name, value in spec.configuration.items():
        if not name.startswith(OURS):
            continue
        if name.removeprefix(OURS) not in ("tables", "shards"):
            raise unknown_name("setting", name, [f"{OURS}tables", f"{OURS}shards"])
        if name == f"{OURS}tables" and value not in _TABLES:
            raise PipelineError(f"{spec.file}: {name} cannot be {value}", hint=f"choose one of {', '.join(_TABLES)}")
        if name == f"{OURS}shards" and not value.isdigit():
            raise PipelineError(f"{spec.file}: {name} is a number, not {value}", hint='everview.shards: "4"')


# -- the command line


@contextmanager
def opened_project(spec: Path | None, *, dry: bool = False) -> Generator[PipelineProject]:
    """A project on a session of its own; a ``dry`` one that has never run leaves nothing behind."""
    from everview.spark.quiet import quiet_session

    file = find_spec(Path.cwd()) if spec is None else spec.absolute()
    read = read_spec(find_spec(file) if file.is_dir() else file)
    with ExitStack() as stack:
        kept = local_path(f"{read.place}/{STATE}")
        state = None
        if dry and kept is not None and not kept.exists():
            state = f"{stack.enter_context(tempfile.TemporaryDirectory(prefix='everview-'))}/state"
        stack.enter_context(_within(read.root))  # Java takes relative paths from where it is started
        spark = stack.enter_context(quiet_session({}, read.settings))
        yield stack.enter_context(PipelineProject(read.file, spark, state=state))
