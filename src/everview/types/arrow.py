"""Types and schemas as Arrow has them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from everview.errors import SchemaError
from everview.types.atoms import Atom
from everview.types.kinds import (
    ANY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    ID,
    INTEGER,
    SMALLINT,
    STRING,
    SYMBOL,
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
    ScalarType,
    Struct,
    Type,
)
from everview.types.parse import parse_type
from everview.types.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

_ARROW_NAMES: Final[Mapping[str, str]] = {
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "DATE": "date32",
    "STRING": "string",
    "SYMBOL": "string",
    "INTERVAL YEAR TO MONTH": "int32",  # Arrow in Python makes no intervals of months
}
_NOTE: Final = b"everview"
_NOTED: Final = (SYMBOL, ID, ANY, VARIANT, YEAR_MONTH, DAY, TIMESTAMP_NTZ)


@cache
def arrow_type(type_: Type) -> pa.DataType:
    import pyarrow as pa

    match type_:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(_arrow_field(Field("element", element)))
        case Struct(fields):
            return pa.struct([_arrow_field(f) for f in fields])
        case MapType():
            key, value = type_.entry.fields
            nothing = pa.types.is_null(key.type.arrow)  # of a map that has no entries
            own: Any = pa.field("key", pa.string(), nullable=False) if nothing else _arrow_field(key)
            item: Any = _arrow_field(value)
            return pa.map_(own, item)
        case ScalarType("TIMESTAMP"):
            return pa.timestamp("us", "UTC")
        case ScalarType("TIMESTAMP_NTZ"):
            return pa.timestamp("us")
        case ScalarType("TIME"):
            return pa.time64("us")
        case ScalarType("INTERVAL DAY" | "INTERVAL DAY TO SECOND"):
            return pa.duration("us")
        case ScalarType(name) if name in _ARROW_NAMES:
            return getattr(pa, _ARROW_NAMES[name])()
        case _:
            return pa.binary()


@cache
def arrow_schema(schema: Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([_arrow_field(f) for f in schema.fields])


def _arrow_field(field: Field) -> pa.Field[Any]:
    """The Arrow field of a column; its metadata names a type that Arrow's own does not tell, as of symbols."""
    import pyarrow as pa

    plain = field.type not in _NOTED and not isinstance(field.type, Atom)
    note = None if plain else {_NOTE: field.type.sql.encode()}
    return pa.field(field.name, field.type.arrow, nullable=field.nullable, metadata=note)


def field_of_arrow(field: pa.Field[Any]) -> Field:
    note = (field.metadata or {}).get(_NOTE)
    noted = parse_type(note.decode()) if note else _type_of_arrow(field.type, field.name)
    return Field(field.name, noted, field.nullable)


def type_of_arrow(arrow: pa.DataType) -> Type:
    """The narrowest type that holds every value of an Arrow type."""
    return _type_of_arrow(arrow, "?")


def _type_of_arrow(arrow: Any, name: str) -> Type:
    import pyarrow.types as at

    if at.is_dictionary(arrow) or at.is_run_end_encoded(arrow):
        return _type_of_arrow(arrow.value_type, name)
    if getattr(arrow, "extension_name", None) in EXTENSIONS:
        return EXTENSIONS[arrow.extension_name]
    if at.is_decimal(arrow):
        return _decimal_of_arrow(arrow.precision, arrow.scale)
    if at.is_map(arrow):
        return MapType(field_of_arrow(arrow.key_field).type, field_of_arrow(arrow.item_field).type)
    if any(getattr(at, test)(arrow) for test in _ARROW_LISTS):
        return Array(field_of_arrow(arrow.value_field).type)
    if at.is_struct(arrow):
        return Struct(field_of_arrow(arrow.field(i)) for i in range(arrow.num_fields))
    for test, answer in _ARROW_TESTS:
        if getattr(at, test)(arrow):
            return answer
    hint = "cast it first to a number, text, a date or a timestamp"
    raise SchemaError(f'column "{name}" has Arrow type {arrow}, which no type here holds', hint=hint)


def _decimal_of_arrow(precision: int, scale: int) -> Decimal:
    """The DECIMAL of an Arrow decimal, whose scale may be negative or larger than its precision."""
    whole, scale = max(precision - scale, 0), max(scale, 0)
    return Decimal(max(whole + scale, 1), scale)


# Extension types whose values are those of a type here; a UUID is text, as SQL's uuid() makes it.
EXTENSIONS: Final[Mapping[str, Type]] = {"arrow.uuid": STRING, "arrow.json": STRING, "arrow.bool8": BOOLEAN}

_ARROW_LISTS: Final = (
    "is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view",
)  # fmt: skip

_ARROW_TESTS: Final[tuple[tuple[str, Type], ...]] = (
    ("is_boolean", BOOLEAN),
    ("is_int8", TINYINT),
    ("is_int16", SMALLINT),
    ("is_uint8", SMALLINT),
    ("is_int32", INTEGER),
    ("is_uint16", INTEGER),
    ("is_int64", BIGINT),
    ("is_uint32", BIGINT),
    ("is_uint64", Decimal(20, 0)),
    ("is_float16", FLOAT),
    ("is_float32", FLOAT),
    ("is_float64", DOUBLE),
    ("is_date", DATE),
    ("is_timestamp", TIMESTAMP),
    ("is_time", TIME),
    ("is_duration", DAY_TIME),
    ("is_string", STRING),
    ("is_large_string", STRING),
    ("is_string_view", STRING),
    ("is_binary", BINARY),
    ("is_large_binary", BINARY),
    ("is_binary_view", BINARY),
    ("is_fixed_size_binary", BINARY),
    ("is_null", ANY),
)
