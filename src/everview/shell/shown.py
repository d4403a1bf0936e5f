"""Results as text for a terminal: tables that fit its width, numbers to the right, NULL told from empty text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from everview.codes.rows import to_rows
from everview.database.answers import Answer
from everview.types import Decimal, Schema, Type
from everview.zset.tables import readable

MOST: Final = 200  # rows that are shown of an answer
_NUMBERS: Final = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"}


def show_answer(console: Console, answer: Answer) -> None:
    """Print an answer as a table, its first rows if they are many, and how many rows it has."""
    table = answer.to_arrow().slice(0, MOST)
    show_rows(console, answer.schema, to_rows(answer.schema, table))
    more = f", the first {MOST} are shown" if len(answer) > MOST else ""
    console.print(Text(f"{len(answer):,} row{'s' * (len(answer) != 1)}{more}", "dim"))


def show_rows(console: Console, schema: Schema, rows: Iterable[Sequence[Any]], weights: Sequence[int] = ()) -> None:
    """Print rows as a table; with weights, each row behind its weight."""
    table = Table(header_style="bold", show_lines=False)
    if weights:
        table.add_column("", justify="right")
    for field in schema:
        table.add_column(Text(field.name), justify="right" if is_number(field.type) else "left", overflow="fold")
    for place, row in enumerate(rows):
        before = [Text(f"{weights[place]:+d}", "green" if weights[place] > 0 else "red")] if weights else []
        table.add_row(*before, *map(cell, row))
    console.print(table)


def is_number(type_: Type) -> bool:
    """Whether values are numbers, which stand to the right."""
    return isinstance(type_, Decimal) or type_.sql in _NUMBERS


def cell(value: Any) -> Text:
    """A value as people read it."""
    return Text(readable(value), "dim" if value is None else "")


def as_objects(answer: Answer) -> Iterable[str]:
    """The rows of an answer as lines of JSON."""
    for row in answer.rows():
        yield json.dumps(dict(zip(answer.names, row, strict=True)), default=_in_json, ensure_ascii=False)


def _in_json(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else readable(value)
