"""Functions of variants: JSON read and written, parts by a path, parts changed, and variants of other types.

Each different variant is looked at once.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import pyarrow as pa

from everview.codes.rows import python_values
from everview.errors import BadPattern, EverviewError
from everview.scalars.functions.json_text import java_float, quoted
from everview.scalars.functions.kernel import Checked, Failed, Kernel, Kind, Value, constant, each, each_row
from everview.scalars.functions.variant_columns import plain_variants
from everview.scalars.functions.zones import tzinfo_of, zone_of
from everview.scalars.shapes import merged, shape_of, spelled
from everview.types import (
    FLOAT,
    Array,
    MapType,
    Struct,
    Type,
    Variant,
    parse_type,
    type_of_arrow,
)
from everview.types.variants import SingleFloat

Step = str | int
_STEP: Final = re.compile(r"\.([^.\[\]'\"]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_DIGITS: Final = 38
ABSENT: Final = object()  # in the place of a value where there is NULL, not a null of a variant


# -- JSON


class _Repeated(ValueError):
    """Raised by an object with a key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Repeated
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _fraction(text: str) -> Any:
    """A number with a point is a decimal, unless it has a power of ten or more digits than there are."""
    if "e" in text.lower():
        return float(text)
    number = decimal.Decimal(text)
    _, digits, exponent = number.as_tuple()
    fits = isinstance(exponent, int) and len(digits) <= _DIGITS and -exponent <= _DIGITS
    return number if fits else float(text)


def _whole(text: str) -> Any:
    number = int(text)
    if -(1 << 63) <= number < 1 << 63:
        return number
    return decimal.Decimal(text) if len(text.lstrip("-")) <= _DIGITS else float(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_fraction, parse_int=_whole, parse_constant=_no_constant
)


def _parsed(text: str) -> bytes:
    try:
        return Variant.of(_DECODER.raw_decode(text.lstrip(" \t\r\n"))[0]).raw
    except _Repeated:
        raise Failed("an object has a key twice") from None
    except (ValueError, RecursionError, EverviewError):
        raise Failed("it is no JSON") from None


def variant_json(value: Any, zone: dt.tzinfo = dt.UTC) -> str:
    """A value of a variant as JSON, its moments by the clock of a zone."""
    match value:
        case None:
            return "null"
        case dict():
            return "{" + ",".join(f"{quoted(k)}:{variant_json(v, zone)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ",".join(variant_json(part, zone) for part in value) + "]"
        case bool() | int():
            return json.dumps(value)
        case float():
            text = scalar_text(value)
            return text if math.isfinite(value) else f'"{text}"'
        case decimal.Decimal():
            return scalar_text(value)
        case dt.datetime() if value.tzinfo is not None:
            return f'"{_zoned(value, zone)}"'
        case _:
            return quoted(scalar_text(value))


def scalar_text(value: Any) -> str:
    """A value of a variant without parts as text."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            if math.isfinite(value):
                return java_float(value, isinstance(value, SingleFloat))
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        case decimal.Decimal():
            return f"{stripped(value):f}"
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime():
            return _moment(value)
        case _:
            return str(value)


def variant_text(value: Value) -> Value:
    """Variants as text: those without parts as a cast gives them, others as JSON."""

    def text(raw: bytes) -> str | None:
        held = Variant(raw).value
        if held is None:
            return None
        if isinstance(held, bytes):
            return held.decode(errors="replace")
        return variant_json(held) if isinstance(held, (dict, list)) else scalar_text(held)

    return each(pa.string(), text, value)


def _moment(value: dt.datetime) -> str:
    value = value.astimezone(dt.UTC) if value.tzinfo else value
    whole = f"{value.year:04}-{value.month:02}-{value.day:02} {value.hour:02}:{value.minute:02}:{value.second:02}"
    return whole + (f".{value.microsecond:06}".rstrip("0") if value.microsecond else "")


def _zoned(value: dt.datetime, zone: dt.tzinfo) -> str:
    """An instant as a clock shows it, with how far that is ahead of UTC."""
    shown = value.astimezone(zone)
    ahead = str(dt.timezone(shown.utcoffset() or dt.timedelta())).removeprefix("UTC")[:6]
    return _moment(shown.replace(tzinfo=None)) + (ahead or "+00:00")


def stripped(value: decimal.Decimal) -> decimal.Decimal:
    """A decimal without zeros at the end of its fraction."""
    if value == 0:
        return decimal.Decimal(0)
    with decimal.localcontext(decimal.Context(prec=80)):
        short = value.normalize()
        return short if short != short.to_integral_value() else short.quantize(decimal.Decimal(1))


# -- paths


@cache
def steps_of(path: str) -> tuple[Step, ...]:
    """The keys and places of a path such as ``$.a[0]['b c']``."""
    steps: list[Step] = []
    at = 1
    while path.startswith("$") and at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            break
        name, place, single, double = found.groups()
        steps.append(int(place) if place is not None else next(k for k in (name, single, double) if k is not None))
        at = found.end()
    if not path.startswith("$") or at < len(path):
        raise BadPattern(f"{path!r} is no path into a variant", hint="write it as in $.a.b[0] or $['a b']")
    return tuple(steps)


def _part(value: Any, steps: tuple[Step, ...]) -> Any:
    """The part at a path; `ABSENT` where there is none."""
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else ABSENT
        if value is ABSENT:
            return ABSENT
    return value


def _at(out: Kind, a: Value, path: Value) -> Any:
    steps = steps_of(path.as_py())

    def part(raw: bytes) -> bytes | None:
        value = _part(Variant(raw).value, steps)
        return None if value is ABSENT else Variant.of(value).raw

    return each(out, part, a)


# -- changes


def _placed(value: Any, steps: tuple[Step, ...], new: Any, inserts: bool, creates: bool) -> Any:
    """A value with another at a path: inserted where there is none, or in place of what is there."""
    if not steps:
        if inserts:
            raise Failed("there is a value at the path already")
        return new
    step, rest = steps[0], steps[1:]
    if value is ABSENT:
        value = {} if isinstance(step, str) else []
    if isinstance(step, str):
        if not isinstance(value, dict):
            raise Failed("the path leads into a value that is no object")
        return _with_member(value, step, rest, new, inserts, creates)
    if not isinstance(value, list):
        raise Failed("the path leads into a value that is no array")
    return _with_element(value, step, rest, new, inserts, creates)


def _with_member(
    value: dict[str, Any], key: str, rest: tuple[Step, ...], new: Any, inserts: bool, creates: bool
) -> dict[str, Any]:
    if key not in value and not creates:
        return value
    if not rest and inserts and key in value:
        raise Failed("there is a value at the path already")
    inner = value.get(key, ABSENT)
    return {**value, key: new if not rest else _placed(inner, rest, new, inserts, creates)}


def _with_element(
    value: list[Any], place: int, rest: tuple[Step, ...], new: Any, inserts: bool, creates: bool
) -> list[Any]:
    if place >= len(value):
        if not creates:
            return value
        added = new if not rest else _placed(ABSENT, rest, new, inserts, creates)
        return [*value, *([None] * (place - len(value))), added]
    if not rest and inserts:
        return [*value[:place], new, *value[place:]]
    inner = new if not rest else _placed(value[place], rest, new, inserts, creates)
    return [*value[:place], inner, *value[place + 1 :]]


def _changed(change: Callable[..., Any]) -> Callable[..., bytes]:
    """A function of the bytes of a variant, of one of its values."""

    def run(raw: bytes, *rest: Any) -> bytes:
        return Variant.of(change(Variant(raw).value, *rest)).raw

    return run


def _insert(value: Any, path: str, new: bytes) -> Any:
    return _placed(value, _inner_steps(path), Variant(new).value, True, True)


def _set(value: Any, path: str, new: bytes, creates: bool = True) -> Any:
    return _placed(value, _inner_steps(path), Variant(new).value, False, creates)


def _inner_steps(path: str) -> tuple[Step, ...]:
    """The steps of a path to a part of a variant."""
    steps = steps_of(path)
    if not steps:
        raise BadPattern("the path $ is the whole variant", hint="name a part of it, such as $.a")
    return steps


def _append(value: Any, path: str, new: bytes) -> Any:
    steps = steps_of(path)
    there = _part(value, steps)
    if there is ABSENT:
        return value
    if not isinstance(there, list):
        raise Failed("the value at the path is no array")
    longer = [*there, Variant(new).value]
    return _placed(value, steps, longer, False, True) if steps else longer


def _deleted(value: Any, path: str | None) -> Any:
    if path is None:
        return value
    return _without(value, _inner_steps(path))


def _without(value: Any, steps: tuple[Step, ...]) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(step, str) and isinstance(value, dict) and step in value:
        if not rest:
            return {k: v for k, v in value.items() if k != step}
        return {**value, step: _without(value[step], rest)}
    if isinstance(step, int) and isinstance(value, list) and step < len(value):
        inner = [] if not rest else [_without(value[step], rest)]
        return [*value[:step], *inner, *value[step + 1 :]]
    return value


def _delete(out: Kind, a: Value, *paths: Value) -> Any:
    def run(raw: bytes | None, *given: str | None) -> bytes | None:
        if raw is None:
            return None
        value = Variant(raw).value
        for path in given:
            value = _deleted(value, path)
        return Variant.of(value).raw

    return each_row(out, run, a, *paths)


def _full(value: Any, arrays: bool = True) -> Any:
    """A value without members that are null and, unless they are to stay, without such elements."""
    if isinstance(value, dict):
        return {k: _full(v, arrays) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_full(v, arrays) for v in value if v is not None or not arrays]
    return value


# -- shapes and entries


def _shapes(values: list[bytes | None]) -> str | None:
    held = [shape_of(Variant(raw).value) for raw in values if raw is not None]
    if not held:
        return None
    shape = held[0]
    for other in held[1:]:
        shape = merged(shape, other)
    return spelled(shape)


def _entries(raw: bytes) -> list[dict[str, Any]]:
    value = Variant(raw).value
    if isinstance(value, dict):
        pairs = list(value.items())
    else:
        pairs = [(None, part) for part in value] if isinstance(value, list) else []
    return [{"pos": pos, "key": key, "value": Variant.of(part).raw} for pos, (key, part) in enumerate(pairs)]


# -- from other types


def to_variant(value: Value, type_: Type) -> Value:
    """A column of any type as variants."""
    plain = plain_variants(value, type_)
    if plain is not None:
        return plain
    held = python_values(type_, value)
    return pa.array([None if v is None else Variant.of(inside(v, type_)).raw for v in held], pa.binary())


def inside(value: Any, type_: Type) -> Any:
    """A value of a type as one inside of a variant."""
    if value is None:
        return None
    match type_:
        case Array(element):
            return [inside(v, element) for v in value]
        case Struct(fields):
            return {f.name: inside(value[f.name], f.type) for f in fields}
        case MapType(_, item):
            return {k: inside(v, item) for k, v in value.items()}
        case _:
            if isinstance(value, Variant):
                return value.value
            return SingleFloat(value) if type_ == FLOAT else value


# -- the table


def _object(out: Kind, a: Value) -> Any:
    return to_variant(a, type_of_arrow(a.type))


def _json_of(out: Kind, a: Value, *zone: Value) -> Any:
    if zone:
        return each(out, lambda raw, name: variant_json(Variant(raw).value, _known_zone(name)), a, *zone)
    return each(out, lambda raw: variant_json(Variant(raw).value), a)


def _known_zone(name: str) -> dt.tzinfo:
    if zone_of(name) is None:
        raise Failed(f"there is no zone {name!r}")
    return tzinfo_of(name)


def _in_zone(out: Kind, a: Value, type_: Value, zone: Value) -> Any:
    from everview.scalars.variant_casts import from_variant

    if zone_of(zone.as_py()) is None:
        failed = a.is_valid().to_numpy(zero_copy_only=False)
        return Checked(pa.nulls(len(a), out), failed, f"there is no zone {zone.as_py()!r}")
    return from_variant(a, parse_type(type_.as_py()), zone.as_py())


KERNELS: Final[dict[str, Kernel]] = {
    "parse_json": lambda out, a: each(out, _parsed, a),
    "variant_json": _json_of,
    "variant_at": constant(1, _at),
    "is_variant_null": lambda out, a: each_row(out, lambda raw: raw is not None and Variant(raw).value is None, a),
    "is_valid_variant": lambda out, a: each(out, lambda raw: True, a),
    "schema_of_variant": lambda out, a: each(out, lambda raw: spelled(shape_of(Variant(raw).value)), a),
    "schema_of_variants": lambda out, a: each(out, _shapes, a),
    "to_variant_object": _object,
    "variant_entries": lambda out, a: each(out, _entries, a),
    "variant_insert": lambda out, *given: each(out, _changed(_insert), *given),
    "variant_set": lambda out, *given: each(out, _changed(_set), *given),
    "variant_array_append": lambda out, *given: each(out, _changed(_append), *given),
    "variant_strip_nulls": lambda out, *given: each(out, _changed(_full), *given),
    "variant_delete": _delete,
    "variant_in_zone": constant(2, _in_zone),
}
