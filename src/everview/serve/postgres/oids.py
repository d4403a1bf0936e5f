"""Types by their OIDs in PostgreSQL: which one a type of Everview is told as, and what each is called there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

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
    ScalarType,
    Type,
)


@dataclass(frozen=True, slots=True)
class PgType:
    """A base type of PostgreSQL: its OID and its array's, its names, its length in bytes (-1: it varies)."""

    oid: int
    array: int
    name: str
    shown: str  # as format_type says it
    size: int
    category: str  # as pg_type.typcategory has it
    type: Type  # that values of it are here

    @property
    def function(self) -> str:
        """The prefix of the names of the type's functions: ``int4in``, ``date_in``."""
        return f"{self.name}_" if self.name in _UNDERSCORED else self.name


_UNDERSCORED: Final = (
    "date", "time", "timestamp", "timestamptz", "interval", "numeric", "uuid", "json", "jsonb", "void",
)  # fmt: skip

_TYPES: Final = (
    PgType(16, 1000, "bool", "boolean", 1, "B", BOOLEAN),
    PgType(17, 1001, "bytea", "bytea", -1, "U", BINARY),
    PgType(18, 1002, "char", '"char"', 1, "Z", STRING),
    PgType(19, 1003, "name", "name", 64, "S", STRING),
    PgType(20, 1016, "int8", "bigint", 8, "N", BIGINT),
    PgType(21, 1005, "int2", "smallint", 2, "N", SMALLINT),
    PgType(23, 1007, "int4", "integer", 4, "N", INTEGER),
    PgType(24, 1008, "regproc", "regproc", 4, "N", BIGINT),
    PgType(25, 1009, "text", "text", -1, "S", STRING),
    PgType(26, 1028, "oid", "oid", 4, "N", BIGINT),
    PgType(114, 199, "json", "json", -1, "U", VARIANT),
    PgType(700, 1021, "float4", "real", 4, "N", FLOAT),
    PgType(701, 1022, "float8", "double precision", 8, "N", DOUBLE),
    PgType(705, 0, "unknown", "unknown", -2, "X", STRING),
    PgType(1042, 1014, "bpchar", "character", -1, "S", STRING),
    PgType(1043, 1015, "varchar", "character varying", -1, "S", STRING),
    PgType(1082, 1182, "date", "date", 4, "D", DATE),
    PgType(1083, 1183, "time", "time without time zone", 8, "D", TIME),
    PgType(1114, 1115, "timestamp", "timestamp without time zone", 8, "D", TIMESTAMP_NTZ),
    PgType(1184, 1185, "timestamptz", "timestamp with time zone", 8, "D", TIMESTAMP),
    PgType(1186, 1187, "interval", "interval", 16, "T", DAY_TIME),
    PgType(1700, 1231, "numeric", "numeric", -1, "N", Decimal(38, 10)),
    PgType(2205, 2210, "regclass", "regclass", 4, "N", BIGINT),
    PgType(2206, 2211, "regtype", "regtype", 4, "N", BIGINT),
    PgType(2278, 0, "void", "void", 4, "P", STRING),
    PgType(2950, 2951, "uuid", "uuid", 16, "U", STRING),
    PgType(3802, 3807, "jsonb", "jsonb", -1, "U", VARIANT),
)
PG_TYPES: Final = {t.oid: t for t in _TYPES}
PG_NAMES: Final = {t.name: t for t in _TYPES}
PG_ARRAYS: Final = {t.array: t for t in _TYPES if t.array}
TEXT: Final = 25
JSON: Final = 114

OID: Final = ScalarType("OID")  # of columns of the system catalog, which are BIGINT inside
_OIDS: Final[dict[Type, int]] = {
    OID: 26,
    BOOLEAN: 16, BINARY: 17, BIGINT: 20, TINYINT: 21, SMALLINT: 21, INTEGER: 23, STRING: 25, FLOAT: 700, DOUBLE: 701,
    DATE: 1082, TIME: 1083, TIMESTAMP_NTZ: 1114, TIMESTAMP: 1184, YEAR_MONTH: 1186, DAY: 1186, DAY_TIME: 1186,
    VARIANT: 3802,
}  # fmt: skip


def oid_of(type_: Type) -> int:
    """The OID that a type is told by: arrays of simple values as arrays, all else that has parts as JSON.

    >>> oid_of(BIGINT), oid_of(Array(STRING)), oid_of(Array(Array(STRING)))
    (20, 1009, 114)
    """
    if isinstance(type_, Decimal):
        return 1700
    if isinstance(type_, Array):
        element = oid_of(type_.element)
        return PG_TYPES[element].array if element in PG_TYPES and element != JSON else JSON
    known = _OIDS.get(type_)
    if known is not None:
        return known
    return TEXT if type_.sql in ("SYMBOL", "ID", "VOID") else JSON


_CAST: Final = re.compile(
    r"""\$(\d{1,5})\s*::\s*(?:pg_catalog\s*\.\s*)?"?(oid|name|uuid|varchar|json)\b"?(\s*\[\s*\])?""", re.IGNORECASE
)


def cast_oids(text: str) -> dict[int, int]:
    """The OIDs of parameters whose casts name types that are none of Everview's own.

    >>> cast_oids("SELECT $1::oid[], $2::uuid, $3::int4")
    {1: 1028, 2: 2950}
    """
    oids: dict[int, int] = {}
    for number, name, array in _CAST.findall(text):
        type_ = PG_NAMES[name.lower()]
        oids.setdefault(int(number), type_.array if array else type_.oid)
    return oids


def as_system_type(type_: Type) -> Type:
    """The type of a column that a query of the system catalog gives: its large numbers are OIDs."""
    if type_ == BIGINT:
        return OID
    return Array(OID) if type_ == Array(BIGINT) else type_


def element_oid(oid: int) -> int | None:
    """The OID of the elements of an array type; None for every other."""
    return PG_ARRAYS[oid].oid if oid in PG_ARRAYS else None


def modifier_of(type_: Type) -> int:
    """The type modifier: digits and scale of a decimal, -1 for all else.

    >>> modifier_of(Decimal(12, 2)) == (12 << 16) + 2 + 4
    True
    """
    return (type_.precision << 16) + type_.scale + 4 if isinstance(type_, Decimal) else -1


def size_of(oid: int) -> int:
    """The length of a type's values, -1 if it varies."""
    return PG_TYPES[oid].size if oid in PG_TYPES else -1


def shown_type(oid: int | None, modifier: int | None = -1) -> str | None:
    """The name of a type as format_type gives it.

    >>> shown_type(1700, 786438), shown_type(1007), shown_type(5)
    ('numeric(12,2)', 'integer[]', '???')
    """
    if oid is None:
        return None
    if oid in PG_ARRAYS:
        return f"{shown_type(PG_ARRAYS[oid].oid, modifier)}[]"
    if oid not in PG_TYPES:
        return "-" if oid == 0 else "???"
    shown = PG_TYPES[oid].shown
    if modifier is None or modifier < 4:
        return shown
    if oid == 1700:
        return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0xFFFF})"
    return f"{shown}({modifier - 4})" if oid in (1042, 1043) else shown


def type_of_oid(oid: int) -> Type:
    """The type of parameters with an OID; text for unknown OIDs."""
    if oid in PG_ARRAYS:
        return Array(PG_ARRAYS[oid].type)
    return PG_TYPES[oid].type if oid in PG_TYPES else STRING
