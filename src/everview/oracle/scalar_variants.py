"""The meaning of functions of variants, and of casts from and to them, one value at a time."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from everview.errors import BadPattern
from everview.oracle.scalar_casts import NoValue, cast_value
from everview.oracle.scalar_zones import zone_named
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    VARIANT,
    Array,
    MapType,
    Struct,
    Type,
    Variant,
)
from everview.types import Decimal as DecimalType
from everview.types.variants import SingleFloat

NOTHING: Final = object()


# -- JSON


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise NoValue("a key comes twice")
    return dict(pairs)


def _number(text: str) -> Any:
    digits = re.sub(r"[-.]", "", text).lstrip("0")
    if re.search("[eE]", text) or len(digits) > 38 or len(text.partition(".")[2]) > 38:
        return float(text)
    exact = Decimal(text)
    return int(text) if "." not in text and abs(exact) < 2**63 else exact


def _refused(name: str) -> Any:
    raise NoValue(name)


def _parse(text: str) -> Variant:
    decoder = json.JSONDecoder(
        object_pairs_hook=_members, parse_float=_number, parse_int=_number, parse_constant=_refused
    )
    try:
        return Variant.of(decoder.raw_decode(text.strip(" \t\r\n"))[0])
    except ValueError:
        raise NoValue("no JSON") from None


def written(value: Any, zone: dt.tzinfo = dt.UTC) -> str:
    """A value of a variant as JSON, its moments by the clock of a zone."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(key)}:{written(part, zone)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(part, zone) for part in value) + "]"
    if value is None:
        return "null"
    text = _plain(value)
    if isinstance(value, (bool, int, Decimal)) or (isinstance(value, float) and text[-1] not in "Ny"):
        return text
    if isinstance(value, dt.datetime) and value.tzinfo:
        local = value.astimezone(zone)
        text = _plain(local.replace(tzinfo=None)) + local.isoformat()[-6:]
    return json.dumps(base64.b64encode(value).decode() if isinstance(value, bytes) else text, ensure_ascii=False)


def _plain(value: Any) -> str:
    if isinstance(value, Decimal):
        text = f"{value:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    if isinstance(value, dt.datetime):
        value = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return cast_value(value, _type_of(value), STRING)


# -- casts


def _type_of(value: Any) -> Type:
    if isinstance(value, Decimal):
        plain = _plain(value).lstrip("-")
        scale = len(plain.partition(".")[2])
        return DecimalType(max(len(plain.replace(".", "").lstrip("0")), scale, 1), scale)
    kinds: list[tuple[type, Type]] = [
        (bool, BOOLEAN),
        (int, BIGINT),
        (SingleFloat, FLOAT),
        (float, DOUBLE),
        (str, STRING),
    ]
    kinds += [(bytes, BINARY), (dt.datetime, TIMESTAMP), (dt.date, DATE)]
    return next(type_ for kind, type_ in kinds if isinstance(value, kind))


def from_variant(value: Any, to: Type, zone: dt.tzinfo = dt.UTC) -> Any:
    """A value of a variant as one of a type, by the clock of a zone."""
    if to == VARIANT:
        return None if value is NOTHING else Variant.of(value)
    if value is None or value is NOTHING:
        return None
    if to == STRING and isinstance(value, (dict, list)):
        return written(value, zone)
    match to:
        case Array(element) if isinstance(value, list):
            return [from_variant(part, element, zone) for part in value]
        case Struct(fields) if isinstance(value, dict):
            return {f.name: from_variant(value.get(f.name, NOTHING), f.type, zone) for f in fields}
        case MapType(_, item) if isinstance(value, dict):
            return {key: from_variant(part, item, zone) for key, part in value.items()}
        case Array() | Struct() | MapType():
            raise NoValue(f"no {to}")
        case _:
            return _scalar(value, to) if zone == dt.UTC else _scalar_in_zone(value, to, zone)


_MOMENTS: Final = (DATE, TIMESTAMP)


def _scalar(value: Any, to: Type) -> Any:
    if isinstance(value, (dict, list)):
        raise NoValue(f"no {to}")
    if isinstance(value, Decimal):
        value = Decimal(_plain(value))
    type_ = _type_of(value)
    numbers = (BOOLEAN, STRING, BINARY, *_MOMENTS)
    refused: dict[Type, bool] = {
        BOOLEAN: to in (BINARY, *_MOMENTS),
        BINARY: to not in (BINARY, STRING),
        DATE: to not in (*_MOMENTS, STRING),
        TIMESTAMP: to in (BOOLEAN, BINARY),
        STRING: False,
    }
    if refused.get(type_, type_ not in numbers and to in (BINARY, DATE)):
        raise NoValue(f"no {to}")
    return cast_value(value, type_, to)


def _scalar_in_zone(value: Any, to: Type, zone: dt.tzinfo) -> Any:
    if to == TIMESTAMP and isinstance(value, str):
        plain = value.strip()
        local = not re.search(r"[A-Za-z]|[+-][\d:]+$", plain[10:].replace("T", " ", 1))
        return _scalar(value, to).replace(tzinfo=zone).astimezone(dt.UTC) if local else _scalar(value, to)
    if isinstance(value, dt.datetime) and value.tzinfo and to in (DATE, STRING):
        return _scalar(value.astimezone(zone).replace(tzinfo=dt.UTC), to)
    made = _scalar(value, to)
    if to == TIMESTAMP and isinstance(value, dt.date) and not getattr(value, "tzinfo", None):
        return made.replace(tzinfo=zone).astimezone(dt.UTC)
    return made


def to_variant(value: Any, type_: Type) -> Variant:
    """A value as a variant."""
    return Variant.of(_inside(value, type_))


def _inside(value: Any, type_: Type) -> Any:
    match type_:
        case _ if value is None:
            return None
        case Array(element):
            return [_inside(part, element) for part in value]
        case Struct(fields):
            return {f.name: _inside(value[f.name], f.type) for f in fields}
        case MapType(_, item):
            return {key: _inside(part, item) for key, part in value.items()}
        case _:
            return value.value if type_ == VARIANT else SingleFloat(value) if type_ == FLOAT else value


# -- paths


def _steps(path: str) -> list[str | int]:
    wrong = BadPattern(path, hint="no path")
    if path[:1] != "$":
        raise wrong
    steps: list[str | int] = []
    rest = path[1:]
    while rest:
        if step := re.match(r"\[(\d+)\]", rest):
            steps.append(int(step[1]))
        elif step := re.match(r"\[(['\"])(.*?)\1\]", rest):
            steps.append(step[2])
        elif step := re.match(r"\.([^.\[\]'\"]+)", rest):
            steps.append(step[1])
        else:
            raise wrong
        rest = rest[step.end() :]
    return steps


def _at(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        held = isinstance(value, dict) if isinstance(step, str) else isinstance(value, list)
        if not held or (step not in value if isinstance(step, str) else step >= len(value)):
            return NOTHING
        value = value[step]
    return value


def _get(value: Variant, path: str) -> Variant | None:
    part = _at(value.value, _steps(path))
    return None if part is NOTHING else Variant.of(part)


def _put(given: Any, steps: list[str | int], new: Any, inserts: bool, creates: bool) -> None:
    """The value, changed in its own place."""
    if not steps:
        raise BadPattern("$", hint="no part")
    value: Any = given
    for place, step in enumerate(steps):
        last = place == len(steps) - 1
        kind: Any = type(value)
        if not issubclass(kind, dict if isinstance(step, str) else list):
            raise NoValue("the path does not lead there")
        there = step in value if isinstance(step, str) else step < len(value)
        if not there and not creates:
            return
        if last and there and inserts and isinstance(step, str):
            raise NoValue("it is there")
        if last and there and inserts:
            value.insert(step, new)
            return
        if not there:
            if isinstance(step, int):
                value.extend([None] * (step + 1 - len(value)))
            value[step] = new if last else {} if isinstance(steps[place + 1], str) else []
        elif last:
            value[step] = new
        value = value[step]


def _change(inserts: bool) -> Callable[..., Variant]:
    def run(given: Variant, path: str, new: Variant, creates: bool = True) -> Variant:
        value = given.value
        _put(value, _steps(path), new.value, inserts, creates)
        return Variant.of(value)

    return run


def _append(given: Variant, path: str, new: Variant) -> Variant:
    value = given.value
    part = _at(value, _steps(path))
    if part is NOTHING:
        return given
    if not isinstance(part, list):
        raise NoValue("no array")
    part.append(new.value)
    return Variant.of(value)


def _delete(given: Variant | None, *paths: str | None) -> Variant | None:
    if given is None:
        return None
    value = given.value
    for path in paths:
        if path is None:
            continue
        steps = _steps(path)
        if not steps:
            raise BadPattern(path, hint="no part")
        if _at(value, steps) is not NOTHING:
            del _at(value, steps[:-1])[steps[-1]]
    return Variant.of(value)


def _strip(given: Variant, arrays: bool = True) -> Variant:
    def full(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: full(part) for key, part in value.items() if part is not None}
        if isinstance(value, list):
            return [full(part) for part in value if not (arrays and part is None)]
        return value

    return Variant.of(full(given.value))


def _entries(given: Variant) -> list[dict[str, Any]]:
    value = given.value
    pairs = list(value.items()) if isinstance(value, dict) else []
    pairs = [(None, part) for part in value] if isinstance(value, list) else pairs
    return [{"pos": n, "key": key, "value": Variant.of(part)} for n, (key, part) in enumerate(pairs)]


# -- what they are of


def _named(value: Any) -> Any:
    """The type of a value, as a text, or as a dict or a list of such."""
    if isinstance(value, dict):
        return {key: _named(part) for key, part in value.items()}
    if isinstance(value, list):
        element: Any = "VOID"
        for part in value:
            element = _met(element, _named(part))
        return [element]
    if isinstance(value, dt.datetime):
        return "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
    return "VOID" if value is None else _type_of(value).sql


def _met(a: Any, b: Any) -> Any:
    if a == b or b == "VOID":
        return a
    if a == "VOID":
        return b
    if isinstance(a, dict) and isinstance(b, dict):
        return {key: _met(a.get(key, "VOID"), b.get(key, "VOID")) for key in {**a, **b}}
    if isinstance(a, list) and isinstance(b, list):
        return [_met(a[0], b[0])]
    if not isinstance(a, str) or not isinstance(b, str):
        return "VARIANT"
    numbers = [t for t in (a, b) if t in ("BIGINT", "FLOAT", "DOUBLE") or t.startswith("DECIMAL")]
    if len(numbers) == 2:
        return _wider(a, b)
    moments = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}
    if {a, b} <= moments:
        return "TIMESTAMP" if "TIMESTAMP" in (a, b) else "TIMESTAMP_NTZ"
    return "VARIANT"


def _wider(a: str, b: str) -> str:
    if {a, b} == {"BIGINT", "FLOAT"}:
        return "FLOAT"
    if {a, b} & {"FLOAT", "DOUBLE"}:
        return "DOUBLE"
    sizes = [(20, 0) if t == "BIGINT" else tuple(map(int, re.findall(r"\d+", t))) for t in (a, b)]
    scale = max(s for _, s in sizes)
    digits = max(p - s for p, s in sizes) + scale
    return f"DECIMAL({digits},{scale})" if digits <= 38 else "DOUBLE"


def _spelled(named: Any) -> str:
    if isinstance(named, list):
        return f"ARRAY<{_spelled(named[0])}>"
    if isinstance(named, dict):
        quote = {
            key: key if re.fullmatch(r"[A-Za-z_]\w*", key) else "`" + key.replace("`", "``") + "`" for key in named
        }
        return f"OBJECT<{', '.join(f'{quote[key]}: {_spelled(named[key])}' for key in sorted(named))}>"
    return named


def _all_of(values: list[Variant | None]) -> str | None:
    named: Any = None
    for value in values:
        if value is not None:
            named = _named(value.value) if named is None else _met(named, _named(value.value))
    return None if named is None else _spelled(named)


def _of(function: Callable[..., Any]) -> Callable[[Type, list[Type], list[Any]], Any]:
    return lambda type_, types, values: function(*values)


VARIANTS: Final[Mapping[str, Callable[[Type, list[Type], list[Any]], Any]]] = {
    "parse_json": _of(_parse),
    "variant_json": _of(lambda value, *zone: written(value.value, *map(zone_named, zone))),
    "variant_in_zone": lambda type_, types, values: from_variant(values[0].value, type_, zone_named(values[2])),
    "variant_at": _of(_get),
    "is_variant_null": _of(lambda value: value is not None and value.value is None),
    "is_valid_variant": _of(lambda value: True),
    "schema_of_variant": _of(lambda value: _spelled(_named(value.value))),
    "schema_of_variants": _of(_all_of),
    "to_variant_object": lambda type_, types, values: to_variant(values[0], types[0]),
    "variant_entries": _of(_entries),
    "variant_insert": _of(_change(inserts=True)),
    "variant_set": _of(_change(inserts=False)),
    "variant_array_append": _of(_append),
    "variant_delete": _of(_delete),
    "variant_strip_nulls": _of(_strip),
}
SEES_NULL: Final = ("is_variant_null", "variant_delete")
