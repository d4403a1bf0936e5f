"""Types, fields and schemas: what a column may hold, and how many 64-bit words it takes.

Everything inside is rows of int64 words. A type says how its values become words:

- **fixed** types (integers, floats, DECIMAL, DATE, TIME, TIMESTAMP, INTERVAL) are coded reversibly, and the
  order of the codes is the order of the values (`Type.ordered`);
- **interned** types (STRING, BINARY, SYMBOL, ID, VARIANT, ARRAY, STRUCT, MAP, registered atoms) are coded by a 64-bit
  hash which a dictionary maps back; `Type.kind` is the name space of that hash;
- ANY is two words: the kind of the value, and a word of that kind.

NULL is `NULL_WORD` in every word of a column, except in a nullable BIGINT, which needs all 64 bits for its
values and so carries a flag word before them: NULL is ``(0, 0)``, a value ``(1, value)``.

>>> schema = Schema.parse("id BIGINT NOT NULL, owner STRING, amount DECIMAL(12,2)")
>>> schema.names, schema.width
(('id', 'owner', 'amount'), 3)
>>> schema == Schema.of(id=BIGINT.not_null, owner=STRING, amount=Decimal(12, 2))
True
"""

from everview.types.arrow import type_of_arrow
from everview.types.atoms import Atom, HostAtom, atom_of_class, atom_of_kind, register_atom
from everview.types.kinds import (
    ANY,
    BIGINT,
    BINARY,
    BOOLEAN,
    COMPOSITE,
    DATE,
    DAY,
    DAY_TIME,
    DOUBLE,
    DURATIONS,
    FIRST_INTERNED,
    FLOAT,
    ID,
    INTEGER,
    INTEGERS,
    INTERVALS,
    KINDS,
    NULL_WORD,
    SCALARS,
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
    NotNullType,
    ScalarType,
    Struct,
    Type,
    has_map,
    parts_of_type,
)
from everview.types.names import unknown_name
from everview.types.parse import parse_type
from everview.types.schema import Schema
from everview.types.values import Id, Symbol
from everview.types.variants import Variant

__all__ = [
    "ANY",
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "COMPOSITE",
    "DATE",
    "DAY",
    "DAY_TIME",
    "DOUBLE",
    "DURATIONS",
    "FIRST_INTERNED",
    "FLOAT",
    "ID",
    "INTEGER",
    "INTEGERS",
    "INTERVALS",
    "KINDS",
    "NULL_WORD",
    "SCALARS",
    "SMALLINT",
    "STRING",
    "SYMBOL",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "TINYINT",
    "VARIANT",
    "YEAR_MONTH",
    "Array",
    "Atom",
    "Decimal",
    "Field",
    "HostAtom",
    "Id",
    "MapType",
    "NotNullType",
    "ScalarType",
    "Schema",
    "Struct",
    "Symbol",
    "Type",
    "Variant",
    "atom_of_class",
    "atom_of_kind",
    "has_map",
    "parse_type",
    "parts_of_type",
    "register_atom",
    "type_of_arrow",
    "unknown_name",
]
