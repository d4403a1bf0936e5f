"""Tables written to files: CSV, JSON lines and Parquet. A file is there when it is whole, and not before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq

from everview.errors import SourceError
from everview.plan.typing import call, literal
from everview.scalars.evaluate import Evaluate
from everview.scalars.expressions import Column
from everview.sources.csv_form import CsvForm
from everview.sources.opening import COMPRESSED, is_compressed
from everview.types import Schema, unknown_name

_OPTIONS: Final = {"csv": ("delimiter", "header"), "json": (), "parquet": ("compression",)}


def write_file(schema: Schema, rows: pa.Table, path: Path, format_: str, options: Mapping[str, Any]) -> None:
    """Write rows to a file, in place of what is there."""
    for option in options:
        if option not in _OPTIONS[format_]:
            raise unknown_name(f"option of COPY TO {format_}", option, _OPTIONS[format_] or ["none"])
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _WRITERS[format_](schema, rows, path, partial, options)
        partial.replace(path)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{path} cannot be written: {error}", hint="nothing was written") from error
    finally:
        with suppress(OSError):
            partial.unlink()


def _csv(schema: Schema, rows: pa.Table, path: Path, partial: Path, options: Mapping[str, Any]) -> None:
    nested = [field.name for field in schema if pa.types.is_nested(field.type.arrow)]
    if nested:
        hint = "write JSON lines or Parquet, or to_json(column)"
        raise SourceError(f'column "{nested[0]}" is nested, which CSV cannot hold', hint=hint)
    form = CsvForm(delimiter=options.get("delimiter"))
    how: Any = pacsv.WriteOptions(
        include_header=bool(options.get("header", True)), delimiter=form.delimiter_of(path), quoting_style="needed"
    )
    with _out(path, partial) as file:
        pacsv.write_csv(rows, file, how)


def _json(schema: Schema, rows: pa.Table, path: Path, partial: Path, options: Mapping[str, Any]) -> None:
    pairs = [
        part
        for place, field in enumerate(schema)
        for part in (literal(field.name), Column(place, field.name, field.type, field.nullable))
    ]
    columns = [column.combine_chunks() for column in rows.columns]
    (lines,) = Evaluate((call("to_json", call("named_struct", *pairs)),))(*columns)
    with _out(path, partial) as file:
        for line in lines.to_pylist():
            file.write(line.encode() + b"\n")


def _parquet(schema: Schema, rows: pa.Table, path: Path, partial: Path, options: Mapping[str, Any]) -> None:
    compression: Any = str(options.get("compression", "snappy"))
    papq.write_table(rows, partial, compression=compression)


def _out(path: Path, partial: Path) -> Any:
    if not is_compressed(path):
        return pa.OSFile(str(partial), "wb")
    return pa.CompressedOutputStream(str(partial), COMPRESSED[path.suffix.lower()])


_WRITERS: Final = {"csv": _csv, "json": _json, "parquet": _parquet}
