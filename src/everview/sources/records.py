"""JSON lines: one object a line, and errors that name the line.

>>> list(objects(['{"id": 1}', "", '{"id": 2}']))
[(1, {'id': 1}), (3, {'id': 2})]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from everview.errors import BadRows
from everview.sources.opening import text_of
from everview.types import Schema

Object = Mapping[str, Any]


def objects(lines: Iterable[str], first: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of lines, each with the number of its line; empty lines are passed over."""
    for number, line in enumerate(lines, first):
        if line.strip():
            yield number, one_object(line, number)


def one_object(line: str, number: int) -> dict[str, Any]:
    """The object that a line is."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRows(f"line {number} is no JSON: {error}", hint="one object a line") from None
    if not isinstance(parsed, dict):
        raise BadRows(f"line {number} is no object: {line.strip()[:60]}", hint="one object a line, with columns")
    return parsed


def lines_of_json(path: Path) -> list[int]:
    """The line of each object in a file, counting from one."""
    with text_of(path) as file:
        return [number for number, line in enumerate(file, 1) if line.strip()]


def as_rows(schema: Schema, objects: Iterable[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Objects of lines as rows: columns that they do not have are NULL, and others are an error."""
    rows: list[dict[str, Any]] = []
    for number, row in objects:
        check_columns(schema, row, number)
        rows.append(row)
    return rows


def check_columns(schema: Schema, row: Object, number: int) -> None:
    for column in row:
        if column not in schema:
            hint = f"the columns are {', '.join(schema.names)}"
            raise BadRows(f'line {number} has the unknown column "{column}"', hint=hint)
