"""A PostgreSQL server that refuses, goes away, or holds what Python has no like of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import everview as ev
from everview.errors import BadRows, SourceError
from everview.sources import Memory, Postgres
from everview.sources.protocol import Request

END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = %s"
NAME = "everview_hostile"


@pytest.fixture
def server(postgres: str) -> Iterator[Any]:
    with psycopg.connect(postgres, autocommit=True) as found:
        found.execute("DROP SCHEMA IF EXISTS hostile CASCADE")
        found.execute("CREATE SCHEMA hostile")
        found.execute("CREATE TABLE hostile.t (id INT PRIMARY KEY, at TIMESTAMPTZ)")
        yield found
        found.execute("DROP SCHEMA hostile CASCADE")


def table(postgres: str, **how: Any) -> Postgres:
    return Postgres(f"{postgres} application_name={NAME}", "t", "hostile", **how)


def test_a_connection_that_is_lost(server: Any, postgres: str) -> None:
    with ev.connect() as db:
        db.attach("t", table(postgres))
        server.execute(END, (NAME,))
        server.execute("INSERT INTO hostile.t VALUES (1)")
        with pytest.raises(SourceError):
            db.poll()
        with pytest.raises(SourceError, match="lost") as raised:
            db.poll()
        assert "attach one with a new connection" in str(raised.value)
        db.detach("t")
        db.attach("t", table(postgres))
        db.poll()
        assert db.table("t").rows() == [(1, None)]


def test_a_connection_that_is_lost_inside_of_a_transaction(server: Any, postgres: str) -> None:
    with ev.connect() as db:
        rows = Memory("id BIGINT", "id")
        db.attach("m", rows, keep=False)
        db.attach("t", table(postgres), keep=False)
        db.create_table("n", "id BIGINT", key="id")
        view = db.query("t").materialize("v")

        def change() -> None:
            with db.transaction() as tx:
                tx.apply({"m": [((1,), 1)], "t": [((1, None), 1)], "n": [((1,), 1)]})
                server.execute(END, (NAME,))

        with pytest.raises(SourceError):
            change()
        assert list(rows.pull(Request())) == view.rows() == db.table("n").rows() == []
        assert server.execute("SELECT * FROM hostile.t").fetchall() == []


def test_a_moment_that_python_has_no_like_of(server: Any, postgres: str) -> None:
    with ev.connect() as db:
        db.attach("t", table(postgres))
        server.execute("INSERT INTO hostile.t VALUES (1, 'infinity')")
        with pytest.raises(SourceError, match="infinity") as raised:
            db.poll()
        assert "attach it anew" in str(raised.value)
        server.execute("UPDATE hostile.t SET at = NULL")
        db.drop("t")
        db.attach("t", table(postgres))
        assert db.table("t").rows() == [(1, None)]


def test_a_row_that_does_not_fit_is_repaired(server: Any, postgres: str) -> None:
    server.execute("INSERT INTO hostile.t VALUES (1, NULL)")
    source = table(postgres, columns="id INTEGER, at TIMESTAMP NOT NULL")
    with ev.connect() as db:
        with pytest.raises(BadRows, match="NULL"):
            db.attach("t", source)
        server.execute("UPDATE hostile.t SET at = '2026-01-31'")
        db.attach("t", source)
        server.execute("INSERT INTO hostile.t VALUES (2, NULL)")
        with pytest.raises(BadRows, match="NULL"):
            db.poll()
        server.execute("DELETE FROM hostile.t WHERE id = 2")
        db.poll()
        assert [row[0] for row in db.table("t").rows()] == [1]


def test_who_may_only_read_is_told_how(server: Any, postgres: str) -> None:
    server.execute("DROP ROLE IF EXISTS reader")
    server.execute("CREATE ROLE reader LOGIN")
    server.execute("GRANT USAGE ON SCHEMA hostile TO reader")
    server.execute("GRANT SELECT ON hostile.t TO reader")
    try:
        theirs = postgres.replace("user=everview", "user=reader")
        with pytest.raises(SourceError, match="permission denied") as raised:
            table(theirs)
        assert "watch=False" in str(raised.value)
        source = table(theirs, watch=False)
        assert list(source.pull(Request())) == []
        source.close()
    finally:
        server.execute("DROP OWNED BY reader")
        server.execute("DROP ROLE reader")
