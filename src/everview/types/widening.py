"""Widening: whether every value of one type is a value of another, so that a column may become wider."""

from __future__ import annotations

from typing import Final

from everview.types.atoms import Atom
from everview.types.kinds import (
    ANY,
    BIGINT,
    BINARY,
    DAY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    ID,
    INTEGER,
    SMALLINT,
    STRING,
    SYMBOL,
    TINYINT,
    Array,
    Decimal,
    MapType,
    Struct,
    Type,
)

_DIGITS: Final[dict[Type, int]] = {TINYINT: 3, SMALLINT: 5, INTEGER: 10, BIGINT: 19}
_WIDER: Final[dict[Type, tuple[Type, ...]]] = {
    TINYINT: (SMALLINT, INTEGER, BIGINT, FLOAT, DOUBLE),
    SMALLINT: (INTEGER, BIGINT, FLOAT, DOUBLE),
    INTEGER: (BIGINT, DOUBLE),
    FLOAT: (DOUBLE,),
    STRING: (SYMBOL, ID, ANY),
    BINARY: (ID,),
    DAY: (DAY_TIME,),
}


def fits_in(given: Type, wanted: Type) -> bool:
    """Whether every value of one type is a value of the other.

    >>> fits_in(INTEGER, BIGINT), fits_in(BIGINT, INTEGER), fits_in(Decimal(10, 2), Decimal(12, 4))
    (True, False, True)
    """
    if given == wanted or wanted in _WIDER.get(given, ()):
        return True
    match given, wanted:
        case Decimal(p, s), Decimal(q, t):
            return s <= t and p - s <= q - t
        case _, Decimal(q, t) if given in _DIGITS:
            return _DIGITS[given] <= q - t
        case Array(element), Array(other):
            return fits_in(element, other)
        case Struct(fields), Struct(others):
            parts = {f.name: f.type for f in fields}
            same = parts.keys() == {f.name for f in others}
            return same and all(fits_in(parts[f.name], f.type) for f in others)
        case MapType(), Array():
            return fits_in(given.entries, wanted)
        case MapType(key, value), MapType(other_key, other):
            return key == other_key and fits_in(value, other)
        case _, Atom():
            return given == BINARY
        case _:
            return False
