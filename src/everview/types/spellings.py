"""How SQL and Spark spell the types without parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everview.types.kinds import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INTEGER,
    SCALARS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    ScalarType,
)

SPELLINGS: Final[Mapping[str, ScalarType]] = {t.name: t for t in SCALARS} | {
    "BOOL": BOOLEAN,
    "BYTE": TINYINT,
    "INT1": TINYINT,
    "SHORT": SMALLINT,
    "INT2": SMALLINT,
    "INT": INTEGER,
    "INT4": INTEGER,
    "LONG": BIGINT,
    "INT8": BIGINT,
    "REAL": FLOAT,
    "FLOAT4": FLOAT,
    "FLOAT8": DOUBLE,
    "DATETIME": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BYTEA": BINARY,
    "BLOB": BINARY,
    "VARBINARY": BINARY,
}

CONSTRUCTORS: Final = ("DECIMAL", "NUMERIC", "DEC", "ARRAY", "STRUCT", "MAP")
