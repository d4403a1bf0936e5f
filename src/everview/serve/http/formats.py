"""Rows in the formats of HTTP: JSON, Arrow's stream and CSV out; JSON lines, Arrow and CSV in.

In JSON a row is a list of its values. Numbers that JSON has not, as NaN, are texts, and so are decimals, dates,
timestamps (a moment ends in Z) and binary values (base64).

>>> from everview.types import Schema
>>> table = pa.table({"n": [1, None], "at": pa.array([0, None], pa.timestamp("us", "UTC"))})
>>> json_rows(table)
[[1, '1970-01-01T00:00:00Z'], [None, None]]
"""

from __future__ import annotations

import base64
import csv
import datetime as dt
import decimal
import io
import json
import math
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from everview.codes.ingest import ingest
from everview.errors import BadRows, shown
from everview.sources.csv_form import CsvForm
from everview.sources.records import as_rows, objects
from everview.types import BINARY, Schema, unknown_name

JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"
CSV: Final = "text/csv"
LINES: Final = "application/x-ndjson"
SHORT: Final = {"json": JSON, "arrow": ARROW, "csv": CSV, "ndjson": LINES, "jsonl": LINES}
_TYPES: Final = {
    **{kind: kind for kind in (JSON, ARROW, CSV, LINES)},
    "application/jsonl": LINES,
    "application/x-jsonlines": LINES,
    "application/arrow": ARROW,
    "application/vnd.apache.arrow.file": ARROW,
}


def format_out(accept: str, wanted: str | None) -> str:
    """The format to answer in: what ``?format=`` says, or the first of the Accept header that is known; else JSON.

    >>> format_out("text/html, text/csv;q=0.9, */*", None), format_out("", "arrow")
    ('text/csv', 'application/vnd.apache.arrow.stream')
    """
    if wanted is not None:
        if wanted.lower() not in SHORT:
            raise unknown_name("format", wanted, ("json", "arrow", "csv"))
        return SHORT[wanted.lower()]
    for each in accept.split(","):
        kind = each.partition(";")[0].strip().lower()
        if kind in _TYPES:
            return _TYPES[kind]
    return JSON


def format_in(content_type: str) -> str:
    """The format of a body, by its Content-Type; JSON lines if it says nothing of use."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in ("", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded"):
        return LINES
    raise BadRows(f"{kind} is no format of rows", hint=f"send one of {', '.join((LINES, JSON, CSV, ARROW))}")


# -- out


def json_rows(table: pa.Table) -> list[list[Any]]:
    """The rows as lists of values that JSON has."""
    columns = [_column(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(table.num_rows)]


def _column(column: Any) -> list[Any]:
    values, made = column.to_pylist(maps_as_pydicts=None), _json_of(column.type)
    return values if made is None else [None if value is None else made(value) for value in values]


def _json_of(type_: pa.DataType) -> Callable[[Any], Any] | None:
    """The function that makes a value of an Arrow type fit for JSON; None if the value already is."""
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_string(type_) or pa.types.is_null(type_):
        return None
    return json_value


def json_value(value: Any) -> Any:
    """A Python value as JSON has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")
        case decimal.Decimal():
            return format(value, "f")
        case dt.datetime():
            return (
                value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z" if value.tzinfo else value.isoformat()
            )
        case dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(key): json_value(part) for key, part in value.items()}
        case list() | tuple():
            return [json_value(part) for part in value]
        case _:
            return str(value)


def columns_of(schema: Schema) -> list[dict[str, Any]]:
    """The columns for JSON."""
    return [{"name": f.name, "type": f.type.sql, "nullable": f.nullable} for f in schema]


def dumped(value: Any) -> bytes:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")


def arrow_bytes(table: pa.Table) -> bytes:
    """The rows as a stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def csv_bytes(table: pa.Table) -> bytes:
    """The rows as CSV with a header; nested values are JSON."""
    for place, column in enumerate(table.columns):
        type_ = column.type
        if pa.types.is_nested(type_) or pa.types.is_binary(type_) or pa.types.is_duration(type_):
            texts = [None if v is None else dumped(json_value(v)).decode().strip('"') for v in column.to_pylist()]
            table = table.set_column(place, table.column_names[place], pa.array(texts, pa.string()))
    sink = io.BytesIO()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(quoting_style="needed"))
    return sink.getvalue()


# -- in


def rows_in(schema: Schema, body: bytes, kind: str) -> pa.Table:
    """The rows of a body for a table; columns may be missing if the table has defaults for them or allows NULL."""
    try:
        read = _READERS[kind](schema, body)
    except (pa.ArrowException, csv.Error, OSError, ValueError, RecursionError, OverflowError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadRows(f"the body cannot be read as {kind}: {said}", hint="nothing of it was taken in") from None
    if isinstance(read, pa.Table):
        _check_columns(schema, read.column_names)
        return ingest(schema.select(read.column_names), read)[0]
    for name in (f.name for f in schema if f.type == BINARY):
        for row in read:
            if isinstance(given := row.get(name), str):
                row[name] = bytes_of_json(given)
    given = list(dict.fromkeys(name for row in read for name in row))
    chosen = schema.select([name for name in schema.names if name in given])
    return ingest(chosen, read)[0]


def bytes_of_json(text: str) -> bytes:
    """Bytes as `json_value` writes them, in base64."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise BadRows(f"{shown(text, 60)} is no BINARY", hint="bytes are written in base64") from None


def _check_columns(schema: Schema, names: list[str]) -> None:
    for name in names:
        if name not in schema:
            raise unknown_name("column", name, schema.names)
    if len({*names}) < len(names):
        raise BadRows("a column is there twice", hint="names are unique: rename one")


def _lines(schema: Schema, body: bytes) -> list[dict[str, Any]]:
    return as_rows(schema, objects(io.StringIO(body.decode())))


def _json(schema: Schema, body: bytes) -> list[dict[str, Any]]:
    """An array of objects, or one object; or lines of them, which many call JSON, too."""
    try:
        said = json.loads(body)
    except ValueError:
        return _lines(schema, body)
    rows = said if isinstance(said, list) else [said]
    if not all(isinstance(row, dict) for row in rows):
        raise BadRows("the body is no list of objects", hint='as in [{"id": 1, "name": "Ada"}]')
    return as_rows(schema, ((number, row) for number, row in enumerate(rows, 1)))


def _arrow(schema: Schema, body: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.BufferReader(body)) as reader:
        table = reader.read_all()
    table.validate(full=True)  # offsets that lie would be read
    return table


def _csv(schema: Schema, body: bytes) -> pa.Table:
    if not body.strip():
        return schema.arrow.empty_table()
    header = body.split(b"\n", 1)[0].rstrip(b"\r")
    names = next(csv.reader([header.decode()]))
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, quoted_strings_can_be_null=False,
        null_values=[""],
    )  # fmt: skip
    parse = pacsv.ParseOptions(newlines_in_values=True)
    table = pacsv.read_csv(io.BytesIO(body), convert_options=convert, parse_options=parse)
    _check_columns(schema, table.column_names)
    typed = CsvForm().typed(schema, table)
    for place, name in enumerate(typed.column_names):
        if schema[name].type == BINARY:
            read = [None if text is None else bytes_of_json(text) for text in table.column(name).to_pylist()]
            typed = typed.set_column(place, name, pa.array(read, pa.binary()))
    return typed


_READERS: Final[dict[str, Callable[[Schema, bytes], Any]]] = {LINES: _lines, JSON: _json, ARROW: _arrow, CSV: _csv}
