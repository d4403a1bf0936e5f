"""A database that another process writes: readers show whole epochs, and move on when they are told to."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import everview as ev
from everview.database import following
from everview.errors import ForeignState, StoreError
from everview.runtimes.embedded import durable

WRITER = """
import sys
import everview as ev
with ev.connect(sys.argv[1]) as db:
    for line in sys.stdin:
        db.sql(line)
        print(db.epoch, flush=True)
"""


@pytest.fixture
def writer(tmp_path: Path) -> Any:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "s")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def write(statement: str) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{statement}\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield write
    process.communicate()
    assert process.returncode == 0


def test_a_reader_follows_a_writer_in_another_process(writer: Any, tmp_path: Path) -> None:
    writer("CREATE TABLE t (k BIGINT PRIMARY KEY, s STRING)")
    writer("CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s")
    writer("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    with ev.connect(tmp_path / "s", read_only=True) as db:
        view, told = db.view("v"), []
        view.subscribe(lambda changes, epoch: told.append((epoch, dict(changes))))
        assert (db.read_only, db.epoch, db.refresh()) == (True, 3, {})
        writer("INSERT INTO t VALUES (3, 'a'), (4, 'c')")
        assert writer("DELETE FROM t WHERE k = 2") == 5
        assert sorted(view.rows()) == [("a", 1), ("b", 1)]  # as it was
        changes = {("a", 1): -1, ("a", 2): 1, ("b", 1): -1, ("c", 1): 1}
        assert dict(db.refresh()["v"]) == changes
        assert told == [(5, changes)]
        assert sorted(view.rows()) == sorted(pl.DataFrame(view).rows()) == [("a", 2), ("c", 1)]
        assert db.table("t").get(4) == (4, "c")
        assert db.sql("SELECT count(*) FROM t JOIN v ON t.s = v.s") == [(3,)]
        assert db.sql("SELECT count(*) FROM t VERSION AS OF 3") == [(2,)]
        assert db.verify()
        writer("CREATE MATERIALIZED VIEW late AS SELECT k FROM t WHERE s = 'a'")
        writer("CREATE OR REPLACE TABLE other (x ARRAY<STRING>)")
        assert dict(db.refresh()["late"]) == {(1,): 1, (3,): 1}
        assert (db.views(), db.tables()) == (["v", "late"], ["t", "other"])
        ended: list[int] = []
        db.view("late").subscribe(lambda *_: None, ended=lambda: ended.append(1))
        writer("DROP VIEW late")
        db.refresh()
        assert (db.views(), ended) == (["v"], [1])
        view.subscribe(lambda *_: None, ended=lambda: ended.append(2))
        writer("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k FROM t")
        assert db.refresh() == {}  # other columns: those who listened are told that it has ended
        assert (ended, sorted(view.rows())) == ([1, 2], [(1,), (3,), (4,)])


@pytest.mark.parametrize("shards", [1, 2])
def test_a_reader_moves_on_by_what_has_changed(monkeypatch: Any, tmp_path: Path, shards: int) -> None:
    monkeypatch.setattr(durable, "TIDY_SLICES", 40)  # so that slices which were read are merged, and gone
    monkeypatch.setattr(durable, "TIDY_BYTES", 4000)
    random, moves = Random(shards), []
    with ev.connect(tmp_path / "s", shards=shards) as db:
        db.sql("""
          CREATE TABLE t (k BIGINT PRIMARY KEY, s STRING, x DOUBLE); CREATE TABLE e (a BIGINT, b BIGINT);
          CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n, max(x) AS m FROM t GROUP BY s;
          CREATE MATERIALIZED VIEW ranked AS SELECT k, row_number() OVER (PARTITION BY x ORDER BY s, k) AS r FROM t;
          CREATE MATERIALIZED VIEW reach AS WITH RECURSIVE r(a, b) AS (
            SELECT a, b FROM e UNION SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) SELECT * FROM r
        """)
        with ev.connect(tmp_path / "s", read_only=True) as reader:
            prepared = following.prepared_move
            monkeypatch.setattr(following, "prepared_move", lambda *given: moves.append(prepared(*given)) or moves[-1])
            held: dict[str, Counter[Any]] = {name: Counter() for name in db.views()}
            for number in range(40):
                texts = [(random.randrange(40), f"{random.choice('abc')}{number}", random.random()) for _ in range(3)]
                with db.transaction() as tx:
                    tx.upsert("t", texts)
                    tx.insert("e", [(random.randrange(6), random.randrange(6))])
                if number % 4 == 0:
                    db.sql("DELETE FROM t WHERE k % 7 = ?", [random.randrange(7)])
                    db.sql("DELETE FROM e WHERE a = ?", [random.randrange(6)])
                if number == 20:
                    db.vacuum()
                for name, changes in reader.refresh().items():
                    for row, weight in changes:
                        held[name][row] += weight
                assert reader.epoch == db.epoch
                for name, rows in held.items():
                    assert dict(+rows) == dict(reader.view(name).contents()) == dict(db.view(name).contents())
                assert sorted(reader.table("t").rows()) == sorted(db.table("t").rows())
            assert reader.verify()
            assert reader.why("reach", reader.view("reach").rows()[0]).base_rows()
    assert all(moves), "no epoch was read as a whole"


def test_a_reader_refuses_to_write(writer: Any, tmp_path: Path) -> None:
    writer("CREATE TABLE t (k BIGINT)")
    with ev.connect(tmp_path / "s", read_only=True) as db:
        for change in (
            lambda: db.sql("INSERT INTO t VALUES (1)"),
            lambda: db.sql("CREATE TABLE u (k BIGINT)"),
            lambda: db.apply({"t": [((1,), 1)]}),
            lambda: db.create_view("w", lambda of: of["t"]),
            db.vacuum,
            db.advance,
        ):
            with pytest.raises(StoreError, match="read only"):
                change()
        assert (db.tables(), db.table("t").rows(), db.epoch) == (["t"], [], 1)
        assert db.sql(f"COPY t TO '{tmp_path}/t.csv'") == 0
    writer("INSERT INTO t VALUES (1)")  # which no reader has locked out


def test_the_runner_follows_the_writer(writer: Any, tmp_path: Path) -> None:
    writer("CREATE TABLE t (k BIGINT)")
    writer("CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    with (
        ev.connect(tmp_path / "s", read_only=True) as db,
        db.view("v").changes() as changes,
        db.run(every=0.01) as runner,
    ):
        writer("INSERT INTO t VALUES (7)")
        change, epoch = changes.next(60)
        assert (dict(change), epoch) == ({(7,): 1}, 3)
        assert runner.errors() == {}


def test_nothing_to_read(tmp_path: Path) -> None:
    for path in (None, tmp_path / "nothing"):
        with pytest.raises(StoreError, match="no database to read"):
            ev.connect(path, read_only=True)
    circuit = ev.Circuit()
    circuit.source("a", "n BIGINT").sink("out")
    with ev.Embedded(circuit, tmp_path / "c") as run:
        run.tick({"a": [((1,), 1)]})
    with pytest.raises(ForeignState):
        ev.connect(tmp_path / "c", read_only=True)
    with pytest.raises(StoreError, match="follows no writer"):
        ev.connect().refresh()
