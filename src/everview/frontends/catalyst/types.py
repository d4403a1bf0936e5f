"""Types as Spark writes them in JSON: a name, or an object with the parts of an array, a map or a struct."""

from __future__ import annotations

import re
from typing import Any, Final

from everview.errors import SchemaError
from everview.scalars.kinds import CALENDAR, VOID
from everview.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    YEAR_MONTH,
    Array,
    Decimal,
    Field,
    MapType,
    Struct,
    Type,
)

NAMED: Final[dict[str, Type]] = {
    "boolean": BOOLEAN,
    "byte": TINYINT,
    "short": SMALLINT,
    "integer": INTEGER,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "string": STRING,
    "string collate UTF8_BINARY": STRING,  # as Spark Connect names it
    "binary": BINARY,
    "variant": VARIANT,
    "void": VOID,
    "interval": CALENDAR,
    "interval day": DAY,
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


def type_of_json(said: Any) -> Type:
    """The type that holds a type of Spark.

    >>> str(type_of_json({"type": "array", "elementType": "decimal(10,2)", "containsNull": True}))
    'ARRAY<DECIMAL(10,2)>'
    """
    if isinstance(said, dict):
        return _composite(said)  # pyright: ignore[reportUnknownArgumentType]
    name = str(said)
    if name in NAMED:
        return NAMED[name]
    number = _DECIMAL.fullmatch(name)
    if number is not None:
        return Decimal(int(number[1]), int(number[2]))
    if name.startswith(("varchar(", "char(")):
        return STRING
    if name.startswith("time("):
        return TIME
    if name.startswith("interval"):
        return YEAR_MONTH if "year" in name or "month" in name else DAY_TIME
    raise SchemaError(f"a column is {name.upper()}, which no type here holds", hint="cast it first, or drop it")


def _composite(said: dict[str, Any]) -> Type:
    match said.get("type"):
        case "array":
            return Array(type_of_json(said["elementType"]))
        case "map":
            return MapType(type_of_json(said["keyType"]), type_of_json(said["valueType"]))
        case "struct":
            fields = said["fields"]
            return Struct(Field(str(f["name"]), type_of_json(f["type"]), bool(f["nullable"])) for f in fields)
        case other:
            hint = "cast it first to a number, text, a date or a timestamp, or drop it"
            raise SchemaError(f"a column is of the type {other}, which no type here holds", hint=hint)


def alike(a: Type, b: Type) -> bool:
    """Whether two types are the same but for which parts may be NULL."""
    match a, b:
        case Array(x), Array(y):
            return alike(x, y)
        case MapType(k, v), MapType(l, w):
            return alike(k, l) and alike(v, w)
        case Struct(xs), Struct(ys):
            return len(xs) == len(ys) and all(
                x.name == y.name and alike(x.type, y.type) for x, y in zip(xs, ys, strict=True)
            )
        case _:
            return a == b
