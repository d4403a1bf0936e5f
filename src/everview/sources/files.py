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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq

from everview.doors import doors, path_of
from everview.errors import BadRows, EverviewError, LostPosition, SourceError
from everview.sources.feed import Step
from everview.sources.protocol import Position
from everview.sources.records import as_rows, objects
from everview.sources.values import keyed
from everview.types import Decimal, Schema, unknown_name

Paths = str | Path | Sequence[str | Path]
_PASSED_OVER: Final = (".", "_")


class Seen(NamedTuple):
    """A file as it was when it was read."""

    size: int
    changed: int  # in nanoseconds
    digest: str


@doors(SourceError)
class Files:
    """Files of one form, which the name says: ``.csv``, ``.jsonl`` or ``.ndjson``, ``.parquet``.

    Without a ``schema`` the first file says it. ``mode`` says what becomes of rows whose key is there: ``insert``
    refuses them, ``upsert`` lets them replace the others.
    """

    def __init__(
        self,
        paths: Paths,
        schema: Schema | str | None = None,
        key: str | Sequence[str] = (),
        *,
        mode: Literal["insert", "upsert"] = "insert",
    ) -> None:
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

    def read(self, limit: int | None = None) -> list[Step]:
        """The rows of files that have not been read, at most of so many files, in the order of their names."""
        self._check_seen()
        found: list[Step] = []
        for path in self._files():
            if str(path) in self._seen:
                continue
            if limit is not None and len(found) >= limit:
                break
            self._new[str(path)] = seen(path)
            found.append(Step(self._mode, self._table(path, self.schema)))
        return found

    def position(self) -> Position:
        return Position(json.dumps({**self._seen, **self._new}))

    def commit(self) -> None:
        self._seen, self._new = {**self._seen, **self._new}, {}

    def rollback(self) -> None:
        self._new = {}

    def resume(self, position: Position) -> None:
        try:
            self._seen = {path: Seen(*found) for path, found in json.loads(position).items()}
        except (ValueError, TypeError, AttributeError):
            raise LostPosition("the position is not one of files", hint="attach what was attached before") from None

    def settle(self, position: Position) -> None:
        """Files are not forgotten: their names say that they have been read."""

    def close(self) -> None:
        """No file stays open."""

    # -- inside

    def _files(self) -> list[Path]:
        found: list[Path] = []
        for path in self._paths:
            if path.is_dir():
                found += sorted(each for each in path.iterdir() if each.is_file() and _is_whole(each.name))
            elif path.exists():
                found.append(path)
            else:
                raise SourceError(f"there is no file or directory {path}", hint="a directory may be empty")
        return list(dict.fromkeys(path.absolute() for path in found))

    def _said(self) -> Schema:
        files = self._files()
        if not files:
            hint = 'give the columns: Files(path, "id BIGINT, name STRING")'
            raise SourceError("there is no file yet that says which columns there are", hint=hint)
        return Schema.from_arrow(self._table(files[0], None).schema)

    def _table(self, path: Path, schema: Schema | None) -> Any:
        try:
            found = _form(path)(path, schema)
            if schema is not None and isinstance(found, pa.Table):
                _require_columns(schema, found.column_names)
            return found
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise BadRows(f"{path}: {error}", hint="nothing of it was taken in") from error
        except EverviewError as error:
            raise BadRows(f"{path}: {error.message}", hint=error.hint) from error

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


def seen(path: Path) -> Seen:
    """A file as it is."""
    try:
        found = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}", hint="nothing of it was taken in") from error
    return Seen(found.st_size, found.st_mtime_ns, digest)


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


def _csv(path: Path, schema: Schema | None) -> pa.Table:
    """Arrow reads numbers and booleans; text that stands for a date or a decimal, the table does."""
    types = None if schema is None else {field.name: _in_text(field.type) for field in schema}
    options = pacsv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
    return pacsv.read_csv(path, convert_options=options)


def _in_text(of: Any) -> pa.DataType:
    if isinstance(of, Decimal) or pa.types.is_temporal(of.arrow) or pa.types.is_nested(of.arrow):
        return pa.string()
    return of.arrow


def _parquet(path: Path, schema: Schema | None) -> pa.Table:
    with papq.ParquetFile(path) as file:
        return file.read()


def _json_lines(path: Path, schema: Schema | None) -> Any:
    with path.open(encoding="utf-8") as file:
        found = [row for _, row in objects(file)]
    return pa.Table.from_pylist(found) if schema is None else as_rows(schema, found)


_FORMS: Final[Mapping[str, Callable[[Path, Schema | None], Any]]] = {
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
}


def _form(path: Path) -> Callable[[Path, Schema | None], Any]:
    if path.suffix.lower() in _FORMS:
        return _FORMS[path.suffix.lower()]
    raise SourceError(f"the name of {path} does not say what is in it", hint=f"one of {_names(_FORMS)}")


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)
