"""The meaning of JSON as text, read with Python's library and written by hand."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from everview.oracle.scalar_casts import NoValue, cast_value
from everview.oracle.scalar_numbers import fit
from everview.oracle.scalar_variants import written
from everview.oracle.scalar_zones import zone_named
from everview.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    MapType,
    Struct,
    Type,
)
from everview.types import Decimal as DecimalType


class Members(tuple[tuple[str, Any], ...]):
    """An object's members."""


def _none(name: str) -> Any:
    raise ValueError(name)


def _read(text: str, options: Mapping[str, str] | None = None) -> Any:
    """The value and whether there is one."""
    allowed = {"allowSingleQuotes": "TRUE", **(options or {})}
    decoder = json.JSONDecoder(object_pairs_hook=Members, parse_constant=_none)
    for attempt in (text, _plain(text, {name for name, said in allowed.items() if said == "TRUE"})):
        try:
            return decoder.raw_decode(attempt.strip(" \t\r\n"))[0], True
        except (ValueError, RecursionError):
            continue
    return None, False


def _plain(text: str, allowed: set[str]) -> str:
    """A looser spelling of JSON in the strict one, character by character."""
    made, place = "", 0
    while place < len(text):
        letter, rest = text[place], text[place:]
        end = place + 1
        if letter == '"' or (letter == "'" and "allowSingleQuotes" in allowed):
            while end < len(text) and text[end] != letter:
                end += 2 if text[end] == "\\" else 1
            inside = text[place + 1 : end]
            if letter == "'" and end < len(text):
                inside = inside.replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
                made += f'"{inside}"'
            else:
                made += text[place : end + 1]
            end += 1
        elif "allowComments" in allowed and rest[:2] == "//":
            end = place + (rest + "\n").index("\n")
        elif "allowComments" in allowed and rest[:2] == "/*" and "*/" in rest:
            end = place + rest.index("*/") + 2
            made += " "
        elif letter.isascii() and (letter.isalpha() or letter in "_$"):
            while end < len(text) and (text[end].isascii() and (text[end].isalnum() or text[end] in "_$")):
                end += 1
            name = text[place:end]
            quoted = "allowUnquotedFieldNames" in allowed and text[end:].lstrip().startswith(":")
            made += f'"{name}"' if quoted else name
        elif letter.isdigit():
            while end < len(text) and (text[end].isalnum() or text[end] in ".+-"):
                end += 1
            digits = text[place:end]
            while "allowNumericLeadingZeros" in allowed and digits[0] == "0" and digits[1:2].isdigit():
                digits = digits[1:]
            made += digits
        else:
            made += letter
        place = end
    return made


EVERY: Final = -1  # the step to all elements of an array


def _steps(path: str) -> list[str | int] | None:
    if path[:1] != "$" or ".*" in path or "['*']" in path:
        return None
    steps: list[str | int] = []
    rest = path[1:]
    while rest:
        if rest.startswith("['") and "']" in rest:
            key, _, rest = rest[2:].partition("']")
            steps.append(key)
        elif rest.startswith("[*]"):
            steps.append(EVERY)
            rest = rest[3:]
        elif rest[0] == "[" and rest[1 : rest.find("]")].isdigit() and "]" in rest:
            number, _, rest = rest[1:].partition("]")
            steps.append(int(number))
        elif rest[0] == "." and rest[1:2] not in ("", ".", "["):
            end = min(at if (at := rest.find(mark, 1)) > 0 else len(rest) for mark in ".[")
            steps.append(rest[1:end])
            rest = rest[end:]
        else:
            return None
    return steps


def _get(text: str, path: str, quotes: bool = False) -> str | None:
    steps, (value, good) = _steps(path), _read(text)
    if steps is None or not good:
        return None
    written: list[str] = []
    if not _write(value, steps, "quoted" if quotes else "raw", written):
        return None
    return " ".join(written)


def _write(value: Any, steps: list[str | int], style: str, written: list[str]) -> bool:
    """Append the values of a path in the order in which Spark writes them; False if there is none."""
    match steps, value:
        case [], str() if style == "raw":
            written.append(value)
        case [], list() if style == "flat":
            written_items = [_write(item, [], style, written) for item in value]
            return any(written_items)
        case [], _:
            written.append(_text(value))
        case [str(key), *rest], Members():
            return any(_write(v, rest, style, written) for k, v in value if k == key and v is not None)
        case [-1, *rest], list():
            return _write_all(value, rest, style, written)
        case [int(place), *rest], list() if place < len(value):
            return _write(value[place], rest, "quoted" if rest[:1] == [EVERY] else style, written)
        case _:
            return False
    return True


def _write_all(items: list[Any], rest: list[str | int], style: str, written: list[str]) -> bool:
    inner: list[str] = []
    if rest[:1] == [EVERY]:
        found = [_write(item, rest[1:], "flat", inner) for item in items]
    else:
        found = [_write(item, rest, "quoted" if style == "raw" else style, inner) for item in items]
        if style != "quoted" and sum(found) < 2:
            written.extend([",".join(inner)] if any(found) else [])
            return any(found)
    written.append("[" + ",".join(inner) + "]")
    return any(found)


def _text(value: Any) -> str:
    match value:
        case Members():
            return "{" + ",".join(_text(key) + ":" + _text(member) for key, member in value) + "}"
        case list():
            return "[" + ",".join(_text(item) for item in value) + "]"
        case float():
            return cast_value(value, DOUBLE, STRING)
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _length(text: str) -> int | None:
    value, _ = _read(text)
    return len(value) if isinstance(value, list) else None


def _keys(text: str) -> list[str] | None:
    value, _ = _read(text)
    return [key for key, _ in value] if isinstance(value, Members) else None


def _written(value: Any, type_: Type, options: str = "{}") -> str:
    if value is None:
        return "null"
    if isinstance(type_, Struct):
        every = json.loads(options).get("ignoreNullFields") == "FALSE"
        members = [(f.name, value[f.name], f.type) for f in type_.fields if every or value[f.name] is not None]
        return "{" + ",".join(f"{_text(name)}:{_written(v, t, options)}" for name, v, t in members) + "}"
    if isinstance(type_, Array):
        return "[" + ",".join(_written(item, type_.element, options) for item in value) + "]"
    if isinstance(type_, MapType):
        members = ((k if isinstance(k, str) else _written(k, type_.key), v) for k, v in value.items())
        return "{" + ",".join(f"{_text(k)}:{_written(v, type_.value, options)}" for k, v in members) + "}"
    return _zoned(value, type_, json.loads(options).get("timeZone"))


def _zoned(value: Any, type_: Type, zone: str | None) -> str:
    """A value without parts, moments by the clock of a zone."""
    clock = dt.UTC if zone is None else zone_named(zone)
    if type_ == VARIANT:
        return written(value.value, clock)
    if type_ != TIMESTAMP or zone is None:
        return _plainly_written(value, type_)
    local = value.astimezone(clock)
    text = _plainly_written(local, type_)
    return text if local.utcoffset() == dt.timedelta() else text.replace("Z", local.isoformat()[-6:])


def _plainly_written(value: Any, type_: Type) -> str:
    if type_ == BINARY:
        return _text(base64.encodebytes(value).decode().replace("\n", ""))
    if type_ == TIMESTAMP:
        return f'"{value.year:04}-{value:%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"'
    if type_ == TIMESTAMP_NTZ:
        return f'"{value.year:04}-{value:%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}"'
    if isinstance(value, Decimal):
        return str(value)
    plain = cast_value(value, type_, STRING) if type_ != STRING else value
    quoted = type_.sql in ("STRING", "DATE") or (type_ in (FLOAT, DOUBLE) and plain[-1:] in ("N", "y"))
    return _text(plain) if quoted else plain


def _from_json(type_: Type, types: list[Type], values: list[Any]) -> Any:
    text = values[0].strip(" \t\r\n")
    options = json.loads(values[2]) if len(values) > 2 else {}
    column = options.get("columnNameOfCorruptRecord")
    if column is not None and isinstance(type_, Struct):
        return _kept_where_corrupt(type_, column, values[0], options)
    value, good = _read(text, options)
    fits, result = _fits(value, type_) if good else (False, None)
    if options.get("mode") == "FAILFAST" and text and not (good and fits and _all_fit(value, type_)):
        raise NoValue("it is no JSON of the schema")
    if isinstance(type_, Struct) and text and (not fits or result is None):
        return {field.name: None for field in type_.fields}
    return result if fits else None


def _kept_where_corrupt(type_: Struct, column: str, text: str, options: Mapping[str, str]) -> Any:
    """A struct of which one field is the text, if that is not of the schema of the others."""
    others = Struct(field for field in type_.fields if field.name != column)
    value, good = _read(text.strip(" \t\r\n"), options)
    corrupt = not (good and _fits(value, others)[0] and _all_fit(value, others))
    plain = json.dumps({name: said for name, said in options.items() if name != "columnNameOfCorruptRecord"})
    read = _from_json(others, [], [text, "", plain])
    if read is None:
        return None
    return {field.name: read.get(field.name, text if corrupt else None) for field in type_.fields}


def _all_fit(value: Any, type_: Type) -> bool:
    """Whether a value is of a type with all its parts."""
    if value is None:
        return True
    if isinstance(type_, Struct) and isinstance(value, Members):
        return all(_all_fit(dict(value).get(f.name), f.type) for f in type_.fields)
    if isinstance(type_, Array) and isinstance(value, list):
        return all(_all_fit(item, type_.element) for item in value)
    if isinstance(type_, MapType) and isinstance(value, Members):
        return all(_all_fit(member, type_.value) for member in dict(value).values())
    return _fits(value, type_)[0]


def _fits(value: Any, type_: Type) -> tuple[bool, Any]:
    """Whether a value is of a type, and then the value."""
    if value is None:
        return True, None
    if isinstance(type_, Struct | MapType):
        return _members_fit(value, type_) if isinstance(value, Members) else (False, None)
    if isinstance(type_, Array):
        items = [_fits(item, type_.element) for item in value] if isinstance(value, list) else [(False, None)]
        return all(fits for fits, _ in items), [item for _, item in items] if all(f for f, _ in items) else None
    if type_ == STRING:
        return True, value if isinstance(value, str) else _text(value)
    if isinstance(value, bool) or type_ == BOOLEAN:
        good = isinstance(value, bool) and type_ == BOOLEAN
        return good, value if good else None
    return _number(value, type_)


def _members_fit(value: Members, type_: Struct | MapType) -> tuple[bool, Any]:
    if isinstance(type_, Struct):
        return True, {f.name: _fits([None, *(v for k, v in value if k == f.name)][-1], f.type)[1] for f in type_.fields}
    parts = {key: _fits(member, type_.value) for key, member in dict(value).items()}
    good = all(fits for fits, _ in parts.values())
    return good, {key: part for key, (_, part) in parts.items()} if good else None


def _number(value: Any, type_: Type) -> tuple[bool, Any]:
    if type_ in (FLOAT, DOUBLE):
        if value in ("NaN", "Infinity", "-Infinity"):
            return True, float(value)
        good = isinstance(value, (int, float))
        return good, cast_value(float(value), DOUBLE, type_) if good else None
    kinds = (int, float, str) if isinstance(type_, DecimalType) else int
    if not isinstance(value, kinds):
        return False, None
    try:
        exact = Fraction(repr(value) if isinstance(value, float) else value)
        return True, fit(type_, exact)
    except (NoValue, ValueError, ZeroDivisionError):
        return False, None


def _member(text: str, name: str) -> str | None:
    value, _ = _read(text)
    members = [member for key, member in value if key == name][-1:] if isinstance(value, Members) else []
    if not members or members[0] is None:
        return None
    return members[0] if isinstance(members[0], str) else _text(members[0])


JSON: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "get_json_object": lambda type_, types, values: _get(*values),
    "json_part": lambda type_, types, values: _get(*values, quotes=True),
    "json_array_length": lambda type_, types, values: _length(*values),
    "json_object_keys": lambda type_, types, values: _keys(*values),
    "json_member": lambda type_, types, values: _member(*values),
    "from_json": _from_json,
    "to_json": lambda type_, types, values: _written(values[0], types[0], *values[1:]),
}
