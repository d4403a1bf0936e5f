"""Files as a feed of a table: CSV, JSON and Parquet, one, several, or all that come into a directory.

Every file is read once: its rows are new rows. A file is known by its name and its bytes; one that has changed since
it was read is an error, as nothing says which of its rows are new. In a directory, files whose names begin with ``.``
or ``_`` or end with ``.tmp`` are passed over: write a file under such a name, and rename it when it is whole.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     _ = (Path(folder) / "1.csv").write_text("id,name\\n1,Ada\\n2,Bob\\n")
...     people = Files(folder, "id BIGINT, name STRING")
...     people.begin()
...     [(step.kind, step.rows.num_rows) for step in people.read(None)]
[('insert', 2)]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pyarrow as pa

from everview.codes.rows import to_rows
from everview.doors import doors, path_of
from everview.errors import DuplicateKey, LostPosition, SourceError
from everview.sources.csv_form import CsvForm
from everview.sources.delimited import RefusedRow
from everview.sources.feed import FeedStep
from everview.sources.opening import written_paths
from everview.sources.protocol import Position
from everview.sources.reading import places_of, read_file, read_fitting
from everview.sources.values import keyed
from everview.types import Schema

Paths = str | Path | Sequence[str | Path]
Mode = Literal["insert", "upsert", "replace"]
MODES: Final = ("insert", "upsert", "replace")
_PASSED_OVER: Final = (".", "_")
REJECTS: Final = Schema.parse("file STRING NOT NULL, line BIGINT, reason STRING NOT NULL, text STRING")


class Seen(NamedTuple):
    """The mark of a file that was read, by which a change of the file is noticed."""

    size: int
    changed: int  # in nanoseconds
    digest: str


@doors(SourceError)
class Files:
    """Files, each of the form that its name says: ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson``, ``.json``, ``.parquet``.

    ``paths`` are files, directories and patterns as ``in/*.csv``; text may be compressed, as in ``.csv.gz``, ``.zst``.
    Without a ``schema`` the first file says it. ``mode`` says what becomes of the rows that are there: ``insert`` adds
    to them and refuses keys that are there, ``upsert`` replaces the rows of such keys, and with ``replace`` each file
    that is new or has changed is all that the table holds. ``rejects`` names a table for the rows that cannot be taken,
    each with its file, line and reason; without it, one such row is an error, and nothing of its file is taken. All
    other options are those of CSV: see `everview.sources.csv_form.CsvForm`.
    """

    def __init__(
        self,
        paths: Paths,
        schema: Schema | str | None = None,
        key: str | Sequence[str] = (),
        *,
        mode: Mode = "insert",
        rejects: str | None = None,
        nulls: Sequence[str] = ("",),
        delimiter: str | None = None,
        quote: str = '"',
        decimal: str = ".",
        encoding: str = "utf-8",
        header: bool = True,
        date_format: str | None = None,
        timestamp_format: str | None = None,
        thousands: str | None = None,
    ) -> None:
        formats = date_format, timestamp_format
        self.form = CsvForm(delimiter, quote, decimal, encoding, header, tuple(nulls), *formats, thousands)
        self.rejects = rejects
        self._paths = [path_of(path, SourceError) for path in ([paths] if isinstance(paths, str | Path) else paths)]
        given = Schema.parse(schema) if isinstance(schema, str) else schema
        self.schema, columns, has_key = keyed(given or self._said(), key)
        self.key = columns if has_key else ()
        if mode == "upsert" and not has_key:
            raise SourceError("rows without a key cannot replace others", hint='give a key, or mode="insert"')
        if mode not in MODES:
            raise SourceError(f"{mode!r} is no mode", hint=f"mode is one of {', '.join(MODES)}")
        self.loads = True
        self._mode: Mode = mode
        self._seen: dict[str, Seen] = {}
        self._new: dict[str, Seen] = {}

    def begin(self) -> None:
        self._new = {}

    def read(self, limit: int | None = None) -> list[FeedStep]:
        """The rows of files that have not been read, at most of so many files, in the order of their names."""
        steps = self._check_seen()
        files = [path for path in self._files() if str(path) not in self._seen]
        for path in files[:limit]:
            self._new[str(path)] = seen(path)
            steps += self._steps(path)
        if self._mode == "replace":  # what comes last is all that there is
            wholes = [step for step in steps if step.kind == "replace"]
            steps = [step for step in steps if step.kind != "replace"] + wholes[-1:]
        return steps

    def position(self) -> Position:
        return Position(json.dumps({**self._seen, **self._new}))

    def commit(self) -> None:
        self._seen, self._new = {**self._seen, **self._new}, {}

    def rollback(self) -> None:
        self._new = {}

    def resume(self, position: Position) -> None:
        try:
            self._seen = {path: Seen(*stored) for path, stored in json.loads(position).items()}
        except (ValueError, TypeError, AttributeError):
            raise LostPosition("the position is not one of files", hint="attach what was attached before") from None

    def settle(self, position: Position) -> None:
        """Do nothing: files that were read are never forgotten."""

    def close(self) -> None:
        """Do nothing: no file stays open."""

    # -- inside

    def _files(self) -> list[Path]:
        files: list[Path] = []
        for path in written_paths(self._paths):
            if path.is_dir():
                files += sorted(each for each in path.iterdir() if each.is_file() and _is_whole(each.name))
            elif path.exists():
                files.append(path)
            else:
                raise SourceError(f"there is no file or directory {path}", hint="a directory may be empty")
        return list(dict.fromkeys(path.absolute() for path in files))

    def _said(self) -> Schema:
        files = self._files()
        if not files:
            hint = 'give the columns: Files(path, "id BIGINT, name STRING")'
            raise SourceError("there is no file yet that says which columns there are", hint=hint)
        return Schema.from_arrow(read_file(files[0], None, self.form).schema)

    def _steps(self, path: Path) -> list[FeedStep]:
        """The steps of one file: its rows, and the rows that cannot be taken if there is a table for them."""
        try:
            rows = read_file(path, self.schema, self.form)
            return [FeedStep(self._mode, rows, FileRows(path, rows, self.schema, self.form, self.rejects))]
        except SourceError:
            if self.rejects is None:
                raise
        fitting = read_fitting(path, self.schema, self.form)
        origin = FileRows(path, fitting.rows, self.schema, self.form, self.rejects, tuple(fitting.lines))
        steps = [FeedStep(self._mode, fitting.rows, origin)] if fitting.rows.num_rows else []
        return [*steps, rejected(self.rejects, path, fitting.refused)]

    def _check_seen(self) -> list[FeedStep]:
        """Look for files that have changed: an error, unless they are to be read again or set aside."""
        steps: list[FeedStep] = []
        for path, before in self._seen.items():
            try:
                now = Path(path).stat()
            except FileNotFoundError:
                continue  # what was read stays
            if (now.st_size, now.st_mtime_ns) == (before.size, before.changed):
                continue
            again = seen(Path(path))
            changed = again.digest != before.digest
            if changed and self._mode != "replace":
                if self.rejects is None:
                    hint = "put new rows into new files; to read it anew, drop the table and attach it again"
                    raise SourceError(f"{path} has changed since it was read", hint=hint)
                steps.append(rejected(self.rejects, Path(path), [RefusedRow(None, "it has changed since it was read")]))
            if changed and self._mode == "replace":
                steps += self._steps(Path(path))
            self._new[path] = again
        return steps


def rejected(table: str, path: Path, rows: Sequence[RefusedRow]) -> FeedStep:
    """The step that sets rows aside, in a table for rows that cannot be taken."""
    said = [(str(path), row.line, row.reason, row.text) for row in rows]
    return FeedStep("reject", said, None, table)


@dataclass(frozen=True)
class FileRows:
    """The rows of a file, as the origin of a step."""

    path: Path
    rows: pa.Table
    schema: Schema
    form: CsvForm
    rejects: str | None = None
    lines: Sequence[int] | None = None  # of each row, if that is known

    def duplicate(self, error: DuplicateKey) -> DuplicateKey:
        """The error with the lines of the file that share the key."""
        columns = Schema(tuple(self.schema[name] for name in error.key))
        keys, places = to_rows(columns, self.rows.select(columns.names)), self._places()
        where = [place for place, key in zip(places, keys, strict=True) if key == tuple(error.key.values())]
        hint = 'mode="upsert" lets a later row replace an earlier one with its key'
        message = (
            f"{self.path}, {' and '.join(where[:3])}: {error.message}" if where else f"{self.path}: {error.message}"
        )
        return DuplicateKey(message, hint=hint, key=error.key)

    def refused(self, rows: Sequence[tuple[int, str]]) -> FeedStep:
        """The step that sets some of the rows aside, given by their numbers and the reasons."""
        assert self.rejects is not None, "there is a table for them"
        lines = self.lines if self.lines is not None else [int(place.split()[1]) for place in self._places()]
        said = [
            RefusedRow(lines[row], reason, repr(tuple(self.rows.slice(row, 1).to_pylist()[0].values())))
            for row, reason in rows
        ]
        return rejected(self.rejects, self.path, said)

    def _places(self) -> list[str]:
        if self.lines is not None:
            return [f"line {line}" for line in self.lines]
        return places_of(self.path, self.form, self.rows.num_rows)


def seen(path: Path) -> Seen:
    """The mark of a file as it is now."""
    try:
        status = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}", hint="nothing of it was taken in") from error
    return Seen(status.st_size, status.st_mtime_ns, digest)


def _is_whole(name: str) -> bool:
    return not name.startswith(_PASSED_OVER) and not name.endswith(".tmp")
