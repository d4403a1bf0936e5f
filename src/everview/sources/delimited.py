"""CSV files as Arrow tables, and the line of a row that cannot be taken.

Arrow reads numbers and booleans; text that stands for a date or a decimal, the table does. Only empty text without
quotes is NULL unless other texts are named: ``NA`` may be Namibia. Values in quotes may hold line breaks.
"""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from everview.errors import BadRows
from everview.sources.csv_form import CsvForm
from everview.sources.inferring import doubtful_columns, exact_numbers
from everview.sources.opening import is_compressed, opened, text_of
from everview.types import Decimal, Schema

_BLOCK: Final = 1 << 24  # bytes that Arrow reads at once; a row lies within one block
_WHOLE: Final = 1 << 31  # Arrow reads no longer block
_NULL_HINT: Final = 'nothing of it was taken in; nulls=("", "NA") names texts that stand for NULL'
Types = dict[str, pa.DataType]


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A refused row of a file: its line, the reason, and its text, as far as known."""

    line: int | None
    reason: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class TextRows:
    """The rows of a file as text, the line of each, and rows that have too few or too many values."""

    rows: pa.Table
    lines: list[int]
    refused: list[RefusedRow]


def read_csv(path: Path, schema: Schema | None, form: CsvForm) -> pa.Table:
    """The rows of a CSV file; without a schema, with the types that Arrow sees in them."""
    types = None if schema is None else {field.name: _in_text(field.type, form) for field in schema}
    try:
        read = _whole(path, types, schema, form)
        if schema is None and form.is_utf8 and any(map(pa.types.is_binary, read.schema.types)):
            raise pa.ArrowInvalid("it is no UTF-8")  # Arrow would take such a column for bytes
    except pa.ArrowInvalid as error:
        if not form.header or not _has_only_header(path, form):
            raise _fault(path, types or {}, schema, form, error) from error
        known = types or {}
        read = pa.table({name: pa.array([], known.get(name, pa.null())) for name in header_of(path, form)})
    if form.quote:
        _require_closed(path, form)
    if schema is not None:
        return form.typed(schema, read)
    if form.header:
        _require_names(read.column_names)
    return form.inferred(_with_exact_numbers(read, path, form))


def _with_exact_numbers(read: pa.Table, path: Path, form: CsvForm) -> pa.Table:
    """The table with numbers that a DOUBLE would cut short as DECIMAL or as text."""
    doubtful = doubtful_columns(read)
    texts = _whole(path, dict.fromkeys(doubtful, pa.string()), None, form) if doubtful else read
    for name in doubtful:
        exact = exact_numbers(texts[name], read[name], form.decimal)
        read = read.set_column(read.column_names.index(name), name, exact)
    return read


def _require_names(names: list[str]) -> None:
    """Refuse a header in which a column has no name, or that of another."""
    for place, name in enumerate(names, 1):
        if not name.strip():
            hint = "name it there; without a header: header => false"
            raise BadRows(f"column {place} has no name in the first line", hint=hint)
        if name in names[: place - 1]:
            first = names.index(name) + 1
            raise BadRows(f'columns {first} and {place} are both called "{name}"', hint="rename one in the first line")


def _require_closed(path: Path, form: CsvForm) -> None:
    """Refuse a file that ends within quotes: an opening quote has swallowed all rows behind it."""
    marks, quote = 0, form.quote.encode()  # in UTF-16, too, it is counted, perhaps with more: then rows are looked at
    with opened(path) as file:
        while chunk := file.read(_BLOCK):
            marks += chunk.count(quote)
    if marks % 2 == 0:
        return
    with text_of(path, "utf-8-sig" if form.is_utf8 else form.encoding) as file, _long_fields():
        reader, begins = _reader(file, path, form, strict=True), 1
        try:
            for _ in reader:
                begins = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise BadRows(f"line {begins}: a quote is opened and never closed", hint="close it") from None


def _has_only_header(path: Path, form: CsvForm) -> bool:
    try:
        return len(list(islice(_records(path, form), 2))) == 1
    except (UnicodeDecodeError, csv.Error):
        return False


def read_texts(path: Path, schema: Schema, form: CsvForm) -> TextRows:
    """All values of a CSV file as text, rows of the wrong length set aside."""
    wrong: dict[int, RefusedRow] = {}
    starts = lines_of_csv(path, form)
    before = 2 if form.header else 1  # Arrow counts rows from one, the header included

    def aside(row: Any) -> str:
        values = f"{row.actual_columns} value{'s' * (row.actual_columns != 1)}, not {row.expected_columns}"
        place = row.number - before
        wrong[place] = RefusedRow(starts[place] if place < len(starts) else None, f"it has {values}", row.text)
        return "skip"

    names = header_of(path, form) if form.header else list(schema.names)
    rows = _whole(path, dict.fromkeys(names, pa.string()), schema, form, aside)
    if form.quote:
        _require_closed(path, form)
    lines = [line for place, line in enumerate(starts) if place not in wrong]
    return TextRows(rows, lines, [*wrong.values()])


def header_of(path: Path, form: CsvForm) -> list[str]:
    """The values of the first line, which name the columns."""
    return next(_records(path, form), (1, list[str]()))[1]


def lines_of_csv(path: Path, form: CsvForm) -> list[int]:
    """The line at which each row begins, counting from one."""
    return [line for line, _ in _records(path, form)][form.header :]


def _whole(path: Path, types: Types | None, schema: Schema | None, form: CsvForm, aside: Any = None) -> pa.Table:
    try:
        return _read(path, types, schema, form, aside, _BLOCK)
    except pa.ArrowInvalid:
        size = _WHOLE - 1 if is_compressed(path) else path.stat().st_size
        if not _BLOCK < size < _WHOLE:
            raise
        return _read(path, types, schema, form, aside, size)  # a row may be longer than a block


def _read(path: Path, types: Types | None, schema: Schema | None, form: CsvForm, aside: Any, block: int) -> pa.Table:
    headless = None if form.header or schema is None else list(schema.names)
    with opened(path) as file:
        table = pacsv.read_csv(
            file,
            read_options=pacsv.ReadOptions(
                block_size=block,
                encoding="utf8" if form.is_utf8 else form.encoding,
                column_names=headless,
                autogenerate_column_names=not form.header and schema is None,
                use_threads=aside is None,  # one after the other, rows are numbered
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=form.delimiter_of(path),
                quote_char=form.quote or False,
                newlines_in_values=bool(form.quote),
                invalid_row_handler=aside,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=types,
                null_values=list(form.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=form.decimal,
            ),
        )
    return table


def _in_text(type_: Any, form: CsvForm) -> pa.DataType:
    """The type as which Arrow reads a column: text, if the values need a look of our own."""
    if form.thousands is not None and (pa.types.is_integer(type_.arrow) or pa.types.is_floating(type_.arrow)):
        return pa.string()
    if isinstance(type_, Decimal) or pa.types.is_temporal(type_.arrow) or pa.types.is_nested(type_.arrow):
        return pa.string()
    return type_.arrow


# -- what is wrong, and where


def _fault(path: Path, types: Types, schema: Schema | None, form: CsvForm, error: pa.ArrowInvalid) -> BadRows:
    """The first mistake in a file that Arrow could not read, found row by row."""
    try:
        fault = _first_fault(_records(path, form), types, schema, form)
        return fault or BadRows(str(error), hint="nothing of it was taken in")
    except UnicodeDecodeError:
        line = undecodable(path, form.encoding)
        if form.is_utf8:
            return BadRows(f"line {line} is no UTF-8", hint="save the file in UTF-8, or name its encoding")
        return BadRows(f"line {line} is no {form.encoding}", hint="name the encoding of the file")
    except csv.Error as unread:
        return BadRows(f"it cannot be read as CSV: {unread}", hint="nothing of it was taken in")


def _first_fault(
    records: Iterator[tuple[int, list[str]]], types: Types, schema: Schema | None, form: CsvForm
) -> BadRows | None:
    names = next(records, (1, list[str]()))[1] if form.header or schema is None else list(schema.names)
    if not names:
        return BadRows("it is empty", hint="the first line names the columns")
    for line, values in records:
        if len(values) != len(names):
            counts = f"{len(values)} value{'s' * (len(values) != 1)}, not {len(names)}"
            return BadRows(f"line {line} has {counts}: {','.join(values)[:80]}", hint=f"columns: {', '.join(names)}")
        for name, value in zip(names, values, strict=True):
            type_ = types.get(name)
            if type_ is not None and value not in form.nulls and not _fits(value.replace(form.decimal, "."), type_):
                return BadRows(
                    f'line {line}, column "{name}": {value[:80]!r} is no {_sql_name(name, schema)}', hint=_NULL_HINT
                )
    return None


def _sql_name(column: str, schema: Schema | None) -> str:
    return "value of its type" if schema is None else schema[column].type.sql


def _fits(text: str, type_: pa.DataType) -> bool:
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return True
    try:
        pa.array([text.strip()]).cast(type_)
    except pa.ArrowInvalid:
        return False
    return True


def _records(path: Path, form: CsvForm) -> Iterator[tuple[int, list[str]]]:
    """Each row, the header included, with the line at which it begins; empty lines are left out."""
    with text_of(path, "utf-8-sig" if form.is_utf8 else form.encoding) as file, _long_fields():
        reader, begins = _reader(file, path, form), 1
        for values in reader:
            if values:
                yield begins, values
            begins = reader.line_num + 1


def _reader(file: Any, path: Path, form: CsvForm, strict: bool = False) -> Any:
    quoting = csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE
    delimiter, quote = form.delimiter_of(path), form.quote or None
    return csv.reader(file, delimiter=delimiter, quotechar=quote, quoting=quoting, strict=strict)


@contextmanager
def _long_fields() -> Generator[None]:
    """Python's reader takes values of any length meanwhile, as Arrow's does."""
    before = csv.field_size_limit(_WHOLE - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def undecodable(path: Path, encoding: str) -> int:
    """The first line of a file that is no text in an encoding."""
    with opened(path) as file:
        lines = file.read().split(b"\n")
    return next((number for number, line in enumerate(lines, 1) if not _is_text(line, encoding)), len(lines))


def _is_text(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
