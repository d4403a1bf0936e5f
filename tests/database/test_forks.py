"""A forked child is refused whatever it does with a connection, and harms nothing of its parent's."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import everview as ev
from everview.errors import ForkedProcess
from everview.pull import Pipeline
from everview.runtimes.embedded import Embedded
from torture.forks import bank, doors, in_child, wrong_in_child, wrong_in_parent


@pytest.mark.parametrize("durable", [False, True])
def test_every_door_is_closed_to_a_child(durable: bool, tmp_path: Path) -> None:
    path = tmp_path / "bank" if durable else None
    db = bank(path)
    for n in range(3):
        assert wrong_in_child(doors(db)) is None
        assert wrong_in_parent(db, path, n) is None
    assert db.verify()
    db.close()
    if path is not None:
        with ev.connect(path) as again:
            assert len(again.table("t")) == 3 + 2
            assert again.verify()


def test_what_a_child_holds_of_a_database_is_refused_too(tmp_path: Path) -> None:
    db = bank(tmp_path / "bank")
    view, changes, live = db.view("totals"), db.view("totals").changes(), db.view("totals").live()
    with db.transaction() as tx:
        acts: dict[str, Any] = {
            "rows": view.rows,
            "arrow": view.to_arrow,
            "length": lambda: len(view),
            "subscribe": lambda: view.subscribe(print),
            "changes": lambda: changes.next(timeout=1),
            "live": view.live,
            "insert": lambda: tx.insert("t", [(5, "child")]),
            "close": db.close,
        }
        assert wrong_in_child(acts) is None
        tx.insert("t", [(5, "parent")])
    assert dict(db.view("totals").contents()) == {("one", 1): 1, ("two", 1): 1, ("parent", 1): 1}
    assert sorted(live.rows()) == [("one", 1), ("parent", 1), ("two", 1)]
    db.close()


def test_a_fork_while_another_thread_has_the_lock(tmp_path: Path) -> None:
    """The child has a copy of the lock, and nobody who would give it back."""
    db, held, done = bank(tmp_path / "bank"), threading.Event(), threading.Event()

    def hold() -> None:
        with db._core.still:
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    try:
        assert isinstance(in_child(lambda: db.apply({})), ForkedProcess)
    finally:
        done.set()
        thread.join()
    db.close()


def test_a_child_may_connect_itself(tmp_path: Path) -> None:
    db = bank(tmp_path / "parent")

    def connect() -> int:
        with ev.connect(tmp_path / "child") as own:
            own.sql("CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (1)")
            return len(own.table("t"))

    assert in_child(connect) == 1
    assert isinstance(in_child(lambda: ev.connect(tmp_path / "parent")), ev.EverviewError)  # its parent has it
    db.close()
    assert in_child(lambda: len(ev.connect(tmp_path / "parent").table("t"))) == 2


def test_runtimes_and_pipelines_are_refused_too(tmp_path: Path) -> None:
    circuit = ev.Circuit()
    circuit.source("t", "id BIGINT NOT NULL").sink("v")
    run = Embedded(circuit, tmp_path / "run")
    pipeline = Pipeline()
    acts = {
        "tick": lambda: run.tick({}),
        "view": lambda: run.view("v"),
        "close": run.close,
        "end": pipeline.close,
        "poll": pipeline.poll,
    }
    assert wrong_in_child(acts) is None
    run.tick({"t": [((1,), 1)]})
    run.close()


def test_a_child_that_ends_as_any_process_does(tmp_path: Path) -> None:
    """It collects its garbage and runs what is registered for the end, and leaves its parent's directory alone."""
    code = f"""
import os, sys, gc
import everview as ev
db = ev.connect({str(tmp_path / "bank")!r}, durability="periodic")
db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
live, changes = db.view("v").live(), db.view("v").changes()
db.apply({{"t": [((1,), 1)]}})
child = os.fork()
if child == 0:
    del live, changes, db
    gc.collect()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
db.apply({{"t": [((2,), 1)]}})
db.close()
with ev.connect({str(tmp_path / "bank")!r}) as db:
    assert db.view("v").rows() == [(2,)] and db.verify()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)
