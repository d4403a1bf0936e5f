"""The meaning of CSV as text, character by character."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue, cast_value
from everview.oracle.scalar_zones import zone_named
from everview.types import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INTEGERS,
    STRING,
    TIMESTAMP,
    Struct,
    Type,
)


def _cells(line: str, options: dict[str, str]) -> list[str]:
    cells: list[str] = []
    rest: str | None = line
    between, around = options.get("sep", ","), options.get("quote", '"')
    while rest is not None:
        quoted = _quoted(rest, between, around)
        if quoted is not None:
            cell, rest = quoted
        else:
            cell, comma, after = rest.partition(between)
            rest = after if comma else None
        cells.append(cell)
    return cells


def _quoted(rest: str, between: str, around: str) -> tuple[str, str | None] | None:
    """A cell between quotes and what follows its comma; None if the quotes do not close before one."""
    if not rest.startswith(around):
        return None
    cell, place = "", 1
    while place < len(rest) and rest[place] != around:
        if rest[place] == "\\" and place + 1 < len(rest):
            cell += rest[place + 1] if rest[place + 1] in around + "\\" else rest[place : place + 2]
            place += 2
            continue
        cell += rest[place]
        place += 1
    after = rest[place + 1 :]
    if place >= len(rest) or (after and not after.startswith(between)):
        return None
    return cell, after[1:] if after else None


def _value(cell: str, to: Type) -> Any:
    if cell == "":
        return None
    if to == STRING:
        return cell
    if to == BOOLEAN:
        return {"true": True, "false": False}.get(cell.lower())
    if to in INTEGERS and not re.fullmatch(r"[+-]?[0-9]+", cell):
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
    options = _options(values[2:])
    cells = ["" if cell == options.get("nullValue", "") else cell for cell in _cells(values[0], options)]
    read = {f.name: _value(cells[n], f.type) if n < len(cells) else None for n, f in enumerate(type_.fields)}
    wrong = [n for n, f in enumerate(type_.fields) if n < len(cells) and cells[n] and read[f.name] is None]
    if options.get("mode") == "FAILFAST" and (wrong or len(cells) != len(type_.fields)):
        raise NoValue("it is no line of the schema")
    return read


def _options(given: list[Any]) -> dict[str, str]:
    return json.loads(given[0]) if given else {}


def _to_csv(type_: Type, types: list[Type], values: list[Any]) -> str | None:
    assert isinstance(types[0], Struct)
    cells: list[str] = []
    options = _options(values[1:])
    between, around = options.get("sep", ","), options.get("quote", '"')
    for field in types[0].fields:
        value = values[0][field.name]
        if value is None:
            null = options.get("nullValue", "")
            cells.append(around + null + around if options.get("quoteAll") == "TRUE" else null)
            continue
        text = cast_value(value, field.type, STRING) if field.type != STRING else value
        if field.type == TIMESTAMP:
            local = value.astimezone(zone_named(options["timeZone"])) if "timeZone" in options else value
            ahead = local.isoformat()[-6:] if local.utcoffset() else "Z"
            text = f"{local.year:04}-{local:%m-%dT%H:%M:%S}.{local.microsecond // 1000:03}{ahead}"
        text = text.strip(" ")
        plain = text and not set(text) & {between, around, "\r", "\n"} and options.get("quoteAll") != "TRUE"
        cells.append(text if plain else around + text.replace(around, "\\" + around) + around)
    return between.join(cells) or None


CSV: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {"from_csv": _from_csv, "to_csv": _to_csv}
