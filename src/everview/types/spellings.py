"""How SQL and Spark spell the types without parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from everview.types.kinds import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DAY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTERVALS,
    SCALARS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    YEAR_MONTH,
    ScalarType,
)

SPELLINGS: Final[Mapping[str, ScalarType]] = {t.name: t for t in SCALARS if t not in INTERVALS} | {
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

# The units that may follow INTERVAL; a column holds at least what they name.
_TIMES: Final = ("DAY", "HOUR", "MINUTE", "SECOND")
SPANS: Final[Mapping[str, ScalarType]] = {
    **dict.fromkeys(("YEAR", "MONTH", "YEAR TO MONTH"), YEAR_MONTH),
    "DAY": DAY,
    **dict.fromkeys(_TIMES[1:], DAY_TIME),
    **{f"{a} TO {b}": DAY_TIME for place, a in enumerate(_TIMES) for b in _TIMES[place + 1 :]},
}

CONSTRUCTORS: Final = ("DECIMAL", "NUMERIC", "DEC", "ARRAY", "STRUCT", "INTERVAL", "MAP")
