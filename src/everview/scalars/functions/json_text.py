"""JSON as text: values written as JSON, parts of a text by a path, the keys of an object and the length of an array.

What follows a value is passed over; what is no JSON is NULL.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, TypeGuard

import numpy as np
import pyarrow as pa

from everview.errors import BadPattern
from everview.scalars.functions.kernel import Failed, Kernel, Kind, Value, constant, each, each_row
from everview.scalars.functions.zones import tzinfo_of
from everview.scalars.loose_json import SINGLE_QUOTES, strict_json
from everview.types import VARIANT, Variant
from everview.types.arrow import field_of_arrow

_STEP: Final = re.compile(r"\.([^.\[]+)|\['([^']*)'\]|\[(\d+|\*)\]")
_EVERY: Final = None  # the step to all elements of an array
_Steps = tuple[str | int | None, ...]


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, in their order, each as often as it is there."""


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_no_constant)


def _read(text: str, options: Mapping[str, str] = SINGLE_QUOTES) -> Any:
    """The value that a text begins with; raises `ValueError`.

    What JSON itself does not have is rewritten, as far as the options allow it, where the text is none without that.
    """
    try:
        return _DECODER.raw_decode(text.lstrip(" \t\r\n"))[0]
    except ValueError:
        strict = strict_json(text, options)
        if strict == text:
            raise
        return _DECODER.raw_decode(strict.lstrip(" \t\r\n"))[0]


# -- paths


@cache
def _steps(path: str) -> _Steps | None:
    """The keys and places of a path; None if it is none, or asks for all members of an object, which finds nothing."""
    if not path.startswith("$"):
        return None
    steps: list[str | int | None] = []
    place = 1
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None or "*" in (step[1], step[2]):
            return None
        if step[3]:
            steps.append(_EVERY if step[3] == "*" else int(step[3]))
        else:
            steps.append(step[1] or step[2] or "")
        place = step.end()
    return tuple(steps)


def _get(quotes: bool) -> Kernel:
    def run(out: Kind, a: Value, path: Value) -> Any:
        steps = _steps(path.as_py())
        if quotes and steps is not None and _EVERY in steps:
            raise BadPattern(f"the path {path.as_py()!r} has a *", hint="name one element, such as $.a[0]")
        return pa.nulls(len(a), out) if steps is None else each(out, lambda text: _part(text, steps, quotes), a)

    return run


class _Style(Enum):
    """How a value that a path leads to is written."""

    RAW = "text without quotes"
    QUOTED = "text in quotes"
    FLAT = "the elements of an array, and not the array"


def _part(text: str, steps: _Steps, quotes: bool) -> str | None:
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return None
    parts, is_there = _parts(value, steps, _Style.QUOTED if quotes else _Style.RAW)
    return " ".join(parts) if is_there else None


def _parts(value: Any, steps: _Steps, style: _Style) -> tuple[list[str], bool]:
    """The texts that Spark writes for the parts of a value that a path leads to, and whether there is a part.

    An empty array may be written although there is none.
    """
    if not steps:
        return _whole(value, style)
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        return _members(value, step, rest, style)
    if not _is_array(value):
        return [], False
    if step is None:  # every element
        return _elements(value, rest, style)
    if step >= len(value):
        return [], False
    return _parts(value[step], rest, _Style.QUOTED if rest[:1] == (_EVERY,) else style)


def _whole(value: Any, style: _Style) -> tuple[list[str], bool]:
    if style is _Style.RAW and isinstance(value, str):
        return [value], True
    if style is _Style.FLAT and _is_array(value):
        parts, count = _all_parts(value, (), style)
        return parts, count > 0
    return [_compact(value)], True


def _members(value: Any, key: str, rest: _Steps, style: _Style) -> tuple[list[str], bool]:
    """The parts in the first member of the name that has any."""
    written: list[str] = []
    members = value if isinstance(value, _Pairs) else ()
    for member in (member for name, member in members if name == key and member is not None):
        parts, is_there = _parts(member, rest, style)
        written += parts
        if is_there:
            return written, True
    return written, False


def _elements(value: list[Any], rest: _Steps, style: _Style) -> tuple[list[str], bool]:
    """The parts in all elements, as an array; a single one stands alone at the first level, as in Hive."""
    if rest[:1] == (_EVERY,):
        parts, count = _all_parts(value, rest[1:], _Style.FLAT)
    elif style is _Style.QUOTED:
        parts, count = _all_parts(value, rest, style)
    else:
        parts, count = _all_parts(value, rest, _Style.QUOTED if style is _Style.RAW else style)
        if count < 2:
            return ([",".join(parts)] if count else []), count > 0
    return [f"[{','.join(parts)}]"], count > 0


def _all_parts(value: list[Any], rest: _Steps, style: _Style) -> tuple[list[str], int]:
    """The parts in each element, one after the other, and how many elements have any."""
    each_ = [_parts(item, rest, style) for item in value]
    return [part for parts, _ in each_ for part in parts], sum(is_there for _, is_there in each_)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and not isinstance(value, _Pairs)


def _compact(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "{" + ",".join(f"{quoted(key)}:{_compact(member)}" for key, member in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_compact, value)) + "]"
    return (
        java_float(value)
        if isinstance(value, float)
        else quoted(value)
        if isinstance(value, str)
        else json.dumps(value)
    )


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def java_float(number: float, single: bool = False) -> str:
    """A finite float as Java writes it."""
    plain = decimal.Decimal(str(np.float32(number)) if single else repr(number))
    if plain == 0 or 1e-3 <= abs(number) < 1e7:
        text = f"{plain:f}"
        return text if "." in text else f"{text}.0"
    digits = "".join(map(str, plain.as_tuple().digits)).rstrip("0") or "0"
    return f"{'-' if number < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{plain.adjusted()}"


def _length(text: str) -> int | None:
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return None
    return len(value) if isinstance(value, list) and not isinstance(value, _Pairs) else None


def _keys(text: str) -> list[str] | None:
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return None
    return [key for key, _ in value] if isinstance(value, _Pairs) else None


# -- writing


def _to_json(out: Kind, a: Value, options: Value | None = None) -> Any:
    kind, given = a.type, {} if options is None else json.loads(options.as_py())
    zone = tzinfo_of(given["timeZone"]) if "timeZone" in given else None
    style = JsonStyle(given.get("ignoreNullFields") == "FALSE", zone)
    return each_row(out, lambda value: None if value is None else _json(value, kind, style), a)


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """Whether the NULL fields of structs are written, and the zone of moments, which is UTC if none is given."""

    nulls: bool = False
    zone: dt.tzinfo | None = None


_PLAIN_STYLE: Final = JsonStyle()


def _json(value: Any, of: Kind, style: JsonStyle = _PLAIN_STYLE) -> str:
    """A value of an Arrow type or field as JSON."""
    if value is None:
        return "null"
    kind = of.type if isinstance(of, pa.Field) else of
    if kind == pa.binary() and isinstance(of, pa.Field) and field_of_arrow(of).type == VARIANT:
        from everview.scalars.functions.variants import variant_json

        return variant_json(Variant(value).value, style.zone or dt.UTC)
    if pa.types.is_nested(kind):
        return _nested_json(value, kind, style)
    in_zone = style.zone is not None and isinstance(value, dt.datetime) and value.tzinfo is not None
    return _in_zone(value.astimezone(style.zone)) if in_zone else _plain_json(value, kind)


def _nested_json(value: Any, kind: Any, style: JsonStyle) -> str:
    if pa.types.is_struct(kind):
        fields = ((f.name, value[f.name], f) for f in kind)
        return (
            "{"
            + ",".join(f"{quoted(n)}:{_json(v, t, style)}" for n, v, t in fields if style.nulls or v is not None)
            + "}"
        )
    if pa.types.is_list(kind):
        return "[" + ",".join(_json(item, kind.value_field, style) for item in value) + "]"
    members = ((k if isinstance(k, str) else _json(k, kind.key_field), v) for k, v in value)
    return "{" + ",".join(f"{quoted(k)}:{_json(v, kind.item_field, style)}" for k, v in members) + "}"


def _plain_json(value: Any, kind: pa.DataType) -> str:
    match value:
        case bool() | int():
            return json.dumps(value)
        case float():
            endless = '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'
            return java_float(value, kind.bit_width == 32) if math.isfinite(value) else endless
        case decimal.Decimal():
            return str(value)  # as Java's BigDecimal, with a power of ten for very small ones
        case bytes():
            return quoted(base64.b64encode(value).decode())
        case dt.datetime() if value.tzinfo is None:
            return f'"{value.isoformat("T", "milliseconds")}"'
        case dt.datetime():
            return f'"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"' if value.year > 999 else _early(value)
        case dt.date():
            return f'"{value.isoformat()}"'
        case _:
            return quoted(value)


def _in_zone(shown: dt.datetime) -> str:
    """A moment by the clock of its zone, and how far that is ahead of UTC."""
    text = shown.isoformat("T", "milliseconds")
    ahead = shown.utcoffset()
    return f'"{text[:23]}{text[23:29] if ahead else "Z"}"'


def _early(value: dt.datetime) -> str:
    """A timestamp of a year of fewer than four digits."""
    return f'"{value.replace(tzinfo=None).isoformat("T", "milliseconds")}Z"'


# -- reading by a type


class _Unfit(Exception):
    """Raised by a value that is not of the type it is read as."""


_ENDLESS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _from_json(out: Kind, a: Value, schema: Value, options: Value | None = None) -> Any:
    given = SINGLE_QUOTES if options is None else {**SINGLE_QUOTES, **json.loads(options.as_py())}
    if "columnNameOfCorruptRecord" in given:
        return each(out, lambda text: _with_corrupt(text, out, given), a)
    if given.get("mode") == "FAILFAST":
        return each(out, lambda text: _strictly_typed(text, out, given), a)
    return each(out, lambda text: _typed(text, out, given), a)


def _with_corrupt(text: str, kind: Kind, options: Mapping[str, str]) -> Any:
    """The value of a text; where the text does not fit the schema, one field holds the text itself."""
    column = options["columnNameOfCorruptRecord"]
    read = pa.struct([field for field in kind if field.name != column])
    try:
        value = _strictly_typed(text, read, options)
        return None if value is None else {**value, column: None}
    except Failed:
        if options.get("mode") == "FAILFAST":
            raise
        return {**_typed(text, read, options), column: text}


def _typed(text: str, kind: Kind, options: Mapping[str, str]) -> Any:
    """The value of a text; a struct of NULLs, or NULL, where it is none of the type."""
    if not text.strip(" \t\r\n"):
        return None
    nothing = {field.name: None for field in kind} if pa.types.is_struct(kind) else None
    try:
        value = _read(text, options)
        return nothing if value is None else _fitted(value, kind)
    except (ValueError, RecursionError, _Unfit):
        return nothing


def _strictly_typed(text: str, kind: Kind, options: Mapping[str, str]) -> Any:
    """The value of a text; fails where it is none of the type, and where a field of it is not."""
    if not text.strip(" \t\r\n"):
        return None
    try:
        value = _read(text, options)
        if value is None and pa.types.is_struct(kind):
            return {field.name: None for field in kind}
        return _fitted(value, kind, strict=True)
    except (ValueError, RecursionError, _Unfit):
        raise Failed("it is no JSON of the schema") from None


def _fitted(value: Any, kind: Kind, strict: bool = False) -> Any:
    """A value as one of a type; in structs what does not fit is NULL, unless that is to fail."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return _struct(value, kind, strict)
    if pa.types.is_list(kind):
        if not isinstance(value, list) or isinstance(value, _Pairs):
            raise _Unfit
        return [_fitted(item, kind.value_type, strict) for item in value]
    if pa.types.is_map(kind):
        members = dict(_of(_Pairs, value))
        return [(key, _fitted(member, kind.item_type, strict)) for key, member in members.items()]
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else _compact(value)
    if pa.types.is_boolean(kind):
        return _of(bool, value)
    if pa.types.is_integer(kind):
        number = _of(int, value)
        if isinstance(number, bool) or not -(1 << kind.bit_width - 1) <= number < 1 << kind.bit_width - 1:
            raise _Unfit
        return number
    if pa.types.is_decimal(kind):
        return _decimal(value, kind)
    if isinstance(value, str) and value in _ENDLESS:
        return _ENDLESS[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Unfit
    return float(value)


def _of(wanted: type, value: Any) -> Any:
    if not isinstance(value, wanted):
        raise _Unfit
    return value


def _struct(value: Any, kind: Kind, strict: bool) -> dict[str, Any]:
    """The fields of an object; one that does not fit is NULL, and of several of a name the last counts."""
    members = dict(_of(_Pairs, value))
    fitted: dict[str, Any] = {}
    for field in kind:
        try:
            fitted[field.name] = _fitted(members.get(field.name), field.type, strict)
        except _Unfit:
            if strict:
                raise
            fitted[field.name] = None
    return fitted


def _decimal(value: Any, kind: Kind) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _Unfit
    try:
        number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
        unit = decimal.Decimal(1).scaleb(-kind.scale)
        number = number.quantize(unit, decimal.ROUND_HALF_UP, decimal.Context(prec=kind.precision))
    except decimal.InvalidOperation:
        raise _Unfit from None
    return number


def _member(text: str, name: str) -> str | None:
    """The last member of a name of an object, as text."""
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return None
    member = dict(value).get(name) if isinstance(value, _Pairs) else None
    return member if member is None or isinstance(member, str) else _compact(member)


KERNELS: Final[dict[str, Kernel]] = {
    "from_json": _from_json,
    "get_json_object": constant(1, _get(quotes=False)),
    "json_part": constant(1, _get(quotes=True)),
    "json_member": lambda out, a, name: each(out, _member, a, name),
    "json_array_length": lambda out, a: each(out, _length, a),
    "json_object_keys": lambda out, a: each(out, _keys, a),
    "to_json": _to_json,
}
