"""Processes that are killed with ``kill -9`` while they work, again and again, on one state.

A durable database: a child applies changes, each made from its number alone, and says the number when the change is
acknowledged. Whoever opens the state afterwards must find all that was acknowledged, perhaps one change more, and
views that are right. A pipeline on Spark: files arrive while its driver is killed; in the end the views and the sinks
must be what recomputing the files gives.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import everview as ev
from everview.database import Database
from everview.errors import EverviewError
from torture.outcome import Outcome

KEYS: Final = 200
SPARK_NEEDS: Final = 90.0  # seconds for a pipeline to be killed a few times and to end


# -- a durable database


def change(seed: int, number: int) -> tuple[dict[int, int], list[int]]:
    """What the change of a number puts and deletes."""
    chance = random.Random(f"{seed} {number}")
    many = 3000 if number % 40 == 39 else chance.randrange(1, 6)
    put = {chance.randrange(KEYS if many < 9 else 6000): number for _ in range(many)}
    return put, [k for k in (chance.randrange(KEYS) for _ in range(3)) if k not in put]


def held(seed: int, number: int) -> dict[int, int]:
    """What the table holds after so many changes."""
    rows: dict[int, int] = {}
    for each in range(1, number + 1):
        put, gone = change(seed, each)
        rows = {k: v for k, v in (rows | put).items() if k not in gone}
    return rows


def opened(path: Path) -> Database:
    """The database with its tables and views, as far as a killed process has made them."""
    db = ev.connect(path)
    if "t" not in db.tables():
        db.create_table("t", "k BIGINT NOT NULL, v BIGINT NOT NULL", key="k")
    if "done" not in db.tables():
        db.create_table("done", "one BIGINT NOT NULL, n BIGINT NOT NULL", key="one")
    if "sums" not in db.views():
        db.sql("CREATE MATERIALIZED VIEW sums AS SELECT v % 7 AS g, COUNT(*) AS c, SUM(k) AS s FROM t GROUP BY v % 7")
    return db


def reached(db: Database) -> int:
    """The number of the last change that is there."""
    return dict(db.table("done").rows()).get(0, 0)


def live(path: Path, seed: int) -> None:
    """Apply changes and say so, for ever; what the child does."""
    with opened(path) as db:
        print("at", reached(db), flush=True)
        for number in count(reached(db) + 1):
            put, gone = change(seed, number)
            with db.transaction() as tx:
                tx.delete("t", [(k,) for k in gone])
                tx.upsert("t", list(put.items()))
                tx.upsert("done", [(0, number)])
            print("at", number, flush=True)
            if number % 25 == 0:
                db.checkpoint()
            if number % 60 == 0:
                db.vacuum()


LIVE: Final = "import sys, pathlib; from torture import kills; kills.live(pathlib.Path(sys.argv[1]), int(sys.argv[2]))"


def kill_database(path: Path, seed: int, lifetime: float) -> tuple[int, list[str]]:
    """Let a child live for a while from when it has opened the state, and kill it; how far it came, what is wrong."""
    with child(LIVE, str(path), str(seed)) as process:
        acknowledged = _acknowledged(process, lifetime)
        if acknowledged is None:
            assert process.stderr is not None
            return 0, [f"a child could not work: {process.stderr.read()[-2000:]}"]
    try:
        with opened(path) as db:
            found = reached(db)
            if found not in (acknowledged, acknowledged + 1):
                return found, [f"change {acknowledged} was acknowledged, and the state is at {found}"]
            if dict(db.table("t").rows()) != held(seed, found):
                return found, [f"at change {found}, the table holds other rows than it should"]
            if not db.verify():
                return found, [f"at change {found}, views differ: {db.verify()}"]
            return found, []
    except EverviewError as error:
        return 0, [f"after change {acknowledged}, the state cannot be opened: {error}"]


def _acknowledged(process: subprocess.Popen[str], lifetime: float) -> int | None:
    """The last number that a child says in its lifetime, after which it is killed; None if it never said one."""
    assert process.stdout is not None
    first = process.stdout.readline()
    if not first.startswith("at "):
        process.wait()
        return None
    sleep(lifetime)
    os.kill(process.pid, signal.SIGKILL)
    rest = [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    return int((rest[-1] if rest else first).split()[1])


@contextmanager
def child(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, which is gone in the end."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    }
    command = [sys.executable, "-c", script, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


# -- a pipeline on Spark

FOLLOW: Final = """
import sys
from pathlib import Path
from everview.spark import session
from spark.test_exactly_once import build

spark = session("local[2,4]", memory="1g")
with build(spark, Path(sys.argv[1]), sys.argv[2]) as p:
    query = p.start(trigger={"processingTime": "0 seconds"})
    print("following", flush=True)
    query.awaitTermination()
"""
FINISH: Final = """
import sys
from pathlib import Path
from everview.spark import session
from spark.test_exactly_once import build, check

root = Path(sys.argv[1])
spark = session("local[2,4]", memory="1g")
with build(spark, root, sys.argv[2]) as p:
    p.refresh()
check(spark, root)
print("right", flush=True)
spark.stop()
"""


def kill_pipeline(root: Path, seed: int, kills: int) -> list[str]:
    """A pipeline whose driver is killed while files arrive, and that then comes to its end; what is wrong."""
    from spark.test_exactly_once import feed

    chance, numbers = random.Random(seed), count()
    feed(root / "in", next(numbers))
    for _ in range(kills):
        place = chance.choice(("driver", "cluster"))
        with child(FOLLOW, str(root), place) as process:
            assert process.stdout is not None
            if chance.random() < 0.7:
                process.stdout.readline()
                for _ in range(chance.randrange(4)):
                    feed(root / "in", next(numbers))
                    sleep(chance.random())
                sleep(chance.random() * 4)
            else:
                sleep(chance.random() * 12)  # while it starts
            os.kill(process.pid, signal.SIGKILL)  # Java is not killed: it notices
            process.wait()
    with child(FINISH, str(root), "driver") as process:
        said, wrong = process.communicate(timeout=300)
    return [] if "right" in said else [f"seed {seed}: {wrong[-3000:]}"]


# -- trials


def run(seconds: float, seed: int) -> Outcome:
    """Databases in the first half of the time, pipelines in the second, if it is long enough for one."""
    outcome, start = Outcome(), monotonic()
    spark = seconds / 2 >= SPARK_NEEDS
    _databases(outcome, start + (seconds / 2 if spark else seconds), seed)
    for number in count(seed):
        if not spark or monotonic() + SPARK_NEEDS > start + seconds:
            return outcome
        with tempfile.TemporaryDirectory(prefix="everview-kills-", ignore_cleanup_errors=True) as directory:
            outcome.tried["pipelines"] += 1
            outcome.tried["drivers killed"] += 3
            outcome.faults += kill_pipeline(Path(directory), number, 3)
    raise AssertionError("counting has no end")


def _databases(outcome: Outcome, until: float, seed: int) -> None:
    for number in count(seed):
        chance, path, before = random.Random(number), Path(tempfile.mkdtemp(prefix="everview-kills-")), 0
        try:
            for _ in range(12):
                if monotonic() > until:
                    return
                outcome.tried["processes killed"] += 1
                found, faults = kill_database(path / "db", number, chance.random() ** 2 * 2)
                outcome.tried["changes"] += found - before
                before = found
                outcome.faults += [f"seed {number}: {fault}" for fault in faults]
        finally:
            shutil.rmtree(path, ignore_errors=True)
