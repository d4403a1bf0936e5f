"""Forked children: whatever one does with what its parent opened is refused, and the parent's state stays whole."""

from __future__ import annotations

import os
import pickle
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import everview as ev
from everview.errors import ForkedProcess
from everview.sources import Memory
from everview.traces.store import Store
from torture.outcome import Outcome

Door = Callable[[ev.Database], Any]


def _in_transaction(db: ev.Database) -> None:
    with db.transaction() as tx:
        tx.insert("t", [(99, "child")])


def _exit_of_a_block(db: ev.Database) -> None:
    with db:
        pass


DOORS: dict[str, Door] = {
    "apply": lambda db: db.apply({"t": [((99, "child"), 1)]}),
    "transaction": _in_transaction,
    "insert": lambda db: db.sql("INSERT INTO t VALUES (99, 'child')"),
    "select": lambda db: db.sql("SELECT * FROM t"),
    "begin": lambda db: db.sql("BEGIN"),
    "create table": lambda db: db.create_table("u", "id BIGINT"),
    "create view": lambda db: db.sql("CREATE MATERIALIZED VIEW w AS SELECT v FROM t"),
    "drop": lambda db: db.drop("totals"),
    "datalog": lambda db: db.datalog("p(x) :- t(x, _)."),
    "edn": lambda db: db.edn("{:find [?v] :where [[?t :t/v ?v]]}"),
    "transact": lambda db: db.transact("[{:db/id 1 :a/b 2}]"),
    "attach": lambda db: db.attach("fed", Memory("id BIGINT", "id", [(1,)])),
    "poll": lambda db: db.poll(),
    "detach": lambda db: db.detach("fed"),
    "view": lambda db: db.view("totals"),
    "table": lambda db: db.table("t"),
    "tables": lambda db: db.tables(),
    "views": lambda db: db.views(),
    "rules": lambda db: db.rules(),
    "sources": lambda db: db.sources,
    "epoch": lambda db: db.epoch,
    "query": lambda db: db.query("t").run(),
    "explain": lambda db: db.explain("totals"),
    "verify": lambda db: db.verify(),
    "checkpoint": lambda db: db.checkpoint(),
    "vacuum": lambda db: db.vacuum(),
    "close": lambda db: db.close(),
    "with": _exit_of_a_block,
}


def in_child(act: Callable[[], Any]) -> Any:
    """What a function gives, or raises, in a child that is forked for it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            try:
                found: Any = act()
            except BaseException as error:  # noqa: BLE001, the parent looks at it
                found = error
            os.write(write, pickle.dumps(found))
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(said) if said else ChildProcessError(f"the child ended with status {status}, and said nothing")


def bank(path: Path | None) -> ev.Database:
    """A small database."""
    db = ev.connect(path)
    db.sql("""CREATE TABLE t (id BIGINT PRIMARY KEY, v STRING);
              CREATE MATERIALIZED VIEW totals AS SELECT v, COUNT(*) AS n FROM t GROUP BY v;
              INSERT INTO t VALUES (1, 'one'), (2, 'two')""")
    return db


def refused(acts: Iterable[Callable[[], Any]]) -> list[str]:
    """What each of some acts gave where it should have been refused; to be called in a child."""
    found: list[str] = []
    for act in acts:
        try:
            found.append(f"it gave {act()!r}")
        except ForkedProcess as error:
            found.append("" if error.hint else "no hint")
        except BaseException as error:  # noqa: BLE001, the parent looks at it
            found.append(f"it raised {error!r}")
    return found


def wrong_in_child(acts: Mapping[str, Callable[[], Any]]) -> str | None:
    """What is wrong if a child tries some acts on what its parent opened."""
    found = in_child(lambda: refused(acts.values()))
    if not isinstance(found, list):
        return repr(found)
    wrong = [f"{name}: {said}" for name, said in zip(acts, found, strict=True) if said]
    return "; ".join(wrong) or None


def doors(db: ev.Database) -> dict[str, Callable[[], Any]]:
    """Everything that a child may try with a database."""
    return {name: partial(door, db) for name, door in DOORS.items()}


def wrong_in_parent(db: ev.Database, path: Path | None, n: int) -> str | None:
    """What is wrong with the parent's database after ``n`` rows of its own."""
    db.apply({"t": [((100 + n, f"row {n}"), 1)]})
    if len(db.table("t")) != n + 3:
        return f"the parent has {len(db.table('t'))} rows, not {n + 3}"
    if path is None:
        return None
    with Store.attach(path) as state:
        state.verify()
        return None if state.epoch == db.epoch else f"epoch {state.epoch} on disk, {db.epoch} in memory"


def run(seconds: float, seed: int) -> Outcome:
    """Fork in the middle of changes that other threads make, and let children try every door."""
    outcome, until, rng = Outcome(), time.monotonic() + seconds, random.Random(seed)
    while time.monotonic() < until and not outcome.faults:
        with tempfile.TemporaryDirectory() as home:
            path = rng.choice([None, Path(home) / "state"])
            _forks_under_load(path, rng, min(until, time.monotonic() + 10), outcome)
    return outcome


def _forks_under_load(path: Path | None, rng: random.Random, until: float, outcome: Outcome) -> None:
    db, stop, rows = bank(path), threading.Event(), [0]

    def change() -> None:
        while not stop.is_set():
            db.apply({"t": [((1000 + rows[0], f"load {rows[0] % 50}"), 1)]})
            rows[0] += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        while time.monotonic() < until and not outcome.faults:
            names = rng.sample(list(DOORS), 3)
            fault = wrong_in_child({name: act for name, act in doors(db).items() if name in names})
            outcome.tried["forks"] += 1
            if fault is not None:
                outcome.faults.append(fault)
    finally:
        stop.set()
        thread.join()
    if len(db.table("t")) != rows[0] + 2 or not db.verify():
        outcome.faults.append(f"{len(db.table('t'))} rows, not {rows[0] + 2}")
    db.close()
    if path is not None:
        with ev.connect(path) as again:
            if len(again.table("t")) != rows[0] + 2:
                outcome.faults.append(f"{len(again.table('t'))} rows on disk, not {rows[0] + 2}")
