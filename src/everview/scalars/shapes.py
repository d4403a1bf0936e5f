"""Shapes: the types that values of JSON and of variants are found to have, and how two become one.

>>> spelled(merged(shape_of({"a": 1}), shape_of({"a": 2.5, "b": [None, "x"]})))
'OBJECT<a: DOUBLE, b: ARRAY<STRING>>'
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from dataclasses import dataclass
from typing import Any, Final

from everview.types.names import quoted
from everview.types.variants import SingleFloat


@dataclass(frozen=True, slots=True)
class FoundType:
    """A type that was found: by its name, with the shapes of its parts; of a decimal its digits and its scale."""

    name: str
    parts: tuple[tuple[str, FoundType], ...] = ()
    digits: tuple[int, int] = (0, 0)


_VOID: Final = FoundType("VOID")
_NUMBERS: Final = ("BIGINT", "FLOAT", "DOUBLE")  # narrowest first


def shape_of(value: Any) -> FoundType:
    """The shape of a value of a variant."""
    match value:
        case None:
            return _VOID
        case dict():
            return FoundType("OBJECT", tuple((key, shape_of(value[key])) for key in sorted(value)))
        case list():
            element = _VOID
            for part in value:
                element = merged(element, shape_of(part))
            return FoundType("ARRAY", (("element", element),))
        case decimal.Decimal():
            return decimal_shape(value)
        case dt.datetime():
            return FoundType("TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ")
        case _:
            return FoundType(next(name for kind, name in _SIMPLE if isinstance(value, kind)))


_SIMPLE: Final[tuple[tuple[type, str], ...]] = (
    (bool, "BOOLEAN"),
    (int, "BIGINT"),
    (SingleFloat, "FLOAT"),
    (float, "DOUBLE"),
    (str, "STRING"),
    (bytes, "BINARY"),
    (dt.date, "DATE"),
    (dt.time, "TIME(6)"),
    (uuid.UUID, "UUID"),
)


def decimal_shape(value: decimal.Decimal) -> FoundType:
    """The shape of a decimal, without zeros at the end of its fraction."""
    _, digits, exponent = value.normalize(decimal.Context(prec=80)).as_tuple()
    assert isinstance(exponent, int), "a variant has no decimal that is no number"
    scale, size = max(-exponent, 0), len(digits) + max(exponent, 0)
    return FoundType("DECIMAL", digits=(max(size, scale, 1), scale))


def merged(a: FoundType, b: FoundType, otherwise: str = "VARIANT") -> FoundType:
    """The shape that holds values of both; ``otherwise`` where nothing narrower does."""
    if a == b or b == _VOID:
        return a
    if a == _VOID:
        return b
    if a.name == b.name and a.name in ("OBJECT", "STRUCT", "ARRAY"):
        return _parts(a, b, otherwise)
    names = {a.name, b.name}
    if names <= {*_NUMBERS}:
        return FoundType(max(names, key=_NUMBERS.index))
    if names <= {*_NUMBERS, "DECIMAL"}:
        return FoundType("DOUBLE") if names & {"DOUBLE", "FLOAT"} else _decimals(a, b)
    if names <= {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}:
        return FoundType("TIMESTAMP" if "TIMESTAMP" in names else "TIMESTAMP_NTZ")
    return FoundType(otherwise)


def _parts(a: FoundType, b: FoundType, otherwise: str) -> FoundType:
    known, others = dict(a.parts), dict(b.parts)
    names = sorted({*known, *others})
    return FoundType(a.name, tuple((n, merged(known.get(n, _VOID), others.get(n, _VOID), otherwise)) for n in names))


def _decimals(a: FoundType, b: FoundType) -> FoundType:
    sizes = [(20, 0) if one.name == "BIGINT" else one.digits for one in (a, b)]
    whole, scale = max(p - s for p, s in sizes), max(s for _, s in sizes)
    return FoundType("DOUBLE") if whole + scale > 38 else FoundType("DECIMAL", digits=(whole + scale, scale))


def spelled(shape: FoundType) -> str:
    """A shape as Spark writes it."""
    if shape.name == "DECIMAL":
        return f"DECIMAL({shape.digits[0]},{shape.digits[1]})"
    if shape.name == "ARRAY":
        return f"ARRAY<{spelled(shape.parts[0][1])}>"
    if shape.name in ("OBJECT", "STRUCT"):
        return f"{shape.name}<{', '.join(f'{quoted(n)}: {spelled(s)}' for n, s in shape.parts)}>"
    return shape.name
