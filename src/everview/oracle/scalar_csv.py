"""The meaning of CSV as text, character by character."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue, cast_value
from everview.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, INTEGER, SMALLINT, STRING, TIMESTAMP, TINYINT, Struct, Type

_WHOLE: Final = (TINYINT, SMALLINT, INTEGER, BIGINT)


def _cells(line: str) -> list[str]:
    cells: list[str] = []
    rest: str | None = line
    while rest is not None:
        quoted = _quoted(rest)
        if quoted is not None:
            cell, rest = quoted
        else:
            cell, comma, after = rest.partition(",")
            rest = after if comma else None
        cells.append(cell)
    return cells


def _quoted(rest: str) -> tuple[str, str | None] | None:
    """A cell between quotes and what follows its comma; None if the quotes do not close before one."""
    if not rest.startswith('"'):
        return None
    cell, at = "", 1
    while at < len(rest) and rest[at] != '"':
        if rest[at] == "\\" and at + 1 < len(rest):
            cell += rest[at + 1] if rest[at + 1] in '"\\' else rest[at : at + 2]
            at += 2
            continue
        cell += rest[at]
        at += 1
    after = rest[at + 1 :]
    if at >= len(rest) or (after and not after.startswith(",")):
        return None
    return cell, after[1:] if after else None


def _value(cell: str, to: Type) -> Any:
    if cell == "":
        return None
    if to == STRING:
        return cell
    if to == BOOLEAN:
        return {"true": True, "false": False}.get(cell.lower())
    if to in _WHOLE and not re.fullmatch(r"[+-]?[0-9]+", cell):
        return None
    if to in (FLOAT, DOUBLE):
        plain = cell.strip()
        if plain.lstrip("+-") in ("Inf", "Infinity"):
            return -math.inf if plain[0] == "-" else math.inf
        if plain != "NaN" and not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?", plain, re.ASCII):
            return None
    try:
        return cast_value(cell, STRING, to)
    except NoValue:
        return None


def _from_csv(type_: Type, types: list[Type], values: list[Any]) -> dict[str, Any]:
    assert isinstance(type_, Struct)
    cells = _cells(values[0])
    return {f.name: _value(cells[n], f.type) if n < len(cells) else None for n, f in enumerate(type_.fields)}


def _to_csv(type_: Type, types: list[Type], values: list[Any]) -> str | None:
    assert isinstance(types[0], Struct)
    cells: list[str] = []
    for field in types[0].fields:
        value = values[0][field.name]
        if value is None:
            cells.append("")
            continue
        text = cast_value(value, field.type, STRING) if field.type != STRING else value
        if field.type == TIMESTAMP:
            text = f"{value.year:04}-{value:%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
        text = text.strip(" ")
        plain = text and not set(text) & set(',"\r\n')
        cells.append(text if plain else '"' + text.replace('"', '\\"') + '"')
    return ",".join(cells) or None


CSV: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {"from_csv": _from_csv, "to_csv": _to_csv}
