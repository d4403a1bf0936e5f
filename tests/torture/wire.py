"""Hostile bytes for both doors of a server: it does not end, other clients are answered, and nothing is left behind."""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

import psycopg

from serving import Client, server_process
from torture.outcome import Outcome
from wire_fuzz import attack, attack_http

SQL = "CREATE TABLE t (k BIGINT, v STRING); CREATE MATERIALIZED VIEW v AS SELECT v, count(*) AS n FROM t GROUP BY v;"
TOGETHER = 100  # attacks between two looks
ROOM = 400_000  # kilobytes that a server may grow by


def run(seconds: float, seed: int) -> Outcome:
    """Attack a server until the time is over."""
    outcome, ends = Outcome(), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "made.sql"
        script.write_text(SQL)
        with server_process(script, "--port", 0) as (process, http, pg):
            before = _held(process.pid)
            while time.monotonic() < ends and not outcome.faults:
                for _ in range(TOGETHER):
                    seed += 1
                    attack(pg, random.Random(seed))
                    attack_http(http, random.Random(seed))
                outcome.tried["attacks"] += 2 * TOGETHER
                if process.poll() is not None:
                    outcome.faults.append(f"the server has ended with {process.returncode}; seed {seed}")
                    break
                _look(http, pg, seed, outcome)
            if process.poll() is None:
                time.sleep(min(5, seconds))  # connections under way end
                _compare(before, _held(process.pid), seed, outcome)
    return outcome


def _look(http: int, pg: int, seed: int, outcome: Outcome) -> None:
    """See that other clients are answered."""
    try:
        with psycopg.connect(f"host=127.0.0.1 port={pg} user=ada", autocommit=True, connect_timeout=60) as client:
            assert client.execute("SELECT 1").fetchone() == (1,)
        assert Client(http).sql("SELECT 1") == [[1]]
    except (psycopg.Error, AssertionError, OSError) as error:
        outcome.faults.append(f"another client was harmed: {error!r}; seed {seed}")


def _held(process: int) -> tuple[int, int]:
    """The open files of a process, and its memory in kilobytes."""
    status = Path(f"/proc/{process}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return len(os.listdir(f"/proc/{process}/fd")), memory


def _compare(before: tuple[int, int], after: tuple[int, int], seed: int, outcome: Outcome) -> None:
    if after[0] > before[0] + 5:
        outcome.faults.append(f"{after[0] - before[0]} files are left open; seed {seed}")
    if after[1] > before[1] + ROOM:
        outcome.faults.append(f"the memory has grown from {before[1]:,} to {after[1]:,} kB; seed {seed}")
    outcome.notes.append(f"files and kilobytes before {before}, after {after}")
