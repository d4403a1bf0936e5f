"""The specification of a declarative project: ``spark-pipeline.yml``, and the files that it names."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from everview.errors import PipelineError
from everview.spark.files import yaml_of
from everview.spark.folders import SCHEME
from everview.types import unknown_name

NAMES: Final = ("spark-pipeline.yaml", "spark-pipeline.yml")
KEYS: Final = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
KINDS: Final = (".py", ".sql")
OURS: Final = "everview."  # before the settings in `configuration` that are ours


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project: its name, where its state is, its default catalog and database, its settings and its files."""

    file: Path
    name: str
    storage: str
    catalog: str | None = None
    database: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict[str, str])
    libraries: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        """The folder of the specification, which paths are relative to."""
        return self.file.absolute().parent

    @property
    def place(self) -> str:
        """Where the project keeps its state and its notes: a path, or a URL."""
        return self.storage if SCHEME.match(self.storage) else str(self.root / self.storage)

    @property
    def settings(self) -> dict[str, str]:
        """The settings for Spark."""
        return {name: value for name, value in self.configuration.items() if not name.startswith(OURS)}

    def files(self) -> Iterator[Path]:
        """The files of definitions, each once, in the order of the libraries and of their names."""
        seen: set[Path] = set()
        for pattern in self.libraries:
            paths = sorted(path for path in self.root.glob(pattern) if path.is_file())
            for path in paths:
                if "__pycache__" in path.parts or path in seen:
                    continue
                seen.add(path)
                if path.suffix not in KINDS:
                    hint = f"definitions end in {' or '.join(KINDS)}; keep other files elsewhere"
                    raise PipelineError(f"{self.file}: {path} is no file of definitions", hint=hint)
                yield path


def find_spec(start: Path) -> Path:
    """The specification in a folder, or in the nearest one above it."""
    for folder in (start.absolute(), *start.absolute().parents):
        files = [folder / name for name in NAMES if (folder / name).is_file()]
        if len(files) > 1:
            raise PipelineError(f"{folder} has {' and '.join(NAMES)}", hint="remove one, or name it: --spec FILE")
        if files:
            return files[0]
    raise PipelineError(f"there is no {NAMES[1]} in {start} or above", hint="write one, or name it: --spec FILE")


def read_spec(file: Path) -> ProjectFile:
    """The specification in a file; nothing but the file is read."""
    raw = yaml_of(file)
    for key in raw:
        if key not in KEYS:
            error = unknown_name("key", key, KEYS)
            raise PipelineError(f"{file}: {error.message}", hint=error.hint)
    for key in ("name", "storage"):
        if not isinstance(raw.get(key), str):
            raise PipelineError(f"{file}: {key} is missing", hint=f"write {key}: …, a text")
    return ProjectFile(
        file,
        raw["name"],
        raw["storage"],
        _text(file, raw, "catalog"),
        _text(file, raw, "database") or _text(file, raw, "schema"),
        _settings(file, raw.get("configuration")),
        tuple(_pattern(file, entry) for entry in raw.get("libraries") or ()),
    )


def _text(file: Path, raw: Mapping[str, Any], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise PipelineError(f"{file}: {key} is a name, not {value!r}", hint="quote it")
    return value


def _settings(file: Path, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        hint = 'spark.sql.shuffle.partitions: "4"'
        raise PipelineError(f"{file}: configuration has names and texts", hint=f"quote the values: {hint}")
    return {str(name): value for name, value in given.items()}


def _pattern(file: Path, entry: Any) -> str:
    """The pattern of a library, for `Path.glob`: a file, or a folder with all below."""
    include = entry.get("glob") if isinstance(entry, dict) else None
    pattern = include.get("include") if isinstance(include, dict) else None
    if not isinstance(pattern, str):
        hint = "- glob: {include: transformations/**}"
        raise PipelineError(f"{file}: a library is a pattern of files, not {entry!r}", hint=hint)
    if not glob.has_magic(pattern):
        return pattern
    if pattern.endswith("/**") and not glob.has_magic(pattern.removesuffix("/**")):
        return f"{pattern}/*"
    hint = "name a file, or a folder with all below it: transformations/**"
    raise PipelineError(f"{file}: the pattern {pattern} is none of a library", hint=hint)
