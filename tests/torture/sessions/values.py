"""Types of columns and values for them, as Python literals: ordinary ones, and those at the edges of each type."""

from __future__ import annotations

import random
from dataclasses import dataclass

INTS = ("0", "1", "2", "3", "-1", "4")
TEXTS = ("'a'", "'b'", "'ab'", "''", "'A'", "'é'", "'e\\u0301'", "'x\\x00y'", "'😀'", "'a' * 70")
DOUBLES = ("0.0", "-0.0", "1.5", "-2.25", "float('inf')", "float('nan')", "3.0", "0.25")
DECIMALS = ("'0.00'", "'1.50'", "'-1.50'", "'99999999.99'", "'2'", "'0.25'")
WIDE = ("'0'", "'1.5'", "'99999999999999999999.5'", "'-99999999999999999999.5'", "'-1.5'")
DATES = ("'2026-01-01'", "'2026-01-02'", "'0001-01-01'", "'9999-12-31'", "'1970-01-01'")
TIMES = ("'2026-01-01 12:00:00'", "'2026-01-01 12:03:00'", "'2026-01-01 12:07:30'", "'2026-01-01 12:31:00'")
DAYTIMES = ("'00:00:00'", "'12:30:00'", "'23:59:59.999999'")
SPANS = ("'0 00:00:00'", "'1 02:03:04.5'", "'-1 00:00:00'")
MONTHS = ("0", "14", "-3")
BYTES = ("b''", "b'\\x00'", "b'a'", "b'\\xff\\x00'")
BOOLS = ("True", "False")
ARRAYS = ("[]", "[1]", "[1, None]", "[2, 1]", "[None]")
STRUCTS = ("(1, 'a')", "(None, 'a')", "(1, None)", "(2, '')")
MAPS = ("{}", "{'a': 1}", "{'a': 1, 'b': None}", "{'b': 2, 'a': 1}")
VARIANTS = ("1", "'a'", "[1, 'x']", "{'a': 1}", "1.5", "True", "{'a': [1, {'b': None}]}")

VALUES = {
    "INTEGER": INTS,
    "BIGINT": INTS,
    "STRING": TEXTS,
    "DOUBLE": DOUBLES,
    "DECIMAL(10,2)": DECIMALS,
    "DECIMAL(30,4)": WIDE,
    "DATE": DATES,
    "TIMESTAMP": TIMES,
    "TIME": DAYTIMES,
    "INTERVAL DAY TO SECOND": SPANS,
    "INTERVAL YEAR TO MONTH": MONTHS,
    "BINARY": BYTES,
    "BOOLEAN": BOOLS,
    "ARRAY<INTEGER>": ARRAYS,
    "STRUCT<a: INTEGER, b: STRING>": STRUCTS,
    "MAP<STRING, INTEGER>": MAPS,
    "VARIANT": VARIANTS,
}
COMMON = ("INTEGER", "INTEGER", "BIGINT", "BIGINT", "STRING", "STRING", "DOUBLE", "DECIMAL(10,2)", "TIMESTAMP", "DATE")


@dataclass(frozen=True)
class Column:
    """A column of a relation: its name, its type as SQL writes it, and whether it may be NULL."""

    name: str
    type: str
    nullable: bool = True

    @property
    def is_number(self) -> bool:
        return self.type in ("INTEGER", "BIGINT", "DOUBLE") or self.type.startswith("DECIMAL")

    @property
    def is_whole(self) -> bool:
        return self.type in ("INTEGER", "BIGINT")


def drawn_type(draw: random.Random) -> str:
    return draw.choice(COMMON) if draw.random() < 0.7 else draw.choice(tuple(VALUES))


def literal(draw: random.Random, column: Column) -> str:
    """A value of the column's type, as a Python expression."""
    if column.nullable and draw.random() < 0.12:
        return "None"
    return draw.choice(VALUES.get(column.type, ("None",)))
