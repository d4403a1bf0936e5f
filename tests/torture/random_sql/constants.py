"""Values of every type: those that stand in tables, and literals in the many ways in which SQL writes them."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

from torture.random_sql.trees import ARRAY, BOOL, DATE, DEC, DOUBLE, DUCKDB_TYPES, INT, SPARK_TYPES, STR, TIME, Constant

# Few values, so that rows meet in joins and groups; halves and quarters, so that sums do not depend on their order.
VALUES: dict[str, tuple[Any, ...]] = {
    INT: (-1, 0, 1, 2, 3, 7),
    DOUBLE: (0.5, -1.5, 2.0, 0.0, 1.0, 1e10, float("nan")),
    DEC: tuple(map(Decimal, ("0.00", "1.25", "-3.50", "2.00", "99.99"))),
    STR: ("", "a", "b", "ab", "Abc", "O'B", 'S"k', "a%b", "10", "ü"),
    BOOL: (True, False),
    DATE: (dt.date(2020, 1, 1), dt.date(2020, 2, 29), dt.date(2019, 12, 31), dt.date(2021, 3, 15)),
    TIME: (dt.datetime(2020, 1, 1), dt.datetime(2020, 2, 29, 10, 30), dt.datetime(2019, 12, 31, 23, 59, 59, 500000)),
    ARRAY: ([], [1], [1, 2, None], [3, 3], [7, 0, -1]),
}
PATTERNS = ("a%", "%b", "_b", "%", "", "O'%", "A_c", '%"%', "1%")


def stored(kind: str, chance: random.Random) -> Any:
    """A value for a column, sometimes NULL."""
    return None if chance.random() < 0.15 else chance.choice(VALUES[kind])


def constant(kind: str, chance: random.Random, features: frozenset[str]) -> Constant:
    """A literal of a type, sometimes NULL."""
    if chance.random() < 0.08:
        bare = chance.random() < 0.5
        return Constant(
            kind, "NULL" if bare else f"CAST(NULL AS {SPARK_TYPES[kind]})", f"CAST(NULL AS {DUCKDB_TYPES[kind]})"
        )
    return written(kind, chance.choice(VALUES[kind]), chance, features)


def written(kind: str, value: Any, chance: random.Random, features: frozenset[str]) -> Constant:
    """A value as a literal: the same for both engines, in one of Spark's ways to write it."""
    if value is None:
        return Constant(kind, f"CAST(NULL AS {SPARK_TYPES[kind]})", f"CAST(NULL AS {DUCKDB_TYPES[kind]})")
    match kind:
        case "STR":
            return Constant(kind, _quoted(value, chance, features), "'" + value.replace("'", "''") + "'")
        case "DOUBLE":
            return Constant(kind, _double(value, chance), f"CAST('{value}' AS DOUBLE)")
        case "DEC":
            return Constant(kind, str(value), f"CAST({value} AS DECIMAL(12,2))")
        case "BOOL":
            return Constant(kind, str(value).lower(), str(value).lower())
        case "DATE":
            return Constant(kind, _date(value, chance, features), f"DATE '{value}'")
        case "TIME":
            return Constant(kind, f"TIMESTAMP '{value}'", f"TIMESTAMP '{value}'")
        case "ARRAY":
            if not value and "empty_array" not in features:
                value = [1]
            inside = ", ".join("NULL" if v is None else str(v) for v in value)
            return Constant(kind, f"array({inside})", f"CAST([{inside}] AS INT[])")
        case _:
            return Constant(kind, str(value), str(value))


def _quoted(value: str, chance: random.Random, features: frozenset[str]) -> str:
    """Text in quotes: doubled, escaped, or of the other kind."""
    ways = ["'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"]
    if "doubled_quotes" in features:
        ways += ["'" + value.replace("'", "''") + "'", '"' + value.replace('"', '""') + '"']
    if '"' not in value:
        ways.append(f'"{value}"')
    return chance.choice(ways)


def _double(value: float, chance: random.Random) -> str:
    if value != value:
        return "CAST('NaN' AS DOUBLE)"
    return chance.choice(
        [f"{value!r}D" if "e" not in repr(value) else f"{value:e}", f"{value:e}", f"CAST({value!r} AS DOUBLE)"]
    )


def _date(value: dt.date, chance: random.Random, features: frozenset[str]) -> str:
    ways = [f"DATE '{value}'", f"CAST('{value}' AS DATE)", f"make_date({value.year}, {value.month}, {value.day})"]
    if "short_dates" in features:
        ways.append(f"DATE '{value.year}-{value.month}-{value.day}'")
    return chance.choice(ways)
