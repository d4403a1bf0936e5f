"""An exception at any moment leaves a database as it was, or as it would be; here at some moments of every act.

`make torture` tries far more of them, see `torture.interrupts`.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everview as ev
from everview.kernels.sort import arrange
from torture.every_line import faults_at, places
from torture.interrupts import SOURCE, Interrupt, Scenario, Trial, alarmed, evenly, interrupted_by_signal, scenarios

# An exception that a signal handler raises inside of a callback of the interpreter's, it reports and drops.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
FEW = 8  # moments of each act


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("durability", ["memory", "tick"])
def test_whatever_is_cut_short_happens_or_does_not(scenario: Scenario, durability: str, tmp_path: Path) -> None:
    if durability == "memory":
        trial = Trial(scenario, None)
        count = 2 * FEW
    else:
        trial = Trial(scenario, tmp_path / "state", durability=durability)
        count = FEW
    faults = [fault for at in evenly(count, trial.moments) if (fault := trial.interrupt(at))]
    trial.close()
    assert not faults


def test_merges_keep_their_ids_when_a_vacuum_is_cut_short(tmp_path: Path) -> None:
    trial = Trial(next(each for each in scenarios() if each.name == "vacuum"), tmp_path / "state")
    tidy = f"{SOURCE}/runtimes/embedded/durable.py"
    lines = [place for place in places(trial, often=1) if place.file == tidy]
    faults = [fault for fault in faults_at(trial, lines) if fault]
    trial.close()
    assert not faults


def test_at_every_line_of_a_change() -> None:
    """Once each, where something changes that outlives a call; all acts are gone through by `torture.every_line`."""
    trial = Trial(scenarios()[0], None)
    lines = [place for place in places(trial, often=1) if place.stateful and place.time == 1]
    assert len(lines) > 250
    faults = [fault for fault in faults_at(trial, lines) if fault]
    trial.close()
    assert not faults


def test_at_every_line_of_a_durable_commit(tmp_path: Path) -> None:
    """In the store and the runtime over it; what was done before is the same in memory."""
    trial = Trial(scenarios()[0], tmp_path / "state")
    parts = ("traces/store/", "runtimes/embedded/durable.py", "runtimes/embedded/runtime.py", "runtimes/epoch.py")
    ours = tuple(f"{SOURCE}/{part}" for part in parts)
    lines = [place for place in places(trial, often=1) if place.file.startswith(ours) and place.time == 1]
    assert len(lines) > 150
    faults = [fault for fault in faults_at(trial, lines[::2]) if fault]
    trial.close()
    assert not faults


def test_facts_of_new_attributes_are_one_act() -> None:
    """Attributes are made first, and facts second: an exception between leaves neither."""
    trial = Trial(next(each for each in scenarios() if each.name == "facts"), None)
    ours = tuple(f"{SOURCE}/database/{part}" for part in ("eav/transact.py", "tentative.py", "access.py"))
    lines = [place for place in places(trial, often=1) if place.file.startswith(ours)]
    assert len(lines) > 80
    faults = [fault for fault in faults_at(trial, lines[::3]) if fault]  # all of them were tried once
    trial.close()
    assert not faults


@pytest.mark.parametrize("durability", ["tick", "periodic"])
def test_at_bytecodes_of_all_code(durability: str, tmp_path: Path) -> None:
    path = None if durability == "tick" else tmp_path / "state"
    trial = Trial(scenarios()[0], path, opcodes=True, all_code=True, durability=durability)
    faults = [fault for at in evenly(FEW, trial.moments) if (fault := trial.interrupt(at))]
    trial.close()
    assert not faults


def test_by_signals(tmp_path: Path) -> None:
    rng = random.Random(7)
    for scenario in scenarios()[:3]:
        trial = Trial(scenario, tmp_path / scenario.name)
        faults = [fault for _ in range(FEW) if (fault := interrupted_by_signal(trial, rng))]
        trial.close()
        assert not faults


def test_an_interrupt_inside_of_a_listener_takes_nothing_from_the_others() -> None:
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")
    told: list[tuple[str, int]] = []

    def first(changes: Any, epoch: int) -> None:
        told.append(("first", epoch))
        if len(told) == 1:
            raise KeyboardInterrupt

    db.view("v").subscribe(first)
    db.view("v").subscribe(lambda changes, epoch: told.append(("second", epoch)))
    live = db.view("v").live()
    with pytest.raises(KeyboardInterrupt):
        db.apply({"t": [((1,), 1)]})
    assert db.view("v").rows() == live.rows() == [(1,)]
    db.apply({"t": [((2,), 1)]})
    before, after = db.epoch - 1, db.epoch
    assert told == [("first", before), ("second", before), ("first", after), ("second", after)]


def _raise(number: int, frame: Any) -> None:
    raise Interrupt


def test_a_kernel_that_is_interrupted_raises_what_the_handler_did() -> None:
    rows = np.random.default_rng(1).integers(0, 1000, (2_000_000, 3))
    arrange(rows[:10].copy(), np.arange(2))
    for wait in (0.001, 0.01, 0.03):
        begun, found = time.monotonic(), None
        before = signal.signal(signal.SIGALRM, _raise)
        try:
            signal.setitimer(signal.ITIMER_REAL, wait)
            while time.monotonic() < begun + 10:
                arrange(rows, np.arange(2))
        except BaseException as error:  # noqa: BLE001, that is the question
            found = error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert isinstance(found, Interrupt)


def test_kernels_load_although_they_are_interrupted() -> None:
    """In a process of its own, whose kernels are not loaded yet."""
    code = """
import signal
import everview as ev
def handler(number, frame): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
db = ev.connect()
made, tries, wait = False, 0, 0.003
while True:
    tries, wait = tries + 1, wait * 1.1
    try:
        signal.setitimer(signal.ITIMER_REAL, wait)
        if not db.tables():
            db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v STRING)")
        if not db.views():
            db.sql("CREATE MATERIALIZED VIEW v AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
        if not len(db.table("t")):
            db.apply({"t": [((n, f"text {n % 7}"), 1) for n in range(1000)]})
        found = sorted(db.view("v").rows())
        signal.setitimer(signal.ITIMER_REAL, 0)
        break
    except KeyboardInterrupt:
        pass
assert tries > 3 and [n for _, n in found] == [143] * 6 + [142] and db.verify(), (tries, found)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=300)


def test_interrupting_a_transaction_over_and_over() -> None:
    """The lock is given back, whoever had it."""
    db = ev.connect()
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM t")

    def insert(n: int) -> None:
        with db.transaction() as tx:
            tx.insert("t", [(n,)])

    for n in range(200):
        alarmed(1e-5 * (1 + n), partial(insert, n))
        rows = len(db.table("t"))
        assert db.view("v").rows() == [(rows,)]
    assert db.verify()
