"""Every source answers every request as the plain model does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview.sources.memory import Memory
from everview.sources.postgres import Postgres
from everview.sources.protocol import Request, Update
from everview.sources.sqlite import SQLite
from sources.model import KEY, SCHEMA, answer, requests, rows

SQLITE = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, n BIGINT, name TEXT COLLATE NOCASE, price DECIMAL(8,2), score DOUBLE,"
    " day DATE, at TIMESTAMP, ok BOOLEAN, raw BLOB, must INT NOT NULL)"
)


def filled(source: Any, known: list[Any]) -> None:
    source.begin()
    source.write(Update.of([*((row, -1) for row in source.pull(Request())), *((row, 1) for row in known)]))
    source.commit()


@pytest.fixture(scope="module")
def sqlite() -> SQLite:
    connection = sqlite3.connect(":memory:")
    connection.execute(SQLITE)
    return SQLite(connection, "t")


POSTGRES = (
    'CREATE TABLE requested (id BIGINT PRIMARY KEY, n BIGINT, name TEXT COLLATE "en-x-icu", price DECIMAL(8,2),'
    " score DOUBLE PRECISION, day DATE, at TIMESTAMPTZ, ok BOOLEAN, raw BYTEA, must BIGINT NOT NULL)"
)


@pytest.fixture(scope="module")
def table(postgres: str) -> Iterator[Postgres]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(POSTGRES)
        yield Postgres(connection, "requested")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), known=rows())
def test_all_sources_answer_alike(sqlite: SQLite, table: Postgres, data: st.DataObject, known: list[Any]) -> None:
    memory = Memory(SCHEMA, KEY, known)
    filled(sqlite, known)
    filled(table, known)
    assert table.schema == memory.schema
    assert sqlite.schema == memory.schema
    for request in data.draw(st.lists(requests(known), min_size=1, max_size=5)):
        expected = answer(known, request)
        assert list(memory.pull(request)) == expected
        assert list(sqlite.pull(request)) == expected
        assert list(table.pull(request)) == expected
