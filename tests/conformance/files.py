"""Conformance files: tables, views and changes as text that people read.

A file is a list of blocks, separated by blank lines; ``#`` begins a comment.

- ``sql``, then a statement over the following lines: a table, or a view. Views are checked after every tick.
- ``delta TABLE``, then a line for each row: ``+`` or ``-`` (``+3`` for a weight), then the values, by commas as in
  SQL: numbers, ``'text'``, ``true``, ``DATE '…'``, ``NULL``.
- ``tick`` ends a tick. Deltas before the first one are split into ticks at random, in another way for every seed.
- ``expect VIEW``, then rows: what the view holds at this point, recorded where DuckDB means something else.
- ``refused TEXT``, then a statement: it is refused, and the error says so.
- ``only everview``: the views of this file are checked by ``expect`` alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlglot import exp, parse_one

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Sql:
    text: str
    line: int


@dataclass(frozen=True)
class Delta:
    table: str
    rows: tuple[tuple[Row, int], ...]


@dataclass(frozen=True)
class Tick:
    pass


@dataclass(frozen=True)
class Expect:
    view: str
    rows: tuple[Row, ...]
    line: int


@dataclass(frozen=True)
class Refused:
    said: str
    text: str
    line: int


Block = Sql | Delta | Tick | Expect | Refused


@dataclass
class File:
    name: str
    blocks: list[Block] = field(default_factory=list[Block])
    outside: bool = True  # DuckDB is asked, too


def read(path: Path) -> File:
    """The blocks of a file."""
    found = File(path.stem)
    lines = path.read_text().splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            at += 1
            continue
        end = at
        while end < len(lines) and lines[end].strip():
            end += 1
        head, *body = [line for line in lines[at:end] if not line.startswith("#")]
        if head == "only everview":
            found.outside = False
        else:
            found.blocks.append(_block(head, body, at + 1))
        at = end
    return found


def _block(head: str, body: list[str], line: int) -> Block:
    kind, _, rest = head.partition(" ")
    match kind:
        case "sql":
            return Sql("\n".join([rest, *body]).strip(), line)
        case "delta":
            return Delta(rest, tuple(_weighted(row) for row in body))
        case "tick":
            return Tick()
        case "expect":
            return Expect(rest, tuple(values(row) for row in body), line)
        case "refused":
            return Refused(rest, "\n".join(body), line)
        case _:
            raise ValueError(f"line {line}: {head!r} begins no block")


def _weighted(line: str) -> tuple[Row, int]:
    found = re.match(r"([+-])(\d*)\s+(.*)", line)
    if found is None:
        raise ValueError(f"{line!r} is no change: write + or -, then the values")
    sign, count, row = found.groups()
    return values(row), (1 if sign == "+" else -1) * int(count or 1)


def values(line: str) -> Row:
    """A row as SQL writes it."""
    row = parse_one(f"SELECT {line}", read="spark").expressions
    return tuple(_value(e) for e in row)


def _value(e: exp.Expression) -> Any:
    match e:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(e.this)
        case exp.Literal():
            return e.this if e.is_string else _number(e.this)
        case exp.Neg():
            return -_value(e.this)
        case exp.Cast():
            return e.this.this  # dates and times go in as text
        case exp.Array():
            return [_value(item) for item in e.expressions]
        case _:
            raise ValueError(f"{e.sql()} is no value")


def _number(text: str) -> Any:
    """A whole number, a decimal, or with an exponent a float."""
    if re.fullmatch(r"\d+", text):
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)
