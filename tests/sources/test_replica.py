"""Tables of PostgreSQL followed by logical replication: every change once, whatever is killed between."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import everview as ev
from everview.errors import LostPosition, SchemaDrift, SourceError
from everview.sources import PostgresReplica

LARGE = "repeat(md5(random()::text), 400)"  # stored apart, and not sent again while it stays the same


@pytest.fixture
def server(postgres: str) -> Iterator[Any]:
    with psycopg.connect(postgres, autocommit=True) as found:
        found.execute("DROP SCHEMA IF EXISTS replica CASCADE; CREATE SCHEMA replica; SET search_path TO replica")
        found.execute("SET synchronous_commit = on")  # a slot tells what the server has written out
        found.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT, price NUMERIC(8,2), large TEXT)")
        found.execute("ALTER TABLE t ALTER large SET STORAGE EXTERNAL")
        yield found
        found.execute("DROP SCHEMA replica CASCADE")
        found.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")


def replica(postgres: str, table: str = "t", **how: Any) -> PostgresReplica:
    return PostgresReplica(postgres, table, "replica", **how)


def rows_of(server: Any, table: str = "t") -> list[Any]:
    return sorted(server.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


def same(db: ev.Database, server: Any, table: str = "t") -> bool:
    return sorted(db.table(table).rows(), key=repr) == rows_of(server, table)


def test_it_is_copied_once_and_then_followed(server: Any, postgres: str, tmp_path: Path) -> None:
    server.execute(f"INSERT INTO t SELECT n, 'n' || n, n / 3.0, {LARGE} FROM generate_series(1, 50) n")
    with ev.connect(tmp_path / "s") as db:
        db.attach("t", replica(postgres))
        db.sql("CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(price) AS total FROM t")
        assert same(db, server)
        assert db.poll() == {}
        server.execute("UPDATE t SET price = price + 1 WHERE id < 5")  # large is unchanged, and not sent
        server.execute("UPDATE t SET id = id + 100 WHERE id IN (7, 8)")
        server.execute("BEGIN; INSERT INTO t VALUES (900, 'x'); DELETE FROM t WHERE id = 900; COMMIT")
        server.execute("BEGIN; INSERT INTO t VALUES (901, 'no'); ROLLBACK")
        server.execute("DELETE FROM t WHERE id = 9; INSERT INTO t VALUES (9, NULL, NULL, NULL)")
        db.poll()
        assert same(db, server)
    server.execute(f"UPDATE t SET large = {LARGE} WHERE id = 1; DELETE FROM t WHERE id = 2")
    with ev.connect(tmp_path / "s") as db:
        db.attach("t", replica(postgres))
        db.poll()
        assert same(db, server)
        server.execute("TRUNCATE t; INSERT INTO t VALUES (1, 'after', 1.5)")
        db.poll()
        assert db.view("total").rows() == [(1, Decimal("1.50"))]
        assert db.verify()


def test_random_transactions_of_several_writers(server: Any, postgres: str, tmp_path: Path) -> None:
    server.execute("CREATE TABLE bag (a INT, b TEXT); ALTER TABLE bag REPLICA IDENTITY FULL")
    chance = random.Random(4)
    with ev.connect(tmp_path / "s") as db, psycopg.connect(postgres) as other:
        other.execute("SET search_path TO replica; SET synchronous_commit = on")
        db.attach("t", replica(postgres))
        db.attach("bag", replica(postgres, "bag"))
        for turn in range(12):
            for connection in (server, other):
                key = chance.randint(0, 5) * 2 + (connection is other)
                connection.execute(
                    "INSERT INTO t VALUES (%s, %s, 1) ON CONFLICT (id) DO UPDATE SET name = excluded.name", (key, turn)
                )
                connection.execute("DELETE FROM t WHERE id = %s", (key - 2,))
                connection.execute("INSERT INTO bag VALUES (%s, 'x'), (%s, NULL)", (key, key))
                connection.execute("UPDATE bag SET a = a + 1 WHERE a = %s", (key,))
                connection.execute("DELETE FROM bag WHERE a = %s AND b IS NULL", (key + 2,))
            if turn % 3 == 2:  # the other's transaction is open over several polls
                other.commit()
            db.poll(limit=chance.choice((1, None)))
        other.commit()
        while db.poll():
            pass
        assert same(db, server)
        assert same(db, server, "bag")


def test_a_slot_is_read_no_further_than_what_is_stored(server: Any, postgres: str, tmp_path: Path) -> None:
    confirmed = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = 'everview_here'"
    with ev.connect(tmp_path / "s") as db:
        db.attach("t", replica(postgres, slot="everview_here"))
        before = server.execute(confirmed).fetchone()
        server.execute("INSERT INTO t VALUES (1, 'a')")
        db.poll()
        assert db.table("t").rows() == [(1, "a", None, None)]
        db.checkpoint()
        server.execute("INSERT INTO t VALUES (2, 'b')")
        db.poll()
        assert server.execute(confirmed).fetchone() != before
    server.execute("INSERT INTO t VALUES (3, 'c')")
    server.execute("SELECT pg_replication_slot_advance('everview_here', pg_current_wal_lsn())")
    with ev.connect(tmp_path / "s") as db:
        refused = replica(postgres)
        with pytest.raises(LostPosition, match="read further by another"):
            db.attach("t", refused)
        refused.close()
        db.attach("t", replica(postgres), resync=True)
        assert same(db, server)
        server.execute("INSERT INTO t VALUES (4, 'd')")
        db.poll()
        assert same(db, server)


def test_what_cannot_be_followed_is_said(server: Any, postgres: str) -> None:
    server.execute("CREATE TABLE n (a INT); CREATE TABLE g (id INT PRIMARY KEY, b INT GENERATED ALWAYS AS (id) STORED)")
    server.execute("CREATE PUBLICATION empty_one")
    for table, how, message in (
        ("n", {}, "does not tell which rows change"),
        ("g", {}, "is computed, and not replicated"),
        ("t", {"publication": "empty_one"}, "does not have table"),
        ("missing", {}, "there is no table"),
    ):
        with pytest.raises(SourceError, match=message) as raised:
            replica(postgres, table, **how)
        assert raised.value.hint
    server.execute("DROP PUBLICATION empty_one")


def test_a_table_that_becomes_another_is_named(server: Any, postgres: str) -> None:
    with ev.connect() as db:
        source = replica(postgres, columns=["id", "name", "price"])
        db.attach("t", source)
        server.execute("ALTER TABLE t ADD COLUMN more INT; INSERT INTO t VALUES (1, 'a', 1, NULL, 5)")
        db.poll()
        assert db.table("t").rows() == [(1, "a", Decimal("1.00"))]
        server.execute("ALTER TABLE t DROP COLUMN price; INSERT INTO t VALUES (2, 'b')")
        with pytest.raises(SchemaDrift, match="has no column price any more") as raised:
            db.poll()
        assert "attach it anew" in (raised.value.hint or "")
        server.execute("ALTER TABLE t ADD COLUMN price TEXT; INSERT INTO t VALUES (3, 'c')")
        with pytest.raises(SchemaDrift):  # until it is attached anew
            db.poll()
        assert len(db.table("t")) == 1
        source.uninstall()
        assert not server.execute("SELECT 1 FROM pg_replication_slots").fetchall()


CHILD = """
import sys, everview as ev
from everview.sources import PostgresReplica
db = ev.connect(sys.argv[2])
db.attach("t", PostgresReplica(sys.argv[1], "t", "replica"))
print("ready", flush=True)
db.run(every=0.01)
sys.stdin.read()
"""


def test_a_follower_that_is_killed_goes_on_where_it_was(server: Any, postgres: str, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, postgres, str(tmp_path / "s")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    number, end = 0, time.monotonic() + 0.3
    while time.monotonic() < end:
        number += 1
        server.execute("INSERT INTO t VALUES (%s, 'x')", (number,))
        server.execute("UPDATE t SET name = name || 'y' WHERE id = %s", (number // 2,))
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    child.stdout.close()
    child.stdin.close()
    with ev.connect(tmp_path / "s") as db:
        db.attach("t", replica(postgres))
        db.poll()
        assert same(db, server)
        assert len(db.table("t")) == number
