"""The columns of a PostgreSQL table: their types here, and how PostgreSQL compares them.

>>> PostgresColumn("price", "numeric", ((12 << 16) | 2) + 4, False, True, True, False).type("orders")
Decimal(precision=12, scale=2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from everview.errors import SourceError
from everview.types import Decimal, ScalarType, Type

TYPES: Final[Mapping[str, tuple[str, str]]] = {  # by PostgreSQL's name: ours, and what values are given as
    "int2": ("SMALLINT", "bigint"),
    "int4": ("INTEGER", "bigint"),
    "int8": ("BIGINT", "bigint"),
    "numeric": ("DECIMAL", "numeric"),
    "text": ("STRING", "text"),
    "varchar": ("STRING", "text"),
    "bool": ("BOOLEAN", "boolean"),
    "date": ("DATE", "date"),
    "time": ("TIME", "time"),
    "timestamp": ("TIMESTAMP", "timestamp"),
    "timestamptz": ("TIMESTAMP", "timestamptz"),
    "float4": ("FLOAT", "float8"),
    "float8": ("DOUBLE", "float8"),
    "bytea": ("BINARY", "bytea"),
}


@dataclass(frozen=True, slots=True)
class PostgresColumn:
    """A column as the catalog has it."""

    name: str
    typename: str
    modifier: int
    required: bool
    by_bytes: bool  # whether its own order is that of the bytes
    exact: bool  # whether only equal bytes are equal
    computed: bool

    def type(self, table: str) -> Type:
        if self.typename not in TYPES:
            raise SourceError(
                f'{table}: column "{self.name}" is of type {self.typename}, which has no counterpart here',
                hint="leave it out: columns=[...] names those to be read",
            )
        if self.typename != "numeric":
            return ScalarType(TYPES[self.typename][0])
        if self.modifier < 0:
            raise SourceError(
                f'{table}: column "{self.name}" is numeric with any number of digits',
                hint='say how many: columns="id BIGINT, price DECIMAL(12,2)"; what does not fit is an error',
            )
        digits = self.modifier - 4
        scale = ((digits & 0x7FF) ^ 0x400) - 0x400  # eleven bits with a sign
        return Decimal(max(digits >> 16 & 0xFFFF, scale), max(scale, 0))


def columns_of(sql: psycopg.Connection[Any], oid: int) -> list[PostgresColumn]:
    """The columns of a table, in their order."""
    return [
        PostgresColumn(*row)
        for row in sql.execute(
            """
            SELECT a.attname, t.typname, a.atttypmod, a.attnotnull,
                   a.attcollation = 0 OR c.collname IN ('C', 'POSIX')
                     OR c.collname = 'default' AND d.datcollate IN ('C', 'POSIX')
                        AND coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c',
                   coalesce(c.collisdeterministic, true), a.attgenerated <> ''
            FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
            JOIN pg_database d ON d.datname = current_database()
            LEFT JOIN pg_collation c ON c.oid = a.attcollation
            WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
            """,
            (oid,),
        ).fetchall()
    ]


def primary_key(sql: psycopg.Connection[Any], oid: int) -> list[str]:
    """The columns of the primary key, in its order."""
    columns = sql.execute(
        """
        SELECT a.attname FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k (at, place)
        JOIN pg_attribute a ON a.attnum = k.at
        WHERE i.indrelid = %s AND i.indisprimary AND a.attrelid = i.indrelid ORDER BY k.place
        """,
        (oid,),
    ).fetchall()
    return [name for (name,) in columns]
