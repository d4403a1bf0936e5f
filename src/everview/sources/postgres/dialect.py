"""The dialect of PostgreSQL; text is in the order of its bytes, NULL before all values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from psycopg import sql

from everview.sources.postgres.columns import TYPES, PostgresColumn
from everview.sources.protocol import Compare, Direction
from everview.sources.sql import Sql
from everview.types import Schema


class PostgresDialect:
    """The way PostgreSQL writes conditions and orders."""

    same, different = "IS NOT DISTINCT FROM", "IS DISTINCT FROM"

    def __init__(self, schema: Schema, columns: Mapping[str, PostgresColumn]) -> None:
        self._schema, self._columns = schema, columns

    def name(self, column: str) -> str:
        return quoted(column)

    def mark(self, column: str) -> str:
        return f"%s::{self._given_as(column)}"

    def equal(self, column: str) -> str:
        return quoted(column) if self._columns[column].exact else f'{quoted(column)} COLLATE "C"'

    def ordered(self, column: str) -> str:
        return quoted(column) if self._columns[column].by_bytes else f'{quoted(column)} COLLATE "C"'

    def direction(self, column: str, direction: Direction) -> str:
        if not self._schema[column].nullable:
            return direction.upper()
        return "ASC NULLS FIRST" if direction == "asc" else "DESC NULLS LAST"

    def bind(self, column: str, value: Any) -> Any:
        if isinstance(value, dt.datetime) and self._columns[column].typename == "timestamp":
            return value.replace(tzinfo=None)
        return value

    def special(self, compare: Compare) -> Sql | None:
        return None

    def one_of(self, column: str, values: tuple[Any, ...]) -> Sql:
        bound = [self.bind(column, value) for value in values]
        return f"{self.equal(column)} = ANY(%s::{self._given_as(column)}[])", [bound]

    def like(self, pattern: str) -> tuple[str, Any]:
        return "LIKE %s", pattern

    def _given_as(self, column: str) -> str:
        return TYPES[self._columns[column].typename][1]


def quoted(*names: str) -> str:
    """A name in quotes, for statements with marks, in which ``%`` is written twice."""
    return sql.Identifier(*names).as_string(None).replace("%", "%%")
