"""Schemas of JSON and CSV texts that are written down: the types that Spark infers of one example.

>>> json_schema('{"b": [1, 2.5], "a": null}'), csv_schema("1,abc,2020-01-01")
('STRUCT<a: STRING, b: ARRAY<DOUBLE>>', 'STRUCT<_c0: INT, _c1: STRING, _c2: DATE>')
"""

from __future__ import annotations

import csv
import decimal
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from everview.scalars.loose_json import SINGLE_QUOTES, strict_json
from everview.scalars.shapes import FoundType, merged, spelled

_STRING: Final = FoundType("STRING")
_VOID: Final = FoundType("VOID")
_PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    (r"[+-]?\d{1,9}", "INT"),
    (r"[+-]?\d{1,18}", "BIGINT"),
    (r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|-?Inf(inity)?", "DOUBLE"),
    (r"\d{4}-\d{2}-\d{2}", "DATE"),
    (r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?", "TIMESTAMP"),
    (r"(?i:true|false)", "BOOLEAN"),
)


def _refused(name: str) -> Any:
    raise ValueError(name)


def json_schema(text: str, options: Mapping[str, str] = SINGLE_QUOTES) -> str:
    """The schema of a JSON text; raises `ValueError` if it is none."""
    wanted: dict[str, Any] = {"parse_float": decimal.Decimal} if options.get("prefersDecimal") == "TRUE" else {}
    strict = strict_json(text.strip(), {**SINGLE_QUOTES, **options})
    value = json.JSONDecoder(parse_constant=_refused, **wanted).raw_decode(strict.strip())[0]
    inferred = _json(value)
    shape = _finished(_with_texts(inferred) if options.get("primitivesAsString") == "TRUE" else inferred)
    return spelled(shape if shape is not None else FoundType("STRUCT"))


def _with_texts(shape: FoundType) -> FoundType:
    """A shape with text for all that has no parts."""
    if shape.name in ("STRUCT", "ARRAY"):
        return FoundType(shape.name, tuple((name, _with_texts(part)) for name, part in shape.parts))
    return _STRING


def _json(value: Any) -> FoundType:
    match value:
        case None:
            return _VOID
        case bool():
            return FoundType("BOOLEAN")
        case int():
            small = -(1 << 63) <= value < 1 << 63
            return FoundType("BIGINT") if small else _large(value)
        case float():
            return FoundType("DOUBLE")
        case decimal.Decimal():
            scale = max(-int(value.as_tuple().exponent), 0)
            digits = max(len(value.as_tuple().digits), scale)
            return FoundType("DECIMAL", digits=(digits, scale)) if digits <= 38 else FoundType("DOUBLE")
        case dict():
            return FoundType("STRUCT", tuple((key, _json(value[key])) for key in sorted(value)))
        case list():
            element = _VOID
            for part in value:
                element = merged(element, _json(part), "STRING")
            return FoundType("ARRAY", (("element", element),))
        case _:
            return _STRING


def _large(value: int) -> FoundType:
    digits = len(str(abs(value)))
    return FoundType("DECIMAL", digits=(digits, 0)) if digits <= 38 else FoundType("DOUBLE")


def _finished(shape: FoundType) -> FoundType | None:
    """The shape with text for what was only null; None for a struct without fields."""
    if shape == _VOID:
        return _STRING
    if shape.name == "STRUCT":
        parts = tuple((n, done) for n, s in shape.parts if (done := _finished(s)) is not None)
        return FoundType("STRUCT", parts) if parts else None
    if shape.name == "ARRAY":
        element = _finished(shape.parts[0][1])
        return None if element is None else FoundType("ARRAY", (("element", element),))
    return shape


def csv_schema(text: str, options: Mapping[str, str] = {}) -> str:
    """The schema of a line of CSV."""
    marks: dict[str, Any] = {"delimiter": options.get("sep", ","), "quotechar": options.get("quote", '"')}
    cells = next(csv.reader([text], escapechar="\\", **marks), [])
    return spelled(FoundType("STRUCT", tuple((f"_c{place}", _cell(cell)) for place, cell in enumerate(cells))))


def _cell(cell: str) -> FoundType:
    for pattern, name in _PATTERNS:
        if re.fullmatch(pattern, cell):
            if name == "INT" or not re.fullmatch(r"[+-]?\d+", cell):
                return FoundType(name)
            number = decimal.Decimal(cell)
            if -(1 << 31) <= number < 1 << 31:
                return FoundType("INT")
            return FoundType("BIGINT") if -(1 << 63) <= number < 1 << 63 else _large(int(cell))
    return _STRING
