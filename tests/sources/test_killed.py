"""A process that follows a database and is killed, again and again, while others write."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import everview as ev
from everview.sources import SQLite

FOLLOW = """
import sys
import everview as ev
from everview.sources import SQLite
db = ev.connect(sys.argv[1])
db.attach("item", SQLite(sys.argv[2], "item", trim_every=20))
if "totals" not in db.views():
    db.sql("CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS c, sum(n) AS s FROM item")
print("ready", flush=True)
while True:
    db.poll()
"""
WRITE = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
for i in range(400):
    db.execute("INSERT OR REPLACE INTO item VALUES (?, ?)", (i * 7 % 97, i))
    if i % 5 == 0:
        db.execute("DELETE FROM item WHERE id = ?", (i * 3 % 97,))
    time.sleep(0.005)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    state, path = tmp_path / "state", tmp_path / "shop.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, n INT NOT NULL)")
    connection.execute("INSERT INTO item VALUES (1000, 1)")
    writer: subprocess.Popen[str] | None = None
    for lived in (0.3, 0.7, 0.5):
        command = [sys.executable, "-c", FOLLOW, str(state), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == "ready\n"
            writer = writer or subprocess.Popen([sys.executable, "-c", WRITE, str(path)], text=True)
            time.sleep(lived)
            follower.kill()
    assert writer is not None
    assert writer.wait(timeout=60) == 0
    with ev.connect(state) as db:
        db.attach("item", SQLite(path, "item"))
        db.poll()
        there = connection.execute("SELECT id, n FROM item ORDER BY id").fetchall()
        assert sorted(db.table("item").rows()) == there
        assert db.view("totals").rows() == [(len(there), sum(n for _, n in there))]
    connection.close()
