"""A disk that refuses, at every operation of a database's life: it is full, or it fails once.

Each life is the same list of steps on a durable database: tables, views, changes, a transaction, a checkpoint, a
vacuum, closing and opening again. At one operation on files the disk begins to refuse. A step that fails must raise an
`EverviewError`, and must leave the database as it was, in memory and on disk; only where the error says that the state
must be opened again may the step have happened. When there is room again, the life goes on to its end, and must hold
what the steps say.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, Final
from unittest.mock import patch

import everview as ev
from everview.database import Database
from everview.errors import EverviewError
from everview.traces.store.files import File, FileSystem
from torture.outcome import Outcome

OPERATIONS: Final = ("create", "append", "sync", "truncate", "rename", "unlink", "mkdir", "sync_dir")
TAKES_ROOM: Final = ("create", "append", "mkdir")
MODES: Final = ("full", "quota", "once", "broken")  # two kinds of full disks, one failure, and a disk that is no more
CODES: Final = {"full": errno.ENOSPC, "quota": errno.EDQUOT, "once": errno.EIO, "broken": errno.EIO}

Rows = dict[int, int]
Step = Callable[[Database], object]


@dataclass
class Disk:
    """Counts the operations on files; from number ``at`` on, it refuses as its mode says. 0 never refuses."""

    at: int = 0
    mode: str = "full"
    done: int = 0
    refused: list[str] = field(default_factory=list[str])

    def before(self, operation: str, path: Path) -> None:
        """Count an operation, and refuse it or not."""
        self.done += 1
        if self.at and self._refuses(operation):
            self.refused.append(f"{operation} of {path.name}")
            raise OSError(CODES[self.mode], os.strerror(CODES[self.mode]), str(path))

    def _refuses(self, operation: str) -> bool:
        match self.mode:
            case "once":
                return self.done == self.at
            case "broken":
                return self.done >= self.at
            case _:
                return self.done >= self.at and operation in TAKES_ROOM

    @contextmanager
    def mounted(self) -> Generator[None]:
        """Every store of this process is on this disk."""
        plain = {name: getattr(FileSystem, name) for name in OPERATIONS}

        def wrapped(name: str) -> Callable[..., Any]:
            def operation(files: FileSystem, first: Any, *rest: Any) -> Any:
                path = first.path if isinstance(first, File) else first
                try:
                    self.before(name, path)
                except OSError:
                    if name == "append":  # a full disk takes the first bytes
                        data = memoryview(rest[0])
                        plain[name](files, first, data[: len(data) // 2], *rest[1:])
                    raise
                return plain[name](files, first, *rest)

            return operation

        with patch.multiple(FileSystem, **{name: wrapped(name) for name in OPERATIONS}):
            yield


# -- a life


@dataclass(frozen=True)
class Life:
    """Steps, and what the table holds after each of them; None before there is one."""

    steps: list[tuple[str, Step]]
    held: list[Rows | None]

    @classmethod
    def of(cls, seed: int, ticks: int) -> Life:
        chance = random.Random(seed)
        life = cls([], [None])
        life._add("create", {}, lambda db: db.create_table("t", "k BIGINT NOT NULL, v BIGINT", key="k"))
        rows: Rows = {}
        for tick in range(ticks):
            rows = life._tick(chance, rows, tick)
            if tick == ticks // 3:
                view = "CREATE MATERIALIZED VIEW sums AS SELECT k % 3 AS g, SUM(v) AS s FROM t GROUP BY k % 3"
                life._add("create a view", rows, lambda db, view=view: db.sql(view))
            if tick % 5 == 4:
                life._add("checkpoint", rows, lambda db: db.checkpoint())
            if tick % 7 == 6:
                life._add("vacuum", rows, lambda db: db.vacuum())
        return life

    def _add(self, name: str, rows: Rows, step: Step) -> None:
        self.steps.append((name, step))
        self.held.append(dict(rows))

    def _tick(self, chance: random.Random, rows: Rows, tick: int) -> Rows:
        many = 2000 if tick % 6 == 5 else chance.randrange(1, 4)  # much goes to a segment of its own
        put = {chance.randrange(5000 if many > 9 else 30): chance.randrange(-9, 9) for _ in range(many)}
        gone = [k for k in rows if chance.random() < 0.2 and k not in put]

        def step(db: Database) -> None:
            with db.transaction() as tx:
                tx.delete("t", [(k,) for k in gone])
                tx.upsert("t", list(put.items()))

        after = {k: v for k, v in (rows | put).items() if k not in gone}
        self._add("transaction", after, step)
        return after


def lived(life: Life, path: Path, disk: Disk) -> list[str]:
    """Live a life on a disk that refuses, with room again after each failure; what was wrong."""
    faults: list[str] = []
    db: Database | None = None
    at = 0
    with disk.mounted():
        while at < len(life.steps):
            name, step = life.steps[at]
            reopen = False
            try:
                if db is None:
                    db = ev.connect(path)
                    at = _place(db, life, at, faults)
                    if at == len(life.steps):
                        break
                    name, step = life.steps[at]
                step(db)
                at += 1
            except EverviewError as error:
                reopen = db is None or ("again" in str(error) and "open" in str(error))
            except Exception as error:  # noqa: BLE001 - that it is one is the fault
                faults.append(f"{name} raised {type(error).__name__}: {error}; {_refused(disk)}")
                reopen = True
            else:
                continue
            if not disk.at:
                faults.append(f"{name} fails at step {at} although there is room again; {_refused(disk)}")
                break
            disk.at = 0  # there is room again
            if db is not None and not reopen:
                _compare(db, life, at, f"after {name} failed; {_refused(disk)}", faults)
            elif db is not None:
                _close(db)
                db = None
        if db is not None:
            _compare(db, life, at, f"in the end; {_refused(disk)}", faults)
            _close(db)
    return faults


def _refused(disk: Disk) -> str:
    return f"{disk.mode} from {', '.join(disk.refused[:2]) or 'nowhere'}"


def _close(db: Database) -> None:
    with suppress(EverviewError):
        db.close()


def _rows(db: Database) -> Rows | None:
    return dict(db.table("t").rows()) if "t" in db.tables() else None


def _place(db: Database, life: Life, at: int, faults: list[str]) -> int:
    """Where a reopened database is in its life: at the step that failed, or after it."""
    found = _rows(db)
    views = "sums" in db.views()
    for place in (at + 1, at):
        if place < len(life.held) and found == life.held[place] and views == _has_view(life, place):
            return place
    if found != life.held[at]:
        faults.append(f"opened again before step {at} ({life.steps[at][0]}), it holds {found}, not {life.held[at]}")
    return at


def _has_view(life: Life, place: int) -> bool:
    return any(name == "create a view" for name, _ in life.steps[:place])


def _compare(db: Database, life: Life, at: int, when: str, faults: list[str]) -> None:
    try:
        if _rows(db) != life.held[at]:
            faults.append(f"{when}: at step {at}, it holds {_rows(db)}, not {life.held[at]}")
        if not db.verify():
            faults.append(f"{when}: at step {at}, views differ: {db.verify()}")
    except EverviewError as error:
        faults.append(f"{when}: at step {at}, it cannot be read: {error}")


# -- trials


def operations(life: Life) -> int:
    """How many operations on files a life has."""
    disk = Disk()
    with tempfile.TemporaryDirectory() as directory:
        assert lived(life, Path(directory) / "db", disk) == []
    return disk.done


def tried(life: Life, at: int, mode: str) -> list[str]:
    """One life on a disk that refuses from one operation on."""
    directory = Path(tempfile.mkdtemp(prefix="everview-disk-"))
    try:
        return [f"{fault} (operation {at}, {mode})" for fault in lived(life, directory / "db", Disk(at, mode))]
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run(seconds: float, seed: int) -> Outcome:
    """Lives of random steps; in each, every operation refuses in every mode, until the time is over."""
    outcome, until = Outcome(), monotonic() + seconds
    for number in count(seed):
        life = Life.of(number, 9)
        total = operations(life)
        outcome.tried["lives of a database"] += 1
        cases = [(at, mode) for at in range(1, total + 1) for mode in MODES]
        random.Random(number).shuffle(cases)
        for at, mode in cases:
            if monotonic() > until:
                return outcome
            outcome.tried["disks that refuse"] += 1
            outcome.faults += [f"seed {number}: {fault}" for fault in tried(life, at, mode)]
    raise AssertionError("counting has no end")
