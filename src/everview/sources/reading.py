"""One file as rows of a schema: CSV, JSON lines or Parquet, as its name says.

`read_file` takes all of a file or raises `BadRows`, which names the line. `read_fitting` takes the rows that fit, and
says of each other one where it is and why it was refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as papq

from everview.codes.ingest import ingest
from everview.errors import BadRows, EverviewError, SourceError
from everview.sources.csv_form import CsvForm
from everview.sources.delimited import RefusedRow, header_of, lines_of_csv, read_csv, read_texts, undecodable
from everview.sources.inferring import table_of_objects
from everview.sources.opening import is_compressed, suffix_of, text_of
from everview.sources.records import as_rows, check_columns, lines_of_json, objects, one_object, texts
from everview.types import Schema, unknown_name

CSV: Final = (".csv", ".tsv")
JSON: Final = (".jsonl", ".ndjson", ".json")
PARQUET: Final = (".parquet",)
FORMATS: Final = {"csv": CSV, "json": JSON, "parquet": PARQUET}
_LONGEST: Final = 1_000  # characters of a refused row that are kept
_UNREADABLE: Final = (pa.ArrowException, OSError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class FittingRows:
    """The rows of a file that fit, the place of each, and the others."""

    rows: pa.Table
    lines: Sequence[int]
    refused: Sequence[RefusedRow]


def format_of(path: Path) -> str:
    """The format that the name of a file says."""
    for name, suffixes in FORMATS.items():
        if suffix_of(path) in suffixes:
            return name
    known = ", ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
    raise SourceError(f"the name of {path} does not say what is in it", hint=f"one of {known}")


def read_file(path: Path, schema: Schema | None, form: CsvForm, format_: str | None = None) -> pa.Table:
    """The rows of a file, which must have exactly the columns of the schema if there is one."""
    format_ = format_ or format_of(path)
    try:
        read = _READERS[format_](path, schema, form)
        if schema is None:
            return read
        if isinstance(read, pa.Table):
            _require_columns(schema, read.column_names)
        return ingest(schema, read)[0]
    except _UNREADABLE as error:
        raise BadRows(f"{path}: {_why_unread(path, error)}", hint="nothing of it was taken in") from error
    except EverviewError as error:
        raise BadRows(f"{path}: {_by_place(path, format_, form, error.message)}", hint=error.hint) from error


def read_fitting(path: Path, schema: Schema, form: CsvForm, format_: str | None = None) -> FittingRows:
    """The rows of a file that fit a schema; a file that cannot be read at all is refused as a whole."""
    try:
        format_ = format_ or format_of(path)
        return _fitting(path, schema, form, format_)
    except _UNREADABLE as error:
        refused = RefusedRow(None, _why_unread(path, error))
    except EverviewError as error:
        refused = RefusedRow(None, error.message)
    return FittingRows(schema.arrow.empty_table(), [], [refused])


def columns_in(path: Path, form: CsvForm, format_: str | None = None) -> list[str]:
    """The names of the columns that a file has values for."""
    format_ = format_ or format_of(path)
    try:
        if format_ == "csv":
            return header_of(path, form)
        if format_ == "parquet":
            return papq.read_schema(path).names
        with text_of(path) as file:
            return list(dict.fromkeys(name for _, row in objects(file) for name in row))
    except _UNREADABLE as error:
        raise BadRows(f"{path}: {_why_unread(path, error)}", hint="nothing of it was taken in") from error


def places_of(path: Path, form: CsvForm, rows: int) -> list[str]:
    """The place of each row of a file: its line, or its number counted from one."""
    return _places(path, format_of(path), form, rows)


def _why_unread(path: Path, error: Exception) -> str:
    """Why a file could not be read, in words of its own."""
    if isinstance(error, UnicodeDecodeError):
        return f"line {undecodable(path, 'utf-8')} is no UTF-8"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "it cannot be decompressed: it is damaged, or cut short" if is_compressed(path) else str(error)


# -- the formats


def _csv(path: Path, schema: Schema | None, form: CsvForm) -> Any:
    return read_csv(path, schema, form)


def _json(path: Path, schema: Schema | None, form: CsvForm) -> Any:
    with text_of(path) as file:
        if schema is not None:
            return as_rows(schema, objects(file))
        return table_of_objects([(number, text, one_object(text, number)) for number, text in texts(file)])


def _parquet(path: Path, schema: Schema | None, form: CsvForm) -> pa.Table:
    try:
        with papq.ParquetFile(path) as file:
            return file.read()
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise BadRows("it is no Parquet file, or a damaged one", hint="nothing of it was taken in") from error


_READERS: Final[dict[str, Callable[[Path, Schema | None, CsvForm], Any]]] = {
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}


def _require_columns(schema: Schema, names: Sequence[str]) -> None:
    for name in names:
        if name not in schema:
            raise unknown_name("column", name, schema.names)
    twice = [name for name in schema.names if names.count(name) > 1]
    if twice:
        raise BadRows(f'column "{twice[0]}" is there twice', hint="names are unique: rename one")
    lacking = [field.name for field in schema if not field.nullable and field.name not in names]
    if lacking:
        raise BadRows(f'there is no column "{lacking[0]}", which is NOT NULL', hint=f"columns: {', '.join(names)}")


def _places(path: Path, format_: str, form: CsvForm, rows: int) -> list[str]:
    if format_ == "parquet":
        return [f"row {number}" for number in range(1, rows + 1)]
    return [f"line {line}" for line in (lines_of_csv(path, form) if format_ == "csv" else lines_of_json(path))]


def _by_place(path: Path, format_: str, form: CsvForm, message: str) -> str:
    """The message with the line in the file instead of ``rows[3]``, as `ingest` names rows."""
    named = re.search(r"rows\[(\d+)\]", message)
    if named is None:
        return message
    place = _places(path, format_, form, int(named[1]) + 1)[int(named[1])]
    return message.replace(named[0], place)


# -- rows that fit


def _fitting(path: Path, schema: Schema, form: CsvForm, format_: str) -> FittingRows:
    match format_:
        case "csv":
            texts = read_texts(path, schema, form)
            _require_columns(schema, texts.rows.column_names)
            delimiter = form.delimiter_of(path)
            return _halved(
                schema,
                lambda start, count: form.typed(schema, texts.rows.slice(start, count)),
                lambda row: delimiter.join(value or "" for value in texts.rows.slice(row, 1).to_pylist()[0].values()),
                texts.lines,
                texts.refused,
            )
        case "json":
            rows, lines, refused = _parsed_objects(path, schema)
            return _halved(
                schema, lambda start, n: rows[start : start + n], lambda row: repr(rows[row]), lines, refused
            )
        case _:
            table = _parquet(path, schema, form)
            _require_columns(schema, table.column_names)
            lines = range(1, table.num_rows + 1)
            return _halved(schema, table.slice, lambda row: repr(table.slice(row, 1).to_pylist()[0]), lines, [])


def _parsed_objects(path: Path, schema: Schema) -> tuple[list[dict[str, Any]], list[int], list[RefusedRow]]:
    """The objects that have only columns of a schema, their lines, and whatever else is in a file of JSON."""
    rows, lines, refused = list[dict[str, Any]](), list[int](), list[RefusedRow]()
    with text_of(path) as file:
        for number, text in texts(file):
            try:
                row = one_object(text, number)
                check_columns(schema, row, number)
            except BadRows as error:
                refused.append(RefusedRow(number, error.message, text.strip()[:_LONGEST]))
                continue
            rows.append(row)
            lines.append(number)
    return rows, lines, refused


def _halved(
    schema: Schema,
    part: Callable[[int, int], Any],
    shown: Callable[[int], str],
    lines: Sequence[int],
    refused: Sequence[RefusedRow],
) -> FittingRows:
    """The rows that fit, found by halves: a part that does not fit as a whole is tried as two."""
    taken, kept, wrong = list[pa.Table](), list[int](), list(refused)
    waiting = [(0, len(lines))]
    while waiting:
        start, count = waiting.pop()
        try:
            taken.append(ingest(schema, part(start, count))[0])
            kept += lines[start : start + count]
        except (EverviewError, *_UNREADABLE) as error:
            if count > 1:
                half = count // 2
                waiting += [(start + half, count - half), (start, half)]
                continue
            said = error.message if isinstance(error, EverviewError) else str(error)
            reason = re.sub(r",? ?rows\[0\]", "", said).removeprefix(": ")
            wrong.append(RefusedRow(lines[start], reason, shown(start)[:_LONGEST]))
    rows = pa.concat_tables(taken) if taken else schema.arrow.empty_table()
    return FittingRows(rows, kept, sorted(wrong, key=lambda row: row.line or 0))
