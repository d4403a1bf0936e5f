"""CSV files as Arrow tables, and the line of a row that cannot be taken.

Arrow reads numbers and booleans; text that stands for a date or a decimal, the table does. Only empty text without
quotes is NULL unless other texts are named: ``NA`` may be Namibia. Values in quotes may hold line breaks.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from everview.errors import BadRows
from everview.types import Decimal, Schema

_BLOCK: Final = 1 << 24  # bytes that Arrow reads at once; a row lies within one block
_NULL_HINT: Final = 'nothing of it was taken in; nulls=("", "NA") names texts that stand for NULL'
Types = dict[str, pa.DataType]


def read_csv(path: Path, schema: Schema | None, nulls: Sequence[str]) -> pa.Table:
    """The rows of a CSV file; without a schema, with the types that Arrow sees in them."""
    types = None if schema is None else {field.name: _in_text(field.type) for field in schema}
    try:
        return _read(path, types, nulls, _BLOCK)
    except pa.ArrowInvalid as error:
        if _BLOCK < path.stat().st_size < 1 << 31:  # a row may be longer than a block
            return _read(path, types, nulls, path.stat().st_size)
        raise _fault(path, types or {}, nulls, error) from error


def lines_of_csv(path: Path) -> list[int]:
    """The line at which each row begins, counting from one."""
    return [line for line, _ in _records(path)][1:]


def _read(path: Path, types: Types | None, nulls: Sequence[str], block: int) -> pa.Table:
    return pacsv.read_csv(
        path,
        read_options=pacsv.ReadOptions(block_size=block),
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(
            column_types=types, null_values=list(nulls), strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _in_text(type_: Any) -> pa.DataType:
    if isinstance(type_, Decimal) or pa.types.is_temporal(type_.arrow) or pa.types.is_nested(type_.arrow):
        return pa.string()
    return type_.arrow


# -- what is wrong, and where


def _fault(path: Path, types: Types, nulls: Sequence[str], error: pa.ArrowInvalid) -> BadRows:
    """The first mistake in a file that Arrow could not read, found row by row."""
    try:
        return _first_fault(_records(path), types, nulls) or BadRows(str(error), hint="nothing of it was taken in")
    except UnicodeDecodeError:
        return BadRows(f"line {_undecodable(path)} is no UTF-8", hint="save the file in UTF-8")
    except csv.Error as unread:
        return BadRows(f"it cannot be read as CSV: {unread}", hint="nothing of it was taken in")


def _first_fault(records: Iterator[tuple[int, list[str]]], types: Types, nulls: Sequence[str]) -> BadRows | None:
    _, names = next(records, (1, list[str]()))
    if not names:
        return BadRows("it is empty", hint="the first line names the columns")
    for line, values in records:
        if len(values) != len(names):
            counts = f"{len(values)} value{'s' * (len(values) != 1)}, not {len(names)}"
            return BadRows(f"line {line} has {counts}: {','.join(values)[:80]}", hint=f"columns: {', '.join(names)}")
        for name, value in zip(names, values, strict=True):
            type_ = types.get(name)
            if type_ is not None and value not in nulls and not _fits(value, type_):
                return BadRows(f'line {line}, column "{name}": {value[:80]!r} is no {type_}', hint=_NULL_HINT)
    return None


def _fits(text: str, type_: pa.DataType) -> bool:
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return True
    try:
        pa.array([text.strip()]).cast(type_)
    except pa.ArrowInvalid:
        return False
    return True


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each row, the header included, with the line at which it begins; empty lines are left out."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader, begins = csv.reader(file), 1
        for values in reader:
            if values:
                yield begins, values
            begins = reader.line_num + 1


def _undecodable(path: Path) -> int:
    with path.open("rb") as file:
        return next(number for number, line in enumerate(file, 1) if not _is_text(line))


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
