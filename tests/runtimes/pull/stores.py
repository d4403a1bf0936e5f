"""The same relations in memory, in SQLite and in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from everview.sources.memory import Memory
from everview.sources.postgres import Postgres
from everview.sources.protocol import Request, Source, Update
from everview.sources.sqlite import SQLite
from everview.types import Schema

Row = tuple[Any, ...]
Schemas = Mapping[str, Schema]
Keys = Mapping[str, tuple[str, ...]]

IN_POSTGRES = {"STRING": "TEXT", "DOUBLE": "DOUBLE PRECISION", "TIMESTAMP": "TIMESTAMPTZ"}


def declared(table: str, schema: Schema, key: Sequence[str], names: Mapping[str, str]) -> str:
    """The statement that makes a table."""
    columns = [
        f'"{f.name}" {names.get(f.type.sql, f.type.sql)}{"" if f.nullable else " NOT NULL"}' for f in schema.fields
    ]
    columns += [f"PRIMARY KEY ({', '.join(key)})"] if key else []
    return f"CREATE TABLE {table} ({', '.join(columns)})"


def in_memory(schemas: Schemas, keys: Keys) -> dict[str, Source]:
    return {name: Memory(schema, keys[name]) for name, schema in schemas.items()}


def in_sqlite(schemas: Schemas, keys: Keys, connection: sqlite3.Connection | None = None) -> dict[str, Source]:
    connection = connection or sqlite3.connect(":memory:")
    for name, schema in schemas.items():
        connection.execute(declared(name, schema, keys[name], {"STRING": "TEXT"}))
    return {name: SQLite(connection, name, schema=schema) for name, schema in schemas.items()}


@contextmanager
def in_postgres(schemas: Schemas, keys: Keys, dsn: str, place: str) -> Generator[dict[str, Source]]:
    """In a schema of their own, as tests keep theirs open beside each other."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {place}".encode())
        for name, schema in schemas.items():
            connection.execute(declared(f"{place}.{name}", schema, keys[name], IN_POSTGRES).encode())
        yield {name: Postgres(connection, name, place, columns=schema) for name, schema in schemas.items()}


def fill(sources: Mapping[str, Source], rows: Mapping[str, Sequence[Row]]) -> None:
    """See to it that sources hold these rows, and nothing else."""
    for source in sources.values():
        source.begin()
    for name, source in sources.items():
        changes = [(row, -1) for row in source.pull(Request())]
        source.write(Update.of([*changes, *((row, 1) for row in rows[name])]))
    for source in sources.values():
        source.commit()


def held(sources: Mapping[str, Source]) -> dict[str, list[Row]]:
    """All rows of all sources."""
    return {name: list(source.pull(Request())) for name, source in sources.items()}
