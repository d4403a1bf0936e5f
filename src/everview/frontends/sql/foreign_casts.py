"""Casts of DuckDB and PostgreSQL that give another answer than Spark's, and the names that they have for types.

A number with digits is rounded to a whole one, not cut off; bytes are written with escapes; a float as text has an
exponent only where it must; ``varchar(2)`` of PostgreSQL cuts a text off; an interval is read from any text of one.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from everview.errors import EverviewError
from everview.frontends.sql.expressions import POSTGRES, Site
from everview.frontends.sql.types import interval_in_text
from everview.plan.typing import call, cast, is_integer, literal
from everview.scalars.expressions import Expression, Literal
from everview.scalars.kinds import CALENDAR, VOID
from everview.types import (
    BINARY,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INTERVALS,
    STRING,
    VARIANT,
    Array,
    Decimal,
    MapType,
    Struct,
    Type,
)

ROUNDING: Final = ("duckdb", *POSTGRES, "snowflake", "redshift", "trino", "presto")  # Spark cuts digits off
ESCAPING: Final = ("duckdb", *POSTGRES)
_CUT: Final = (exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.NCHAR, exp.DType.NVARCHAR)


def foreign_cast(node: exp.Cast, value: Expression, type_: Type, site: Site) -> Expression | None:
    """A cast as the dialect means it; None if Spark means the same."""
    dialect = site.context.dialect
    if is_integer(type_) and dialect in ROUNDING:
        return cast(rounded(value), type_, try_=bool(node.args.get("safe")))
    if dialect not in ESCAPING:
        return None
    name = "duckdb" if dialect == "duckdb" else "postgres"
    if type_ == VARIANT and value.type == STRING and name == "postgres":
        return call("parse_json", value)
    if type_ == BINARY and value.type == STRING:
        return call("escaped_bytes", value, literal(name))
    if type_ == STRING and value.type in (DOUBLE, FLOAT):
        value = call("float_text", value, literal(name))
    if type_ == STRING and node.to.this in _CUT and node.to.expressions and name == "postgres":
        return call("left", cast(value, STRING), literal(int(node.to.expressions[0].name)))
    return value if type_ == STRING and value.type == STRING else None


def rounded(value: Expression) -> Expression:
    """The nearest whole number; a float halfway between two goes to the even one."""
    if isinstance(value.type, Decimal):
        return call("round", value)
    return call("bround", value) if value.type in (DOUBLE, FLOAT) else value


def cast_to_interval(node: exp.Cast, value: Expression, site: Site) -> Expression:
    """``'1 day'::interval``: a text as an interval of months, or of days to seconds, as it says; others as they are."""
    if value.type in INTERVALS:
        return value
    safe = bool(node.args.get("safe"))
    if not isinstance(value, Literal) or value.type != STRING:
        return cast(value, DAY_TIME, try_=safe)
    try:
        return interval_in_text(value.value, node, site.context)
    except EverviewError:
        if safe:
            return Literal(None, DAY_TIME)
        raise


# -- names of types

_NAMES: Final = {
    "STRING": "VARCHAR", "BINARY": "BLOB", "TIMESTAMP": "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NTZ": "TIMESTAMP",
    "VARIANT": "JSON",
}  # fmt: skip


def duckdb_type(type_: Type) -> str:
    """The name of a type as DuckDB spells it."""
    if type_ in (VOID, CALENDAR) or type_ in INTERVALS:
        return '"NULL"' if type_ == VOID else "INTERVAL"
    if isinstance(type_, Array):
        return f"{duckdb_type(type_.element)}[]"
    if isinstance(type_, MapType):
        return f"MAP({duckdb_type(type_.key)}, {duckdb_type(type_.value)})"
    if isinstance(type_, Struct):
        return f"STRUCT({', '.join(f'{_name(f.name)} {duckdb_type(f.type)}' for f in type_.fields)})"
    return _NAMES.get(type_.sql, type_.sql)


def _name(name: str) -> str:
    return name if name.isidentifier() and name.islower() else '"' + name.replace('"', '""') + '"'
