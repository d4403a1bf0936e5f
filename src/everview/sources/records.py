"""Objects of JSON files: one object a line, or one array of objects; errors name the line.

>>> import io
>>> list(objects(io.StringIO('{"id": 1}\\n\\n{"id": 2}')))
[(1, {'id': 1}), (3, {'id': 2})]
>>> list(objects(io.StringIO('[{"id": 1},\\n {"id": 2}]')))
[(1, {'id': 1}), (2, {'id': 2})]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOBase
from pathlib import Path
from typing import Any, Final

from everview.errors import BadRows
from everview.sources.opening import text_of
from everview.types import Schema

Object = Mapping[str, Any]
_DECODER: Final = json.JSONDecoder()
_BLANK: Final = " \t\r\n\ufeff"
_SPACE: Final = re.compile(rf"[{_BLANK}]*")
_ARRAY_HINT: Final = "one object a line, or one array of objects: [{…}, {…}]"


def objects(file: TextIOBase) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, each with the number of its line; empty lines are passed over."""
    for number, text in texts(file):
        yield number, one_object(text, number)


def texts(file: TextIOBase) -> Iterator[tuple[int, str]]:
    """The text of each object of a file, with the number of the line at which it begins."""
    numbered = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        return
    first = (first[0], first[1].removeprefix("\ufeff"))  # the mark of the byte order
    if first[1].lstrip(_BLANK).startswith("["):
        yield from _elements(first[1] + file.read(), first[0])
        return
    yield first
    yield from numbered


def _elements(text: str, line: int) -> Iterator[tuple[int, str]]:
    """The text of each element of an array, with the number of its line; the text begins at the given line."""
    place, counted, mark = _past_space(text, text.index("[") + 1), 0, ","
    if text.startswith("]", place):
        place, mark = _past_space(text, place + 1), "]"
    while mark == ",":
        line, counted = line + text.count("\n", counted, place), place
        try:
            end = _DECODER.raw_decode(text, place)[1]
        except (ValueError, RecursionError) as error:
            raise BadRows(f"line {line} is no JSON: {getattr(error, 'msg', error)}", hint=_ARRAY_HINT) from None
        yield line, text[place:end]
        end = _past_space(text, end)
        place, mark = _past_space(text, end + 1), text[end : end + 1]
    if mark != "]":
        raise BadRows(f"line {line}: the array goes on with {mark!r}, not with a comma", hint=_ARRAY_HINT)
    if place < len(text):
        raise BadRows(f"behind the array stands more: {text[place : place + 60]}", hint=_ARRAY_HINT)


def _past_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    assert space is not None, "it matches nothing, too"
    return space.end()


def one_object(line: str, number: int) -> dict[str, Any]:
    """The object that a line is."""
    try:
        parsed = json.loads(line)
    except json.JSONDecodeError as error:
        message = f"line {number} is no JSON: {error.msg.lower()} at character {error.pos + 1}"
        raise BadRows(message, hint="one object a line") from None
    except (ValueError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"
        raise BadRows(f"line {number} is no JSON that can be read: {what}", hint="one object a line") from None
    if not isinstance(parsed, dict):
        raise BadRows(f"line {number} is no object: {line.strip()[:60]}", hint="one object a line, with columns")
    return parsed


def lines_of_json(path: Path) -> list[int]:
    """The line of each object in a file, counting from one."""
    with text_of(path) as file:
        return [number for number, _ in texts(file)]


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
