"""Files as a feed of a table: CSV, JSON lines and Parquet, one, several, or all that come into a directory.

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
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as papq

from everview.codes.ingest import ingest
from everview.codes.rows import to_rows
from everview.doors import doors, path_of
from everview.errors import BadRows, DuplicateKey, EverviewError, LostPosition, SourceError
from everview.sources.delimited import lines_of_csv, read_csv
from everview.sources.feed import FeedStep
from everview.sources.protocol import Position
from everview.sources.records import as_rows, lines_of_json, objects
from everview.sources.values import keyed
from everview.types import Schema, unknown_name

Paths = str | Path | Sequence[str | Path]
_PASSED_OVER: Final = (".", "_")


class Seen(NamedTuple):
    """The mark of a file that was read, by which a change of the file is noticed."""

    size: int
    changed: int  # in nanoseconds
    digest: str


@doors(SourceError)
class Files:
    """Files of one form, which the name says: ``.csv``, ``.jsonl`` or ``.ndjson``, ``.parquet``.

    Without a ``schema`` the first file says it. ``mode`` says what becomes of rows whose key is there: ``insert``
    refuses them, ``upsert`` lets them replace the others. ``nulls`` are the texts without quotes that are NULL in CSV.
    """

    def __init__(
        self,
        paths: Paths,
        schema: Schema | str | None = None,
        key: str | Sequence[str] = (),
        *,
        mode: Literal["insert", "upsert"] = "insert",
        nulls: Sequence[str] = ("",),
    ) -> None:
        self._nulls = tuple(nulls)
        self._paths = [path_of(path, SourceError) for path in ([paths] if isinstance(paths, str | Path) else paths)]
        given = Schema.parse(schema) if isinstance(schema, str) else schema
        self._given = given is not None
        self.schema, columns, has_key = keyed(given or self._said(), key)
        self.key = columns if has_key else ()
        if mode == "upsert" and not has_key:
            raise SourceError("rows without a key cannot replace others", hint='give a key, or mode="insert"')
        if mode not in ("insert", "upsert"):
            raise SourceError(f"{mode!r} is no mode", hint='mode is "insert" or "upsert"')
        self.loads = True
        self._mode: Literal["insert", "upsert"] = mode
        self._seen: dict[str, Seen] = {}
        self._new: dict[str, Seen] = {}

    def begin(self) -> None:
        self._new = {}

    def read(self, limit: int | None = None) -> list[FeedStep]:
        """The rows of files that have not been read, at most of so many files, in the order of their names."""
        self._check_seen()
        steps: list[FeedStep] = []
        for path in self._files():
            if str(path) in self._seen:
                continue
            if limit is not None and len(steps) >= limit:
                break
            self._new[str(path)] = seen(path)
            rows = self._table(path, self.schema)
            steps.append(FeedStep(self._mode, rows, FileRows(path, rows, self.schema)))
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
        for path in self._paths:
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
        return Schema.from_arrow(self._table(files[0], None).schema)

    def _table(self, path: Path, schema: Schema | None) -> pa.Table:
        """The rows of a file, which must have exactly the columns of the schema if there is one."""
        try:
            read = _form(path)(path, schema, self._nulls)
            if schema is None:
                return read
            if isinstance(read, pa.Table):
                _require_columns(schema, read.column_names)
            return ingest(schema, read)[0]
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise BadRows(f"{path}: {error}", hint="nothing of it was taken in") from error
        except EverviewError as error:
            raise BadRows(f"{path}: {_by_place(path, error.message)}", hint=error.hint) from error

    def _check_seen(self) -> None:
        for path, before in self._seen.items():
            try:
                now = Path(path).stat()
            except FileNotFoundError:
                continue  # what was read stays
            if (now.st_size, now.st_mtime_ns) == (before.size, before.changed):
                continue
            again = seen(Path(path))
            if again.digest != before.digest:
                hint = "put new rows into new files; to read it anew, drop the table and attach it again"
                raise SourceError(f"{path} has changed since it was read", hint=hint)
            self._new[path] = again


class FileRows(NamedTuple):
    """The rows of a file, as the origin of a step."""

    path: Path
    rows: pa.Table
    schema: Schema

    def duplicate(self, error: DuplicateKey) -> DuplicateKey:
        """The error with the lines of the file that share the key."""
        columns = Schema(tuple(self.schema[name] for name in error.key))
        keys, places = to_rows(columns, self.rows.select(columns.names)), _places(self.path, self.rows.num_rows)
        where = [place for place, key in zip(places, keys, strict=True) if key == tuple(error.key.values())]
        hint = 'mode="upsert" lets a later row replace an earlier one with its key'
        message = (
            f"{self.path}, {' and '.join(where[:3])}: {error.message}" if where else f"{self.path}: {error.message}"
        )
        return DuplicateKey(message, hint=hint, key=error.key)


def _places(path: Path, rows: int) -> list[str]:
    """The place of each row of a file: its line, or its number counted from one."""
    if path.suffix.lower() == ".parquet":
        return [f"row {number}" for number in range(1, rows + 1)]
    return [f"line {line}" for line in (lines_of_csv(path) if path.suffix.lower() == ".csv" else lines_of_json(path))]


def _by_place(path: Path, message: str) -> str:
    """The message with the line in the file instead of ``rows[3]``, as `ingest` names rows."""
    named = re.search(r"rows\[(\d+)\]", message)
    if named is None:
        return message
    place = _places(path, int(named[1]) + 1)[int(named[1])]
    return message.replace(named[0], place)


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


def _require_columns(schema: Schema, names: Sequence[str]) -> None:
    for name in names:
        if name not in schema:
            raise unknown_name("column", name, schema.names)
    twice = [name for name in schema.names if names.count(name) > 1]
    if twice:
        raise BadRows(f'column "{twice[0]}" is there twice', hint="names are unique: rename one")


# -- forms


Form = Callable[[Path, Schema | None, Sequence[str]], Any]


def _parquet(path: Path, schema: Schema | None, nulls: Sequence[str]) -> pa.Table:
    with papq.ParquetFile(path) as file:
        return file.read()


def _json_lines(path: Path, schema: Schema | None, nulls: Sequence[str]) -> Any:
    with path.open(encoding="utf-8") as file:
        if schema is not None:
            return as_rows(schema, objects(file))
        return pa.Table.from_pylist([row for _, row in objects(file)])


_FORMS: Final[Mapping[str, Form]] = {
    ".csv": read_csv,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
}


def _form(path: Path) -> Form:
    if path.suffix.lower() in _FORMS:
        return _FORMS[path.suffix.lower()]
    raise SourceError(f"the name of {path} does not say what is in it", hint=f"one of {', '.join(_FORMS)}")
